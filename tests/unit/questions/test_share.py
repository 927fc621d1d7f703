"""Shares of rows: how far one unit moves them, against every neighbour; their error bars; what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expost as xp
from added import added
from duck import database, insert
from expost.data.sensitivity import Sensitivity
from expost.errors import InvalidValue
from expost.noise.sums import LaplaceSteps
from expost.questions.noised import NoiseOfNumbers
from expost.questions.share import error_of_share

KINDS = ("INTEGER", "VARCHAR", "INTEGER")
ROWS = [("a", 1), ("a", 5), ("b", 5), ("b", None)]
"""What a row can say: a ward, and what the condition compares."""
UNITS = [unit for size in (1, 2, 3) for unit in combinations_with_replacement(ROWS, size)]
RESTS = [[], [(1, "a", 1), (2, "b", 5), (2, "b", 5), (2, "a", None), (None, "a", 5)]]
ASKED: dict[str, Any] = {
    "dropped": lambda t: t.share("n > 3"),
    "counted": lambda t: t.share("n > 3", missing=False),
    "true": lambda t: t.share("n > 3", missing=True),
    "filtered": lambda t: t.where("n > 0").share("n > 3", missing=True),
    "groups": lambda t: t.by("ward", keys=["a", "b", "empty"]).agg(s=xp.Share("n > 3"), n=xp.Count()),
    "one group": lambda t: t.by("ward", keys=["a"]).agg(s=xp.Share("n > 3", missing=True)),
}
RELATIONS: Any = ("add-remove", "substitute")


def moves(pairs: Any) -> Sensitivity:
    """The furthest that numbers are apart."""
    apart = [np.abs(a - b) for a, b in pairs]
    return Sensitivity(*(max(int(far(each)) for each in apart) for far in (np.sum, lambda x: (x * x).sum(), np.max)))


@pytest.mark.parametrize("unit", ["row", xp.Unit("p", rows=1), xp.Unit("p", rows=2, groups=1)], ids=repr)
@pytest.mark.parametrize("name", ASKED)
def test_no_neighbour_is_further_than_stated_and_some_are_as_far(name: str, unit: Any) -> None:
    found: dict[str, list[Any]] = {relation: [] for relation in RELATIONS}
    with database() as connection:
        connection.execute("CREATE TABLE t (p INTEGER, ward VARCHAR, n INTEGER)")
        table = xp.read(connection, table="t", unit=unit, neighbours="add-remove", key=7)
        stated = {each: added(ASKED[name](replace(table, neighbours=each)).mechanism(epsilon=1).question)[0].sums
                  for each in RELATIONS}  # fmt: skip
        asked = ASKED[name](table).mechanism(epsilon=1).question

        def numbers(rows: list[Any]) -> Any:
            connection.execute("DELETE FROM t")
            insert(connection, "t", KINDS, rows)
            return added(asked)[0].numbers

        for rest in RESTS:
            alone = numbers(rest)
            others = [numbers([*rest, *((8, *row) for row in own)]) for own in UNITS if unit != "row" or len(own) == 1]
            found["add-remove"] += [(alone, one) for one in others]
            found["substitute"] += product(others, others)
    for relation, pairs in found.items():
        sums = stated[relation]
        if sums.public:  # all rows, and those for which it is false: here, both cells were asked for
            assert relation == "substitute"
            assert all((a.sum(0) == b.sum(0)).all() for a, b in pairs)
            pairs = [(a[1:], b[1:]) for a, b in pairs]
        assert moves(pairs) == sums.moved, relation


def test_the_number_of_rows_is_public_where_it_may_be() -> None:
    with database() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS p, 'a' AS ward, i AS n FROM range(10) t(i)")
        table = xp.read(connection, table="t", unit="row", neighbours="substitute", key=1)
        public = {
            name: bool(sums.public)
            for name, ask in ASKED.items()
            for sums in [added(ask(table).mechanism(epsilon=1).question)[0].sums]
        }
        assert [name for name, it_is in public.items() if it_is] == ["counted", "true"]
        assert added(table.share("n > 3", missing=True))[0].numbers.tolist() == [[10], [6]]
        sums = added(table.share("n > 3"))[0].numbers.tolist()
        assert sums == [[4], [6]]


def test_the_lemma_of_error_bars_on_every_small_case() -> None:
    """Proof: lem-share-error. With noise within q of the true share, a share is off by at most that over the rows."""
    for holds, other, more, fewer in product(range(4), range(4), range(-2, 3), range(-2, 3)):
        rows = holds + other + more + fewer
        if not holds + other or rows <= 1:
            continue
        true = Fraction(holds, holds + other)
        shown = min(max(Fraction(holds + more, rows), Fraction(0)), Fraction(1))
        assert abs(shown - true) <= abs((1 - true) * more - true * fewer) / rows


@pytest.mark.parametrize("size", [3, 12, 150])
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 2), Fraction(2)])
def test_intervals_hold_for_every_share(rate: Fraction, size: int) -> None:
    """Also of few rows, at the ends, and where the number of rows is public; a fifth of the length would not do."""
    chance, law, runs = np.random.default_rng(5), LaplaceSteps(rate), 1500
    for laws in ((law, law), (None, law)):
        noise, narrow = NoiseOfNumbers(laws), 0.0
        for holds in {0, 1, size // 2, size}:
            drawn = chance.geometric(1 - np.exp(-float(rate)), (4, runs)) - 1
            true, wrong = holds / size, [0, 0]
            for more, fewer in zip(drawn[0] - drawn[1], drawn[2] - drawn[3], strict=True):
                rows = max(size if laws[0] is None else size + more + fewer, 1)
                share = min(max((holds + more) / rows, 0), 1)
                error = error_of_share(noise, share, int(rows), Fraction(1, 20))
                wrong[0] += abs(share - true) > error
                wrong[1] += abs(share - true) > error / 5
            assert wrong[0] / runs <= 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5, (laws, holds)
            narrow = max(narrow, wrong[1] / runs)
        assert narrow > 0.1 or rate * size < 10


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_error_is_smaller_than_that_of_a_mean(relation: Any) -> None:
    """Of ones and zeros, also with a grid that puts them around their middle."""
    ages = np.random.default_rng(1).normal(44, 12, 5000)
    for above in (20, 40, 44, 70):
        means = [xp.Mean(f"if(value > {above}, 1, 0)", bounds=(0, 1), missing=missing, grid=grid)
                 for missing in ("drop", 0) for grid in (None, 0.5)]  # fmt: skip
        asked: list[Any] = [xp.Share(f"value > {above}"), xp.Share(f"value > {above}", missing=False), *means]
        book = xp.Ledger(epsilon=9, neighbours=relation, noise=xp.SeededNoise(1))
        dropped, counted, *others = [book.run(each, on=ages, epsilon=0.5).value for each in asked]
        assert dropped.error < (0.8 if relation == "add-remove" else 1) * min(each.error for each in others[:2])
        assert counted.error < 1.01 * min(each.error for each in others)
        for each in (dropped, counted):
            assert abs(each - (ages > above).mean()) < 3 * each.error
            assert each.how.values == pytest.approx(5000, abs=60)


def test_shares_of_tables_groups_and_arrays_are_the_same() -> None:
    frame = pd.DataFrame({"ward": ["a", "b"] * 500, "cost": np.arange(1000.0), "sick": [True, False] * 500})
    table = xp.read(frame, unit="row", neighbours="add-remove", key=1)
    book = xp.Ledger(epsilon=900, neighbours="add-remove", noise=xp.SeededNoise(1))
    assert table.share("cost > 99") == table.asked(xp.Share("cost > 99"))
    assert book.run(table.share("cost > 99"), epsilon=90).value == pytest.approx(0.9, abs=0.01)
    assert book.run(table.share("sick"), epsilon=90).value == pytest.approx(0.5, abs=0.01)
    assert book.run(xp.Share("value > 99"), on=frame["cost"].to_numpy(), epsilon=90).value == pytest.approx(
        0.9, abs=0.01
    )
    wards = table.by("ward", keys=["a", "b"])
    assert wards.agg(s=xp.Share("sick")) == wards.agg(s=wards.share("sick"))
    found = book.run(wards.agg(s=xp.Share("sick"), total=True), epsilon=90).value
    assert [found["a"], found["b"], found.all_together] == pytest.approx([1, 0, 0.5], abs=0.01)
    each = book.run(wards.ask(lambda rows: rows.share("cost > 99")), epsilon=90).value
    assert [*each.values()] == pytest.approx([0.9, 0.9], abs=0.01)


def test_null_counts_as_was_said_and_nan_is_above_all() -> None:
    values = pd.DataFrame({"n": pd.array([1, 5, 5, None], dtype="Int64"), "x": [1.0, 5.0, 5.0, np.nan]})
    table = xp.read(values, unit="row", neighbours="add-remove", key=1)
    of = {missing: added(table.share("n > 3", missing=missing))[0].numbers.ravel().tolist()
          for missing in ("drop", True, False)}  # fmt: skip
    assert of == {"drop": [1, 2], True: [1, 3], False: [2, 2]}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("cost",), "needs boolean, but 'cost' holds number: write a comparison"),
        (("cost > 1 +",), "cost > 1"),
        (("cost > 1", 0.5), "True, False or 'drop'; got 0.5"),
        (("cost > 1", "keep"), "True, False or 'drop'; got 'keep'"),
    ],
)
def test_mistakes_say_what_to_do(settings: Any, words: str) -> None:
    table = xp.read(pd.DataFrame({"cost": [1.0]}), unit="row", neighbours="add-remove")
    with pytest.raises(InvalidValue, match=words.replace("+", r"\+")):
        table.asked(xp.Share(*settings))
