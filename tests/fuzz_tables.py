"""Look for leaks of private tables by random questions, for as long as one likes, in any version of the library.

    python tests/fuzz_tables.py --seconds 300
    python tests/fuzz_tables.py --write-operators operators.json
    PYTHONPATH=/path/to/another/src python tests/fuzz_tables.py --operators operators.json

It asks about small hostile tables and all of their neighbours, as ``hostile_tables`` makes them up, and prints what a
guarantee rules out: an answer that moves further than was claimed, and a failure on some neighbours only. Exit code 1:
something was found. An older version may have no table of operators; it is asked with that of this one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb

import expost as xp
from hostile_tables import claims, fill, neighbours, question, too_far, unit_and_rows, vectors

PER_TABLE, SHOWN = 16, 5


def operators(file: Path | None) -> list[Any]:
    """The operators that expressions are made of: of this version, or those that another one wrote."""
    if file is not None:
        return [SimpleNamespace(**{**each, "takes": tuple(each["takes"])}) for each in json.loads(file.read_text())]
    from expost.data.expression.operators import TABLE

    return list(TABLE)


def written(table: list[Any]) -> str:
    return json.dumps([{name: getattr(op, name) for name in ("name", "takes", "gives", "many")} for op in table])


def answered(ask: Any, table: Any) -> tuple[str, Any]:
    """Refused, failed, or answered with what is claimed of it."""
    try:
        asked = ask(table)
    except (xp.InvalidValue, AttributeError, TypeError):  # what this version does not offer
        return "refused", None
    try:
        return "answered", (vectors(asked), claims(asked))
    except Exception as failure:  # whatever it is: the question is whether neighbours agree on it
        return "failed", type(failure).__name__


def judged(found: list[tuple[str, Any]]) -> tuple[str, str] | None:
    """What is wrong with the answers on a table and on its neighbours: which kind of leak, and its details."""
    outcomes = Counter(outcome for outcome, _ in found)
    if len(outcomes) > 1:
        return "a failure that depends on rows", f"{dict(outcomes)}"
    if "answered" not in outcomes:
        return None
    (whole, most), *less = (answer for _, answer in found)
    moved = next((wrong for one, _ in less if (wrong := too_far(whole, one, most))), None)
    return ("an answer that moves too far", moved) if moved else None


class Search:
    """Tables and questions, and what was found."""

    def __init__(self, seed: int, table: list[Any]) -> None:
        self._chance, self._operators = random.Random(seed), table
        self._connection = duckdb.connect(config={"threads": 1})
        self.asked = 0
        self.found: Counter[str] = Counter()

    def table(self) -> list[str]:
        """Ask about one table; what was found, in words."""
        unit, some = unit_and_rows(self._chance, min(self._chance.choices(range(1, 9), k=4)))
        fill(self._connection, [])
        private = xp.read(self._connection, table="t", unit=unit, neighbours="add-remove")
        questions = [question(self._chance, self._operators) for _ in range(PER_TABLE)]
        answers: list[list[tuple[str, Any]]] = [[] for _ in questions]
        for each in neighbours(some):
            fill(self._connection, each)
            for found, (_, ask) in zip(answers, questions, strict=True):
                found.append(answered(ask, private))
        self.asked += sum(found[0][0] != "refused" for found in answers)
        said = [(text, judged(found)) for found, (text, _) in zip(answers, questions, strict=True)]
        return [line for text, wrong in said if wrong for line in self._noted(text, *wrong)]

    def _noted(self, text: str, kind: str, details: str) -> list[str]:
        """The first few of each kind."""
        self.found[kind] += 1
        return [f"{kind} ({details}): {text}"] if self.found[kind] <= SHOWN else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operators", type=Path)
    parser.add_argument("--write-operators", type=Path)
    given = parser.parse_args()
    if given.write_operators:
        given.write_operators.write_text(written(operators(None)))
        return 0
    search, start = Search(given.seed, operators(given.operators)), time.monotonic()
    while time.monotonic() - start < given.seconds:
        for line in search.table():
            print(f"{time.monotonic() - start:7.1f} s  {line}", flush=True)
    print(f"{search.asked} questions asked of {xp.__file__}, found: {dict(search.found) or 'nothing'}")
    return int(bool(search.found))


if __name__ == "__main__":
    sys.exit(main())
