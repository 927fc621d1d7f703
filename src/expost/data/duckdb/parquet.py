"""Parquet files. Only columns whose types DuckDB reads whatever the bytes are part of any query.

DuckDB fails for a time in milliseconds that it cannot hold in microseconds, and for a decimal with more bytes than its
type has; also while it plans a query that does not use the column, from the least and largest values that a file
states of it. So a scan names only columns that cannot fail, and the types in the files decide which these are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import duckdb

from expost.data import files
from expost.data.duckdb.sources import of_folder, public
from expost.data.duckdb.sql import TIMES, identifier, kind_of, string
from expost.data.expression import is_text
from expost.errors import InvalidValue
from expost.mentions import Argument, brief

_FILE = "expost_file"
_UNREAD = "BLOB"
"""The type by which the schema lists a column that no question can use."""
_HOW = "utf8_validation = 'replace', hive_partitioning = false"  # folders are not columns unless declared


@dataclass(frozen=True)
class Scan:
    """The query that reads the columns that can be read, and the types of all columns."""

    query: str
    types: Mapping[str, str]

    @property
    def blank(self) -> str:
        """The columns of a table of these types."""
        return ", ".join(f"{identifier(name)} {kind}" for name, kind in self.types.items())


@dataclass(frozen=True)
class _Leaf:
    """A column of a file that is not nested: how its values are stored, and as what DuckDB reads them."""

    physical: str
    length: int
    units: frozenset[str]
    read_as: str

    @property
    def total(self) -> bool:
        """Whether DuckDB reads every value that can be stored. All types are listed in ``tests/odd_parquet.py``."""
        if kind_of(self.read_as) == "other":
            return False
        if self.read_as in TIMES and self.physical != "INT96":
            return bool(self.units) and "MILLIS" not in self.units
        if self.read_as.startswith("DECIMAL"):
            return self.physical in ("INT32", "INT64") or 0 < self.length <= _room(self.read_as)
        return True


def _room(decimal: str) -> int:
    """The bytes in which DuckDB keeps a decimal."""
    digits = int(re.findall(r"\d+", decimal)[0])
    return next(size for most, size in ((4, 2), (9, 4), (18, 8), (38, 16)) if digits <= most)


def scan(connection: duckdb.DuckDBPyConnection, path: str, form: files.Form) -> Scan:
    """How Parquet files are read, which must have the same columns: casts to other types could fail."""
    listed = f"[{', '.join(map(string, (path, *form.also)))}]"
    schemas = _schemas(connection, listed, path)
    _refuse_others(schemas)
    _refuse_alike(schemas)
    described = public(connection, f"DESCRIBE SELECT * FROM read_parquet({listed}, {_HOW})", path)
    found = {str(name): str(kind) for name, kind, *_ in described}
    leaves = [leaf for schema in schemas.values() for leaf in _leaves(schema)]
    failing = {name for name, leaf in leaves if not leaf.total}
    known = {name for name, _ in leaves} - failing
    types = {name: kind if name.lower() in known else _UNREAD for name, kind in found.items()}
    read = [identifier(name) for name, kind in types.items() if kind_of(kind) != "other"]
    rows = f"read_parquet({listed}, {_HOW}"
    if not form.partitions:
        return Scan(f"SELECT {', '.join(_some(read))} FROM {rows})", types)
    _check_partitions(form.partitions, list(schemas), list(found))
    stated = [f"{of_folder(_FILE, name, kind)} AS {identifier(name)}" for name, kind in form.partitions.items()]
    query = f"SELECT {', '.join([*read, *stated])} FROM {rows}, filename = {string(_FILE)})"
    of_folders = public(connection, f"DESCRIBE {query}", path)[len(read) :]
    return Scan(query, {**types, **{str(name): str(kind) for name, kind, *_ in of_folders}})


def _refuse_alike(schemas: dict[str, _Schema]) -> None:
    """Raise for names that DuckDB changes, because it cannot tell them apart: which of them is which is not known."""
    for schema in schemas.values():
        names = [name.lower() for name in _top_names(schema)]
        if "" in names or len(set(names)) < len(names):
            raise InvalidValue(
                "the file has columns without a name, or whose names differ only in case: rename them, or read it as a "
                "frame"
            )


def _some(columns: list[str]) -> list[str]:
    if not columns:
        raise InvalidValue(
            "no column can be read, because all are lists, structures, bytes, times in milliseconds or the like: add a "
            "column of numbers, text, booleans or times in microseconds"
        )
    return columns


_Schema = list[dict[str, Any]]


def _schemas(connection: duckdb.DuckDBPyConnection, listed: str, path: str) -> dict[str, _Schema]:
    """The elements of each file's schema, parents first, without the root."""
    wanted = "name, type, type_length, num_children, converted_type, logical_type, duckdb_type"
    asked = f"SELECT DISTINCT file_name, column_id, {wanted} FROM parquet_schema({listed}) WHERE column_id > 0"
    rows = public(connection, f"{asked} ORDER BY file_name, column_id", path)
    names = wanted.split(", ")
    return {
        str(file): [dict(zip(names, row[2:], strict=True)) for row in elements]
        for file, elements in groupby(rows, key=lambda row: row[0])
    }


def _refuse_others(schemas: Mapping[str, _Schema]) -> None:
    first: tuple[str, list[tuple[str, str]]] | None = None
    for file, schema in schemas.items():
        named = sorted((str(each["name"]), str(each["duckdb_type"])) for each in schema)
        if first is not None and named != first[1]:
            raise InvalidValue(
                f"{_without_values(file)} has other columns than {_without_values(first[0])}: files that are read "
                "together need columns of the same names and types"
            )
        first = first or (file, named)


def _without_values(path: str) -> str:
    """A path that is shown: what folders such as ``patient=7`` say is private."""
    return re.sub(r"(?<=[/\\])([^/\\=]+)=[^/\\]*(?=[/\\])", r"\1=…", path)


def _leaves(schema: _Schema) -> list[tuple[str, _Leaf]]:
    """The columns that are not nested, by their names in lower case."""
    found, place = list[tuple[str, _Leaf]](), 0
    while place < len(schema):
        each = schema[place]
        if not each["num_children"]:
            said = f"{each['converted_type']} {each['logical_type']}"
            units = frozenset(re.findall(r"(MILLIS|MICROS|NANOS)(?!=<null>)", said))
            leaf = _Leaf(str(each["type"]), int(each["type_length"] or 0), units, str(each["duckdb_type"]))
            found.append((str(each["name"]).lower(), leaf))
        place = _after(schema, place)
    return found


def _top_names(schema: _Schema) -> Iterator[str]:
    """The names of all columns, nested or not."""
    place = 0
    while place < len(schema):
        yield str(schema[place]["name"])
        place = _after(schema, place)


def _after(schema: _Schema, place: int) -> int:
    """The place after an element and all that is in it."""
    left = 1
    while left:
        left += int(schema[place]["num_children"] or 0) - 1
        place += 1
    return place


def _check_partitions(partitions: Mapping[str, str], paths: list[str], columns: list[str]) -> None:
    """Raise unless every file is in a folder of each name. The folders' values are private: no message quotes one."""
    for name in partitions:
        if not is_text(name) or not name or "/" in name:
            raise InvalidValue(
                f"partitions map names of folders to kinds, got the name {brief(name)}: write for instance ",
                Argument("partitions", {"year": "integer"}),
            )
        if name.lower() in (column.lower() for column in columns):
            raise InvalidValue(f"{name!r} is already a column of the files: leave it out of partitions")
        if not all(f"/{name}=" in path for path in paths):
            raise InvalidValue(f"some files are not in a folder {name}=…: leave {name!r} out of partitions")
