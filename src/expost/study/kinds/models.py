"""Classifiers: logistic regression behind a private test, and training that stops early."""

from __future__ import annotations

from typing import Any

from expost.mechanism import WITHHELD, Mechanism
from expost.mechanisms import LinearModel, LogisticDescent, TestedLogisticRegression
from expost.study.grammar import Key
from expost.study.kinds.kind import Answer, Asked, Kind, need_columns, number_text
from expost.study.kinds.robust import TESTED, optional, table_of

_FEATURES = (
    Key("features", "texts", "the columns to predict from", required=True),
    Key("target", "text", "the column to predict: 0 or 1", required=True),
    Key("norm", "number", "the length of the longest row of features; longer ones are shortened", required=True),
    Key("missing", "number", "what an empty value counts as; 0 if it is left out"),
)


def _logistic(asked: Asked) -> Mechanism:
    need_columns(asked)
    return TestedLogisticRegression(
        epsilon=asked.epsilon,
        test_share=asked["test_share"],
        threshold=asked["threshold"],
        norm=asked["norm"],
        **optional(asked, "held_out", "regularizer", "missing"),
    )


def _tested(asked: Asked, mechanism: Any, value: Any) -> Answer:
    if value is WITHHELD:
        text = f"withheld: its error was not found to be at most {asked['threshold']} (1 knows nothing)"
        return Answer(text, None, outcomes=("withheld",))
    return _weights(asked, value, ("released",), "")


def _descent(asked: Asked) -> Mechanism:
    need_columns(asked)
    return LogisticDescent(
        epsilon=asked.epsilon,
        delta=asked.delta,
        features=len(asked["features"]),
        norm=asked["norm"],
        steps=asked["steps"],
        every=asked["every"],
        **optional(asked, "patience", "learning_rate", "missing"),
    )


def _trained(asked: Asked, mechanism: LogisticDescent, value: Any) -> Answer:
    early = len(value) < mechanism.steps
    said = f" (after {len(value)} of at most {mechanism.steps} steps)"
    return _weights(asked, mechanism.model(value, asked.size), ("early" if early else "full",), said)


def _weights(asked: Asked, model: LinearModel, outcomes: tuple[str, ...], said: str) -> Answer:
    names = [*asked["features"], "constant"]
    numbers = [*model.coefficients[0].tolist(), float(model.intercepts[0])]
    found = dict(zip(names, numbers, strict=True))
    text = ", ".join(f"{name} {number_text(number)}" for name, number in found.items())
    return Answer(text + said, found, None, outcomes, bars=found, released=model)


LOGISTIC = Kind(
    "logistic_regression", "A classifier that is released only if it is good on records it has not seen.",
    (*_FEATURES,
     Key("threshold", "number", "the error it may have: 0 is perfect, 1 knows nothing", required=True),
     Key("test_share", "number", "what the test alone costs, as a share of ε; all that is paid if it fails",
         required=True),
     Key("held_out", "number", "the share of records for the test; 0.3 if left out"),
     Key("regularizer", "number", "how much large weights are punished")),
    _logistic, _tested, on=table_of, outcomes=TESTED,
    example='features = ["age", "cost"]\ntarget = "smoker"\nnorm = 1000\nthreshold = 0.8\ntest_share = 0.2',
)  # fmt: skip
DESCENT = Kind(
    "training", "A classifier trained step by step, which stops early if it learns no more, and pays for steps taken.",
    (*_FEATURES,
     Key("steps", "whole", "the most steps", required=True),
     Key("every", "whole", "after how many steps it may stop; steps are a multiple of it", required=True),
     Key("patience", "number", "stop when the signal is at most so many times the noise; 2 if left out"),
     Key("learning_rate", "number", "how far each step goes; 8 if left out")),
    _descent, _trained, on=table_of, delta=True, outcomes=("early", "full"),
    example='features = ["age", "cost"]\ntarget = "smoker"\nnorm = 1000\nsteps = 60\nevery = 15',
)  # fmt: skip
