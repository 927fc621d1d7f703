"""Made-up data that comes with the library: what it holds, that it can be made again, and how it is written."""

import csv
import runpy
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import expost as xp
from commands import CliRunner
from expost.cli.main import app

ROOT = Path(__file__).resolve().parents[2]


def test_the_file_is_what_its_script_makes() -> None:
    made = runpy.run_path(str(ROOT / "examples" / "visits.py"))
    bundled = pq.read_table(xp.example("visits"))
    assert bundled.schema == made["SCHEMA"]
    assert bundled.to_pylist() == made["rows"]()
    assert made["rows"](seed=1) != made["rows"](seed=2)


def test_it_is_small_and_messy() -> None:
    assert xp.example("visits").stat().st_size < 300_000
    rows = pq.read_table(xp.example("visits")).to_pylist()
    of_each: dict[str, int] = {}
    for row in rows:
        of_each[row["patient"]] = of_each.get(row["patient"], 0) + 1
    costs = [row["cost"] for row in rows if row["cost"] is not None]
    assert 20_000 < len(rows) < 22_000
    assert max(of_each.values()) >= 30
    assert 0.02 < 1 - len(costs) / len(rows) < 0.1
    assert max(costs) > 20 * sorted(costs)[len(costs) * 95 // 100]
    assert {"A", "B", "C", "ICU"} < {row["ward"] for row in rows}
    words = "".join({row["diagnosis"] or "" for row in rows})
    assert all(sign in words for sign in "'\",é’–")


def test_it_is_what_read_takes() -> None:
    visits = xp.read(xp.example("visits"), unit=xp.Unit("patient", rows=5), neighbours="add-remove")
    kinds = ("text", "date", "text", "integer", "integer", "number", "text")
    assert dict(visits.schema) == dict(
        zip(("patient", "visited", "ward", "age", "days", "cost", "diagnosis"), kinds, strict=True)
    )


@pytest.mark.parametrize("name", ["visit", "", "../visits", 3])
def test_unknown_names_list_what_there_is(name: str) -> None:
    with pytest.raises(xp.InvalidValue, match="there is 'visits'"):
        xp.example(name)


def test_the_command_writes_it(tmp_path: Path) -> None:
    for name in ("visits.csv", "visits.parquet"):
        arguments = ["example", "visits", "-o", str(tmp_path / name)]
        assert CliRunner().invoke(app, arguments).exit_code == 0
        again = CliRunner().invoke(app, arguments)
        assert again.exit_code == 2
        assert "--force overwrites it" in again.output
        assert CliRunner().invoke(app, [*arguments, "--force"]).exit_code == 0
    assert (tmp_path / "visits.parquet").read_bytes() == xp.example("visits").read_bytes()
    with open(tmp_path / "visits.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    bundled = pq.read_table(xp.example("visits")).to_pylist()
    assert [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in bundled] == rows


def test_the_command_says_what_it_takes(tmp_path: Path) -> None:
    unknown = CliRunner().invoke(app, ["example", "vists", "-o", str(tmp_path / "a.csv")])
    assert (unknown.exit_code, "there is 'visits'" in unknown.output) == (2, True)
    other = CliRunner().invoke(app, ["example", "visits", "-o", str(tmp_path / "a.xlsx")])
    assert (other.exit_code, ".csv or .parquet" in other.output) == (2, True)
    assert not list(tmp_path.iterdir())
