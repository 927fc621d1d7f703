"""How an answer was made, in words: what was asked of which rows, what was changed before, and what ± covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from expost.data.questions import TableMechanism
from expost.frame import number_text
from expost.mechanism import Mechanism
from expost.study.grammar import pairs_of
from expost.study.kinds import keys
from expost.study.kinds.groups import group_columns, group_keys, is_grouped
from expost.study.kinds.kind import DROWNED, Answer, Asked, NoBar, QuestionKind
from expost.study.kinds.lost import known_loss
from expost.study.model import Privacy, Question


def how_made(
    asked: Asked, privacy: Privacy, kind: QuestionKind, mechanism: Mechanism, answer: Answer
) -> dict[str, str]:
    """What a reader has to know of an answer, by subject; public facts only."""
    facts = {
        "about": _subject(asked),
        "for each": _groups(asked) if "by" in asked.question.values else "",
        "which rows": f"where {asked['where']}" if "where" in asked.question.values else "all",
        "bounds": _bounds(asked),
        f"of each {privacy.whose}": _share(privacy, kind, is_grouped(mechanism)) + _nobody(asked),
        "empty values": _missing(asked, kind),
        "noise": _noise(kind, mechanism),
        "± covers": kind.covers * ("±" in answer.text),
        "no error bar": _no_bar(asked, kind, mechanism, answer),
    }
    return {name: text for name, text in facts.items() if text}


def notice_of(asked: Asked, answer: Answer, known: Iterable[tuple[Question, Any]]) -> str:
    """What to beware of: what its kind says, and what follows from the answer, its noise, its bounds and their loss."""
    bound = "this is a bound: the true value may lie beyond it, or there are too few values for this ε"
    at_bound = answer.number is not None and answer.number in asked.get("bounds", ())
    said = (answer.notice, _case(asked), DROWNED * answer.drowned, bound * at_bound, known_loss(asked, known))
    return "; ".join(filter(None, said))


def _case(asked: Asked) -> str:
    """Whether two stated keys differ only by capital and small letters: the study says that, whatever the data."""
    stated = asked.question.values.get("keys", ()), asked.question.values.get("by_keys", ())
    seen: dict[str, str] = {}
    for key in _texts_in(stated):
        other = seen.setdefault(key.lower(), key)
        if other != key:
            return f"{other!r} and {key!r} are two keys, of which each finds only what is spelled as it is"
    return ""


def _texts_in(values: Any) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        yield from _texts_in(list(values.values()))
    elif isinstance(values, Sequence):
        for each in values:
            yield from _texts_in(each)


def _subject(asked: Asked) -> str:
    if "features" in asked.question.values:
        return f"{asked['target']} by {', '.join(asked['features'])}"
    if "columns" in asked.question.values:
        return " and ".join(asked["columns"])
    return str(asked.get("column", "rows" if asked.get(keys.COUNTED.name, "rows") == "rows" else "units"))


def _bounds(asked: Asked) -> str:
    stated, target = asked.get("bounds"), asked.get("target_bounds")
    if not stated and not target:
        return ""
    ranges = " and ".join(map(_range, pairs_of(stated, 1) if stated else []))
    of_target = f", target {_range(target)}" if target else ""
    outside = (
        "others are counted apart" if "bins" in asked.question.values else "values beyond count as the nearest bound"
    )
    return f"{ranges}{of_target}; {outside}"


def _range(pair: Sequence[float]) -> str:
    low, high = pair
    return f"{number_text(low)} to {number_text(high)}"


def _groups(asked: Asked) -> str:
    """The columns that tell groups apart, each with the values that are asked about."""
    names, keys = group_columns(asked.question.values), group_keys(asked.question.values)
    if "by_keys" not in asked.question.values:
        return " and ".join(f"{name} that enough units have" if name == names[-1] else name for name in names)
    return "; ".join(f"{name}: {', '.join(map(str, keys[name]))}" for name in names)


def _share(privacy: Privacy, kind: QuestionKind, in_groups: bool) -> str:
    if privacy.unit == "row":
        return "one row"
    rows = "one row counts" if privacy.rows == 1 else f"at most {privacy.rows} rows count"
    if in_groups:
        groups = privacy.groups or privacy.rows
        return f"{rows}, in at most {groups} group{'s' * (groups != 1)}"
    cells = f", in at most {privacy.groups} cell{'s' * (privacy.groups != 1)}" if privacy.groups and kind.cells else ""
    return rows + cells


def _nobody(asked: Asked) -> str:
    said = asked.table.nobody
    return f"; none if {asked.table.unit.column} {said}" if said else ""


def _missing(asked: Asked, kind: QuestionKind) -> str:
    if "missing" in asked.question.values:
        return f"count as {number_text(asked['missing'])}"
    return "do not count" if any(key.name == keys.DROPPED.name for key in kind.keys) else ""


def _no_bar(asked: Asked, kind: QuestionKind, mechanism: Mechanism, answer: Answer) -> str:
    """Why an answer has none."""
    if "±" in answer.text or answer.value is None:
        return ""
    found = kind.accuracy(asked, mechanism)
    return found.why if isinstance(found, NoBar) and not found.later else ""


def _noise(kind: QuestionKind, mechanism: Mechanism) -> str:
    said = mechanism.noise_words if isinstance(mechanism, TableMechanism) else ""
    return said or kind.noise or type(mechanism).__name__
