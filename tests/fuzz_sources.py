"""Look for leaks through the ways that rows come in: bytes of CSV files, of PostgreSQL and of Parquet files.

    python tests/fuzz_sources.py --source csv --seconds 60
    PYTHONPATH=/path/to/another/src python tests/fuzz_sources.py --source postgres

A table has people, cities and whole numbers, whose bytes nobody was careful about, under names of columns that may be
anything. Questions are asked about it and its neighbours, with one unit less or another one instead, and judged as in
``fuzz_tables``: an answer that moves further than stated, or a failure that depends on rows. Exit code 1: something
was found.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import expost as xp
from fuzz_tables import answered, judged
from hostile_bytes import HOSTILE, NOT_UTF8, csv_file, postgres_database, postgres_table
from hostile_tables import HOSTILE_NAMES, quoted
from servers import Server

BytesRow = tuple[bytes, bytes, int]
"""Who, where and how many."""
Names = tuple[str, str, str]
Rows = list[BytesRow]
ReadRows = Callable[[Rows, dict[str, Any]], Any]
"""Reads rows as a private table, with these options of ``read``."""
WriteRows = Callable[[random.Random, Names], tuple[list[bytes], ReadRows]]
"""Chooses a way to write tables with columns of these names: the texts that it can hold, and what reads tables."""
ODD = [value for value in HOSTILE.values() if value]
TAME = [b"a", b"b", "Süd".encode(), b"12"]
PEOPLE = [*NOT_UTF8.values(), b"M\xf6ller", *TAME]
"""Names that every source can tell apart: without quotation marks, which CSV takes away, and carriage returns."""


def in_csv(folder: Path) -> WriteRows:
    def of(chance: random.Random, names: Names) -> tuple[list[bytes], ReadRows]:
        packed, encoding = chance.random() < 0.2, chance.choice([None, None, "utf-8", "latin-1"])
        end = chance.choice([b"\n", b"\r\n"])
        plain = [name if name.isidentifier() and name.isascii() else f"c{place}" for place, name in enumerate(names)]

        def read(some: Rows, options: dict[str, Any]) -> Any:
            lines = [b",".join((who, where, str(number).encode())) for who, where, number in some]
            file = csv_file(folder, lines, first=",".join(plain).encode(), end=end, packed=packed)
            form: dict[str, Any] = {"schema": {plain[2]: "integer"}, "encoding": encoding}
            return xp.read(file, **form, **_of_columns(options, plain[0])), tuple(plain)

        return ODD, read

    return of


def in_postgres(server: Server) -> WriteRows:
    urls = {encoding: postgres_database(server, encoding) for encoding in ("UTF8", "LATIN1", "SQL_ASCII")}
    utf8 = [value for value in ODD if value not in NOT_UTF8.values() and b"\0" not in value]
    held = {"UTF8": utf8, "LATIN1": [b"M\xfcller", b"M\xf6ller", b"\xa4\xff", *TAME], "SQL_ASCII": []}
    held["SQL_ASCII"] = [value for value in ODD if b"\0" not in value] + [b"M\xfcller", b"M\xf6ller"]

    def of(chance: random.Random, names: Names) -> tuple[list[bytes], ReadRows]:
        encoding = chance.choice(list(urls))
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(names, ("text", "text", "int"), strict=True))

        def read(some: Rows, options: dict[str, Any]) -> Any:
            url = urls[encoding]
            table = postgres_table(url, [(who, where, str(n).encode()) for who, where, n in some], columns=columns)
            return xp.read(url, table=table, **_of_columns(options, names[0])), names

        return held[encoding], read

    return of


def in_parquet(folder: Path) -> WriteRows:
    utf8 = [value for value in ODD if value not in NOT_UTF8.values() and b"?" not in value]

    def of(chance: random.Random, names: Names) -> tuple[list[bytes], ReadRows]:
        write = chance.choice([_by_arrow, _by_polars, _by_pandas, _by_duckdb])
        number = iter(range(10**9))

        def read(some: Rows, options: dict[str, Any]) -> Any:
            path = folder / f"{id(read)}-{next(number)}.parquet"
            write(path, names, [(who.decode(), where.decode(), n) for who, where, n in some])
            return xp.read(path, **_of_columns(options, names[0])), names

        return utf8, read

    return of


def _by_arrow(path: Path, names: Names, rows: list[tuple[str, str, int]]) -> None:
    kinds = (pa.string(), pa.string(), pa.int64())
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    pq.write_table(pa.table(columns, names=list(names)), path)


def _by_polars(path: Path, names: Names, rows: list[tuple[str, str, int]]) -> None:
    kinds = dict(zip(names, (pl.String, pl.String, pl.Int32), strict=True))
    pl.DataFrame(rows, schema=kinds, orient="row").write_parquet(path)


def _by_pandas(path: Path, names: Names, rows: list[tuple[str, str, int]]) -> None:
    kinds = dict(zip(names, ("str", "category", "int64"), strict=True))
    pd.DataFrame(rows, columns=list(names)).astype(kinds).to_parquet(path)


def _by_duckdb(path: Path, names: Names, rows: list[tuple[str, str, int]]) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a VARCHAR, b VARCHAR, c INTEGER)")
    if rows:
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    named = ", ".join(f"{old} AS {quoted(new)}" for old, new in zip("abc", names, strict=True))
    connection.execute(f"COPY (SELECT {named} FROM t) TO '{path}' (FORMAT parquet)")


def _of_columns(options: dict[str, Any], who: str) -> dict[str, Any]:
    rows = options["unit"]
    unit: Any = "row" if rows is None else xp.Unit(who, rows=rows)
    return {**options, "unit": unit, "key": 7}


# ---- tables, their neighbours, and questions


def made_up(chance: random.Random, texts: list[bytes]) -> Rows:
    """A few rows of a few people."""
    people = chance.sample(_people(texts), 4)
    return [_row(chance, who, texts) for who in people for _ in range(chance.choice((1, 1, 2, 3)))]


def _people(texts: list[bytes]) -> list[bytes]:
    return [who for who in PEOPLE if who in texts or who in TAME]


def _row(chance: random.Random, who: bytes, texts: list[bytes]) -> BytesRow:
    return who, chance.choice([*texts, *TAME]), chance.choice((0, 1, 3, 7, -2))


def neighbours(chance: random.Random, some: Rows, texts: list[bytes], options: dict[str, Any]) -> Iterator[Rows]:
    """The table; then, for each unit, the table without it, or with another one instead."""
    yield some
    by_rows, removed = options["unit"] is None, options["neighbours"] == "add-remove"
    for unit in range(len(some)) if by_rows else sorted({who for who, _, _ in some}):
        stay = [row for place, row in enumerate(some) if (place if by_rows else row[0]) != unit]
        others = [who for who in _people(texts) if who not in {row[0] for row in stay}]
        new = chance.choice([*others, b"new"])
        if removed:
            yield stay
        elif by_rows:
            yield [_row(chance, new, texts) if place == unit else row for place, row in enumerate(some)]
        else:
            yield stay + [_row(chance, new, texts) for _ in range(chance.choice((1, 2, 3)))]


def questions(names: Names) -> dict[str, Callable[[Any], Any]]:
    _, where, number = names
    keys = ["a", "b", "Süd", "?"]
    return {
        "rows": lambda t: t.count(),
        "units": lambda t: t.count(of="units"),
        "some": lambda t: t.where(f"{quoted(where)} > 'a'").count(),
        "sum": lambda t: t.sum(number, bounds=(0, 5), missing=2),
        "dropped": lambda t: t.sum(number, bounds=(-1, 5)),
        "mean": lambda t: t.mean(number, bounds=(0, 5)),
        "median": lambda t: t.median(number, bounds=(0, 9)),
        "keys": lambda t: t.histogram(where, keys=keys),
        "found": lambda t: t.discover(where),
        "longest": lambda t: t.sum(f"length({quoted(where)})", bounds=(0, 9)),
        "groups": lambda t: t.by(where, keys=keys).ask(lambda r: r.count()).mechanism(epsilon=1),
        "joined": lambda t: t.join({where: keys, "word": [1, 2, 3, 4]}, on=where).sum("word", bounds=(0, 4)),
    }


class SourceSearch:
    """Tables in one kind of source, and what was found."""

    def __init__(self, seed: int, write: WriteRows) -> None:
        self._chance, self._write = random.Random(seed), write
        self.asked = 0
        self.found: Counter[str] = Counter()

    def table(self) -> list[str]:
        """Ask all questions about one table and its neighbours; what was found, in words."""
        chance = self._chance
        hostile = chance.sample([name for name in HOSTILE_NAMES if name.isascii() and "\n" not in name], 3)
        names: Names = ("person", "city", "n") if chance.random() < 0.5 else (hostile[0], hostile[1], hostile[2])
        texts, read = self._write(chance, names)
        options = {"unit": chance.choice([None, 1, 2]), "neighbours": chance.choice(["add-remove", "substitute"])}
        some = made_up(chance, texts)
        answers: dict[str, list[tuple[str, Any]]] = {}
        for each in neighbours(chance, some, texts, options):
            try:
                private, spelled = read(each, options)
            except xp.InvalidValue:  # names that this source cannot have
                return []
            except Exception as failure:  # whatever it is: the question is whether neighbours agree on it
                for found in answers.values():
                    found.append(("failed", type(failure).__name__))
                answers.setdefault("read", []).append(("failed", type(failure).__name__))
                continue
            for what, ask in questions(spelled).items():
                answers.setdefault(what, []).append(answered(ask, private))
        self.asked += sum(found[0][0] == "answered" for found in answers.values())
        wrong = {what: judged(found) for what, found in answers.items()}
        return [self._noted(what, bad, options, some) for what, bad in wrong.items() if bad is not None]

    def _noted(self, what: str, bad: tuple[str, str], options: dict[str, Any], some: Rows) -> str:
        self.found[bad[0]] += 1
        return f"{bad[0]} ({bad[1]}): {what}, {options}, {some}"


def writer(source: str, folder: Path) -> WriteRows:
    return {"csv": in_csv, "parquet": in_parquet}[source](folder) if source != "postgres" else in_postgres(Server())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", choices=["csv", "postgres", "parquet"], default="csv")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        search = SourceSearch(given.seed, writer(given.source, Path(folder)))
        start = time.monotonic()
        while time.monotonic() - start < given.seconds:
            for line in search.table():
                print(f"{time.monotonic() - start:7.1f} s  {line}", flush=True)
    print(f"{search.asked} questions asked of {xp.__file__}, found: {dict(search.found) or 'nothing'}")
    return int(bool(search.found))


if __name__ == "__main__":
    sys.exit(main())
