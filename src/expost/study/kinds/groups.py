"""Any kind of question, asked about each of several groups of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from expost.checks import requested_epsilon
from expost.data import Grouped, Groups, PrivateTable
from expost.data.histograms import MOST_KEYS
from expost.errors import InvalidValue
from expost.estimate import Estimate
from expost.frame import Frame, number_text, with_error
from expost.mechanism import Mechanism
from expost.mentions import printable
from expost.questions import NoisyStatistics
from expost.questions.published import PublishedStatistics
from expost.reporting.rows import EACH
from expost.study.grammar import Key
from expost.study.kinds.kind import (
    DROWNED,
    Accuracy,
    Answer,
    Asked,
    NoBar,
    OfGroups,
    QuestionKind,
    is_drowned,
    listed,
    name_size,
)
from expost.study.kinds.searched import NO_GROUP_BOUNDS, OPTIONAL_BOUNDS, OPTIONAL_PAIRS

OF_TYPICAL_SIZE = "each, if so many values count"
BY_SPREAD = "each, by how far its values spread"
OF_MODELS = "each, by the data"
BY_SUMS = "each, by its sums"
NOISY_SUMS = NoBar("how far off noisy sums put coefficients depends on the spread of the features", later=True)
_NOT_BEFORE = {
    BY_SPREAD: NoBar("it depends on how far the values of a group spread, which is private", later=True),
    BY_SUMS: NoBar("it depends on how large the two sums of a group are, which is private", later=True),
    OF_MODELS: NOISY_SUMS,
}
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
            return _all_at_once(asked, kind)
        if "by_keys" not in asked.question.values:
            raise InvalidValue("'by' says what tells groups apart: state in 'by_keys' which there are")

        groups = _groups(asked, asked.table)

        def about(rows: PrivateTable) -> Any:
            return kind.mechanism(_among(asked, rows, groups.epsilon_of_each(asked.epsilon)))

        made = groups.made_for_each(about)
        return Grouped(question=groups, mechanisms=made, epsilon=requested_epsilon(asked.epsilon))

    def answer(asked: Asked, made: Any, value: Any) -> Answer:
        if is_grouped(made) and kind.of_groups is not None:
            expected = _expected(asked, made, kind.of_groups)
            found = _of_frame(asked, made, value, kind.of_groups)
            return _listed({label: told(asked, one, expected) for label, one in found.items()}, value)
        if not isinstance(made, Grouped):
            return kind.answer(asked, made, value)
        each = zip(made.question.keys, made.mechanisms, strict=True)
        found = {}
        for label, (key, own) in zip(_labels(made.question.keys), each, strict=True):
            about = _among(asked, own.question.table, asked.epsilon)
            found[label] = told(about, kind.answer(about, own, value[key]), kind.accuracy(about, own))
        return _listed(found, value)

    def told(asked: Asked, one: Answer, expected: Accuracy | NoBar) -> Answer:
        """The answer of a group, which says so if noise is larger."""
        if not is_drowned(one, expected, amount=kind.amount(asked)):
            return one
        return replace(one, text=f"{one.text} ({DROWNED})", drowned=True)

    def accuracy(asked: Asked, made: Any) -> Accuracy | NoBar:
        if is_grouped(made) and kind.of_groups is not None:
            return _expected(asked, made, kind.of_groups)
        if not isinstance(made, Grouped):
            return kind.accuracy(asked, made)
        first = made.mechanisms[0]
        return kind.accuracy(_among(asked, first.question.table, asked.epsilon), first)

    def numbers(values: Mapping[str, Any]) -> int:
        return kind.numbers(values) * (1 + _number_of_groups(values)) if "by" in values else kind.numbers(values)

    return replace(
        kind, keys=(*kind.keys, *keys), made=mechanism, answer=answer, accuracy=accuracy, numbers=numbers
    )  # fmt: skip


def _expected(asked: Asked, made: NoisyStatistics, how: OfGroups) -> Accuracy | NoBar:
    """For groups of a typical size, unless even a group with all values that there may be would say nothing."""
    name, within, most = made.question.names[0], how.within(asked), asked.most_values
    if how.about in _NOT_BEFORE:
        return _NOT_BEFORE[how.about]
    values = asked.likely(_stated_groups(asked))
    about = f"each, if {values:,} values count" if how.about == OF_TYPICAL_SIZE else how.about
    expected = Accuracy(_error_of(made, name, values), about, within=within)
    if how.about != OF_TYPICAL_SIZE or within is None:
        return expected
    if most is not None and 2 * _error_of(made, name, most) >= within:
        return expected
    if expected.drowned:
        about = f"{about}, which would say nothing"
    return replace(expected, about=about, nominal=True)


def _stated_groups(asked: Asked) -> int:
    """How many groups are stated: lists of keys are combined. One, if they are found."""
    keys = asked.get("by_keys", ())
    return (prod(map(len, keys.values())) if isinstance(keys, dict) else len(keys)) or 1


def _error_of(made: NoisyStatistics, name: str, values: int) -> float:
    """The error of one group with that many values; of a quantile, in ranks."""
    ranks = dict(made.question.ranks).get(name)
    return float(made.expected(name, values).error if ranks is None else made.ranks_off(name, ranks))


def is_grouped(mechanism: Any) -> bool:
    """Whether it answers a statistic of all groups in one charge."""
    return isinstance(mechanism, NoisyStatistics) and not mechanism.question.is_whole


def _number_of_groups(values: Mapping[str, Any]) -> int:
    """Of each group its names, and of all combinations as many: counted, and none of them made."""
    keys = values.get("by_keys")
    if keys is None:
        return MOST_KEYS
    if isinstance(keys, dict):
        numbers = {name: len(each) for name, each in keys.items()}
        return sum(listed(keys, name) * prod(numbers[other] for other in keys if other != name) for name in keys)
    return sum(sum(map(name_size, key)) if isinstance(key, list) else name_size(key) for key in keys)


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


def _all_at_once(asked: Asked, kind: QuestionKind) -> Mechanism:
    values = asked.question.values
    _refuse_in_groups(asked, kind)
    record: Any = kind.record_of(values)
    groups = _groups(asked, asked.rows)
    statistic = groups.asked(record)
    question = groups.agg(total=asked.get("by_total", False), **{statistic.name: statistic})
    return asked.noised(question) if groups.keys else asked.made(question, delta=asked.delta)


def _refuse_in_groups(asked: Asked, kind: QuestionKind) -> None:
    """Refuse what no groups are asked with."""
    values = asked.question.values
    if values.get("noise", "laplace") != "laplace" and "by_keys" not in values:
        raise InvalidValue("groups that are found have Laplace noise: state 'by_keys', or leave 'noise' out")
    if "accuracy" in values:
        raise InvalidValue("an accuracy is of one answer, not of several groups: leave 'by' out, or state an ε instead")
    if "bounds" not in values and any(key in (OPTIONAL_BOUNDS, OPTIONAL_PAIRS) for key in kind.keys):
        raise InvalidValue(NO_GROUP_BOUNDS)


def _of_frame(asked: Asked, made: NoisyStatistics, frame: Frame, how: OfGroups) -> dict[str, Answer]:
    """The answer of each group, and of all together, if that is there."""
    found, total = _of_ranks(made, frame) if made.question.ranks else _of_sums(made, frame)
    labels = _labels([key for key, *_ in found])
    answers = {label: how.answer(asked, value, error) for label, (_, value, error) in zip(labels, found, strict=True)}
    if total is not None:
        answers["total" if "total" not in answers else "total of all"] = how.answer(asked, *total)
    return answers


_Found = tuple[list[tuple[Any, Any, float | None]], tuple[Any, float | None] | None]
"""The key, the value and the error of each group; and the value and error of all together."""


def _of_ranks(made: NoisyStatistics, frame: Frame) -> _Found:
    ((name, ranks),) = made.question.ranks
    off = float(made.ranks_off(name, ranks))
    return [(tuple(row[: len(made.question.values)]), row[-1], off) for row in frame.rows], None


def _of_sums(made: NoisyStatistics, frame: Frame) -> _Found:
    of_groups, total = PublishedStatistics(made, frame, None).by_key(made.question.names[0])
    found = [(key, *_plain(answer)) for key, answer in of_groups]
    return found, None if total is None else _plain(total)


def _plain(answer: Any) -> tuple[Any, float | None]:
    """The number and the error of an estimate; a model by itself."""
    return (answer.value, answer.error) if isinstance(answer, Estimate) else (answer, None)


def _labels(keys: Sequence[Any]) -> list[str]:
    """What groups are called: values side by side, and in quotes where that would call two groups the same."""
    plain = [printable(", ".join(map(str, key)) if isinstance(key, tuple) else f"{key}") for key in keys]
    if len(set(plain)) == len(plain):
        return plain
    return [", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key) for key in keys]


def _listed(found: Mapping[str, Answer], released: Any) -> Answer:
    """The answers of all groups. Each ± is that of one group by itself: it says nothing of all of them at once."""
    alike = len({one.error for one in found.values()}) == 1
    error = next(iter(found.values())).error if alike else None
    each = "" if not any("±" in one.text for one in found.values()) else "each ± at 95 %"
    if error is not None and all(one.text == with_error(one.value, error) for one in found.values()):
        each = EACH.format(number_text(error))
        texts = [f"{key}: {with_error(one.value, error).partition(' ±')[0]}" for key, one in found.items()]
        text = ", ".join(texts)
    else:
        text = "; ".join(f"{key}: {one.text}" for key, one in found.items())
    off = {one.beside for one in found.values()}  # such as how many ranks a median is off
    drowned = [key for key, one in found.items() if one.drowned]
    lost = f"{DROWNED}: {', '.join(drowned)}" if drowned else ""
    return Answer(
        "; ".join(filter(None, (text, each))) or "no group has enough units",
        {key: one.value for key, one in found.items()},
        error,
        beside="; ".join(filter(None, (each, *off, lost))) if len(off) == 1 and None not in off else None,
        released=released,
        drowned=bool(found) and len(drowned) == len(found),
    )


def _among(asked: Asked, rows: PrivateTable, epsilon: float) -> Asked:
    """What is asked about one group, whose size is private."""
    return replace(asked, table=rows, epsilon=epsilon, size=0)
