"""A question's key in the ledger: written here, and read here.

A key is ``name #attempt digest v=version n=… after=digest``. The first digest says what is asked of which data with how
much ε, and the version is what the study states of the data. What is known only at a run follows: the public number of
units, and the keys of the earlier answers that the mechanism is made from. Keys name those answers and show nothing of
them (Proof: lem-following): they are in the audit trail. So the same question about the same data is never sampled
twice, and nothing else takes its answer. Nothing in a key is made from the contents or the size of a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from expost.canonical import canonical, sha256
from expost.cost import Cost
from expost.ledger import Entry, Ledger
from expost.study.kinds import KINDS
from expost.study.model import Question, Study

LOST = "it was interrupted while it was sampled, so its worst case was charged; under a new name it can be asked again"
VALUES = ": values"
"""The second step of a question that has two."""
_KEY = re.compile(rf"([\w-]+)({re.escape(VALUES)})? #(\d+) ([0-9a-f]{{64}}) v=(\S*)")
_UNITS = re.compile(r" n=(\d+)(?: |$)")


def ledger_key(study: Study, question: Question, attempt: int = 1, step: str = "") -> str:
    """What is known of a key before a run."""
    data, privacy = study.data, study.privacy
    derived, types = _used(study, question)
    written = {name: getattr(data, name) for name in ("quote", "decimal", "encoding")}
    about = [
        study.place,
        data.table,
        data.delimiter,
        types,
        {name: how for name, how in written.items() if how is not None},
    ]
    whose = [privacy.unit, privacy.rows, privacy.groups, privacy.neighbours]
    asked = [question.kind, str(question.amount), str(question.delta), dict(question.values), derived]
    named = KINDS[question.kind].refers_to(question.values).values()
    leans_on = [ledger_key(study, earlier) for earlier in study.questions if earlier.name in named]
    own = [study.job] if study.job else []
    text = json.dumps([about, whose, asked, leans_on, study.ledger.account, *own], sort_keys=True, default=str)
    return f"{question.name}{step} #{attempt} {sha256(text)} v={quote(data.version, safe='')}"


def key_at_run(known: str, size: int, after: Sequence[str]) -> str:
    """A key with what is known only at a run: the number of units, and the keys of answers that it is made from."""
    units = f" n={size}" if size else ""
    return known + units + (f" after={sha256(canonical(list(after)))}" if after else "")


class KeyParts(NamedTuple):
    """The parts of a ledger's key."""

    name: str
    step: str
    attempt: int
    digest: str
    version: str

    @property
    def question(self) -> str:
        """The question, its step and its attempt, for people."""
        return f"{self.name}{self.step}" + (f" ({self.attempt})" if self.attempt > 1 else "")

    @property
    def first_attempt(self) -> str:
        """What was known before its run of the key of the question's first attempt."""
        return f"{self.name} #1 {self.digest} v={quote(self.version, safe='')}"


def parts_of(key: str) -> KeyParts | None:
    """The parts of a study's key; None for any other key."""
    found = _KEY.match(key)
    if found is None:
        return None
    name, step, attempt, digest, version = found.groups()
    return KeyParts(name, step or "", int(attempt), digest, unquote(version))


def read_key(key: str) -> tuple[str, int | None]:
    """What was known of a key before its run, and the number of units, if that is public."""
    found = _KEY.match(key)
    units = None if found is None else _UNITS.match(key, found.end())
    return key if found is None else found[0], None if units is None else int(units[1])


def _used(study: Study, question: Question) -> tuple[dict[str, str], dict[str, str]]:
    """The derived columns and the types that a question may use: those whose names occur anywhere in it."""
    text = f"{study.privacy.unit} {_words(list(question.values.values()))}".casefold()
    derived = {}
    for name, expression in reversed(list(study.derive.items())):  # those below are made from those above
        if _named(name, text):
            derived[name] = expression
            text += f" {expression}".casefold()
    return derived, {name: kind for name, kind in (study.data.schema or {}).items() if _named(name, text)}


def _words(value: Any) -> str:
    """All texts in a value."""
    return " ".join(map(_words, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _named(name: str, text: str) -> bool:
    """Whether a column's name occurs in a text, as it is or as SQL quotes it."""
    return name.casefold() in text or name.casefold().replace('"', '""') in text


# ---- what a ledger has under the keys of a study


@dataclass(frozen=True)
class Stored:
    """What the ledger has about a question."""

    attempts: int
    last: Entry
    units: str
    """Their number, which a run would have to find unchanged; empty if that is known, or private."""
    unfinished: Cost
    """What a second step costs that has not been asked, because a run ended before."""

    @property
    def why(self) -> str:
        """What the ledger has, in words."""
        if self.last.state == "forfeited":
            return f"lost: {LOST}"
        if self.last.state == "reserved":
            return "is being asked right now"
        times = f"was asked {self.attempts} times: " if self.attempts > 1 else ""
        what = "half of the answer" if self.unfinished.epsilon_units else "the answer"
        return f"{times}the ledger has {what}" + (f", if there are still {self.units} units" if self.units else "")


def asked_then(question: Question, entry: Entry) -> Cost:
    """What a question asked for when it was asked, from its reservation."""
    share = KINDS[question.kind].first_share(question)
    worst = entry.guarantee.worst_case
    return Cost.within(worst.exact_epsilon / share, worst.exact_delta)


def stored_questions(study: Study, ledger: Ledger, size: int | None) -> dict[str, Stored]:
    """What the ledger has, by names of questions; about ``size`` units, or about any number if that is None."""
    entries: dict[str, tuple[Entry, str]] = {}
    for entry in ledger.entries():
        known, units = read_key(entry.key or "")
        if size is None or units in (None, size):
            entries[known] = entry, f"{units:,}" if size is None and units is not None else ""
    found = {}
    for question in study.questions:
        times = range(1, (question.repeat.at_most if question.repeat else 1) + 1)
        made = [attempt for attempt in times if ledger_key(study, question, attempt) in entries]
        if made:
            first, units_then = entries[ledger_key(study, question, made[-1])]
            second, _ = entries.get(ledger_key(study, question, made[-1], VALUES), (None, ""))
            unfinished = _second_step(question, first, ledger) if second is None else Cost(0)
            found[question.name] = Stored(len(made), second or first, units_then, unfinished)
    return found


def other_versions(study: Study, ledger: Ledger) -> dict[str, str]:
    """The versions of the data that stored answers of the same questions are about, if not about the stated one."""
    found: dict[str, set[str]] = {}
    for entry in ledger.entries():
        parts = parts_of(entry.key or "") if entry.state == "settled" else None
        if parts is not None:
            found.setdefault(f"{parts.name} {parts.digest}", set()).add(parts.version)
    other = {}
    for question in study.questions:
        own = parts_of(ledger_key(study, question))
        assert own is not None
        versions = found.get(f"{own.name} {own.digest}", set())
        if versions and own.version not in versions:
            other[question.name] = ", ".join(map(repr, sorted(versions)))
    return other


def _second_step(question: Question, first: Entry, ledger: Ledger) -> Cost:
    """The ε that remains for values of what was found, if something was."""
    if KINDS[question.kind].then is None or first.state != "settled" or first.charged is None or first.key is None:
        return Cost(0)
    found = any(ledger.output(first.key).values())
    return Cost.of_units(asked_then(question, first).epsilon_units - first.charged.epsilon_units) if found else Cost(0)
