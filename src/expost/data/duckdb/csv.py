"""CSV files, copied into a table: every line is a row, from which each field is cut and parsed by itself.

DuckDB's own reader is not asked. It leaves out lines that are not UTF-8, empty or too long, and would join all lines
after an unclosed quotation mark into one row, so that one person's bytes would decide how many rows there are. The
expressions here are total, like those of questions.

Proof: lem-lines
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import duckdb

from expost.data import lines
from expost.data.duckdb import sources
from expost.data.duckdb.sql import identifier, kind_of, of_text, string
from expost.data.encodings import with_question_marks
from expost.data.expression import Kind
from expost.data.expression.patterns import literal
from expost.data.files import Form

_STAGED = "expost_lines"
_BLOCKS = 8
"""Blocks of lines whose fields are cut at once, on all cores."""
_LOOKED_AT = 2
"""Blocks of lines from which types are guessed."""


@dataclass
class Copied:
    """The copy of CSV files, which is made when it is first needed."""

    path: str
    form: Form

    def __post_init__(self) -> None:
        form, encoding = self.form, self.form.encoding
        kinds = form.kinds(self.path)
        self.first_lines = [(file, lines.first_line(file, encoding)) for file in form.files(self.path)]
        cut = [f"{_field(place, form)} AS f{place}" for place in range(len(kinds))]
        parsed = [
            f"{of_text(f'f{place}', kind, form.decimal)} AS {identifier(name)}"
            for place, (name, kind) in enumerate(kinds.items())
        ]
        listed = f"SELECT {_fields(form, form.delimiter_of(self.path))} AS fields FROM {_STAGED}"
        self.rows = f"SELECT {', '.join(parsed)} FROM (SELECT {', '.join(cut)} FROM ({listed}))"

    def stage(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the table of lines that are not cut yet."""
        connection.execute(f"CREATE OR REPLACE TABLE {_STAGED} (line VARCHAR)")

    def fill(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        """Copy all rows into a table, in their order."""
        try:
            for file, first in self.first_lines:
                self._add(connection, lines.rows(file, self.form.encoding, first), table)
        except BaseException:
            connection.execute(f"TRUNCATE {identifier(table)}")
            raise
        finally:
            self.stage(connection)

    def _add(self, connection: duckdb.DuckDBPyConnection, blocks: Iterator[str], table: str) -> None:
        while some := list(islice(blocks, _BLOCKS)):
            self.stage(connection)
            for block in some:
                connection.execute(f"INSERT INTO {_STAGED} SELECT unnest(string_split(?, chr(10)))", [block])
            connection.execute(f"INSERT INTO {identifier(table)} {self.rows}")


def _field(place: int, form: Form) -> str:
    """A field of a line, unquoted if it is quoted; NULL if it is empty."""
    found, mark = f"fields[{place + 1}]", form.quote_mark
    if not mark:
        return f"nullif({found}, '')"
    bare = string(rf"\A{literal(mark)}((?:.|\n)*){literal(mark)}\z")
    unquoted = f"replace(regexp_replace({found}, {bare}, '\\1'), {string(mark * 2)}, {string(mark)})"
    return f"nullif(CASE WHEN contains({found}, {string(mark)}) THEN {unquoted} ELSE {found} END, '')"


def _fields(form: Form, between: str) -> str:
    """All fields of a line, as a list."""
    mark, sign = form.quote_mark, literal(between)
    plain = f"string_split(line, {string(between)})"
    if not mark:
        return plain
    quoted = f"{literal(mark)}(?:[^{literal(mark)}]|{literal(mark * 2)})*{literal(mark)}"
    pattern = string(rf"((?:{quoted}|[^{sign}]*))(?:{sign}|\z)")
    return f"CASE WHEN contains(line, {string(mark)}) THEN regexp_extract_all(line, {pattern}, 1) ELSE {plain} END"


def guessed(path: str, form: Form) -> dict[str, Kind]:
    """The kinds of a CSV file's columns, guessed from its first values: for a draft that a person checks."""
    quote, kinds = string(form.quote_mark), form.kinds(path)
    how = f"header = true, delim = {string(form.delimiter_of(path))}, quote = {quote}, escape = {quote}"
    how += f", decimal_separator = {string(form.decimal or '.')}, ignore_errors = true, strict_mode = false"
    with tempfile.TemporaryDirectory(prefix="expost-") as folder, sources.open_database(":memory:") as connection:
        begun = os.path.join(folder, "begun.csv")
        with open(begun, "w", encoding="utf-8", newline="") as file:
            for block in islice(lines.blocks(form.files(path)[0], form.encoding), _LOOKED_AT):
                file.write(f"{with_question_marks(block)}\n")
        looked = sources.public(connection, f"DESCRIBE SELECT * FROM read_csv({string(begun)}, {how})", path)
        found = {str(name): kind_of(str(kind)) for name, kind, *_ in looked}
        texts = f"read_csv({string(begun)}, {how}, all_varchar = true)"
        for name, kind in [each for each in found.items() if each[1] not in ("text", "other")]:
            read = f"SELECT bool_or({of_text(identifier(name), kind, form.decimal)} IS NOT NULL) FROM {texts}"
            if not sources.public(connection, read, path)[0][0]:
                found[name] = "text"  # such as 31.12.2025, which would be read as empty
    return {name: "text" if found.get(name, "other") == "other" else found[name] for name in kinds}
