"""Estimates: numbers that carry their errors through arithmetic, storage and copies."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction
from math import inf, isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.estimate import Drawn, Estimate
from expost.ledger import codec

pytestmark = pytest.mark.counted


def ledger(seed: int = 1) -> xp.Ledger:
    return xp.Ledger(epsilon=1000, noise=xp.SeededNoise(seed))


def count(books: xp.Ledger, truth: float = 1000, epsilon: float = 0.1, **more: Any) -> Any:
    return books.run(xp.Laplace(epsilon=epsilon, sensitivity=1), on=truth, **more).value


def test_a_published_number_is_a_number_with_its_error() -> None:
    release = ledger().run(xp.Laplace(epsilon=0.1, sensitivity=1), on=1000)
    value: Any = release.value
    assert isinstance(value, Estimate)
    assert isinstance(value, int)
    assert value == release.output == value.value
    assert type(value.value) is type(release.output) is int
    assert (value.error, release.error) == (30, 30)
    assert value.interval() == release.interval() == (value - 30, value + 30)
    assert value.interval(0.5)[1] < value.interval(0.99)[1]
    assert str(value) == f"{release.output} ± 30"
    assert f"{value:,}" == f"{release.output:,}"
    assert json.loads(json.dumps({"n": value})) == {"n": release.output}
    assert hash(value) == hash(release.output)
    assert np.array([value]).dtype.kind == "i"
    assert "± 30 at 95 %" in str(release)


def test_floats_include_rounding_to_the_grid() -> None:
    mechanism = xp.Laplace(epsilon=1, sensitivity=1.5)
    value: Any = ledger().run(mechanism, on=10.25).value
    assert isinstance(value, Estimate)
    assert value.error is not None
    assert value.error == pytest.approx(mechanism.error_bound(0.95, floats=True))
    assert value.error >= mechanism.error_bound(0.95, floats=True)


def test_what_cancels_cancels() -> None:
    books = ledger()
    one, other = count(books), count(books)
    assert repr(one - one) == "0 ± 0"
    assert (one + one).error == 60
    assert (one + other).error == (one - other).error == 41  # not 60, and not 74
    assert (one + other - other).error == 30
    assert (2 * one - one).error == 30
    assert (-one).error == (10 - one).error == abs(-one).error == 30
    assert (one / 3).error == pytest.approx(10)
    assert one / one == 1
    assert (one / one).error == 0


def test_the_same_entry_read_again_has_the_same_noise() -> None:
    books = ledger()
    first, again = count(books, key="a"), count(books, key="a")
    assert (first - again).error == 0
    assert (first + again).error == 60
    elsewhere = count(ledger(), key="a")  # entry 1 of other books
    assert (first - elsewhere).error == 41


def test_a_ledger_made_anew_at_an_address_has_noise_of_its_own(tmp_path: Path) -> None:
    """Within the same hour, too: what was drawn when it was created tells them apart."""
    url, found = f"sqlite:///{tmp_path}/books.db", []
    for _ in range(2):
        for file in tmp_path.iterdir():
            file.unlink()
        ledger = xp.Ledger.create(url, "n", 10, neighbours="substitute", unit="person")
        found.append(count(ledger))
        ledger.verify()
        del ledger
    first, second = found
    assert (first - second).error > first.error
    assert (first - first).error == 0


def test_a_durable_ledger_gives_the_same_noise_to_all_who_load_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'books.db'}"
    made = xp.Ledger.create(url, "books", 10, neighbours="substitute", unit="person")
    first = count(made, key="a")
    again = count(xp.Ledger.load(url, "books"), key="a")
    assert isinstance(again, Estimate)
    assert (first - again).error == 0


def test_ratios_and_products_hold_for_both_at_once() -> None:
    books = ledger()
    part, whole = count(books, 300), count(books, 1000)
    share = part / whole
    low, high = share.interval()
    assert low < 0.3 < high
    assert share.error == max(high - share, share - low)
    assert (part / count(books, 0, epsilon=0.01)).interval() == (-inf, inf)
    product = part * whole
    assert product.interval()[0] < 300_000 < product.interval()[1]
    assert (share + 1).interval() == pytest.approx((1 + low, 1 + high))
    assert (1 - share).interval()[0] < 0.7 < (1 - share).interval()[1]
    assert (1 / whole).interval()[0] < 0.001 < (1 / whole).interval()[1]
    zero = Estimate.of(0, Drawn("zero", lambda miss: 1))
    assert isnan(part / zero)
    assert (part / zero).error is None


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_coverage_of_sums_differences_and_ratios(confidence: float) -> None:
    books, missed = xp.Ledger(epsilon=10**6, noise=xp.SeededNoise(7)), np.zeros(3)
    runs = 1000
    for _ in range(runs):
        one, other = count(books, 400), count(books, 1000, epsilon=0.2)
        for place, (made, truth) in enumerate([(one + other, 1400), (one - 2 * other, -1600), (one / other, 0.4)]):
            low, high = made.interval(confidence)
            missed[place] += not low <= truth <= high
    allowed = 1 - confidence
    slack = 4 * (allowed * (1 - allowed) / runs) ** 0.5
    assert (missed / runs <= allowed + slack).all()
    assert (missed[:2] / runs >= allowed * 0.8 - slack).all()  # sums claim no more than they need


def test_unknown_errors_say_why() -> None:
    unknown = Estimate.unknown(3.5, "nobody knows")
    assert unknown.error is None
    assert repr(unknown) == "3.5 (no error: nobody knows)"
    assert (unknown + 1).why == (2 / unknown).why == (unknown * 2).why == "nobody knows"
    with pytest.raises(xp.InvalidValue, match="nobody knows"):
        unknown.interval()
    assert Estimate.exactly(2).interval(0.9) == (2, 2)
    with pytest.raises(TypeError):
        unknown + "x"


def test_stored_copied_and_identified_as_the_number() -> None:
    value = count(ledger())
    assert codec.encode(value) == codec.encode(value.value)
    assert (
        xp.Laplace(epsilon=1, sensitivity=value).fingerprint
        == xp.Laplace(epsilon=1, sensitivity=value.value).fingerprint
    )
    again = pickle.loads(pickle.dumps(value))
    assert (again, again.error, (again - value).error) == (value, 30, 0)
    ratio = value / 3 / Estimate.exactly(2)
    assert pickle.loads(pickle.dumps(ratio)).interval() == ratio.interval()
    assert copy.deepcopy(value) is copy.copy(value) is value


def test_reduced_answers_hold_where_they_stopped() -> None:
    mechanism = xp.NoiseReduction(epsilon=1, sensitivity=1, until=xp.RelativeError(within=0.05))
    release = ledger().run(mechanism, on=1000)
    value: Any = release.value
    assert isinstance(value, Estimate)
    assert value.how == release.output
    assert value.error == release.error == mechanism.error_bound(0.95, level=value.how.level, at_stop=True)
    assert Fraction(1, 2) < value / 1000 < 2


def test_releases_of_several_numbers_have_no_single_error() -> None:
    release = ledger().run(xp.Laplace(epsilon=1, sensitivity=1), on=np.array([1, 2]))
    assert release.error is None
    with pytest.raises(xp.InvalidValue, match="no single number"):
        release.interval()
