"""Guarantees as text: PostgreSQL takes the canonical text of a guarantee, with the same prices, and no other text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import psycopg
import pytest

from books import make
from expost import Guarantee
from expost.accounting.amounts import Amounts
from expost.accounting.tariff import Tariff
from expost.canonical import canonical
from expost.errors import InvalidValue
from expost.guarantee import Part, as_part
from expost.ledger.codec import guarantee_text, read_guarantee
from soak import SOAK

LABELS: list[Part] = ["a", "b", "", 'quote"\\', "é\U0001f600\x00\ud800", "a!s\\u0041", 0, -3, 12, (), ("a", (1, "\n"))]
UNITS = ["row", "patient (column pid)", 'quote"\\,', "é\U0001f600\x00\ud800", '","unit":"', ',"prices":{', "[[]"]
DELTAS = ["0", "1e-18", "0.00001", "0.0001", "0.5", "1"]
SPELLED = ["1.0", "01", "0.1e1", "+1", "1e0", "-1", "-0", "1.", ".5", "0.50", "1e-13", "1E-6", "9223373", "", "e", "."]


def _guarantee(dice: random.Random) -> Guarantee:
    labels = dice.sample(LABELS, dice.randrange(4))
    prices = [Fraction(dice.choice([0, 1, 25, 10**6, 10**12 + 1, dice.randrange(10**14)]), 10**12) for _ in range(5)]
    rest = prices[-1] if not labels or dice.random() < 0.5 else None
    relation: Any = dice.choice([None, "add-remove", "substitute"])
    table, unit = dict(zip(labels, prices, strict=False)), dice.choice([None, *UNITS])
    return Guarantee(table, dice.choice(DELTAS), otherwise=rest, neighbours=relation, unit=unit)


def _stored(dice: random.Random) -> Guarantee | Tariff:
    guarantee = _guarantee(dice)
    if dice.random() < 0.5:
        return guarantee
    places = len(guarantee.parts) + (guarantee.otherwise is not None)
    renyi, normal = (tuple(dice.choice([0, 7, 2**62 - 1]) for _ in range(places)) for _ in range(2))
    if dice.random() < 0.2:
        return Tariff(guarantee, False, renyi, normal, concentrated=True)
    return Tariff(guarantee, dice.random() < 0.5, renyi, normal if dice.random() < 0.5 else None)


def _changed(dice: random.Random, text: str) -> str:
    """Nearly the same text: a number spelled otherwise, parts in another order or twice, a letter changed."""
    kind = dice.randrange(4)
    if kind == 0:
        found = json.loads(text)
        dice.shuffle(found["parts"])
        return canonical(found)
    if kind == 1:
        found = json.loads(text)
        where, which = dice.choice([(found, "delta"), (found, "otherwise"), *((pair, 1) for pair in found["parts"])])
        where[which] = dice.choice(SPELLED)
        return canonical(found)
    if kind == 2:
        found = json.loads(text)
        found["parts"] += dice.choices(found["parts"] or [["a", "1"]])
        return canonical(found)
    place = dice.randrange(len(text))
    return text[:place] + dice.choice(['"', ",", "0", "1", " ", "[", "]", "}", "", "\\u0061"]) + text[place + 1 :]


def _priced(text: str) -> Any:
    """What PostgreSQL should find: the prices of each label, in units; None if it is not canonical."""
    try:
        stored = read_guarantee(json.loads(text))
    except (ValueError, InvalidValue, KeyError, TypeError, AttributeError):
        return None
    if guarantee_text(stored) != text:
        return None
    guarantee = stored if isinstance(stored, Guarantee) else stored.guarantee
    prices: dict[str, Any] = {canonical(as_part(part)): _units(stored, part) for part in guarantee.parts}
    other = next(label for label in map(str, range(10**6)) if label not in guarantee.parts)
    prices[""] = None if guarantee.otherwise is None else _units(stored, other)
    return {label: price for label, price in prices.items() if price is not None}


def _by_label(prices: Any) -> Any:
    """What PostgreSQL found, without what is not the price of a label."""
    if prices is None:
        return None
    labels = [label for label in prices if not label[:1].isalpha()]
    return {label: [int(count) for count in prices[label].strip("{}").split(",")] for label in labels}


def _units(stored: Guarantee | Tariff, part: Part) -> Any:
    if isinstance(stored, Guarantee):
        return [*Amounts.of(stored.cost_of(part))]
    return [*stored.of(part)]


@pytest.mark.parametrize("seed", range(4))
def test_the_canonical_text_and_no_other(postgres_url: Callable[[], str], seed: int) -> None:
    url = postgres_url()
    make(url)
    dice = random.Random(seed)
    texts = [guarantee_text(_stored(dice)) for _ in range(2000 if SOAK else 100)]
    texts += [_changed(dice, text) for text in texts for _ in range(8)]
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT expost_prices(text) FROM unnest(%s::text[]) AS text", (texts,)).fetchall()
    refused = 0
    for text, (prices,) in zip(texts, found, strict=True):
        expected = _priced(text)
        refused += expected is None
        assert _by_label(prices) == expected, text
    assert len(texts) / 2 < refused < len(texts) * 8 / 9
