"""Classifiers: logistic regression behind a private test, and training that stops early."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from expost import mechanisms
from expost.checks import as_whole
from expost.cost import exact
from expost.frame import number_text
from expost.mechanism import WITHHELD, Mechanism
from expost.mechanisms.tuning.tuning import MOST_CANDIDATES
from expost.questions.regression import terms_of
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.kind import Answer, Asked, NoBar, QuestionKind
from expost.study.kinds.robust import TESTED

_FEATURES = (
    Key("features", "texts", "the columns to predict from", required=True),
    Key("target", "text", "the column to predict: 0 or 1", required=True),
    Key("norm", "number", "the length of the longest row of features; longer ones are shortened", required=True),
    keys.FILLED,
)
_SCORE = mechanisms.CorrectPredictions()


def _logistic(asked: Asked) -> Mechanism:
    return mechanisms.TestedLogisticRegression(
        epsilon=asked.epsilon,
        test_share=asked["test_share"],
        threshold=asked["threshold"],
        norm=asked["norm"],
        **asked.given("held_out", "regularizer", "missing"),
    )


def _tested(asked: Asked, mechanism: Any, value: Any) -> Answer:
    if value is WITHHELD:
        text = f"withheld: its error was not found to be at most {asked['threshold']} (1 knows nothing)"
        return Answer(text, None, outcomes=("withheld",))
    return _weights(asked, value, "released")


def _tuning(asked: Asked) -> Mechanism:
    """A candidate for each regulariser and share. A search costs twice the ε of its winner."""
    own = Fraction(str(asked.epsilon)) / 2
    shares, regularizers = asked.get("shares", [1]), asked["regularizers"]
    as_whole(len(shares) * len(regularizers), "the number of shares times regularizers", most=MOST_CANDIDATES)
    candidates = [
        mechanisms.ObjectivePerturbation(
            epsilon=own * exact(share, "shares"), norm=asked["norm"], regularizer=regularizer, **asked.given("missing")
        )
        for share, regularizer in product(shares, regularizers)
    ]
    held_out = asked.get("held_out", 0.3)
    return mechanisms.Tuning(
        candidates=tuple(candidates), score=_SCORE, held_out=held_out, **asked.given("good_enough")
    )


def _tuned(asked: Asked, mechanism: mechanisms.Tuning, found: Any) -> Answer:
    candidate = mechanism.candidates[found.candidate]
    assert isinstance(candidate, mechanisms.ObjectivePerturbation)
    chosen = f" (regularizer {candidate.regularizer:g}, ε {candidate.epsilon:g}; score {found.score:.3f})"
    return _weights(asked, found.value, "enough" if found.met else "best", chosen)


def _descent(asked: Asked) -> Mechanism:
    return mechanisms.LogisticDescent(
        epsilon=asked.epsilon,
        delta=asked.delta,
        norm=asked["norm"],
        steps=asked["steps"],
        every=asked["every"],
        **asked.given("good_enough", "held_out", "patience", "learning_rate", "missing"),
    )


def _trained(asked: Asked, mechanism: mechanisms.LogisticDescent, model: mechanisms.TrainedModel) -> Answer:
    outcome = "early" if model.steps < mechanism.steps else "full"
    return _weights(asked, model, outcome, f" (after {mechanism.describe(model)})")


def _weights(asked: Asked, model: mechanisms.LinearModel, outcome: str, after: str = "") -> Answer:
    constant, *features = terms_of(asked["features"], "constant")
    found = dict(zip([*features, constant], [*model.coefficients[0].tolist(), float(model.intercepts[0])], strict=True))
    text = ", ".join(f"{name} {number_text(number)}" for name, number in found.items())
    return Answer(text + after, found, None, (outcome,), released=model)


def _no_bar(asked: Asked, mechanism: Any) -> NoBar:
    return NoBar("what noise does to a model shows in its predictions, on records that it has not seen")


MODELS = (
    QuestionKind(
        "logistic_regression", "A classifier that is released only if it is good on records it has not seen.",
        (*_FEATURES,
         Key("threshold", "number", "the error it may have, twice the mean probability of the wrong class: 0 is "
             "perfect, 1 knows nothing, 0.6 gives 70 % to the right class", required=True),
         Key("test_share", "part", "what the test alone costs, as a share of ε; all that is charged if it fails",
             required=True),
         Key("held_out", "number", "the share of records for the test; 0.3 by default"),
         Key("regularizer", "number", "how much large weights are penalized")),
        _logistic, _tested, reads=True, outcomes=TESTED, accuracy=_no_bar,
        noise="on the weights, and a private test on records held out",
        example='features = ["age", "cost"]\ntarget = "smoker"\nnorm = 1000\nmissing = 0\n'
                "threshold = 0.8\ntest_share = 0.2",
    ),
    QuestionKind(
        "tuned_classifier", "The best of several logistic regressions by a private score on records that they have "
        "not seen. Twice the ε of the one that is chosen is charged.",
        (*_FEATURES,
         Key("regularizers", "numbers", "how much large weights are penalized: one candidate for each", required=True),
         Key("shares", "numbers", "candidates with less ε: shares of the whole, such as [0.1, 1]; 1 by default"),
         Key("good_enough", "number", "a share of right predictions that is enough: then the candidate with the least "
             "ε is chosen. By default the best one is"),
         Key("held_out", "number", "the share of records for scores; 0.3 by default")),
        _tuning, _tuned, reads=True, outcomes=("enough", "best"), accuracy=_no_bar,
        noise="on the objective of each model, on each score, and in the number of runs",
        example='features = ["age", "cost"]\ntarget = "smoker"\nnorm = 1000\nmissing = 0\nregularizers = [0.001, 0.1]',
    ),
    QuestionKind(
        "training", "A classifier trained step by step. It stops as soon as it is good enough, or if it learns no "
        "more, and is charged for the steps taken.",
        (*_FEATURES,
         Key("steps", "whole", "the most steps", required=True),
         Key("every", "whole", "after how many steps it may stop; steps are a multiple of it, at most a hundred times",
             required=True),
         Key("good_enough", "number", "an accuracy on records held out that is enough; by default none are held out"),
         Key("held_out", "number", "the share of records that are held out for good_enough; 0.3 by default"),
         Key("patience", "whole", "stop when the gradients of so many steps disagree; 6 by default"),
         Key("learning_rate", "number", "how far each step goes; by default chosen for the noise")),
        _descent, _trained, reads=True, delta=True, noise="Gaussian, on every step", outcomes=("early", "full"),
        accuracy=_no_bar,
        example='features = ["age", "cost"]\ntarget = "smoker"\nnorm = 1000\nmissing = 0\nsteps = 60\nevery = 15',
    ),
)  # fmt: skip
