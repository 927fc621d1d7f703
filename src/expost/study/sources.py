"""A study's table and its ledger. What is publicly wrong with them is found here, before any charge."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from expost.cost import Cost, decimal_text
from expost.data import PrivateTable, Unit, read
from expost.errors import InvalidValue, UnknownEntry
from expost.ledger import Ledger, ledgers
from expost.ledger.imagined import Imagined
from expost.mentions import brief
from expost.noise import NoiseSource
from expost.study.model import SQLITE, Study
from expost.study.toml import toml_words
from expost.unit_names import same_unit

_PARAMETERS = {"unit": "privacy.unit", "size": "privacy.size", "schema": "data.schema"}
"""Where a study says what a parameter of ``read`` is; all others are about the path."""


def open_table(study: Study) -> PrivateTable:
    """The study's table, with its derived columns. Looks at its schema only."""
    return derived(study, stated_table(study))


def stated_table(study: Study) -> PrivateTable:
    """The table that the study names."""
    neighbours, size = study.privacy.neighbours, study.privacy.size
    try:
        return read(study.source, unit=whose(study), neighbours=neighbours, size=size, **study.data.reading)
    except InvalidValue as error:
        raise study.wrong(_place(error), error.text(toml_words)) from None


def unsaid_encoding(study: Study) -> str:
    """A warning, if letters beyond ASCII are asked for in a CSV file whose encoding is not stated."""
    if study.data.encoding or study.data.table or not study.data.path.lower().removesuffix(".gz").endswith(_CSV):
        return ""
    stated = [*study.derive.values(), *(value for question in study.questions for value in _texts(question.values))]
    odd = next((text for text in stated if not text.isascii()), None)
    if odd is None:
        return ""
    return (
        f"{brief(odd)} is found only if {study.data.path} is written in UTF-8, which is not looked at: state "
        'encoding = "utf-8" in [data], or what it is'
    )


_CSV = (".csv", ".tsv", ".txt")


def _texts(values: Any) -> Iterator[str]:
    """All texts in the values of a question."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        yield from _texts([*values.keys(), *values.values()])
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _texts(value)


def whose(study: Study) -> Unit:
    """Whose privacy the study protects."""
    return study.privacy.unit_of_tables


def derived(study: Study, table: PrivateTable) -> PrivateTable:
    """A table with the study's derived columns."""
    for name, expression in study.derive.items():
        try:
            table = table.derive(**{name: expression})
        except InvalidValue as error:
            raise study.wrong(f"derive.{name}", f"{name}: {error.text(toml_words)}") from None
    _check_who(study, table)
    return table


def public_size(study: Study, table: PrivateTable) -> int | None:
    """The number of units, where it is public; data without any is refused."""
    if study.privacy.neighbours != "substitute":
        return None
    try:
        size = table.counted()
    except InvalidValue as error:
        raise study.wrong(_place(error), error.text(toml_words)) from None
    if not size:
        why = f"; a {study.privacy.unit} that {table.nobody} names nobody, in a Parquet file" if table.nobody else ""
        raise study.wrong("data.path", f"the data has no {study.privacy.whose}: nothing can be asked of it{why}")
    return size


def _place(error: InvalidValue) -> str:
    """The key of the study that an error about the table is about."""
    parameter, *rest = error.about if isinstance(error.about, tuple) else ("path",)
    return ".".join((_PARAMETERS.get(parameter, "data.path"), *rest))


def _check_who(study: Study, table: PrivateTable) -> None:
    """A row must not be named after a unit that may have several rows."""
    unit, who = study.privacy.unit, study.privacy.who
    if who.lower() != unit.lower() and who.lower() in (name.lower() for name in table.schema):
        raise study.wrong(
            "privacy.who",
            f"'who' is {who!r}, a column, and the unit is {unit!r}: protect that column's values with "
            f"unit = {who!r} and 'rows'. Only if no two rows have the same {who}, call the unit something else",
        )


# ---- the ledger


def find_ledger(study: Study, noise: NoiseSource | None = None) -> Ledger | None:
    """The study's ledger or account; None if the ledger does not exist yet. Accounts are never created here.

    One that exists must be about the same unit and neighbours, and have the limit that the study states.
    """
    section, url = study.ledger, study.ledger_url
    if section.url == "memory:":
        return None
    if url.startswith(SQLITE) and not os.path.isdir(Path(url.removeprefix(SQLITE)).parent):
        raise study.wrong("ledger.url", f"there is no folder {Path(url.removeprefix(SQLITE)).parent} for the ledger")
    if not _exists(url, section.name):
        if section.account is not None:
            raise study.wrong(
                "ledger.account",
                f"there is no ledger {section.name!r}, and an account needs one: {_create_command(study, study.limit)}",
            )
        return None
    ledger = Ledger.load(url, section.name, noise=noise)
    check_same(study, ledger)
    _check_accounting(study, ledger)
    if section.account is not None:
        ledger = _account(study, ledger, section.account)
    if ledger.limit != study.limit:
        remedy = "" if section.account else ", or name an 'account' in [ledger] to spend within it"
        raise study.wrong(
            "ledger.account" if section.account else "ledger.name",
            f"{ledger.name!r} has a limit of {ledger.limit}, and the study says {study.limit}: write the same in "
            f"[limit]{remedy}. {_raise_command(study, ledger.limit)}",
        )
    return ledger


def stored_ledger(study: Study) -> Ledger:
    """The study's ledger or account, for reading only."""
    section = study.ledger
    if section.url == "memory:" or not _exists(study.ledger_url, section.name):
        raise study.wrong(
            "ledger.url",
            f"there is no ledger {section.name!r} here: nothing was published from it. What an earlier run "
            f"published is in its record, {study.file.with_suffix('.run.json').name}, if that is still there",
        )
    ledger = Ledger.load(study.ledger_url, section.name, read_only=True)
    return ledger if section.account is None else _account(study, ledger, section.account)


def ledger_is_gone(study: Study, name: str, head: str) -> str:
    """A warning, if the ledger that a record names is not there, or has not the line that the record noted."""
    if study.ledger.url == "memory:" or name.partition("/")[0] != study.ledger.name:
        return ""
    place = f"ledger {study.ledger.name!r}, from which the last run was paid,"
    if not _exists(study.ledger_url, study.ledger.name):
        return f"{place} is gone: a new one does not know what was spent. Restore it, or find out where it is"
    line, _, digest = head.partition(":")
    trail = Ledger.load(study.ledger_url, study.ledger.name, read_only=True).audit_trail(int(line) - 1)
    found = next(trail, None)
    if found is not None and found.hash == digest:
        return ""
    return f"{place} was replaced: it has not the line that the record noted. A backup, or a new one, spends twice"


def new_ledger(study: Study, noise: NoiseSource | None = None) -> Ledger:
    """The ledger that the study describes, new."""
    section, privacy, limit = study.ledger, study.privacy, study.limit
    if section.url == "memory:":
        return Ledger(
            limit, name=section.name, neighbours=privacy.neighbours, unit=privacy.ledger_unit, noise=noise,
            accounting=section.accounting or "basic",
        )  # fmt: skip
    return Ledger.create(
        study.ledger_url, section.name, limit,
        neighbours=privacy.neighbours, unit=privacy.ledger_unit, noise=noise, accounting=section.accounting or "basic",
    )  # fmt: skip


def imagined(study: Study, ledger: Ledger | None) -> Imagined:
    """What a study may spend now: its limit, if its ledger does not exist yet."""
    if ledger is not None:
        return Imagined.of(ledger)
    try:
        return Imagined.of(Ledger(study.limit, accounting=study.ledger.accounting or "basic"))
    except InvalidValue as error:
        raise study.wrong("ledger.accounting", error.text(toml_words)) from None


def _exists(url: str, name: str) -> bool:
    if url.startswith(SQLITE) and not os.path.exists(url.removeprefix(SQLITE)):
        return False
    return any(summary.name == name for summary in ledgers(url))


def check_same(study: Study, ledger: Ledger) -> None:
    """A ledger may say the unit in full, or in a word: as every ledger compares it."""
    privacy = study.privacy
    for what, theirs, ours, same in (
        ("unit", ledger.unit, privacy.ledger_unit, same_unit(ledger.unit or "", privacy.ledger_unit)),
        ("neighbours", ledger.neighbours, privacy.neighbours, ledger.neighbours == privacy.neighbours),
    ):
        if not same:
            raise study.wrong(
                "ledger.name",
                f"{what}: ledger {study.ledger.name!r} says {theirs!r}, and the study says {ours!r}. A "
                f"guarantee for one is none for the other: make the study about the ledger's, in [privacy]. "
                f"{_another(study)}",
            )


def _check_accounting(study: Study, ledger: Ledger) -> None:
    """How a ledger adds up is fixed when it is made."""
    theirs, ours = "renyi" if len(ledger.meters) > 1 else "basic", study.ledger.accounting
    if ours not in (None, theirs):
        raise study.wrong(
            "ledger.accounting",
            f"ledger {study.ledger.name!r} was made with accounting {theirs!r}, and the study says {ours!r}: that is "
            f"fixed when a ledger is made. Write {theirs!r}. {_another(study)}",
        )


def _account(study: Study, ledger: Ledger, path: str) -> Ledger:
    account = ledger
    for name in path.split("/"):
        try:
            account = account.account(name)
        except UnknownEntry:
            near = get_close_matches(name, [each.name.rpartition("/")[2] for each in account.accounts], 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            command = ["ledger", "create-account", _shown(study), study.ledger.name, path]
            command += _limits(study.limit)
            raise study.wrong(
                "ledger.account",
                f"{account.name!r} has no account {name!r}: {hint}a study creates none; its owner does, with "
                f"expost {shlex.join(command)}",
            ) from None
    return account


def _another(study: Study) -> str:
    """How to make another ledger, and what that means for people who are in both."""
    return (
        "Another ledger has a limit of its own, which adds to this one's for the same people: if that is decided, "
        f"{_create_command(study, study.limit, '-2')}"
    )


def _create_command(study: Study, limit: Cost, suffix: str = "") -> str:
    """The command that creates a ledger for this study: of the same name, or of one that ends so."""
    privacy = study.privacy
    words = ["ledger", "create", _shown(study), study.ledger.name + suffix, "--unit", privacy.ledger_unit]
    words += ["--neighbours", privacy.neighbours, *_limits(limit)]
    words += ["--accounting", study.ledger.accounting] if study.ledger.accounting else []
    return f"expost {shlex.join(words)}"


def _raise_command(study: Study, limit: Cost) -> str:
    """The command by which an owner raises a limit to the study's, where that is higher."""
    wanted = study.limit
    if wanted.epsilon_units < limit.epsilon_units or wanted.delta_units < limit.delta_units:
        return "A limit cannot be lowered"
    options = _limits(wanted)
    changed = options[2:] if wanted.epsilon_units == limit.epsilon_units else options
    changed = changed[:2] if wanted.delta_units == limit.delta_units else changed
    words = ["ledger", "raise", _shown(study), study.ledger.name, *changed]
    words += ["--account", study.ledger.account] if study.ledger.account else []
    return f"If its owner decides to raise it, expost {shlex.join(words)} --by … --reason …"


def _limits(limit: Cost) -> list[str]:
    return ["--epsilon", limit.epsilon_text, "--delta", decimal_text(limit.delta_units, 18)]


def _shown(study: Study) -> str:
    """The address of a file; that of a server may have a password."""
    return study.ledger_url if study.ledger_url.startswith(SQLITE) else "URL"
