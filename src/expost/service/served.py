"""Data sets that are open: the private table, its blank twin for plans, and the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from expost.cost import Cost
from expost.data import PrivateTable
from expost.errors import InvalidStudy, InvalidValue, UnknownEntry
from expost.ledger import Ledger
from expost.ledger.imagined import Imagined
from expost.service.asked import Fault, Inquiry
from expost.service.blank import blank_table
from expost.service.config import DataSet, ServerConfig
from expost.service.problems import Refusal
from expost.study.check import Questions
from expost.study.model import Study
from expost.study.plan import Plan, plan_questions
from expost.study.sources import check_same, derived, open_table, public_size, whose
from expost.study.toml import toml_words

PLAN_SECONDS = 10.0
"""Seconds that a processor may work on a plan."""


def _deadline() -> Callable[[], None]:
    """Refuses what this thread has worked on for too long. What others do on the machine does not count."""
    until = time.thread_time() + PLAN_SECONDS

    def go_on() -> None:
        if time.thread_time() > until:
            detail = f"to price these questions takes more than {PLAN_SECONDS:g} seconds: ask them in several jobs"
            raise Refusal(422, detail, faults=[Fault("", detail)], error="InvalidValue")

    return go_on


@dataclass(frozen=True)
class Served:
    """A data set that can be asked."""

    about: DataSet
    table: PrivateTable
    blank: PrivateTable
    size: int | None
    """The number of units, where it is public."""
    ledger: Ledger

    def study(self, asked: Inquiry, account: tuple[str, ...], limit: Cost, job: str = "") -> Study:
        """What is asked as a study of an account. Raises ``InvalidRequest``."""
        return asked.study(self.about, account, limit, job, metered=self._has_meters)

    def plan(self, asked: Inquiry, account: tuple[str, ...], budget: Imagined) -> tuple[Study, Plan]:
        """What questions would cost. Touches no data, and neither table nor ledger. Raises ``InvalidRequest``."""
        study = self.study(asked, account, budget.levels[-1].limit)
        try:
            questions = Questions(study, self._columns(study, self.blank), self.size, budget, _deadline())
            return study, plan_questions(questions, budget)
        except InvalidStudy as error:
            raise asked.refusal(error) from None

    @cached_property
    def _has_meters(self) -> bool:
        """Whether what remains is more than a cost; that does not change."""
        return len(self.ledger.meters) > 1

    def questions(self, study: Study, budget: Imagined) -> Questions:
        """A study's questions about the private table, where this remains."""
        return Questions(study, self._columns(study, self.table), self.size, budget)

    def account(self, path: tuple[str, ...]) -> Ledger:
        """The account of that path, which begins with the ledger's name. Raises ``UnknownEntry``."""
        account = self.ledger
        for name in path[1:]:
            account = account.account(name)
        return account

    def _columns(self, study: Study, table: PrivateTable) -> PrivateTable:
        """A table with the caller's derived columns; those of the data set are there already."""
        known = self.about.study.derive
        for name, expression in study.derive.items():
            if name not in known:
                try:
                    table = table.derive(**{name: expression})
                except InvalidValue as error:
                    raise study.wrong(f"derive.{name}", f"{name}: {error.text(toml_words)}") from None
        return table

    def facts(self) -> dict[str, Any]:
        """What everybody who may ask may know."""
        about, privacy = self.about, self.about.study.privacy
        return {
            "name": about.name,
            "title": about.title,
            "ledger": about.ledger,
            "unit": privacy.unit,
            "who": privacy.whose,
            "rows": privacy.rows,
            "groups": privacy.groups,
            "neighbours": privacy.neighbours,
            "size": self.size,
            "schema": dict(self.table.schema),
            "bounds": {name: list(pair) for name, pair in about.bounds.items()},
            "derive": dict(about.study.derive),
            "kinds": list(about.kinds),
            "review": about.review,
            "synthetic": about.synthetic,
            "version": about.study.data.version,
        }


def open_data(config: ServerConfig) -> dict[str, Served]:
    """All data sets, checked: files, columns, ledgers. Raises ``InvalidStudy`` with file and line."""
    return {name: _served(config, about) for name, about in config.data.items()}


def _served(config: ServerConfig, about: DataSet) -> Served:
    study = about.study
    table = open_table(study)
    size = public_size(study, table)
    unknown = [column for column in about.bounds if column not in table.schema]
    if unknown:
        raise study.wrong("data.bounds", f"bounds: there is no column {unknown[0]!r}")
    plain = {name: kind for name, kind in table.schema.items() if name not in study.derive}
    blank = blank_table(
        about.name, plain, unit=whose(study), neighbours=study.privacy.neighbours, size=size
    )  # fmt: skip
    try:
        ledger = Ledger.load(config.url, about.ledger)
    except InvalidValue as error:
        raise study.wrong("ledger.name", error.text(toml_words)) from None
    except UnknownEntry as error:
        raise study.wrong(
            "ledger.name",
            f"{error.text(toml_words)}. If nothing was ever published about these people: expost ledger create "
            f"URL {about.ledger} --unit '{study.privacy.ledger_unit}' "
            f"--neighbours {study.privacy.neighbours} --epsilon … --delta …",
        ) from None
    check_same(study, ledger)
    table.engine.fetch("SELECT 1")  # copies files that are read whole: no job is late for that
    return Served(about, table, derived(study, blank), size, ledger)
