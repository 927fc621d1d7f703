"""From a study to its table and its ledger. Everything that can be wrong publicly is found here, before any charge."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from expost.cost import Cost
from expost.data import PrivateTable, Unit, read
from expost.errors import InvalidStudy, InvalidValue
from expost.ledger import Ledger, ledgers
from expost.ledger.entry import least
from expost.mechanisms.stability.quantile_range import Bin
from expost.noise import NoiseSource
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Answer, Asked
from expost.study.model import SQLITE, Question, Study

NOMINAL_SIZE = 10_000
"""Stands for the number of units while nothing is read: no price depends on it."""


@dataclass(frozen=True)
class Opened:
    """A study and its table."""

    study: Study
    table: PrivateTable


def open_table(study: Study) -> Opened:
    """The study's table. Looks at its schema only."""
    data, privacy = study.data, study.privacy
    try:
        unit = "row" if privacy.unit == "row" else Unit(privacy.unit, rows=privacy.rows or 1, groups=privacy.groups)
        table = read(
            study.source,
            unit=unit,  # type: ignore[arg-type]
            neighbours=privacy.neighbours,
            table=data.table,
            schema=data.schema,
            delimiter=data.delimiter,
            quote=data.quote,
            size=privacy.size,
        )
    except InvalidValue as error:
        raise study.wrong(_blamed(study, str(error)), str(error)) from None
    for name, expression in study.derive.items():
        try:
            table = table.derive(**{name: expression})
        except InvalidValue as error:
            raise study.wrong(f"derive.{name}", f"{name}: {error}") from None
    _check_who(study, table)
    return Opened(study, table)


def _blamed(study: Study, said: str) -> str:
    """The key that an error about the table speaks of."""
    typed = next(
        (name for name in study.data.schema or () if f"column {name!r} " in f"{said} ".replace(":", " ")), None
    )
    if typed is not None:
        return f"data.schema.{typed}"
    return "privacy.unit" if repr(study.privacy.unit) in said else "data.path"


def _check_who(study: Study, table: PrivateTable) -> None:
    """A row must not go by the name of somebody who may have several."""
    unit, who = study.privacy.unit, study.privacy.who
    if who.lower() != unit.lower() and who.lower() in (name.lower() for name in table.schema):
        raise study.wrong(
            "privacy.who",
            f"'who' is {who!r}, a column, and the unit is {unit!r}: protect that column's values with "
            f"unit = {who!r} and 'rows', or call the unit something else",
        )


def check_questions(opened: Opened) -> None:
    """Make every question once, with all the ε it could get: columns, types and settings are right, or it is said."""
    problems: list[tuple[int | None, str]] = []
    stand_ins: dict[str, Answer] = {}
    for question in opened.study.questions:
        try:
            most = question.amount.resolve(opened.study.limit, opened.study.limit)
            asked = asked_for(opened, question, most.epsilon, NOMINAL_SIZE, stand_ins)
            kind = KINDS[question.kind]
            kind.mechanism(asked)
            column = kind.on(asked)
            if column is not None:
                _ = column.plan
        except InvalidValue as error:
            problems.append(problem(question, error))
        if question.kind == "interquartile_range":
            stand_ins[question.name] = Answer("", None, released=Bin(1, 1.0, 2.0))
    if problems:
        raise InvalidStudy(str(opened.study.file), tuple(problems))


def problem(question: Question, error: InvalidValue) -> tuple[int | None, str]:
    """What is wrong with a question, at the line of the key whose value the error speaks of."""
    said = str(error)
    for key, value in question.values.items():
        words = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        names = {name for word in words if isinstance(word, str) for name in (word, *re.findall(r"\w+", word))}
        if any(repr(name) in said for name in names):
            return question.lines.get(key, question.line), f"question {question.name!r}: {key}: {said}"
    return question.line, f"question {question.name!r}: {said}"


def asked_for(
    opened: Opened,
    question: Question,
    epsilon: float,
    size: int,
    earlier: Mapping[str, Answer],
    delta: Fraction | None = None,
) -> Asked:
    """A question with its ε and δ; where no δ is given, the study's, or a nominal one if that is the rest."""
    if delta is None:
        delta = Fraction(1, 10**6) if question.delta == "rest" else question.delta
    return Asked(question, opened.table, epsilon, delta, size, earlier)


def open_ledger(study: Study, *, create: bool, noise: NoiseSource | None = None) -> Ledger | None:
    """The study's ledger or account; made if there is none and it may be, else None.

    One that is there must be about the same unit and neighbours, and have the limit that the study states.
    """
    books, privacy, limit = study.books, study.privacy, study.limit
    if books.url == "memory:":
        return Ledger(
            limit.exact_epsilon, limit.exact_delta,
            name=books.name, neighbours=privacy.neighbours, unit=privacy.ledger_unit, noise=noise,
        )  # fmt: skip
    url = study.ledger_url
    if url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).parent.is_dir():
        raise study.wrong("ledger.url", f"there is no folder {Path(url.removeprefix(SQLITE)).parent} for the ledger")
    if not _exists(url, books.name):
        if books.account is not None:
            shown = url if url.startswith(SQLITE) else "URL"  # which may have a password
            made = shlex.join(["ledger", "create", shown, books.name, "--unit", privacy.ledger_unit])
            raise study.wrong(
                "ledger.account",
                f"there is no ledger {books.name!r}, and an account needs one: expost {made} --neighbours "
                f"{privacy.neighbours} --epsilon … --delta …",
            )
        if not create:
            return None
        return Ledger.create(
            url, books.name, limit.exact_epsilon, limit.exact_delta,
            neighbours=privacy.neighbours, unit=privacy.ledger_unit, noise=noise,
        )  # fmt: skip
    ledger = Ledger.load(url, books.name, noise=noise)
    _check_same(study, ledger)
    if books.account is not None:
        return _account(study, ledger, books.account, create)
    if ledger.limit != limit:
        raise study.wrong(
            "ledger.name",
            f"ledger {books.name!r} has a limit of {ledger.limit}, and the study says {limit}: say the same in "
            "[limit], or 'account' in [ledger] to spend within it",
        )
    return ledger


def left_before(study: Study, ledger: Ledger | None) -> Cost:
    """What a study has left now. A ledger or account that is not there yet has its limit, or less if that above has."""
    if ledger is not None:
        return ledger.remaining
    if study.books.account is None:
        return study.limit
    return least((study.limit, Ledger.load(study.ledger_url, study.books.name).remaining))


def _exists(url: str, name: str) -> bool:
    if url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).exists():
        return False
    return any(summary.name == name for summary in ledgers(url))


def _check_same(study: Study, ledger: Ledger) -> None:
    for what, theirs, ours in (
        ("unit", ledger.unit, study.privacy.ledger_unit),
        ("neighbours", ledger.neighbours, study.privacy.neighbours),
    ):
        if theirs != ours:
            raise study.wrong(
                "ledger.name",
                f"ledger {study.books.name!r} is about another {what}: {theirs!r}, and the study's is {ours!r}. What "
                "was promised of one says nothing about the other: take another ledger",
            )


def _account(study: Study, ledger: Ledger, name: str, create: bool) -> Ledger | None:
    there = {account.name.rsplit("/", 1)[-1]: account for account in ledger.accounts}
    if name not in there:
        return ledger.create_account(name, study.limit) if create else None
    if there[name].limit != study.limit:
        raise study.wrong(
            "ledger.account", f"account {name!r} has a limit of {there[name].limit}, and the study says {study.limit}"
        )
    return there[name]
