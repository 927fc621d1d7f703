"""Answers about groups are as private as they guarantee: exactly on all neighbours of small tables, and by samples.

The loss of noise is exact: numbers that move by Δ under discrete Laplace noise of rate ρ have a largest log-ratio of
ρ·|Δ|. The statistics of all groups add up, and the sum must stay within their shares of ε, as fractions. The law of
permute-and-flip is computed, with 1/2 for e^−ρ, which the theorem allows: ratios of all groups multiply.
"""

from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations
from math import prod
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp
from added import added
from duck import remembering
from expost.cost import exact
from expost.errors import InvalidValue
from expost.verify.audit import audit
from soak import SOAK

pytestmark = pytest.mark.slow
ROWS = [("a", 1, 3), ("a", 2, None), ("b", 1, 0), (None, 2, 1), ("z", 2, 2)]
_ALL = [unit for size in (1, 2, 3) for unit in combinations_with_replacement(ROWS, size)]
UNITS = [unit for place, unit in enumerate(_ALL) if SOAK or len(set(unit)) == 1 or place % 5 == 0]
REST = [(1, "a", 1, 2), (2, "b", 2, 3), (2, "a", 1, 0), (None, "a", 1, 3)]
RELATIONS: Any = ("add-remove", "substitute")


def table_of(rows: list[Any], unit: Any, neighbours: Any) -> xp.PrivateTable:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE t (p INTEGER, city VARCHAR, year INTEGER, n INTEGER)")
    if rows:
        values = ", ".join(["(?, ?, ?, ?)"] * len(rows))
        connection.execute(f"INSERT INTO t VALUES {values}", [field for row in rows for field in row])
    return xp.read(connection, table="t", unit=unit, neighbours=neighbours, key=7)


def asked(table: xp.PrivateTable, *, epsilon: Any = 6) -> Any:
    groups = table.by("city", "year", keys={"city": ["a", "b", "empty"], "year": [1, 2]})
    return groups.agg(
        total=True,
        rows=groups.count(),
        units=groups.count(of="units"),
        total_n=groups.sum("n", bounds=(-1, 2), missing=2),
        mean=groups.mean("n", bounds=(0, 3)),
        spread=groups.variance("n", bounds=(0, 2)),
        median=groups.median("n", bounds=(0, 3)),
    ).mechanism(epsilon=epsilon)


def seen(mechanism: Any) -> tuple[list[Any], list[list[int]]]:
    """The numbers of each measure in every group, and the scores of all candidates for each group's median."""
    question = mechanism.question
    numbers = [each.noisy for each in added(question)]
    (name, ranks), *_ = question.ranks
    counted: dict[Any, list[Any]] = {}
    for row in question.table.engine.fetch(question.ranked(name)):
        counted.setdefault(question.key_of(row), []).append((float(row[1]), int(row[2])))
    scores = []
    for key in question.keys:
        cells = np.array(counted.get(key, ()), np.float64).reshape(-1, 2)
        law = ranks.windows_of(cells[:, 0], cells[:, 1], mechanism._rate(name), "add-remove")
        scores.append([law.score((place,)) for place in range(ranks.lattice.size)])
    return numbers, scores


def loss(mechanism: Any, one: Any, other: Any) -> Fraction:
    """The largest log-ratio of what is released, of both neighbours."""
    lost = Fraction(0)
    noises = [noise for several in mechanism.noises.values() for noise in several]
    for noise, a, b in zip(noises, one[0], other[0], strict=True):
        rate = exact(noise.epsilon, "ε") / exact(noise.sensitivity, "sensitivity")
        lost += rate * int(np.abs(a - b).sum())
    return lost


@cache
def permute_and_flip(scores: tuple[int, ...]) -> tuple[Fraction, ...]:
    """The law of the choice if the coin of a candidate with score s shows heads with probability 2^−s."""
    law, orders = [Fraction(0)] * len(scores), list(permutations(range(len(scores))))
    for order in orders:
        tails = Fraction(1, len(orders))
        for candidate in order:
            law[candidate] += tails * Fraction(1, 2 ** scores[candidate])
            tails *= 1 - Fraction(1, 2 ** scores[candidate])
    return tuple(law)


def ratio(one: Any, other: Any) -> Fraction:
    """The largest ratio of probabilities of the medians of all groups."""
    laws = [[permute_and_flip(tuple(each)) for each in state[1]] for state in (one, other)]
    return Fraction(prod(max(p / q for p, q in zip(a, b, strict=True)) for a, b in zip(*laws, strict=True)))


@pytest.mark.parametrize("unit", ["row", xp.Unit("p", rows=2), xp.Unit("p", rows=3, groups=1)], ids=repr)
def test_all_statistics_together_lose_at_most_epsilon(unit: Any) -> None:
    sizes = [own for own in UNITS if unit != "row" or len(own) == 1]
    states = [seen(asked(table_of([*REST, *((8, *row) for row in own)][::-1], unit, "add-remove"))) for own in sizes]
    alone = seen(asked(table_of(REST, unit, "add-remove")))
    for relation in RELATIONS:
        mechanism = asked(table_of([], unit, relation))
        pairs = [(alone, one) for one in states]
        if relation == "substitute":
            pairs = [(one, other) for place, one in enumerate(states) for other in states[:place]]
        most = max(loss(mechanism, *pair) for pair in pairs)
        assert 2 < most <= 5, relation  # five shares of 1; and the guarantee is not empty
        rate = mechanism._rate("median")
        steps = 1 / rate  # e^(2·rate·rows) is e to the share of 1
        chosen = max(max(ratio(*pair), ratio(*pair[::-1])) for pair in pairs)
        assert 1 < chosen <= 2 ** int(steps), relation
        if unit != "row":  # noise for one row is too little for people
            narrow = asked(table_of([], "row", "add-remove"))
            assert max(loss(narrow, *pair) for pair in pairs) > 5
            assert relation == "add-remove" or chosen > 2 ** int(1 / narrow._rate("median"))


def remembered(rows: list[Any], unit: Any, relation: Any) -> xp.PrivateTable:
    return remembering(table_of(rows, unit, relation))


def outputs(mechanisms: Any) -> Any:
    """What a person sees, without the errors, which are public."""
    return lambda data, noise: tuple(
        value for row in mechanisms[data].sample(None, noise).rows for value in row if value is not None
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_samples_refute_nothing_but_too_little_noise(relation: Any) -> None:
    unit, some = xp.Unit("p", rows=2), [(8, "a", 1, 3)] * 3
    other = [] if relation == "add-remove" else [(9, "b", 1, 0)] * 3
    tables = [remembered([*REST, *own], unit, relation) for own in (some, other)]
    guarantee = xp.Guarantee.uniform(2, neighbours=relation)

    def of(epsilon: Any) -> Any:
        made = []
        for table in tables:
            groups = table.by("city", keys=["a", "b"])
            made.append(groups.agg(n=groups.count(), m=groups.median("n", bounds=(0, 3))).mechanism(epsilon=epsilon))
        return outputs(made)

    assert not audit(of(2), [(0, 1)], guarantee=guarantee, samples=500).refuted
    assert audit(of(8), [(0, 1)], guarantee=guarantee, samples=500).refuted


LONE = [(8, "rare", 1, 3), (8, "rarer", 1, 3), (8, "a", 1, 3)]
"""A unit that is alone in two groups, and one of several in another."""


def found(frame: xp.Frame) -> tuple[int, ...]:
    """Which keys were discovered, and how many units the frequent ones have."""
    units = dict(zip(frame["city"], frame["units"], strict=True))
    return (*(int(key in units) for key in ("a", "b", "rare", "rarer")), units.get("a", 0), units.get("b", 0))


@pytest.mark.parametrize(
    ("unit", "relation"),
    [(xp.Unit("p", rows=3), "add-remove"), (xp.Unit("p", rows=3, groups=1), "substitute"), ("row", "substitute")],
    ids=repr,
)
def test_samples_refute_no_discovered_keys_but_low_thresholds_and_little_noise(unit: Any, relation: Any) -> None:
    """Controls: a threshold of one, with noise, which shows lone keys too often; and noise for too large an ε."""
    crowd = [(10 + i, "ab"[i % 2], 1, 1) for i in range(20)]
    own = LONE if relation == "add-remove" else LONE[:1]
    other = [] if relation == "add-remove" else [(9, "b", 1, 0)]
    guarantee = xp.Guarantee.uniform(2, 0.1, neighbours=relation)

    def refuted(epsilon: Any, one: Any, samples: int = 600, threshold: int | None = None) -> bool:
        groups = [remembered([*crowd, *rows], unit, relation).by("city") for rows in (one, other)]
        made = [each.agg().mechanism(epsilon=epsilon, delta=0.1) for each in groups]
        for each in made if threshold else ():
            vars(each)["threshold"] = threshold
        mechanism = lambda data, noise: found(made[data].sample(None, noise))  # noqa: E731
        return audit(mechanism, [(0, 1)], guarantee=guarantee, samples=samples).refuted

    assert not refuted(2, own, 20_000 if SOAK else 600)
    assert not refuted(2, [(8, "a", 1, 3)], 20_000 if SOAK else 600)
    assert refuted(2, own, threshold=1)
    assert refuted(20, [(8, "a", 1, 3)])


def test_the_threshold_of_discovered_groups_is_the_least() -> None:
    """With e^−rate as a fraction: what a unit's lone groups are shown with, exactly, is at most δ; one less is not."""
    table = table_of(REST, xp.Unit("p", rows=3, groups=2), "add-remove")
    groups = table.by("city")
    for delta in (Fraction(1, 10), Fraction(1, 1000)):
        mechanism = groups.agg(n=groups.count()).mechanism(epsilon=2, delta=delta)
        noise, rate = mechanism.found_noise
        assert rate == Fraction(1, 2)  # half of ε for the keys, and two groups of one unit
        step = Fraction(np.exp(-0.5))

        def lone(threshold: int, step: Fraction = step) -> Fraction:
            """Either of two groups of one unit reaches it: discrete Laplace noise of at least threshold − 1."""
            each = step ** (threshold - 1) / (1 + step)
            return 1 - (1 - each) ** 2

        assert lone(mechanism.threshold) <= delta < 2 * step ** (mechanism.threshold - 2) / (1 + step)
        assert noise.sensitivity == 2


def test_no_row_makes_many_combinations_fail() -> None:
    """Places of keys of several columns are numbers of more than 32 bits."""
    connection, names = duckdb.connect(), [f"a{i}" for i in range(12)]
    connection.execute(f"CREATE TABLE t AS SELECT {', '.join(f'49 AS {name}' for name in names)}")
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove", key=1)
    groups = table.by(*names[:6], keys=[(i,) * 6 for i in range(50)])
    out = (
        xp.Ledger(epsilon=200, noise=xp.SeededNoise(1)).run(groups.agg(n=groups.count()).mechanism(epsilon=200)).output
    )
    assert out["n"] == [0] * 49 + [1]
    wide, book = table.by(*names, keys=[(i,) * 12 for i in range(50)]), xp.Ledger(epsilon=1)
    with pytest.raises(InvalidValue, match="combinations"):
        book.run(wide.agg(n=wide.count()).mechanism(epsilon=1))
    assert book.remaining.epsilon == 1


def test_statistics_are_about_the_table_that_is_grouped() -> None:
    """A number of another table may be a text here, and what is computed of it would fail on some rows."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE s AS SELECT 'a' AS city, 1 AS x")
    connection.execute("CREATE TABLE t AS SELECT 'a' AS city, 'oops' AS x")
    numbers, texts = (
        xp.read(connection, table=name, unit="row", neighbours="add-remove", key=1).by("city", keys=["a"])
        for name in "st"
    )
    for statistic in (numbers.sum("x", bounds=(0, 9)), numbers.mean("x + 1", bounds=(0, 9)),
                      numbers.variance("x", bounds=(0, 9)), numbers.median("x")):  # fmt: skip
        with pytest.raises(InvalidValue, match="other groups"):
            texts.agg(n=statistic).mechanism(epsilon=1)
    with pytest.raises(InvalidValue, match="not about its rows"):
        texts.ask(lambda rows: numbers.rows("a").count()).mechanism(epsilon=1)
