"""Any kind of question, asked about each of several groups of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from expost.data import Grouped, PrivateTable
from expost.errors import InvalidValue
from expost.mechanism import Mechanism
from expost.study.grammar import Key
from expost.study.kinds.kind import Accuracy, Answer, Asked, NoBar, QuestionKind

_BY = Key("by", "text", "ask about each group of rows: the column, or expression, that tells them apart")
_BY_KEYS = Key("by_keys", "keys", "the values of 'by' that are asked about; other rows are in no group")


def grouped(kind: QuestionKind) -> QuestionKind:
    """The same kind with ``by`` and ``by_keys``: its ε is then for all groups together."""

    def mechanism(asked: Asked) -> Mechanism:
        if ("by" in asked.question.values) != ("by_keys" in asked.question.values):
            raise InvalidValue("'by' says what tells groups apart and 'by_keys' which there are: give both, or none")
        if "by" not in asked.question.values:
            return kind.mechanism(asked)

        def about(rows: PrivateTable, epsilon: float) -> Any:
            return kind.mechanism(_among(asked, rows, epsilon))

        return asked.table.by(asked["by"], asked["by_keys"]).ask(about, epsilon=asked.epsilon)

    def answer(asked: Asked, made: Any, value: Any) -> Answer:
        if not isinstance(made, Grouped):
            return kind.answer(asked, made, value)
        each = zip(made.question.keys, made.mechanisms, strict=True)
        found = {
            f"{key}": kind.answer(_among(asked, own.question.table, asked.epsilon), own, value[key])
            for key, own in each
        }
        text = "; ".join(f"{key}: {one.text}" for key, one in found.items())
        bars = {key: one.number for key, one in found.items() if one.number is not None}
        return Answer(text, {key: one.value for key, one in found.items()}, bars=bars or None, released=value)

    def accuracy(asked: Asked, made: Any) -> Accuracy | NoBar:
        if not isinstance(made, Grouped):
            return kind.accuracy(asked, made)
        first = made.mechanisms[0]
        return kind.accuracy(_among(asked, first.question.table, asked.epsilon), first)

    return replace(kind, keys=(*kind.keys, _BY, _BY_KEYS), mechanism=mechanism, answer=answer, accuracy=accuracy)


def _among(asked: Asked, rows: PrivateTable, epsilon: float) -> Asked:
    """What is asked about one group, whose size is private."""
    return replace(asked, table=rows, epsilon=epsilon, size=0)
