"""ALGORITHMS: one file a family."""

from expost.mechanisms.coin import Coin

__all__ = ["Coin"]
