"""Callers' questions as studies: only kinds of questions and total expressions, never paths, ledgers or limits.

What is wrong is reported by a JSON pointer into the request, with the study's own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from expost.cost import Cost
from expost.errors import InvalidStudy
from expost.service.config import DataSet
from expost.service.lines import RULE, is_line
from expost.study.kinds import KINDS
from expost.study.lines import Place, line_index
from expost.study.model import LedgerSection, Question, Study
from expost.study.parse import StudyReader, toml_of

MOST_QUESTIONS, MOST_DERIVED = 100, 200
"""Questions of a job, and columns that are computed for them."""
MOST_FAULTS = 20
"""Faults that are reported: to find and to send thousands takes longer than a request is long."""
_ANYWHERE = "service:"
"""Instead of the ledger's address: keys stay the same when a ledger is moved."""


class Fault(NamedTuple):
    """What is wrong with a request, and where: a JSON pointer, and a line if questions came as TOML."""

    pointer: str
    detail: str
    line: int | None = None


_Found = TypeVar("_Found")


def first_faults(found: Sequence[_Found], fault_of: Callable[[_Found], Fault]) -> tuple[Fault, ...]:
    """What is wrong, of the first that were found, and how many there are beside them."""
    more = len(found) - MOST_FAULTS
    left = (Fault("", f"and {more} more"),) if more > 0 else ()
    return (*map(fault_of, found[:MOST_FAULTS]), *left)


class InvalidRequest(Exception):
    """A request that breaks rules: all its faults."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(faults)
        self.faults = faults


@dataclass(frozen=True)
class Inquiry:
    """A request to ask: questions and derived columns, as they were given; and how lines lead back to places."""

    questions: Any
    derive: Mapping[str, str]
    index: Mapping[Place, int]
    toml: bool

    def study(
        self, data: DataSet, account: tuple[str, ...], limit: Cost, job: str = "", *, metered: bool = False
    ) -> Study:
        """The study of an account; ``metered`` if its ledger counts Rényi prices, too. Raises ``InvalidRequest``."""
        sections = {**data.sections, "derive": {**data.sections["derive"], **self.derive}, "question": self.questions}
        metered = metered and bool(limit.delta_units)  # without a δ there is the basic sum alone
        if metered:
            sections |= {
                "limit": {"epsilon": 1, "delta": 1e-9},
                "ledger": {**data.sections["ledger"], "accounting": "renyi"},
            }
        self._refuse_others(data)
        try:
            study = StudyReader("", Path(data.name), dict(self.index)).study(sections)
        except InvalidStudy as error:
            raise self.refusal(error) from None
        self._refuse_labels(study)
        self._refuse_kinds(study, data)
        self._refuse_large(study, data.largest_answer)
        ledger = LedgerSection(_ANYWHERE, account[0], "/".join(account[1:]) or None, "renyi" if metered else None)
        return replace(study, file=data.study.file, title=data.title, limit=limit, ledger=ledger, job=job)

    def refusal(self, error: InvalidStudy) -> InvalidRequest:
        """The problems of a study as faults of the request."""
        return InvalidRequest(
            *first_faults(error.problems, lambda each: Fault(self._pointer(each[0]), each[1], self._line(each[0])))
        )

    def _refuse_others(self, data: DataSet) -> None:
        twice = [name for name in self.derive if name in data.sections["derive"]]
        if twice:
            raise InvalidRequest(Fault(f"/derive/{_escaped(twice[0])}", "there is a column of that name already"))
        if len(self.derive) > MOST_DERIVED:
            raise InvalidRequest(Fault("/derive", f"a job has at most {MOST_DERIVED} derived columns"))
        if isinstance(self.questions, list) and len(self.questions) > MOST_QUESTIONS:
            raise InvalidRequest(Fault("/questions", f"a job has at most {MOST_QUESTIONS} questions"))

    def _refuse_labels(self, study: Study) -> None:
        """The trail has them."""
        found = [question for question in study.questions if not is_line(question.label)]
        if found:
            raise InvalidRequest(*first_faults(found, self._other_label))

    def _other_label(self, question: Question) -> Fault:
        line = question.lines.get("label", question.line)
        return Fault(self._pointer(line), f"question {question.name!r}: a label is {RULE}", self._line(line))

    def _refuse_kinds(self, study: Study, data: DataSet) -> None:
        found = [question for question in study.questions if question.kind not in data.kinds]
        if found:
            raise InvalidRequest(*first_faults(found, lambda each: self._other_kind(each, data)))

    def _other_kind(self, question: Question, data: DataSet) -> Fault:
        return Fault(
            self._pointer(question.lines.get("kind", question.line)),
            f"{question.kind!r} may not be asked of {data.name!r}: allowed are {', '.join(data.kinds)}",
            self._line(question.line),
        )

    def _refuse_large(self, study: Study, most: int) -> None:
        """Answers are kept and sent: how large they may become is known from what is asked."""
        sizes = [(KINDS[question.kind].size(question), question) for question in study.questions]
        if (whole := sum(size for size, _ in sizes)) <= most:
            return
        size, largest = max(sizes, key=lambda each: each[0])
        raise InvalidRequest(
            Fault(
                self._pointer(largest.line),
                f"the answers of a job have at most {most:,} numbers, and these may have {whole:,}, of which question "
                f"{largest.name!r} {size:,}: ask for fewer bins, groups, keys or repetitions, or in several jobs. A "
                "custodian can raise largest_answer",
                self._line(largest.line),
            )
        )

    def _line(self, line: int | None) -> int | None:
        return line if self.toml else None

    def _pointer(self, line: int | None) -> str:
        """The deepest place that is on a line."""
        places = [place for place, at in self.index.items() if at == line]
        if not places:
            return "/toml" if self.toml else "/questions"
        return "/" + "/".join(map(_escaped, _outside(max(places, key=len))))


def asked_of(body: Mapping[str, Any]) -> Inquiry:
    """What a request asks: ``questions`` with ``derive``, or both in a ``toml``. Raises ``InvalidRequest``."""
    text = body.get("toml")
    if (text is None) == (body.get("questions") is None):
        raise InvalidRequest(Fault("", "give either 'questions', a list, or 'toml', a study's questions as text"))
    if text is not None:
        return _of_toml(text, body)
    derive = body.get("derive") or {}
    given = {"derive": derive, "question": body["questions"]}
    return Inquiry(body["questions"], derive, dict(zip(_places(given), range(1, 10**9), strict=False)), toml=False)


def _of_toml(text: str, body: Mapping[str, Any]) -> Inquiry:
    if body.get("derive"):
        raise InvalidRequest(Fault("/derive", "derived columns are part of the TOML: write them in [derive] there"))
    try:
        given = toml_of(text, Path("toml"))
    except InvalidStudy as error:
        raise InvalidRequest(*first_faults(error.problems, lambda each: Fault("/toml", each[1], each[0]))) from None
    index = line_index(text)
    others = [name for name in given if name not in ("title", "derive", "question")]
    if others:
        rule = "the server knows data, privacy, limit and ledger: send [[question]] and [derive] only"
        raise InvalidRequest(
            *first_faults(others, lambda name: Fault("/toml", f"{name!r}: {rule}", index.get((name,))))
        )
    derive = given.get("derive", {})
    if not isinstance(derive, dict) or not all(isinstance(each, str) for each in derive.values()):
        raise InvalidRequest(Fault("/toml", '[derive] has expressions: name = "expression"', index.get(("derive",))))
    return Inquiry(given.get("question"), derive, index, toml=True)


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value."""
    if place:
        yield place
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list) and len(place) <= 1:
        inside = enumerate(value)
    for name, each in inside:
        yield from _places(each, (*place, name))


def _outside(place: Place) -> Place:
    """A place of a study as callers know it."""
    return ("questions", *place[1:]) if place[0] == "question" else place


def _escaped(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")
