"""Data frames, converted once to Arrow columns: by their types alone, whatever their values."""

from expost.data.frames.libraries import columns_of, is_frame
from expost.data.frames.plain import PlainColumn, arrow_table

__all__ = ["PlainColumn", "arrow_table", "columns_of", "is_frame"]
