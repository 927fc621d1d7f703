"""A declarative analysis: plan it, run it, report it."""

from expost.study.model import Study
from expost.study.parse import parse_study, read_study
from expost.study.plan import Plan, plan_study
from expost.study.record import read_record, record_of, write_record
from expost.study.report import report_html
from expost.study.run import Outcome, Result, run_study
from expost.study.template import starter
from expost.study.wanted import epsilon_for

__all__ = [
    "Outcome",
    "Plan",
    "Result",
    "Study",
    "epsilon_for",
    "parse_study",
    "plan_study",
    "read_record",
    "read_study",
    "record_of",
    "report_html",
    "run_study",
    "starter",
    "write_record",
]
