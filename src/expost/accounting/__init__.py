"""ARITHMETIC on facts: filters and odometers. Pure functions, certified bounds."""

from expost.accounting.filters import CONT, HALT, Decision, Filter, Odometer, OdpFilter, decide

__all__ = ["CONT", "HALT", "Decision", "Filter", "Odometer", "OdpFilter", "decide"]
