"""Data frames, made columns of Arrow once: by their types alone, and whatever their values are."""

from expost.data.frames.libraries import columns_of, is_frame
from expost.data.frames.plain import PlainColumn, arrow_table

__all__ = ["PlainColumn", "arrow_table", "columns_of", "is_frame"]
