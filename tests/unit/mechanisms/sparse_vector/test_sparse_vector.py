import dataclasses
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import expost as xp
from expost import Cost, SparseVector
from expost.mechanisms import AdaptiveSparseVector
from expost.mechanisms.sparse_vector.adaptive import AdaptiveComparisons
from expost.mechanisms.sparse_vector.comparisons import FARTHEST_VALUE
from expost.mechanisms.sparse_vector.sparse_vector import Comparisons

COUNTS = np.zeros(100, np.int64)
COUNTS[[3, 10, 50, 70]] = 100_000


def vector(**changes: Any) -> SparseVector:
    return SparseVector(**{"threshold": 50_000, "at_most": 20, "epsilon": 0.5, "sensitivity": 1, **changes})


def asking(ledger: xp.Ledger, on: Any = None, **changes: Any) -> Comparisons:
    interaction = ledger.open(vector(**changes), on)
    assert isinstance(interaction, Comparisons)
    return interaction


VARIANTS: list[dict[str, Any]] = [
    {},
    {"noise": "two-sided"},
    {"gap": True},
    {"gap": True, "noise": "two-sided"},
    {"monotone": True, "neighbours": "add-remove"},
    {"monotone": True, "neighbours": "add-remove", "noise": "two-sided"},
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_in_one_go_and_one_by_one_agree(variant: dict[str, Any]) -> None:
    """The noise is far smaller than the distance to the threshold, so the answers are certain."""
    ledger = xp.Ledger(epsilon=1)
    release = ledger.run(vector(**variant), on=COUNTS)
    with asking(ledger, **variant) as ask:
        for count in COUNTS:
            ask(count)
    assert np.flatnonzero(release.value).tolist() == [3, 10, 50, 70]
    assert len(release.value) == 100
    assert [answer not in (None, False) for answer in ask.transcript] == release.value.above.tolist()
    assert ask.release.part == release.part
    assert ask.release.charged == release.charged < release.reserved == Cost(0.5)
    assert "4 of at most 20 above 50000" in str(release)


def test_the_price_of_the_papers_example() -> None:
    """ε₁ : ε₂ = 1 : 40^(2/3); four of twenty positives cost ε₁ + ε₂/5."""
    svt = SparseVector(threshold=500, at_most=20, epsilon=0.5, sensitivity=1)
    first, second = svt.halves
    assert first + second == Cost(0.5)
    assert second.epsilon / first.epsilon == pytest.approx(40 ** (2 / 3), rel=1e-6)
    assert svt.guarantee.cost_of(svt.part(4, 100)).epsilon == pytest.approx(0.131506, abs=1e-6)
    assert svt.guarantee.worst_case == svt.guarantee.cost_of(svt.part(20, 100)) == Cost(0.5)


def test_finer_refunds_of_two_sided_noise() -> None:
    svt = vector(noise="two-sided", epsilon=0.5, threshold_share=0.2, at_most=2)  # a share is 0.1
    prices = {(0, 0): 0, (0, 1): 0.1, (0, 9): 0.1, (1, 1): 0.1, (1, 9): 0.3, (2, 2): 0.1}
    assert {counts: svt.guarantee.cost_of(svt.part(*counts)).epsilon for counts in prices} == prices
    mono = vector(
        noise="two-sided", epsilon=0.5, threshold_share=0.2, at_most=2, monotone=True, neighbours="add-remove"
    )
    assert mono.guarantee.cost_of(mono.part(1, 9)).epsilon == pytest.approx(0.3)
    assert mono.guarantee.cost_of(mono.part(2, 2)).epsilon == pytest.approx(0.1)


def test_nothing_asked_costs_nothing() -> None:
    ledger = xp.Ledger(epsilon=1)
    with asking(ledger) as ask:
        pass
    assert ask.release.charged == Cost(0)
    assert ledger.run(vector(), on=np.array([], np.int64)).charged == Cost(0)


def test_it_stops_at_the_last_positive_allowed() -> None:
    ledger = xp.Ledger(epsilon=1)
    high = np.full(10, 100_000)
    release = ledger.run(vector(at_most=3), on=high)
    assert list(release.value) == ["above"] * 3 + ["not compared"] * 7
    assert release.refunded == Cost(0)
    ask = asking(ledger, at_most=2)
    assert ask(100_000)
    assert ask(lambda: 100_000)
    assert ask.closed
    with pytest.raises(xp.errors.InteractionClosed):
        ask(1)


def test_long_arrays_stop_early_across_chunks() -> None:
    data = np.zeros(400_000, np.int64)
    data[[5, 150_000, 150_001, 399_999]] = 100_000
    release = xp.Ledger(epsilon=1).run(vector(at_most=3), on=data)
    assert np.flatnonzero(release.value).tolist() == [5, 150_000, 150_001]


def test_thresholds_one_each() -> None:
    data = np.full(4, 50_000)
    bars = [0, 100_000, 0, 100_000]
    assert xp.Ledger(epsilon=1).run(vector(threshold=bars), on=data).value.above.tolist() == [True, False, True, False]
    ask = asking(xp.Ledger(epsilon=1), threshold=bars)
    assert [ask(50_000) for _ in range(4)] == [True, False, True, False]
    with pytest.raises(xp.InvalidValue, match="4 thresholds and all were used"):
        ask(50_000)
    assert ask(50_000, threshold=0)
    with pytest.raises(xp.InvalidValue, match="4 thresholds for 5 values"):
        xp.Ledger(epsilon=1).run(vector(threshold=bars), on=np.zeros(5, int))


def test_gaps_estimate_how_far_above() -> None:
    release = xp.Ledger(epsilon=100).run(vector(gap=True, epsilon=100, at_most=4), on=COUNTS)
    gaps = release.value.gaps[release.value.above]
    assert len(gaps) == 4
    assert np.all(np.abs(gaps - 50_000) < 100)
    with asking(xp.Ledger(epsilon=100), gap=True, epsilon=100) as ask:
        assert ask(0) is None
        assert abs(ask(100_000) - 50_000) < 100


def test_questions_about_data() -> None:
    private = {"visits": 100_000, "deaths": 0}
    with asking(xp.Ledger(epsilon=1), on=private) as ask:
        assert ask(lambda data: data["visits"])
        assert not ask(lambda data: data["deaths"])
        assert ask(lambda data: data["deaths"], threshold=-50_000)


def test_floats_on_a_grid() -> None:
    svt = SparseVector(threshold=0.3, at_most=2, epsilon=50, sensitivity=0.001)
    assert svt.grid == 2**-20
    assert svt.threshold == pytest.approx(0.3, abs=2**-21)
    assert f"threshold={svt.threshold}" in repr(svt)
    release = xp.Ledger(epsilon=50).run(svt, on=np.array([0.1, 0.5, 0.2, 0.4]))
    assert release.value.above.tolist() == [False, True, False, True]
    whole = SparseVector(threshold=500.0, at_most=2, epsilon=1, sensitivity=1)
    assert (whole.grid, whole.threshold) == (1, 500)
    coarse = SparseVector(threshold=1000, at_most=2, epsilon=1, sensitivity=100, grid=64)
    assert coarse.threshold == 1024
    assert coarse.points(np.array([31, 32, -32, -33])).tolist() == [0, 1, 0, -1]
    assert [coarse.point(value) for value in (31, 32, -32, -33)] == [0, 1, 0, -1]


@pytest.mark.parametrize(
    "data",
    [
        np.array([np.inf, -np.inf, np.nan, 1e300]),
        np.array([2**63 - 1, -(2**63), 0, 1]),
        np.array([2**64 - 1, 0], np.uint64),
        np.array([True, False]),
        np.array([1, -1], np.int8),
        np.array([1, 2], np.float16),
    ],
)
def test_private_values_never_cause_an_error(data: np.ndarray) -> None:
    for svt in (vector(), vector(sensitivity=0.5, missing=-7), vector(sensitivity=64, grid=64), vector(gap=True)):
        release = xp.Ledger(epsilon=1).run(svt, on=data)
        assert len(release.value) == len(data)
        with xp.Ledger(epsilon=1).open(svt) as ask:
            for value in data:
                if not isinstance(value, np.bool_):
                    ask(value)  # type: ignore[operator]
        assert np.all(np.abs(svt.points(data)) <= FARTHEST_VALUE)


@example(np.int8, 0, [128])  # the least of its kind
@given(
    st.sampled_from([np.int8, np.int16, np.int64, np.uint8, np.uint32, np.uint64]),
    st.integers(-70, 70),
    st.lists(
        st.integers(0, 2**64 - 1) | st.sampled_from([0, 2**63 - 1, 2**63, 2**64 - 1, 2**62]), min_size=1, max_size=6
    ),
)
def test_arrays_and_single_values_are_read_alike(kind: Any, exponent: int, bits: list[int]) -> None:
    """Whole numbers of every width on every grid: nothing wraps, and one value moves as far as the guarantee says."""
    svt = SparseVector(threshold=0, at_most=1, epsilon=1, sensitivity=2.0**exponent, grid=2.0**exponent)
    data = np.array(bits, np.uint64).astype(kind)
    points = svt.points(data)
    assert points.tolist() == [svt.point(value) for value in data]
    order = np.argsort(data, kind="stable")
    assert np.all(np.diff(points[order]) >= 0)


def test_grids_of_every_size_read_back() -> None:
    for exponent in (-300, -24, -1, 0, 30):
        svt = SparseVector(threshold=0, at_most=1, epsilon=1, sensitivity=2.0**exponent, grid=2.0**exponent)
        assert svt._grid.exponent == exponent
        assert dataclasses.replace(svt, epsilon=2)._grid.exponent == exponent


def test_missing_and_yes_or_no_values() -> None:
    with asking(xp.Ledger(epsilon=1), missing=100_000) as ask:
        assert ask(lambda: None)
        assert ask(None)
    with asking(xp.Ledger(epsilon=100), epsilon=100, threshold=0.5, grid=2**-10) as ask:
        assert ask(lambda: True) in (True, False)


def test_the_noise_is_what_the_price_says() -> None:
    """Rates from literals: ε₁ over Δ for the threshold, a share over Δ for a value."""
    pair = {"epsilon": "4.8", "threshold_share": "1/6", "at_most": 4}
    general, monotone = vector(**pair), vector(**pair, monotone=True, neighbours="add-remove")
    assert (general._threshold_rate, general.rate) == (Fraction(4, 5), Fraction(1, 2))
    assert (monotone._threshold_rate, monotone.rate) == (Fraction(4, 5), Fraction(1))
    wide = vector(**pair, sensitivity=3, grid=1)
    assert (wide._threshold_rate, wide.rate) == (Fraction(4, 15), Fraction(1, 6))
    fine = vector(**pair, sensitivity=3, grid=0.5)
    assert (fine._threshold_rate, fine.rate) == (Fraction(4, 30), Fraction(1, 12))
    far = {"threshold": 0, "sensitivity": 2, "epsilon": "4.8", "threshold_share": "1/6", "at_most": 4}
    assert AdaptiveSparseVector(**far).rates == (Fraction(1, 8), Fraction(1, 4))
    assert AdaptiveSparseVector(**far, monotone=True, neighbours="add-remove").rates == (Fraction(1, 4), Fraction(1, 2))


def test_one_sided_noise_is_right_more_often() -> None:
    """Below the threshold a little, above it much: what the guide says about the default."""
    for at_most, epsilon in ((20, 0.5), (5, 0.5), (100, 1)):
        wrong = {}
        for noise in ("one-sided", "two-sided"):
            svt = vector(threshold=0, at_most=at_most, epsilon=epsilon, noise=noise)
            a, b, q = float(svt.rate), float(svt._threshold_rate), exp(-float(svt.rate))
            z = np.arange(0 if noise == "one-sided" else -int(40 / b), int(40 / b))
            weight = np.exp(-b * np.abs(z)) / np.exp(-b * np.abs(z)).sum()
            for scales in (0.1, 0.3, 1, 2, 4):
                for value in (int(scales / a), -int(scales / a)):
                    margins = z + svt.centre - value
                    far = np.exp(-a * np.abs(margins))
                    if noise == "one-sided":
                        above = weight @ np.where(margins > 0, far, 1.0)
                    else:
                        above = weight @ np.where(margins > 0, far / (1 + q), 1 - far * q / (1 + q))
                    wrong[noise, value] = above if value < 0 else 1 - above
        values = {value for _, value in wrong}
        assert all(wrong["one-sided", value] < wrong["two-sided", value] for value in values)
        assert all(wrong["one-sided", v] < wrong["two-sided", v] / 2 for v in values if v * float(svt.rate) > 0.9)


def test_missing_values_follow_the_rule() -> None:
    svt = vector(missing=100_000)
    assert xp.Ledger(epsilon=1).run(svt, on=np.array([np.nan, 0.0])).value.above.tolist() == [True, False]
    assert "missing=100000" in repr(svt)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"at_most": 0}, "at_most is a whole number"),
        ({"at_most": 2.5}, "at_most is a whole number"),
        ({"at_most": True}, "at_most is a whole number"),
        ({"threshold": float("nan")}, "finite"),
        ({"threshold": float("inf")}, "finite"),
        ({"threshold": [1, float("inf")]}, "finite"),
        ({"threshold": "high"}, "number"),
        ({"threshold": [[1]]}, "finite number, or an array"),
        ({"threshold": 2**60}, "within 2"),
        ({"epsilon": 0}, "at least 1e-12"),
        ({"epsilon": -1}, "negative"),
        ({"epsilon": (0.1, 0.2)}, "must be a number"),
        ({"threshold_share": 1}, "threshold_share is a share"),
        ({"sensitivity": 0}, "sensitivity must be above 0"),
        ({"sensitivity": float("nan")}, "sensitivity"),
        ({"grid": 0.3}, "power of two"),
        ({"noise": "none"}, "'one-sided' or 'two-sided'"),
        ({"monotone": True}, "neighbours='add-remove'"),
        ({"monotone": True, "neighbours": "substitute"}, "neighbours='add-remove'"),
        ({"neighbours": "any"}, "neighbours must be"),
        ({"epsilon": "1e-11", "sensitivity": 10**6}, "a rate must be at least"),
        ({"at_most": 10**6}, "run it in portions"),
    ],
)
def test_bad_parameters(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(xp.InvalidValue, match=message):
        vector(**changes)
    if "noise" not in changes:
        with pytest.raises(xp.InvalidValue):
            AdaptiveSparseVector(**{"threshold": 5, "at_most": 2, "epsilon": 0.5, "sensitivity": 1, **changes})


def test_bad_data_and_questions_are_free() -> None:
    ledger = xp.Ledger(epsilon=1)
    for data in (np.zeros((2, 2)), 5, {1, 2}, np.array(["a"]), None):
        with pytest.raises(xp.InvalidValue):
            ledger.run(vector(), on=data)  # type: ignore[misc]
    ask = asking(ledger)
    for question in ("much", [1], np.zeros(2), np.longdouble(1), 1j):
        with pytest.raises(xp.InvalidValue, match="one int or float"):
            ask(question)
    for threshold in (float("nan"), [1, 2], "x"):
        with pytest.raises(xp.InvalidValue, match="threshold"):
            ask(1, threshold=threshold)
    ask.close()
    assert ledger.spent == Cost(0)


def test_the_adaptive_one_charges_half_for_what_is_far_above() -> None:
    ledger = xp.Ledger(epsilon=1)
    svt = AdaptiveSparseVector(threshold=50_000, at_most=2, epsilon=0.5, sensitivity=1)
    release = ledger.run(svt, on=np.full(10, 10**6))
    assert list(release.value) == ["far above"] * 3 + ["not compared"] * 7  # a fourth might have cost two shares
    assert release.part == (1, 3)
    assert release.charged < release.reserved
    assert "3 far above and 0 above 50000" in str(release)
    interaction = xp.Ledger(epsilon=1).open(svt)
    assert isinstance(interaction, AdaptiveComparisons)
    while not interaction.closed:
        assert interaction(10**6) == 2
    assert interaction.release.part == (1, 3)
    near = AdaptiveSparseVector(threshold=0, at_most=2, epsilon=100, sensitivity=1, margin=10**6)
    found = xp.Ledger(epsilon=100).run(near, on=np.array([-1000, 1000, 1000, 1000])).value
    assert list(found) == ["below", "above", "above", "not compared"]
    assert xp.Ledger(epsilon=100).run(near, on=np.array([], int)).charged == Cost(0)
    with pytest.raises(xp.InvalidValue, match="one number ≥ 0"):
        AdaptiveSparseVector(threshold=0, at_most=2, epsilon=1, sensitivity=1, margin=-1)


def test_thresholds_too_noisy_for_arrays_are_compared_one_by_one() -> None:
    svt = vector()
    noise = xp.noise.SystemNoise()
    margins = np.array([-(2**60) + 10**6, -(2**60) - 10**6])
    assert svt._reaches(noise, svt.rate, margins, 2**60).tolist() == [False, True]
    assert svt._excess(noise, svt.rate, margins, 2**60)[0] == -1
    gap = vector(gap=True, threshold=0)
    ask = gap.start(None, noise)
    ask._shift = 2**60
    assert ask(5) is None
    ask._shift = -(2**60)
    assert ask(5) == pytest.approx(2.0**60)


@pytest.mark.slow
def test_very_large_budgets_and_uneven_halves_do_not_overflow() -> None:
    for epsilon, share in ((3000, None), ("1.00001", "0.99999"), ("1.00001", "1e-5")):
        for noise in ("one-sided", "two-sided"):
            svt = vector(epsilon=epsilon, threshold_share=share, noise=noise, at_most=20)
            assert xp.Ledger(epsilon=5000).run(svt, on=COUNTS).charged <= svt.guarantee.worst_case
    AdaptiveSparseVector(threshold=0, at_most=1, epsilon=5000, sensitivity=1)
    with pytest.raises(xp.InvalidValue, match="a rate must be at least"):
        AdaptiveSparseVector(
            threshold=0, at_most=1, epsilon=0.1, threshold_share=1 - Fraction(2, 10**11), sensitivity=1000
        )


@pytest.mark.parametrize("noise", ["one-sided", "two-sided"])
def test_comparisons_are_right_a_margin_away(noise: Any) -> None:
    """With values on both sides; at a quarter of the margin they are not."""
    asked = vector(threshold=500, at_most=6, noise=noise)
    source = xp.SeededNoise(4)
    sides = np.array([1, -1, 1, -1, -1, -1])
    margin = asked.margin("0.9", n=6)

    def right(away: float) -> float:
        data = 500 + sides * round(away)
        return float(np.mean([np.array_equal(asked.sample(data, source).above, sides > 0) for _ in range(400)]))

    assert right(margin) >= 0.87
    assert right(margin / 4) < 0.8
