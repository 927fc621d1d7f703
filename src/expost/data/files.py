"""Data files: their formats, by their endings, and the options of CSV.

A CSV file has no types. A column without a declared one is text. Types are never guessed from values, because one
person's value would decide how everybody's are read.
"""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from expost.data.encodings import check_encoding, has_marks
from expost.data.expression import Kind
from expost.data.expression.functions import CAST_NAMES
from expost.data.expression.operators import VALUE_KINDS
from expost.data.lines import first_line
from expost.errors import InvalidValue
from expost.mentions import Argument, brief

MOST_COLUMNS = 1000
"""The most columns of CSV."""


def ending(path: str) -> Literal["parquet", "csv", "database"]:
    """The format of a file, by the ending of its path."""
    last = "".join(Path(path).suffixes[-2:]).lower().removesuffix(".gz")
    if last.endswith((".duckdb", ".db")):
        return "database"
    if last.endswith((".parquet", ".pq")):
        return "parquet"
    if last.endswith((".csv", ".tsv", ".txt")):
        return "csv"
    raise InvalidValue(f"{path} has an unknown ending: expost reads .parquet, .csv, .tsv and .duckdb")


def as_paths(source: Any) -> tuple[str, ...]:
    """The paths, all of one format, from a path, a pattern, a folder of Parquet files, or a list of these."""
    listed = source if isinstance(source, list | tuple) and source else [source]
    if not all(isinstance(path, str | Path) for path in listed):
        wrong = next(path for path in listed if not isinstance(path, str | Path))
        raise InvalidValue(
            "read takes a path, a list of paths, an open DuckDB connection with table=…, or a frame of pandas, Polars, "
            f"Arrow, DuckDB or Spark; got {type(wrong).__name__}: make a frame of an array, or ask it a statistic, as "
            "in ledger.run(xp.Mean(bounds=(0, 100)), on=ages, epsilon=0.1)"
        )
    paths = tuple(_of_folder(Path(path)) if os.path.isdir(path) else str(path) for path in listed)
    ways = {ending(path) for path in paths}
    if len(paths) > 1 and (len(ways) > 1 or "database" in ways):
        raise InvalidValue("files that are read together are all Parquet or all CSV: read others one by one")
    return paths


def _of_folder(folder: Path) -> str:
    """The Parquet files in a folder."""
    if folder.suffix.lower() in (".csv", ".tsv", ".txt", ".gz", ".duckdb", ".db"):
        raise InvalidValue(
            f"{folder} is a folder, and expost reads only folders of Parquet files: name other files by a pattern, "
            f"as in {str(folder / '*.csv')!r}"
        )
    return str(folder / "**" / "*.parquet")


@dataclass(frozen=True)
class Form:
    """The format of files, as far as it was declared."""

    schema: Mapping[str, str] | None = None
    delimiter: str | None = None
    quote: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    partitions: Mapping[str, str] | None = None
    """The columns that the folders of Parquet files are named after, and their kinds."""
    also: tuple[str, ...] = ()
    """More files, read after the first."""

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        if self.decimal not in (None, ".", ","):
            raise InvalidValue(f"decimal is the decimal mark of a CSV file, '.' or ',', got {brief(self.decimal)}")
        if self.quote is not None and (not isinstance(self.quote, str) or len(self.quote) > 1):
            raise InvalidValue(f"quote is the character around fields, or '' for none, got {brief(self.quote)}")
        wrong = not isinstance(self.delimiter, str) or len(self.delimiter) != 1 or self.delimiter in "\r\n\0"
        if self.delimiter is not None and wrong:
            raise InvalidValue(f"delimiter is the character between fields, such as ';', got {brief(self.delimiter)}")
        if self.decimal == "," and self.delimiter == ",":
            raise InvalidValue("',' cannot be both the delimiter and the decimal mark: pass another delimiter")
        if self.delimiter is not None and self.delimiter == self.quote_mark:
            raise InvalidValue(
                f"{self.delimiter!r} cannot be both the delimiter and the quotation mark: pass another quote"
            )

    def refuse(self, what: str, *but: str) -> None:
        """Raise for options of CSV where there is no CSV, and for partitions where there are none, except ``but``."""
        if self.partitions is not None and "partitions" not in but:
            raise InvalidValue(f"partitions are for folders of Parquet files, not for {what}: leave them out")
        for_csv = ("schema", "delimiter", "quote", "decimal", "encoding")
        if any(getattr(self, option) is not None for option in for_csv if option not in but):
            raise InvalidValue(
                f"schema, delimiter, quote, decimal and encoding are for CSV files, not for {what}: leave them out"
            )

    @property
    def quote_mark(self) -> str:
        """The character around fields: the double quotation mark by default."""
        return '"' if self.quote is None else self.quote

    def delimiter_of(self, path: str) -> str:
        """The character between fields: by default a comma, a tab in a .tsv file, a semicolon with decimal commas."""
        if self.decimal == "," and not path.lower().removesuffix(".gz").endswith(".tsv"):
            return self.delimiter or ";"
        return self.delimiter or ("\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ",")

    def kinds(self, path: str) -> dict[str, Kind]:
        """The columns that the first line names, and their kinds: text, unless another is declared."""
        kinds: dict[str, Kind] = dict.fromkeys(self._header(path), "text")
        for name, declared in (self.schema or {}).items():
            if name not in kinds:
                raise InvalidValue(
                    f"{path} has no column {name!r}: its header has {', '.join(map(repr, kinds))}",
                    about=("schema", name),
                )
            kinds[name] = declared_kind(name, declared)
        return kinds

    def files(self, path: str) -> list[str]:
        """The files that match a path or pattern."""
        found: list[str] = []
        for each in (path, *self.also):
            named = sorted(glob.glob(each, recursive=True))
            if not named:
                raise InvalidValue(f"{each} cannot be read: is the path right?")
            found += named
        return found

    def _header(self, path: str) -> list[str]:
        """The names in the first line, which is the same in all files, because fields are read by position."""
        files = self.files(path)
        names, between = self._first_line(files[0]), self.delimiter_of(path)
        if len(names) > MOST_COLUMNS:
            raise InvalidValue(
                f"{files[0]} has {len(names)} columns, and a CSV file may have {MOST_COLUMNS}: convert it to Parquet"
            )
        _refuse_first_line(names, files[0], between)
        for file in files[1:]:
            if self._first_line(file) != names:
                raise InvalidValue(
                    f"{file} has another first line than {files[0]}: files that are read together need the same "
                    "columns in the same order"
                )
        return names

    def _first_line(self, file: str) -> list[str]:
        first, between = first_line(file, self.encoding), self.delimiter_of(file)
        if has_marks(first):
            raise InvalidValue(
                f"the first line of {file} is not {self.encoding or 'utf-8'}: pass its encoding, such as ",
                Argument("encoding", "latin-1" if self.encoding != "latin-1" else "utf-8"),
            )
        if "\r" in first:
            raise InvalidValue(
                f"the first line of {file} contains a carriage return: a line ends with a line feed, so save the file "
                "with such line ends"
            )
        quoting: dict[str, Any] = {"quotechar": self.quote_mark} if self.quote_mark else {"quoting": csv.QUOTE_NONE}
        try:
            return next(csv.reader([first], delimiter=between, **quoting), [])
        except (csv.Error, TypeError):
            raise InvalidValue(
                f"the first line of {file} cannot be read: is it CSV with the delimiter {between!r}?"
            ) from None


def _refuse_first_line(names: list[str], file: str, between: str) -> None:
    """Raise unless the first line names each column once. The line is public."""
    if not names and not os.path.getsize(file):
        raise InvalidValue(f"{file} is empty: its first line names the columns")
    if not names:
        raise InvalidValue(f"the first line of {file} is empty: put the names of the columns there")
    if "" in names:
        how = ", which pandas writes of an index unless index=False" if not names[0] else ""
        raise InvalidValue(
            f"the first line of {file} does not name each column once: column {names.index('') + 1} has no name{how}; "
            f"give it one. Or is the delimiter not {between!r}?"
        )
    if not all("\n" not in name and "\0" not in name for name in names):
        raise InvalidValue(f"the first line of {file} does not name each column once: is the delimiter {between!r}?")
    place = {name.lower(): number for number, name in reversed([*enumerate(names, 1)])}
    twice = next((number for number, name in enumerate(names, 1) if place[name.lower()] != number), None)
    if twice is not None:
        name, first = names[twice - 1], place[names[twice - 1].lower()]
        how = "" if names[first - 1] == name else f", as {names[first - 1]!r} but for the case of letters"
        raise InvalidValue(
            f"the first line of {file} does not name each column once: columns {first} and {twice} are both "
            f"{name!r}{how}; rename one"
        )


def declared_kind(name: str, declared: Any) -> Kind:
    """The kind that a schema declares, by its name or by the name of a type in CAST."""
    if declared in VALUE_KINDS:
        kind: Kind = declared
        return kind
    known = CAST_NAMES.get(declared.upper()) if isinstance(declared, str) else None
    if known is None:
        raise InvalidValue(
            f"column {name!r} cannot be of type {brief(declared)}: declare one of {', '.join(VALUE_KINDS)}",
            about=("schema", name),
        )
    return known
