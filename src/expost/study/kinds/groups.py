"""Any kind of question, asked about each of several groups of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from expost.data import GroupAnswers, Grouped, Groups, PrivateTable
from expost.errors import InvalidValue
from expost.frame import Frame
from expost.mechanism import Mechanism
from expost.mentions import printable
from expost.study.grammar import Key
from expost.study.kinds.kind import Accuracy, Answer, Asked, NoBar, OfGroups, QuestionKind

TYPICAL_SIZE = 1_000
"""Values of a group, where its error depends on their private number."""
OF_TYPICAL_SIZE = f"each, if {TYPICAL_SIZE:,} values count"
_BY = Key("by", "columns", "ask about each group of rows: the columns, or expressions, that tell them apart")
_BY_KEYS = Key("by_keys", "group keys", "the values of 'by' that are asked about; other rows are in no group")
_DISCOVERED = replace(
    _BY_KEYS,
    help=f"{_BY_KEYS.help}. Without it those that enough units have are found, for half of ε and a delta",
)
_TOTAL = Key("by_total", "switch", "whether all groups together are answered, too, where that follows at no cost")


def grouped(kind: QuestionKind) -> QuestionKind:
    """The same kind with ``by`` and ``by_keys``: its ε is then for all groups together.

    Where groups are asked all at once, one unit has a bounded number of rows in all of them (Proof: thm-group-by), and
    ε is not shared among them; otherwise it is shared among those that one unit can be in (Proof: thm-table-groups).
    """
    keys = (_BY, _BY_KEYS) if kind.of_groups is None else (_BY, _DISCOVERED, _TOTAL)

    def mechanism(asked: Asked) -> Mechanism:
        if "by" not in asked.question.values:
            _refuse_alone(asked)
            return kind.mechanism(asked)
        if kind.of_groups is not None:
            return _all_at_once(asked, kind.of_groups)
        if "by_keys" not in asked.question.values:
            raise InvalidValue("'by' says what tells groups apart: state in 'by_keys' which there are")

        def about(rows: PrivateTable, epsilon: float) -> Any:
            return kind.mechanism(_among(asked, rows, epsilon))

        return _groups(asked, asked.table).ask(about, epsilon=asked.epsilon)

    def answer(asked: Asked, made: Any, value: Any) -> Answer:
        if isinstance(made, GroupAnswers) and kind.of_groups is not None:
            return _listed(_of_frame(asked, made, value, kind.of_groups), value)
        if not isinstance(made, Grouped):
            return kind.answer(asked, made, value)
        each = zip(made.question.keys, made.mechanisms, strict=True)
        found = {
            label: kind.answer(_among(asked, own.question.table, asked.epsilon), own, value[key])
            for label, (key, own) in zip(_labels(made.question.keys), each, strict=True)
        }
        return _listed(found, value)

    def accuracy(asked: Asked, made: Any) -> Accuracy | NoBar:
        if isinstance(made, GroupAnswers) and kind.of_groups is not None:
            return Accuracy(made.error_of(made.question.names[0], TYPICAL_SIZE), kind.of_groups.about)
        if not isinstance(made, Grouped):
            return kind.accuracy(asked, made)
        first = made.mechanisms[0]
        return kind.accuracy(_among(asked, first.question.table, asked.epsilon), first)

    return replace(kind, keys=(*kind.keys, *keys), mechanism=mechanism, answer=answer, accuracy=accuracy)


def group_columns(asked: Mapping[str, Any]) -> list[str]:
    """What tells groups apart; nothing if it is not asked about groups."""
    named = asked.get("by", [])
    return [named] if isinstance(named, str) else list(named)


def group_keys(asked: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each column that are asked about, each once."""
    names, keys = group_columns(asked), asked.get("by_keys", [])
    if isinstance(keys, dict):
        return {name: list(keys.get(name, ())) for name in names}
    listed = [key if isinstance(key, list) else [key] for key in keys]
    return {
        name: list(dict.fromkeys(key[place] for key in listed if place < len(key))) for place, name in enumerate(names)
    }


def _groups(asked: Asked, table: PrivateTable) -> Groups:
    keys = asked.get("by_keys")
    listed = [tuple(key) if isinstance(key, list) else key for key in keys] if isinstance(keys, list) else keys
    return table.by(*group_columns(asked.question.values), keys=listed)


def _refuse_alone(asked: Asked) -> None:
    for name in ("by_keys", "by_total"):
        if name in asked.question.values:
            raise InvalidValue(f"'by' says what tells groups apart: state it, or leave {name!r} out")


def _all_at_once(asked: Asked, how: OfGroups) -> Mechanism:
    groups = _groups(asked, asked.rows)
    name = "answer"
    while {name, f"{name}_error"} & {*groups.names}:
        name += "_"
    return groups.answers(
        epsilon=asked.epsilon,
        delta=0 if groups.keys else asked.delta,
        total=asked.get("by_total", False),
        **{name: how.statistic(asked, groups)},
    )


def _of_frame(asked: Asked, made: GroupAnswers, frame: Frame, how: OfGroups) -> dict[str, Answer]:
    """The answer of each group, and of all together, if that is there."""
    name, width = made.question.names[0], len(made.question.values)
    error = frame.names.index(name) + 1
    cells = [(row, row[error - 1], row[error]) for row in frame.rows]
    groups, last = (cells[:-1], cells[-1:]) if made.question.total else (cells, [])
    labels = _labels([row[:width] for row, *_ in groups])
    found = {label: how.answer(asked, value, error) for label, (_, value, error) in zip(labels, groups, strict=True)}
    for _, value, error in last:
        if value is not None:
            found["total" if "total" not in found else "total of all"] = how.answer(asked, value, error)
    return found


def _labels(keys: Sequence[Any]) -> list[str]:
    """What groups are called: values side by side, and in quotes where that would call two groups the same."""
    plain = [printable(", ".join(map(str, key)) if isinstance(key, tuple) else f"{key}") for key in keys]
    if len(set(plain)) == len(plain):
        return plain
    return [", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key) for key in keys]


def _listed(found: Mapping[str, Answer], released: Any) -> Answer:
    texts = [f"{key}: {one.text}" for key, one in found.items()]
    text = "; ".join(texts)
    bars = {key: one.number for key, one in found.items() if one.number is not None}
    errors = {one.error for one in found.values()}
    return Answer(
        text or "no group has enough units",
        {key: one.value for key, one in found.items()},
        errors.pop() if len(errors) == 1 else None,
        bars=bars or None,
        released=released,
    )


def _among(asked: Asked, rows: PrivateTable, epsilon: float) -> Asked:
    """What is asked about one group, whose size is private."""
    return replace(asked, table=rows, epsilon=epsilon, size=0)
