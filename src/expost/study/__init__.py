"""A declarative analysis: plan it, run it, report it."""

from expost.study.model import Study as Study
from expost.study.parse import parse_study as parse_study
from expost.study.parse import read_study as read_study
from expost.study.plan import Plan as Plan
from expost.study.plan import plan_study as plan_study
from expost.study.record import read_record as read_record
from expost.study.record import record_of as record_of
from expost.study.record import write_record as write_record
from expost.study.report import report_html as report_html
from expost.study.run import Outcome as Outcome
from expost.study.run import Result as Result
from expost.study.run import run_study as run_study
from expost.study.template import starter as starter
from expost.study.wanted import epsilon_for as epsilon_for
