"""Public tables that are looked up, bins and bounds in expressions, and answers as frames."""

from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow.parquet import write_table as write_parquet

import expost as xp
from expost.data.expression import evaluate, parse
from expost.errors import InvalidValue

pytestmark = pytest.mark.slow
REGIONS = {"zip": ["10", "é", "2", "it's"], "region": ["N", "S", None, "N"], "weight": [1, 2.5, float("nan"), 3],
           "day": [date(2020, 1, 1)] * 4, "ok": [True, False, True, True]}  # fmt: skip


@pytest.fixture
def table() -> xp.PrivateTable:
    frame = pd.DataFrame({"zip": ["10", "é", "2", "it's", "1", None, "10"], "n": [1, 20, 70, 5, 17, 18, 65]})
    return xp.read(frame, unit="row", neighbours="substitute", key=1)


@pytest.mark.parametrize(
    "make",
    [dict, pd.DataFrame, lambda d: pl.DataFrame(d, strict=False), pa.table],
    ids=["dict", "pandas", "polars", "arrow"],
)
def test_columns_are_looked_up_row_by_row(table: xp.PrivateTable, make: Any) -> None:
    joined = table.join(make(REGIONS), on="zip")
    assert joined.schema["day"] in ("date", "timestamp")
    assert joined.count().exact() == 7
    assert joined.histogram("region", keys=["N", "S"]).exact().tolist() == [3, 1, 3]
    assert joined.sum("weight", bounds=(0, 9), grid=0.5, missing=9).exact() == (1 + 2.5 + 9 + 3 + 9 + 9 + 1) * 2
    assert joined.where("ok AND day = TIMESTAMP '2020-01-01 00:00:00'").count().exact() == 4
    matched = table.join(make(REGIONS), on="zip", keep="matched")
    assert (matched.count().exact(), matched.fewest, joined.fewest) == (5, 0, 1)
    assert "zip is in a public table" in repr(matched)
    assert joined.column("n").shape == (7,)


def test_a_lookup_does_not_depend_on_other_rows() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 'k' || (i % 7) AS k, i AS n FROM range(50) r(i)")
    public = {"k": [f"k{i}" for i in range(5)], "v": list(range(5))}
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove", key=1).join(public, on="k")
    question = table.histogram("v", keys=[0, 1, 2, 3, 4])
    whole = question.exact()
    for gone in range(0, 50, 9):
        connection.execute(f"DELETE FROM t WHERE n = {gone}")
        less = question.exact()
        assert abs(whole - less).sum() == question.sensitivity.l1 == 1
        whole = less


HOSTILE = {
    "wide": (
        "HUGEINT",
        ["170141183460469231731687303715884105727", "-9223372036854775809", "9223372036854775807", "NULL"],
    ),
    "unsigned": ("UBIGINT", ["18446744073709551615", "9223372036854775808", "0", "NULL"]),
    "text": ("VARCHAR", ["''", "repeat('x', 3000000)", "'10' || chr(0)", "'é'", "'e\u0301'", "'10'", "'１０'", "NULL"]),
    "real": ("DOUBLE", ["'nan'::DOUBLE", "'-0.0'::DOUBLE", "1e308", "'-inf'::DOUBLE", "NULL"]),
    "exact": ("DECIMAL(38, 10)", ["9999999999999999999999999999.0", "-0.0", "NULL"]),
    "day": ("DATE", ["'infinity'::DATE", "'5877642-06-25 (BC)'::DATE", "'2024-02-29'::DATE", "NULL"]),
}
"""Types of private columns, and values that break casts and comparisons."""
KEYS: dict[str, tuple[str, list[Any]]] = {
    "wide": ("wide", [2**63 - 1, 0, -(2**63)]), "unsigned": ("unsigned", [0, 5]), "text": ("text", ["10", "é", ""]),
    "real": ("CAST(real AS INTEGER)", [0, 5]), "exact": ("CAST(exact AS INTEGER)", [0, -1]),
    "day": ("year(day)", [2024]),
}  # fmt: skip
"""By what it is joined, and the public keys."""


@pytest.mark.parametrize("name", HOSTILE)
def test_no_private_key_makes_a_join_fail(name: str) -> None:
    """One hostile row more or less moves an answer by what it may, and is never an error."""
    kind, values = HOSTILE[name]
    on, keys = KEYS[name]
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (i INTEGER, {name} {kind})")
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove", key=1)
    public = {on: keys, "v": [f"v{i}" for i in range(len(keys))]}
    questions: list[Any] = []
    for keep in ("all", "matched"):
        joined = table.join(public, on=on, keep=keep)  # type: ignore[arg-type]
        questions += [joined.count(), joined.histogram("v", keys=["v0"]), joined.where("v <> 'v0'").count()]
    groups = table.join(public, on=on).by("v", keys=["v0"])
    answers = groups.agg(n=groups.count()).mechanism(epsilon=1)
    before = [question.exact() for question in questions]
    for place, value in enumerate(values):
        connection.execute(f"INSERT INTO t VALUES ({place}, {value})")
        after = [question.exact() for question in questions]
        for question, old, new in zip(questions, before, after, strict=True):
            assert np.abs(np.subtract(new, old)).sum() <= question.sensitivity.l1
        before = after
        xp.Ledger(epsilon=1).run(answers)
    assert (before[0], before[3]) == (len(values), 3 if name == "text" else 1)


def test_bytes_that_are_not_utf8_are_no_key_and_files_are_read_together(tmp_path: Path) -> None:
    """A union of files, in one of which the keys are not text."""
    for name, keys in (("a", [b"10", b"\xff\xfe"]), ("b", [b"\xc3\x28", b"2", b"10"])):
        binary = pa.array(keys, pa.binary())
        text = pa.StringArray.from_buffers(len(binary), *binary.buffers()[1:])
        write_parquet(pa.table({"zip": text, "n": list(range(len(keys)))}), tmp_path / f"{name}.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for source in (files, str(tmp_path / "*.parquet"), tmp_path):
        table = xp.read(source, unit="row", neighbours="add-remove")
        joined = table.join({"zip": ["10", "2", "?"], "r": ["N", "S", "Q"]}, on="zip")
        assert joined.count().exact() == 5
        assert joined.histogram("r", keys=["N", "S"]).exact().tolist() == [2, 1, 2]
        assert table.join({"zip": ["10"]}, on="zip", keep="matched").count().exact() == 2


def test_what_is_publicly_wrong_is_refused(table: xp.PrivateTable) -> None:
    for public, said, rule in (
        ({"zip": ["1", "1"], "r": [1, 2]}, {}, "1 different key"), ({"zip": [], "r": []}, {}, "1 to 5000 rows"),
        ({"zip": [1], "r": [1]}, {}, "of another kind"), ({"zap": ["1"]}, {}, "no column 'zip'"),
        ({"zip": ["1"], "n": [1]}, {}, "already"), ({"zip": ["1"], "r": [[1]]}, {}, "of one kind"),
        ({"zip": [None], "r": [1]}, {}, "of another kind"),
        ({"zip": ["\ud800"], "r": [1]}, {}, "of another kind"),
        ({"zip": ["1", "2"], "r": [1, "a"]}, {}, "of one kind"), ({"zip": ["1"], "r": [2**70]}, {}, "64 bits"),
        ({"zip": ["1"], "r": [1, 2]}, {}, "different lengths"), (5, {}, "a frame, or a mapping"),
        ({"zip": ["1"], "r": [1]}, {"keep": "some"}, "'all' or 'matched'"),
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match=rule):
            table.join(public, on="zip", **said)
    for key in (2**63, -(2**63) - 1):
        with pytest.raises(InvalidValue, match="more than 64 bits"):
            table.join({"n": [key], "r": [1]}, on="n")


def test_bins_and_bounds() -> None:
    schema: Any = {"n": "integer", "x": "number"}
    for text, row, value in (
        ("bin(n, 0, 18, 65)", {"n": 17}, 0), ("bin(n, 0, 18, 65)", {"n": 18}, 18),
        ("bin(n, 0, 18, 65)", {"n": 65}, None),
        ("bin(x, 0, 0.5, 1)", {"x": 0.7}, 0.5), ("bin(x, 0, 0.5, 1)", {"x": float("nan")}, None),
        ("bin(n, 0, 1)", {"n": None}, None), ("clip(n, 2, 30)", {"n": 1}, 2), ("clip(n, 2, 30)", {"n": 31}, 30),
        ("whole(n)", {"n": 3}, 3), ("whole(x)", {"x": 3.0}, 3), ("whole(x)", {"x": -0.0}, 0),
        ("whole(x)", {"x": 2.5}, None), ("whole(x)", {"x": float("nan")}, None), ("whole(x)", {"x": 1e300}, None),
        ("whole(x)", {"x": float("-inf")}, None), ("whole(x)", {"x": None}, None),
        ("clip(n, 2, 30)", {"n": None}, None), ("clip(x, 0, 1)", {"x": float("inf")}, 1.0),
    ):  # fmt: skip
        assert evaluate(parse(text, schema), row) == value, text
    missing = evaluate(parse("clip(x, 0, 1)", schema), {"x": float("nan")})
    assert missing != missing
    for text in ("bin(n, 1)", "bin(n, 2, 1)", "bin(n, n, 1)", "clip(n, 1)"):
        with pytest.raises(InvalidValue, match=r"bin\(\) takes|clip\(\) takes"):
            parse(text, schema)


def test_answers_and_entries_are_frames(table: xp.PrivateTable) -> None:
    book = xp.Ledger(epsilon=5, delta=1e-6, noise=xp.SeededNoise(1))
    cells = book.run(table.histogram("zip", keys=["10", "2"]).mechanism(epsilon=1))
    assert cells.frame.names == ("what", "zip", "value", "low", "high", "error")
    assert cells.frame["zip"] == ["10", "2", "other"]
    assert 0 < cells.frame["error"][0] <= cells.mechanism.error_bound("0.95")  # type: ignore[attr-defined]
    one = book.run(table.where("n > 5").count().mechanism(epsilon=1))
    error = one.mechanism.error_bound("0.95")  # type: ignore[attr-defined]
    assert one.frame.rows == (("count of rows", one.output, one.output - error, one.output + error, error),)
    assert "<table>" in one._repr_html_()
    many = book.run(table.quantile("n", [0.25, 0.75], bounds=(0, 99)).mechanism(epsilon=1))
    assert len(many.frame) == 2
    entries = book.entries().frame
    assert entries["charged_epsilon"] == [1.0, 1.0, 1.0]
    assert entries.to_polars()["state"].to_list() == ["settled"] * 3
