"""Spark as an engine behind private tables."""

from expost.data.spark.engine import Spark

__all__ = ["Spark"]
