"""Makes the rows of ``xp.example("visits")``: visits to a hospital that does not exist, messy as real data is.

Nobody is in them. Run this to write the file anew; a test compares its rows with those that are bundled.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

BUNDLED = Path(__file__).resolve().parent.parent / "src" / "expost" / "examples" / "visits.parquet"
PATIENTS = 8_000
FIRST = date(2024, 1, 1)
LAST = date(2025, 12, 31)
SCHEMA = pa.schema(
    {
        "patient": pa.string(),
        "visited": pa.date32(),
        "ward": pa.string(),
        "age": pa.int32(),
        "days": pa.int32(),
        "cost": pa.float64(),
        "diagnosis": pa.string(),
    }
)


class Ward(NamedTuple):
    """What is usual in a ward."""

    stay: float
    """Days, on average."""
    cost: float
    """Of half of the visits without a stay."""
    diagnoses: tuple[str, ...]
    """The most frequent one first."""


WARDS = {
    "A": Ward(3.0, 95, ("pneumonia", "heart failure", "Crohn's disease", "Ménière's disease", "flu", "Sjögren")),
    "B": Ward(
        4.0, 170, ("fracture", "hernia, inguinal", "appendicitis", "Dupuytren’s contracture", 'the "frozen" hip')
    ),
    "C": Ward(1.5, 60, ("asthma", "flu", "otitis", "Kawasaki disease", "croup")),
    "ICU": Ward(7.0, 330, ("sepsis", "heart failure", "stroke", "Guillain–Barré", "trauma, multiple")),
}
ODD: dict[str, tuple[int, dict[str, Any]]] = {
    "no patient": (17, {"patient": None}),
    "no age": (41, {"age": None}),
    "a code in place of an age": (9, {"age": 999}),
    "a ward in small letters": (23, {"ward": "icu"}),
    "a ward that nobody knows": (4, {"ward": "??"}),
    "a cost that was taken back": (3, {"cost": -1.0}),
    "a cost that was typed wrongly": (1, {"cost": 999999.99}),
    "an empty diagnosis": (60, {"diagnosis": None}),
}
"""In how many rows something is odd, and what is there then."""


def rows(seed: int = 2026) -> list[dict[str, Any]]:
    """All rows, in order of their dates."""
    random = Random(seed)
    made = [row for number in range(PATIENTS) for row in _visits(random, f"p{10_000 + 7 * number}")]
    random.shuffle(made)
    _make_odd(made, random)
    return sorted(made, key=lambda row: row["visited"])


def _visits(random: Random, patient: str) -> Iterator[dict[str, Any]]:
    """Those of one patient: most come once or twice, a few come every other week."""
    is_child = random.random() < 0.2
    age = random.randint(0, 17) if is_child else min(max(round(random.gauss(59, 18)), 18), 104)
    often = random.random() < 0.02
    number = random.randint(12, 40) if often else 1 + int(random.expovariate(0.62))
    for _ in range(number):
        chances = (10, 2, 85, 3) if is_child else (48, 34, 0, 18)
        (name,) = random.choices(list(WARDS), chances)
        ward = WARDS[name]
        days = int(random.expovariate(1 / ward.stay) * (6 if random.random() < 0.02 else 1))
        cost = random.lognormvariate(0, 0.55) * ward.cost * (1 + 0.15 * days)
        ranks = [1 / (place + 1) for place in range(len(ward.diagnoses))]
        yield {
            "patient": patient,
            "visited": _day(random),
            "ward": name,
            "age": age,
            "days": days,
            "cost": None if random.random() < 0.05 else round(cost * (25 if random.random() < 0.004 else 1), 2),
            "diagnosis": random.choices(ward.diagnoses, ranks)[0],
        }


def _day(random: Random) -> date:
    """A day on which somebody comes: few come at weekends."""
    while True:
        day = FIRST + timedelta(days=random.randrange((LAST - FIRST).days + 1))
        if day.weekday() < 5 or random.random() < 0.3:
            return day


def _make_odd(made: list[dict[str, Any]], random: Random) -> None:
    """What people and machines get wrong, each in rows of its own."""
    places = iter(random.sample(range(len(made)), sum(number for number, _ in ODD.values())))
    for number, values in ODD.values():
        for _ in range(number):
            made[next(places)].update(values)


def main() -> None:
    """Write the file."""
    pq.write_table(pa.Table.from_pylist(rows(), SCHEMA), BUNDLED, compression="zstd", write_statistics=False)


if __name__ == "__main__":
    main()
