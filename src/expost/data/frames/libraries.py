"""Frames of pandas, Polars, Arrow and DuckDB as plain columns: a column's kind follows from its type alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from expost.data.expression import Kind, is_text
from expost.data.files import declared_kind
from expost.data.frames.objects import of_objects
from expost.data.frames.plain import OTHER, PlainColumn, plain_column
from expost.errors import EngineFailed, InvalidValue


def is_frame(source: Any) -> str | None:
    """The library of a frame; None if it is not a frame."""
    for library, names in _FRAMES.items():
        module = sys.modules.get(library)
        if module is not None and isinstance(source, tuple(getattr(module, name) for name in names)):
            return library
    listed = isinstance(source, list | tuple) and bool(source) and "pyarrow" in sys.modules
    return "pyarrow" if listed and all(isinstance(each, pa.RecordBatch) for each in source) else None


_FRAMES = {
    "pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "pyarrow": ("Table", "RecordBatch", "RecordBatchReader"),
    "duckdb": ("DuckDBPyRelation",),
}


def columns_of(source: Any, library: str, schema: Mapping[str, str] | None) -> list[PlainColumn]:
    """Every column of a frame, with the kind of its type or the declared kind."""
    kinds = {name: declared_kind(name, kind) for name, kind in (schema or {}).items()}
    names, read = _READERS[library](source)
    _check_names(names, library)
    for name in kinds:
        if name not in names:
            raise InvalidValue(
                f"the frame has no column {name!r}: it has {', '.join(map(repr, names))}", about=("schema", name)
            )
    return [_declared(column, kinds.get(column.name)) for column in _guarded(read(kinds))]


def _declared(column: PlainColumn, kind: Kind | None) -> PlainColumn:
    return column if kind is None else column.declared(kind)


def _guarded(columns: Iterator[PlainColumn]) -> Iterator[PlainColumn]:
    """Raise only the type of other libraries' errors, because their messages may quote data."""
    while True:
        try:
            column = next(columns, None)
        except InvalidValue:
            raise
        except Exception as error:
            failed = type(error).__name__
        else:
            if column is None:
                return
            yield column
            continue
        raise EngineFailed(failed)  # outside, so that not even the context quotes data


def _check_names(names: list[Any], library: str) -> None:
    wrong = [name for name in names if not isinstance(name, str) or not name or not is_text(name)]
    if wrong:
        raise InvalidValue(f"the columns of a frame need text as names, got {wrong[0]!r}: rename it")
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InvalidValue(f"the frame has two columns {name!r}, ignoring case: rename one of them")
        seen.add(name.lower())
    if not names:
        raise InvalidValue(f"the {library} frame has no columns: read one that has")


_Columns = tuple[list[Any], Callable[[Mapping[str, Kind]], Iterator[PlainColumn]]]
"""The names of the columns, and a function that reads them, given the declared kinds."""


def _of_objects(name: str, values: Collection[Any], kind: Kind | None) -> PlainColumn:
    """A column of objects, which may be anything: questions cannot use it unless its kind is declared."""
    return (
        PlainColumn(name, None, "other", OTHER) if kind is None else PlainColumn(name, of_objects(values, kind), kind)
    )


# ---- pandas


def _pandas(frame: Any) -> _Columns:
    names = list(frame.columns)

    def read(kinds: Mapping[str, Kind]) -> Iterator[PlainColumn]:
        for place, name in enumerate(names):
            yield _of_series(name, frame.iloc[:, place], kinds)

    return names, read


def _of_series(name: str, series: Any, kinds: Mapping[str, Kind]) -> PlainColumn:
    """A column of pandas, from a series or an index of categories."""
    import pandas as pd

    dtype, values = series.dtype, series.array
    if isinstance(dtype, np.dtype):
        return _of_numpy(name, series.to_numpy(), kinds)
    if isinstance(dtype, pd.CategoricalDtype):
        return _of_categories(name, values, kinds)
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "python":
        return _of_objects(name, values.to_numpy(object), "text")
    if isinstance(dtype, pd.DatetimeTZDtype):
        return plain_column(name, pa.array(values.tz_convert("UTC").tz_localize(None), from_pandas=True))
    theirs = type(values).__module__.partition(".")[0] == "pandas"  # others' arrays run others' code for each value
    if theirs and hasattr(values, "__arrow_array__") and not isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype):
        return plain_column(name, pa.array(values))
    return PlainColumn(name, None, "other", OTHER)


def _of_numpy(name: str, values: Any, kinds: Mapping[str, Kind]) -> PlainColumn:
    """A column of NumPy values; NaN is NULL, as everywhere in pandas."""
    dtype = values.dtype
    if dtype.kind == "O":
        return _of_objects(name, values, kinds.get(name))
    if dtype.kind not in "iufbM":
        return PlainColumn(name, None, "other", OTHER)
    with np.errstate(all="ignore"):  # beyond the largest double is infinite: no warning tells that there is one
        native = values.astype(np.float64 if dtype.kind == "f" and dtype.itemsize > 8 else dtype.newbyteorder("="))
    return plain_column(name, pa.array(native, from_pandas=True))


def _of_categories(name: str, values: Any, kinds: Mapping[str, Kind]) -> PlainColumn:
    """A categorical column: its categories are read like a column, then each row by its code."""
    column = _of_series(name, values.categories, kinds)
    if column.values is None:
        return column
    codes = pa.array(values.codes.astype(np.int64), mask=values.codes < 0)
    return replace(column, values=_taken(column.values, codes))


def _taken(values: Any, places: Any) -> Any:
    chunked = pa.chunked_array([values]) if isinstance(values, pa.Array) else values
    return chunked.take(places)


# ---- Polars, Arrow, DuckDB


def _polars(frame: Any) -> _Columns:
    import polars as pl

    lazy = isinstance(frame, pl.LazyFrame)
    names = frame.collect_schema().names() if lazy else frame.columns

    def read(kinds: Mapping[str, Kind]) -> Iterator[PlainColumn]:
        collected = frame.collect() if lazy else frame
        for series in collected.get_columns():
            yield _of_polars(series, kinds)

    return names, read


def _of_polars(series: Any, kinds: Mapping[str, Kind]) -> PlainColumn:
    import polars as pl

    name, dtype = series.name, series.dtype
    if dtype == pl.Object:
        return _of_objects(name, series.to_list(), kinds.get(name))
    if dtype in (pl.Int128, pl.UInt128):
        return plain_column(name, series.cast(pl.Int64, strict=False).to_arrow())
    known = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Datetime, pl.Null)
    if dtype.is_numeric() or dtype in known:
        return plain_column(name, series.to_arrow())
    return PlainColumn(name, None, "other", OTHER)


def _arrow(source: Any) -> _Columns:
    names = list(source[0].schema.names if isinstance(source, list | tuple) else source.schema.names)

    def read(kinds: Mapping[str, Kind]) -> Iterator[PlainColumn]:
        if isinstance(source, pa.RecordBatchReader):
            table = source.read_all()
        else:
            batches = source if isinstance(source, list | tuple) else [source]
            table = source if isinstance(source, pa.Table) else pa.Table.from_batches(batches)
        for place, name in enumerate(names):
            yield plain_column(name, table.column(place))

    if isinstance(source, list | tuple) and any(each.schema != source[0].schema for each in source):
        raise InvalidValue("batches that are read together need the same columns, in the same order, of the same types")
    return names, read


def _duckdb(relation: Any) -> _Columns:
    from expost.data.duckdb.sql import identifier, kind_of, whole

    names = list(relation.columns)
    types = dict(zip(names, map(str, relation.types), strict=True))

    def read(kinds: Mapping[str, Kind]) -> Iterator[PlainColumn]:
        known = {name: kind_of(kind) for name, kind in types.items()}
        chosen = [name for name in names if known[name] != "other"]
        values = [f"{whole(identifier(name), types[name])} AS {identifier(name)}" for name in chosen]
        table = relation.project(", ".join(values)).to_arrow_table() if values else None
        for name in names:
            yield (
                PlainColumn(name, None, "other", OTHER)
                if table is None or name not in chosen
                else plain_column(name, table.column(chosen.index(name)))
            )

    return names, read


_READERS: dict[str, Callable[[Any], _Columns]] = {
    "pandas": _pandas, "polars": _polars, "pyarrow": _arrow, "duckdb": _duckdb,
}  # fmt: skip
