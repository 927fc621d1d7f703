"""What ledgers store stays readable, and keys stay keys: encodings and fingerprints as reviewed texts.

A line that changes here makes stored outputs unreadable, or old keys conflicts: see ``docs/durable-format.md``.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp
import expost.data
import expost.questions
from exports import exported
from expost import mechanisms as m
from expost.accounting import GaussianNoise, LaplaceNoise
from expost.canonical import canonical
from expost.data import Noisy, NoisyUntil
from expost.data.searched import FoundMoment
from expost.data.unit import ROW
from expost.fingerprint import identify
from expost.ledger import codec
from expost.mechanisms import AboveMask, Comparison
from expost.mechanisms.linear.box import LinearFit
from expost.mechanisms.linear.tested_logistic import ErrorTest
from expost.mechanisms.moments.geometric_cells import Interval
from expost.mechanisms.moments.moments import Winsorized
from expost.mechanisms.moments.pairs import FoundCorrelation, FoundCovariance
from expost.mechanisms.moments.private_range import FoundRange
from expost.mechanisms.quantiles.distribution import StepFunction
from expost.mechanisms.quantiles.ladder import Rung
from expost.mechanisms.reduction.levels import Reduced
from expost.mechanisms.stability.generalized import PrivateTest
from expost.mechanisms.stability.location import MeanOfRanks
from expost.mechanisms.stability.quantile_range import Bin, BinOfRange, LogarithmOfRange, Scale
from expost.mechanisms.stability.release import StableAnswer
from expost.mechanisms.stability.votes import Coefficients, WinningCell
from expost.mechanisms.tuning.tuning import Tuned
from golden import check

pytestmark = pytest.mark.counted
TINY = "1e-6"
BIN = BinOfRange(low=Fraction(1, 4), high=Fraction(3, 4), scale=Scale(Fraction(2), Fraction(1, 2)), missing=0.0)
RANK = MeanOfRanks(proposed=Fraction(1, 8), epsilon=Fraction(1, 2), bounds=(0.0, 1.0), missing=0.0)
MODEL = m.OutputPerturbation(epsilon=1, norm=1)
ERROR = ErrorTest(epsilon="0.1", threshold="0.5", classes=2, distance=Fraction(1, 100), columns=4)


class Always(PrivateTest):
    epsilon, delta, mistake = 1, 0, 0

    def passes(self, data: Any, noise: xp.noise.NoiseSource) -> bool:
        return True


MECHANISMS: list[xp.Mechanism] = [
    m.AdaptiveSparseVector(threshold=500, at_most=2, epsilon=1, sensitivity=1),
    m.AdaptiveSparseVector(
        threshold=(1, 2), at_most=2, epsilon="0.75", threshold_share="2/3", sensitivity=1, margin=8, monotone=True,
        noise="two-sided", grid="0.25", missing=1, neighbours="add-remove",
    ),
    m.ByGroup(mechanism=m.MeanOfRecords(epsilon=1, bounds=(0, 9)), groups=("a", "b"), split="record"),
    m.ByGroup(
        mechanism=m.MedianOfRecords(epsilon=1, bounds=(0, 9), neighbours="add-remove"), groups=(1, 2), split="value"
    ),
    m.Chain(legs=(len,), prices=(0,), test_epsilon=1, delta=TINY),
    m.Chain(legs=(lambda values: BIN,), prices=(0,), test_epsilon=1, delta=TINY, neighbours="add-remove", name="bins"),
    m.Coin(epsilon=1, sensitivity=1),
    m.Coin(epsilon="0.1", sensitivity=2, heads="1/3", neighbours="substitute"),
    m.CorrelationOfRecords(epsilon=1, bounds=[(0, 1), (2, 3)]),
    m.CorrelationOfRecords(epsilon=1, bounds=[(0, 1), (2, 3)], missing=1),
    m.CovarianceOfRecords(epsilon=1, bounds=[(0, 1), (2, 3)]),
    m.CovarianceOfRecords(epsilon=1, bounds=[(0, 1), (2, 3)], missing=1),
    xp.DiscreteGaussian(rho="0.5", delta=TINY, sensitivity=1),
    xp.DiscreteGaussian(rho=1, delta=TINY, sensitivity=2, grid="0.5", missing=1, neighbours="add-remove"),
    m.DistributionFunction(points=4, epsilon=1, bounds=(0, 9), neighbours="substitute"),
    m.DistributionFunction(points=4, epsilon=1, bounds=(0, 9), neighbours="add-remove", grid="0.01", missing=1),
    m.Exponential(epsilon=1, sensitivity=1),
    m.Exponential(epsilon="0.1", sensitivity=2, monotone=True, grid="0.5", neighbours="add-remove"),
    m.FirstStable(proposals=(BIN, RANK), test_epsilon=1, delta=TINY),
    m.FirstStable(proposals=(RANK, BIN), test_epsilon=1, delta=TINY, name="ranks first"),
    xp.Gaussian(epsilon=1, delta=TINY, sensitivity=1),
    xp.Gaussian(epsilon="0.1", delta=1e-6, sensitivity="2.5", grid="0.5", missing=1, neighbours="add-remove"),
    m.GaussianReduction(rho="0.5", delta=TINY, sensitivity=1),
    m.GaussianReduction(
        rho=1, delta=TINY, sensitivity=2, levels=5, ratio=2, until=m.AbsoluteError(within=3), grid="0.5", missing=1,
        neighbours="add-remove",
    ),
    m.Histogram(epsilon=1, edges=(0, 1, 2)),
    m.Histogram(epsilon="0.1", edges=[0, 0.5], missing=1),
    m.InterquartileRange(epsilon=1, bounds=(0, 9), neighbours="substitute"),
    m.InterquartileRange(epsilon=1, bounds=(0, 9), neighbours="add-remove", grid="0.01", missing=1),
    xp.Iterative(steps=(GaussianNoise(10),) * 2, stops=(1, 2), delta=TINY, sensitivity=1),
    xp.Iterative(
        steps=(GaussianNoise(10, "0.5"), LaplaceNoise(10), xp.Laplace(epsilon="0.1", sensitivity=1)), stops=(1, 3),
        delta=TINY, sensitivity=1, weights=(2, 1), compute=max, until=lambda outputs: True, grid="0.5", missing=1,
        neighbours="add-remove", name="until now",
    ),
    xp.Iterative(steps=(GaussianNoise(10),) * 2, stops=(1, 2), delta=TINY, sensitivity=1, epsilons=(8, 9)),
    xp.Laplace(epsilon=1, sensitivity=1),
    xp.Laplace(epsilon=0.1, sensitivity="2.5", grid="0.5", missing=1, neighbours="add-remove"),
    m.LeastSquares(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 2)),
    m.LeastSquares(epsilon=1, bounds=[(0, 1), (2, 3)], target_bounds=(0, 2), missing=1, standard_errors=True),
    m.RegressionOfRecords(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 2)),
    m.RegressionOfRecords(epsilon=1, bounds=[(0, 1), (2, 3)], target_bounds=(0, 2), missing=1),
    m.LogisticDescent(epsilon=1, delta=TINY, norm=1),
    m.LogisticDescent(
        epsilon=1, delta=TINY, norm=2, classes=3, steps=4, every=2, good_enough=0.75, held_out="0.25", patience=3,
        learning_rate=4, intercept=False, features=(0, 2), missing=1,
    ),
    m.MeanOfRecords(epsilon=1, bounds=(0, 9)),
    m.MeanOfRecords(epsilon=1, bounds=(0, 9), range_share="0.5", scales=4, missing=1),
    m.MedianOfRecords(epsilon=1, bounds=(0, 9), neighbours="substitute"),
    m.MedianOfRecords(quantile="0.4", epsilon=1, bounds=(0, 9), neighbours="add-remove", grid="0.01", missing=1),
    m.ObjectivePerturbation(epsilon=1, norm=1),
    m.ObjectivePerturbation(
        epsilon=1, norm=2, classes=3, loss="huber", regularizer="0.1", intercept=False, features=(0, 2), missing=1,
        lean="0.05",
    ),
    MODEL,
    m.OutputPerturbation(
        epsilon=1, norm=2, classes=3, loss="huber", regularizer="0.1", intercept=False, features=(0, 2), missing=1
    ),
    xp.PermuteAndFlip(epsilon=1, sensitivity=1),
    xp.PermuteAndFlip(epsilon="0.1", sensitivity=2, monotone=True, grid="0.5", neighbours="add-remove"),
    xp.NoiseReduction(epsilon=1, sensitivity=1),
    xp.NoiseReduction(
        epsilon=1, sensitivity=1, levels=5, ratio=2, until=xp.RelativeError(within="0.1"), neighbours="add-remove",
        grid="0.25", missing=1,
    ),
    m.ProposeTestRelease(proposal=BIN, test_epsilon=1, delta=TINY),
    m.ProposeTestRelease(
        proposal=LogarithmOfRange(**vars(BIN), epsilon=Fraction(1, 2)), test_epsilon=1, delta=TINY, name="noisy"
    ),
    m.ProposeTestRelease(proposal=WinningCell(cell=(0.5,), shift=Fraction(1, 2)), test_epsilon=1, delta=TINY),
    m.QuantileOfRecords(quantile="0.9", epsilon=1, bounds=(0, 9), neighbours="substitute"),
    m.QuantileOfRecords(quantile="0.9", epsilon=1, bounds=(0, 9), neighbours="add-remove", grid="0.01", missing=1),
    m.QuantileOfRecords(quantile="0.9", epsilon=1, neighbours="add-remove", interval=True),
    m.MedianOfRecords(epsilon=1, neighbours="add-remove", interval=True),
    m.QuantileLadder(quantile="0.9", within=1, epsilon=1, bounds=(0, 9), neighbours="substitute"),
    m.QuantileLadder(
        quantile="0.9", within=1, epsilon=1, bounds=(0, 9), neighbours="add-remove", grid="0.01", missing=1,
        confidence="0.9", rungs=3, test_share="0.5",
    ),
    m.QuantilesOfRecords(quantiles=("0.1", "0.9"), epsilon=1, bounds=(0, 9), neighbours="substitute"),
    m.QuantilesOfRecords(
        quantiles=("0.1", "0.9"), epsilon=1, bounds=(0, 9), neighbours="add-remove", grid="0.01", missing=1
    ),
    m.RandomizedResponse(epsilon=1, choices=2),
    m.RandomizedResponse(epsilon=1, choices=3, neighbours="substitute"),
    xp.SparseVector(threshold=500, at_most=20, epsilon="0.5", sensitivity=1),
    xp.SparseVector(
        threshold=np.array([1.5, 2.5]), at_most=2, epsilon="0.75", threshold_share="2/3", sensitivity=1, monotone=True,
        gap=True, noise="two-sided", grid="0.25", missing=1, neighbours="add-remove",
    ),
    m.StableInterquantileRange(low="0.1", high="0.9", epsilon=1, delta=TINY),
    m.StableInterquantileRange(low="0.1", high="0.9", epsilon=1, delta=TINY, grid=3, missing=1),
    m.StableInterquartileRange(epsilon=1, delta=TINY),
    m.StableInterquartileRange(low="0.2", high="0.8", epsilon=1, delta=TINY, grid=3, missing=1),
    m.StableMedian(epsilon=1, delta=TINY, proposed="0.1"),
    m.StableMedian(
        quantile="0.4", epsilon=1, test_share="0.25", delta=TINY, proposed="0.1", bounds=(0, 9), missing=1
    ),
    m.StableNoisyInterquartileRange(epsilon=3, delta=TINY),
    m.StableNoisyInterquartileRange(low="0.1", high="0.9", epsilon=3, delta=TINY, grid=3, missing=1),
    m.StableQuantile(quantile="0.9", epsilon=1, delta=TINY, proposed="0.1"),
    m.StableQuantile(quantile="0.9", epsilon=1, delta=TINY, proposed="0.1", bounds=(0, 9), missing=1, test_share=0.4),
    m.StableRegression(cell="0.5", blocks=60, bounds=(0, 1), target_bounds=(0, 1), epsilon=1, delta=TINY),
    m.StableRegression(
        cell=("0.5", 1), blocks=60, bounds=(0, 1), target_bounds=(0, 1), epsilon=1, delta=TINY, grids=1,
        intercept=False, missing=1,
    ),
    m.StableTrimmedMean(trim="0.1", epsilon=1, delta=TINY, proposed="0.1"),
    m.StableTrimmedMean(trim="0.1", epsilon=1, delta=TINY, proposed="0.1", bounds=(0, 9), missing=1, test_share="0.4"),
    xp.TopK(k=2, epsilon=1, delta=TINY),
    xp.TopK(k=2, epsilon=1, delta=TINY, groups=3, candidates=5),
    m.Tested(mechanism=MODEL, test=ERROR),
    m.Tested(mechanism=MODEL, test=ERROR, held_out="0.3", name="held out"),
    m.TestedLogisticRegression(epsilon=1, test_share="0.1", threshold="0.5", norm=1),
    m.TestedLogisticRegression(
        epsilon=1, test_share="0.1", threshold="0.5", norm=1, held_out="0.4", classes=3, regularizer="0.1",
        intercept=False, features=(0, 2), missing=1,
    ),
    m.TestedRelease(test=Always(), release=min, release_epsilon=1, name="always"),
    m.TestedRelease(
        test=Always(), release=min, release_epsilon=1, release_delta=TINY, neighbours="add-remove", name="always"
    ),
    m.TheilSen(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 2)),
    m.TheilSen(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 2), slope_share="0.25", missing=1),
    m.TrimmedMean(trim="0.1", epsilon=1, bounds=(0, 9)),
    m.TrimmedMean(trim="0.1", epsilon=1, bounds=(0, 9), range_share="0.25", missing=1),
    xp.Tuning(candidates=(MODEL,), score=m.CorrectPredictions()),
    xp.Tuning(
        candidates=(MODEL,), score=m.MeanAbsoluteError(bounds=(0, 9)), held_out="0.3", good_enough="0.5", factor="1.5",
        runs=20,
    ),
    m.PrivateRange(epsilon=1, neighbours="substitute"),
    m.PrivateRange(epsilon=1, neighbours="add-remove", missing=1),
    m.TypicalRange(epsilon=1, bounds=(0, 9), neighbours="substitute"),
    m.TypicalRange(epsilon=1, bounds=(0, 9), neighbours="add-remove", penalty=3, scales=4, missing=1),
    m.TypicalRange(epsilon=1, bounds=(0, 9), neighbours="substitute", first=2),
    m.VarianceOfRecords(epsilon=1, bounds=(0, 9)),
    m.VarianceOfRecords(epsilon=1, bounds=(0, 9), range_share="0.5", scales=4, missing=1),
]  # fmt: skip

OUTPUTS: dict[str, Any] = {
    "nothing": None,
    "a truth value": True,
    "a whole number": -3,
    "a number": 0.1,
    "a text": "Zürich",
    "withheld": xp.WITHHELD,
    "whole numbers": np.array([1, -2, 3]),
    "small whole numbers": np.array([0, 1, 2], np.int8),
    "numbers": np.array([[0.5, -0.0], [np.nan, np.inf]]),
    "a mask": np.array([True, False]),
    "a numpy number": np.float64(0.1),
    "a numpy whole number": np.int64(7),
    "a transcript": (True, False, None, 2.5),
    "outputs of steps": (np.array([0.5]), 0.25),
    "a list": [1, "a"],
    "a dictionary": {"flu": 3, ("a", 1): 2.5},
    "a set": {"b", "a"},
    "bytes": b"\x00\xff",
    "a bin": Bin(1, 8.0, 16.0),
    "an answer of a leg": StableAnswer(2, Bin(1, 0.0, 0.0)),
    "a fit": LinearFit(1.5, (0.25, -2.0)),
    "an interval": Interval(0.0, 2.5),
    "a covariance": FoundCovariance(1.5, 0.25),
    "a mean": Winsorized(1.5, 0.0, 2.5, 0.25),
    "a mean without bounds": Winsorized(1.5, 0.0, 2.5, 0.25, 3),
    "a correlation without bounds": FoundCorrelation(0.5, 3),
    "a moment of a table without bounds": FoundMoment(1.5, None, (Interval(0.0, 2.5),), 3),
    "a range": FoundRange(0.0, 2.5, 3),
    "a rung of a ladder": Rung(45.5, 3, True),
    "a reduced answer": Reduced(45.5, 3, True),
    "a tuned output": Tuned(3, 45.5, 0.75, True),
    "a distribution function": StepFunction((30, 45), (0.5, 1.0)),
    "coefficients": Coefficients(1, (0.25, -1.5)),
    "a linear model": m.LinearModel(((0.5, -0.25),), 2.0, True, 1.0, (0, 2)),
    "a trained model": m.TrainedModel(((0.5, -0.25),), 2.0, True, 1.0, (0, 2), steps=4, score=0.75),
    "a cost": xp.Cost("0.1", delta="1e-9"),
    "a guarantee": xp.Guarantee({"a": 1, (1, "b"): 2}, delta="1e-6", neighbours="substitute"),
    "a mask of a sparse vector": AboveMask(np.array([False, True]), 5),
    "a mask with gaps": AboveMask(np.array([np.nan, 12.5]), 4),
    "a mask of an adaptive sparse vector": AboveMask(np.array([0, 2, 1], np.int8), 3),
    "comparisons": {"flu": Comparison.ABOVE, "cold": Comparison.BELOW, "gout": Comparison.NOT_COMPARED},
}


def told(what: str, content: Any) -> list[str]:
    return [what, f"  {canonical(content)}"]


def test_what_mechanisms_say_and_their_fingerprints() -> None:
    lines = []
    for mechanism in MECHANISMS:
        lines += [*told(type(mechanism).__name__, identify(mechanism).content), f"  {mechanism.fingerprint}"]
    check("durable-mechanisms", "\n".join(lines))


def test_how_outputs_are_kept() -> None:
    lines = [line for what, value in OUTPUTS.items() for line in (what, f"  {codec.kept(value)}")]
    check("durable-outputs", "\n".join(lines))


def test_what_was_kept_is_read() -> None:
    """From the reviewed text, not from what was just written."""
    kept = dict(pairs((Path(__file__).parents[1] / "golden" / "durable-outputs.txt").read_text()))
    assert set(kept) == set(OUTPUTS)
    for what, value in OUTPUTS.items():
        again = codec.decode(kept[what])
        assert type(again) is type(value)
        assert repr(again) == repr(value) or again == value  # sets print in any order


def pairs(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    return ((what, line.strip()) for what, line in zip(lines[::2], lines[1::2], strict=True))


@pytest.fixture
def table() -> Iterator[xp.PrivateTable]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'p' AS person, 'flu' AS diagnosis, 3.5::DOUBLE AS cost")
        unit = xp.Unit("person", rows=5, groups=2)
        yield xp.read(connection, table="visits", unit=unit, neighbours="add-remove", key=1)


def questions(table: xp.PrivateTable) -> list[xp.Mechanism]:
    rich = table.where("cost > 3").derive(half="cost / 2")
    histogram = rich.histogram("diagnosis", keys=["flu", "cold"])
    moved = histogram.sensitivity.l2
    normal = xp.DiscreteGaussian(rho=1, delta=TINY, sensitivity=moved, neighbours="add-remove")
    until = xp.RelativeError(within="0.1", confidence="0.95")
    reduced = xp.NoiseReduction(epsilon=1, sensitivity=5, levels=40, until=until, neighbours="add-remove")
    by_row = dataclasses.replace(table, unit=ROW, neighbours="substitute")
    groups = rich.by("diagnosis", "cost > 1", keys=[("flu", True)])
    return [
        table.count().mechanism(epsilon=1),
        rich.count(of="units").mechanism(epsilon=1, delta=TINY, noise="gaussian"),
        rich.sum("half", bounds=(0, 10)).mechanism(epsilon=1),
        rich.ratio("half", "cost", bounds=[(0, 10), (0, 20)]).mechanism(epsilon=1),
        rich.share("half > 2", missing=True).mechanism(epsilon=1),
        NoisyUntil(question=rich.count(), noise=reduced),
        rich.lost("half", bounds=(0, 10)).mechanism(epsilon=1),
        rich.mean("half", bounds=(0, 10)).mechanism(epsilon=1),
        Noisy(question=histogram, noise=normal),
        histogram.above(10, at_most=1).mechanism(epsilon=1),
        table.discover("diagnosis").mechanism(epsilon=1, delta=TINY),
        table.discover("diagnosis").top(3).mechanism(epsilon=1, delta=TINY),
        table.median("cost", bounds=(0, 10)).mechanism(epsilon=1),
        rich.quantile("half", ["0.1", "0.9"], bounds=(0, 10), missing=2, grid="0.5").mechanism(epsilon=1),
        rich.covariance("half", "cost", bounds=[(0, 10), (0, 20)]).mechanism(epsilon=1),
        by_row.variance("cost", bounds=(0, 9), missing=0).mechanism(epsilon=1),
        by_row.histogram("diagnosis", keys=["flu"]).mechanism(epsilon=1),
        table.by("diagnosis", ["flu"]).ask(lambda rows: rows.count()).mechanism(epsilon=1),
        groups.agg(
            total=True,
            n=groups.count(),
            s=groups.sum("half", bounds=(0, 10)),
            m=groups.mean("half", bounds=(0, 10)),
            v=groups.variance("half", bounds=(0, 10)),
            q=groups.median("half", bounds=(0, 10)),
        ).mechanism(epsilon=1),
        rich.by("diagnosis").agg().mechanism(epsilon=1, delta=TINY),
        rich.winsorized_mean("half", trim="0.1", bounds=(0, 10)).mechanism(epsilon=1),
        rich.covariance("half", "cost", missing=2).mechanism(epsilon=1),
    ]


def test_questions_about_tables_say_what_they_are(table: xp.PrivateTable) -> None:
    lines = []
    for mechanism in questions(table):
        lines += [*told(repr(mechanism), identify(mechanism).content), f"  {mechanism.fingerprint}"]
    check("durable-questions", "\n".join(lines))


def test_every_public_mechanism_is_there(table: xp.PrivateTable) -> None:
    public = {kind for name in exported(m) if inspect.isclass(kind := getattr(m, name)) and is_concrete(kind)}
    assert public == {type(mechanism) for mechanism in MECHANISMS}
    packages = (expost.data, expost.questions)
    here = {kind for each in packages for name in exported(each) if inspect.isclass(kind := getattr(each, name))}
    assert {kind for kind in here if is_concrete(kind)} == {type(one) for one in questions(table)}


def is_concrete(kind: type) -> bool:
    return issubclass(kind, xp.Mechanism) and not inspect.isabstract(kind)


def test_every_field_of_every_mechanism_is_there() -> None:
    """Given, in one example or another, something else than its default."""
    for kind in {type(mechanism) for mechanism in MECHANISMS}:
        said = [identify(mechanism).content["$record"][1] for mechanism in MECHANISMS if type(mechanism) is kind]
        names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        assert names == set().union(*said), kind


def test_nothing_durable_names_a_file(table: xp.PrivateTable) -> None:
    texts = [canonical(identify(mechanism).content) for mechanism in (*MECHANISMS, *questions(table))]
    texts += [codec.encode(value) for value in OUTPUTS.values()]
    found = {name for text in texts for name in re.findall(r'"(expost[\w.]*):\w+"', text)}
    assert found == {"expost", "expost.accounting", "expost.data", "expost.mechanisms", "expost.questions"}
