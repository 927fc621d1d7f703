"""Differential privacy that charges for what an output actually leaked, and gives the rest back."""

from expost._version import __version__

__all__ = ["__version__"]
