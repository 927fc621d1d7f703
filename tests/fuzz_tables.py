"""Look for leaks of private tables by random questions, for as long as one likes, in any version of the library.

    python tests/fuzz_tables.py --seconds 300
    python tests/fuzz_tables.py --engine spark --seconds 300
    python tests/fuzz_tables.py --write-operators operators.json
    PYTHONPATH=/path/to/another/src python tests/fuzz_tables.py --operators operators.json

It asks about small hostile tables and all of their neighbours, as ``hostile_tables`` makes them up, and prints what a
guarantee rules out: an answer that moves further than was stated, and a failure on some neighbours only. A failure on
all of them is printed, too: nobody knows that it does not depend on rows. Exit code 1: something was found. An older
version may have no table of operators; it is asked with that of this one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import duckdb

import expost as xp
from hostile_tables import (
    Names,
    Row,
    fill,
    names_of,
    neighbours,
    question,
    stated_moves,
    too_far,
    unit_and_rows,
    vectors,
)

PER_TABLE, SHOWN = 16, 5
Reader = Callable[[random.Random, Any, Names], Callable[[list[Row]], Any]]
"""Makes, for a unit and names, what reads rows as a private table: neighbours in the same way, with the same key."""


def operators(file: Path | None) -> list[Any]:
    """The operators that expressions are made of: of this version, or those that another one wrote."""
    if file is not None:
        return [SimpleNamespace(**{**each, "takes": tuple(each["takes"])}) for each in json.loads(file.read_text())]
    from expost.data.expression.operators import TABLE

    return list(TABLE)


def written(table: list[Any]) -> str:
    return json.dumps([{name: getattr(op, name) for name in ("name", "takes", "gives", "many")} for op in table])


def answered(ask: Any, table: Any) -> tuple[str, Any]:
    """Refused, failed, or answered with what is stated of it."""
    try:
        asked = ask(table)
    except (xp.InvalidValue, AttributeError, TypeError):  # what this version does not offer
        return "refused", None
    try:
        return "answered", (vectors(asked), stated_moves(asked))
    except Exception as failure:  # whatever it is: the question is whether neighbours agree on it
        return "failed", type(failure).__name__


def judged(found: list[tuple[str, Any]]) -> tuple[str, str] | None:
    """What is wrong with the answers on a table and on its neighbours: which kind of leak, and its details."""
    outcomes = Counter(outcome for outcome, _ in found)
    if len(outcomes) > 1:
        return "a failure that depends on rows", f"{dict(outcomes)}"
    if "failed" in outcomes:
        return "a failure on all neighbours", f"{found[0][1]}"
    if "answered" not in outcomes:
        return None
    (whole, most), *less = (answer for _, answer in found)
    moved = next((wrong for one, _ in less if (wrong := too_far(whole, one, most))), None)
    return ("an answer that moves too far", moved) if moved else None


def in_duckdb() -> Reader:
    """One table of one connection, filled anew for each neighbour."""
    connection = duckdb.connect(config={"threads": 1})

    def of(chance: random.Random, unit: Any, names: Names) -> Callable[[list[Row]], Any]:
        fill(connection, [], names=names)
        private = xp.read(connection, table="t", unit=unit, neighbours="add-remove")

        def read(some: list[Row]) -> Any:
            fill(connection, some, names=names)
            return private

        return read

    return of


class Search:
    """Tables and questions, and what was found."""

    def __init__(self, seed: int, table: list[Any], reader: Reader) -> None:
        self._chance, self._operators, self._reader = random.Random(seed), table, reader
        self.asked = 0
        self.found: Counter[str] = Counter()

    def table(self, asking: int = PER_TABLE) -> list[str]:
        """Ask about one table; what was found, in words."""
        unit, some = unit_and_rows(self._chance, min(self._chance.choices(range(1, 9), k=4)))
        names = names_of(self._chance)
        read = self._reader(self._chance, unit, names)
        questions = [question(self._chance, self._operators, names) for _ in range(asking)]
        answers: list[list[tuple[str, Any]]] = [[] for _ in questions]
        for each in neighbours(some):
            private = read(each)
            for found, (_, ask) in zip(answers, questions, strict=True):
                found.append(answered(ask, private))
        self.asked += sum(found[0][0] != "refused" for found in answers)
        said = [(text, judged(found)) for found, (text, _) in zip(answers, questions, strict=True)]
        return [line for text, wrong in said if wrong for line in self._noted(text, *wrong)]

    def _noted(self, text: str, kind: str, details: str) -> list[str]:
        """The first few of each kind."""
        self.found[kind] += 1
        return [f"{kind} ({details}): {text}"] if self.found[kind] <= SHOWN else []


def reader(engine: str, folder: Path) -> Reader:
    if engine == "duckdb":
        return in_duckdb()
    from spark_session import WHY_NOT, in_spark

    if WHY_NOT:
        sys.exit(WHY_NOT)
    return in_spark(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb")
    parser.add_argument("--operators", type=Path)
    parser.add_argument("--write-operators", type=Path)
    given = parser.parse_args()
    if given.write_operators:
        given.write_operators.write_text(written(operators(None)))
        return 0
    with TemporaryDirectory() as folder:
        search = Search(given.seed, operators(given.operators), reader(given.engine, Path(folder)))
        start = time.monotonic()
        while time.monotonic() - start < given.seconds:
            for line in search.table():
                print(f"{time.monotonic() - start:7.1f} s  {line}", flush=True)
    print(f"{search.asked} questions asked of {xp.__file__}, found: {dict(search.found) or 'nothing'}")
    return int(bool(search.found))


if __name__ == "__main__":
    sys.exit(main())
