"""Spark as an engine behind private tables."""

from expost.data.spark.engine import Spark
from expost.data.spark.sources import is_spark

__all__ = ["Spark", "is_spark"]
