"""Keys of a column of numbers: frames hold whole numbers with gaps as floats."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import expost as xp
from expost.errors import InvalidValue

pytestmark = pytest.mark.slow
VALUES = [0.0, 1.0, np.nan, 0.5, -0.0, np.inf, 1e300]


@pytest.fixture
def table() -> xp.PrivateTable:
    frame = pd.DataFrame({"religious": VALUES * 10, "ward": ["A", "B"] * 35, "rooms": [1, 2, 3, 4, 5, 6, 7] * 10})
    return xp.read(frame, unit="row", neighbours="add-remove")


@pytest.mark.parametrize("keys", [[0, 1], [0.0, 1.0], np.array([0.0, 1.0]), pd.Series([0.0, 1.0])])
def test_stated_keys_are_the_whole_numbers(table: xp.PrivateTable, keys: Any) -> None:
    """Before: "a key needs text or integer or boolean, but 'religious' holds number"."""
    cells = table.histogram("religious", keys=keys)
    assert cells.labels == (0, 1, "other")
    assert [type(label) for label in cells.labels[:2]] == [int, int]
    assert cells.exact().tolist() == [20, 10, 40], "0.5, NaN, infinities and what has more than 64 bits are no key"
    groups = table.by("religious", keys=keys)
    assert groups.keys == (0, 1)
    assert [groups.rows(key).count().exact() for key in groups.keys] == [20, 10]
    found = xp.Ledger(100, noise=xp.SeededNoise(1)).run(groups.count(), epsilon=90).value
    assert [round(float(each)) for each in found.values()] == [20, 10]


def test_several_columns(table: xp.PrivateTable) -> None:
    groups = table.by("religious", "ward", keys={"religious": [1.0, 0], "ward": ["A", "B"]})
    assert groups.keys == ((1, "A"), (1, "B"), (0, "A"), (0, "B"))
    assert sum(groups.rows(key).count().exact() for key in groups.keys) == 30


def test_whole_floats_are_keys_of_integers(table: xp.PrivateTable) -> None:
    assert table.histogram("rooms", keys=[2.0, 3]).exact().tolist() == [10, 10, 50]
    assert table.by("rooms", keys=[2.0]).keys == (2,)


def test_keys_of_numbers_are_discovered_among_whole_ones(table: xp.PrivateTable) -> None:
    """Whether all values are whole is private, so that nobody but the asker can say that they are."""
    for ask in (lambda: table.discover("religious"), lambda: table.by("religious").count()):
        with pytest.raises(InvalidValue, match=r"if its numbers are whole, write whole\(religious\); or state the"):
            ask()
    found = xp.Ledger(100, 1e-5).run(table.by("whole(religious)").count(), epsilon=50, delta=1e-6).value
    assert {key for _, key in found} == {0, 1}


def test_other_keys_are_refused(table: xp.PrivateTable) -> None:
    for column in ("religious", "rooms"):
        for keys, why in (
            ([0.5], "0.5 is not: ask for bins"), ([np.nan], "nan is not: leave it out"), (["a"], "another kind"),
            ([True], "another kind"), ([1e300], "at most 64 bits"),
        ):  # fmt: skip
            for ask in (lambda c, k: table.histogram(c, keys=k), lambda c, k: table.by(c, keys=k)):
                with pytest.raises(InvalidValue, match=why):
                    ask(column, keys)
