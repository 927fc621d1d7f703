"""Private tables of files."""

import os
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

import expost as xp
import expost.data


def test_nothing_is_concluded_from_values(tmp_path: Path) -> None:
    """One person's field would decide of which type everybody's are."""
    file = tmp_path / "ages.csv"
    for odd in ("7", "seven"):
        file.write_text(f"age\n1\n2\n{odd}\n")
        assert xp.read(file, unit="row", neighbours="add-remove").schema == {"age": "text"}
        declared = xp.read(file, unit="row", neighbours="add-remove", schema={"age": "integer"})
        assert declared.where("age >= 2").count().exact() == (2 if odd == "7" else 1)


def test_a_csv_file_with_everything_wrong_is_read(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    lines = ["p,1,1.5", "p,x,nan", "q", "q,3,3,9,9", "r,99999999999999999999,inf", "caf\xe9,1,1", ",4,", "s,5,-0"]
    file.write_bytes(("person,n,x\n" + "\n".join(lines) + "\n").encode("latin1"))
    table = xp.read(file, unit="row", neighbours="add-remove", schema={"n": "integer", "x": "number"})
    assert table.schema == {"person": "text", "n": "integer", "x": "number"}
    assert table.where("n IS NULL").count().exact() == 3  # not a number, not there, too large
    assert table.sum("x", bounds=(0, 10), grid=1).exact() == 2 + 3 + 10 + 1  # the line that is not UTF-8 is a row, too
    assert {key for key, _ in table.discover("person").exact()} == {"p", "q", "r", "s", "caf?"}


def test_files_come_in_several(tmp_path: Path) -> None:
    for i in range(3):
        duckdb.sql(f"COPY (SELECT {i} AS n FROM range(5)) TO '{tmp_path}/part-{i}.parquet'")
        (tmp_path / f"part-{i}.csv").write_text("n,day\n" + f"{i},2024-01-0{i + 1}\n" * 5)
    parquet = xp.read(f"{tmp_path}/part-*.parquet", unit="row", neighbours="add-remove")
    declared = {"n": "integer", "day": "date"}
    csv = xp.read(f"{tmp_path}/part-*.csv", unit="row", neighbours="add-remove", schema=declared)
    assert csv.schema == declared
    for table in (parquet, csv):
        counted = table.histogram("n", keys=[0, 1, 2])
        assert counted.exact().tolist() == [5, 5, 5, 0]
    assert csv.where("year(day) = 2024 AND day >= DATE '2024-01-02'").count().exact() == 10


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    file = f"{tmp_path}/rows.parquet"
    duckdb.sql(f"COPY (SELECT i FROM range(100) t(i)) TO '{file}'")
    table = xp.read(file, unit="row", neighbours="add-remove")
    asked: list[Any] = [table.count(), table.where("i >= 50").count(), table.sum("i", bounds=(0, 1000))]
    assert [question.exact() for question in asked] == [100, 50, 4950]
    for old, rows in ((0, 300), (1000, 70), (1000, 80)):
        duckdb.sql(f"COPY (SELECT i FROM range({rows}) t(i)) TO '{file}'")
        os.utime(file, (time.time() - old, time.time() - old))
        assert [question.exact() for question in asked] == [rows, rows - 50, rows * (rows - 1) // 2]


def test_what_spills_is_private_and_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = f"{tmp_path}/wide.parquet"
    duckdb.sql(f"COPY (SELECT i AS person, md5(CAST(i AS VARCHAR)) AS s FROM range(1000000) t(i)) TO '{file}'")
    table = xp.read(file, unit=xp.Unit("person", rows=2), neighbours="add-remove")
    getattr(table.engine, "_connection").execute("SET memory_limit = '60MB'")  # noqa: B009
    (folder,) = tmp_path.glob("expost-*")
    assert folder.stat().st_mode & 0o077 == 0
    assert table.histogram("s", keys=["x"]).exact().tolist() == [0, 1000000]
    del table
    assert not folder.exists()


def test_a_key_stands_for_the_form_of_a_file(tmp_path: Path) -> None:
    """Delimiter, quotation mark and a chosen key of the hash decide the answer: no key replays it for others."""
    file = tmp_path / "form.csv"
    file.write_text("p;q,r\n'a;b',1\n")
    ledger = xp.Ledger.create(f"sqlite:///{tmp_path}/books.db", "books", 9, neighbours="add-remove", unit="row")

    def asked(**said: Any) -> Any:
        return xp.read(file, unit="row", neighbours="add-remove", **said).count().mechanism(epsilon=1)

    ledger.run(asked(), key="k")
    for other in ({"quote": "'"}, {"delimiter": ";"}, {"key": 1}):
        with pytest.raises(xp.errors.KeyConflict):
            ledger.run(asked(**other), key="k")
    assert asked(key=1).fingerprint == asked(key=1).fingerprint != asked(key=2).fingerprint
