"""From a file to private answers: counts, a mean, a histogram, keys that were not known, and a median.

The private data: visits to a hospital in a Parquet file, written here at random. Most people come a few times, some
come all the time; of each person at most five visits count. One diagnosis is one person's own, and must not come out.
"""

import tempfile
from pathlib import Path

import duckdb

import expost as xp

VISITS = """
    SELECT CAST(floor(5000 * pow(random(), 1.5)) AS INTEGER) AS person,
           CAST(20 + floor(60 * random()) AS INTEGER) AS age,
           40 * exp(random() + random()) AS cost,
           CASE WHEN i = 7 THEN 'a disease of one' WHEN random() < 0.3 THEN 'flu' WHEN random() < 0.4 THEN 'cold'
                WHEN random() < 0.1 THEN 'back pain' END AS diagnosis
    FROM range(30000) t(i)
"""


def main() -> None:
    """Ask a few questions of a file, and print the receipt."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        duckdb.sql(f"COPY ({VISITS}) TO '{path}' (FORMAT parquet)")
        ask(path)


def ask(path: Path) -> None:
    """Everything about people, each protected as a whole; then about visits, each for itself."""
    visits = xp.read(path, unit=xp.Unit("person", rows=5, groups=3), neighbours="add-remove")
    print(f"{visits}\n")
    ledger = xp.Ledger(epsilon=2, delta=1e-6, name="people", neighbours="add-remove", unit="person")
    seniors = visits.where("age >= 65")
    print(seniors.count())
    print(ledger.run(seniors.count(of="units"), epsilon=0.25, label="people of 65 or more"))
    print(ledger.run(visits.mean("cost", bounds=(0, 500)), epsilon=0.5, label="mean cost"))
    busy = ledger.run(
        visits.histogram("age", bins=6, bounds=(20, 80)).above(10_000, at_most=3), epsilon=0.5, label="busy"
    )
    print(busy)
    remaining = ledger.remaining
    print(f"The sparse vector refunded {busy.refunded}; all that remains finds the diagnoses:")
    found = ledger.run(visits.discover("diagnosis"), epsilon=remaining, delta=remaining.delta, label="diagnoses")
    for diagnosis, people in found.value.items():
        print(f"  {diagnosis:10} {people:5} people")
    print(f"\n{ledger.statement()}\n")

    each = xp.read(path, unit="visit (one row each)", neighbours="substitute")
    book = xp.Ledger(epsilon=1, delta=1e-6, name="visits", neighbours="substitute", unit="visit (one row each)")
    typical = xp.mechanisms.StableMedian.scaled(100, size=each.size, epsilon=1, delta=1e-6, bounds=(0, 500))
    print(book.run(typical, on=each.column("cost"), label="median cost"))


if __name__ == "__main__":
    main()
