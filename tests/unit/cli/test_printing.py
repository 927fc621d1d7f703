"""What comes from data commands no terminal, ends no line and is cut off nowhere."""

import csv
import json
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import expost as xp
from commands import CliRunner
from expost.cli.main import app
from expost.frame import Frame
from expost.mentions import printable
from expost.study.report import report_html
from studies import question, write_study

HOSTILE = (
    "\x1b[2J\x1b[1;1Hε 0 charged",
    "\x1b]0;title\x07",
    "\x9b31m",
    "two\nlines",
    "back\rwards",
    "\u202egnirts\u202c",
    "no\u200bwidth",
    "\u2028separated",
    "[bold]no markup[/bold]",
    "=1+1",
)
FREQUENT = 400
SPACES = str.maketrans("", "", "\u202f\u00a0")
"""Between digits and around ±; those of keys are written as escapes."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cities = pa.array([city for city in HOSTILE for _ in range(FREQUENT)])
    parquet.write_table(pa.table({"city": cities}), tmp_path / "people.parquet")
    asked = (
        question("found", "discover", column="city", epsilon=5, delta=1e-6),
        question("most", "top", column="city", at_most=len(HOSTILE), epsilon=5, delta=1e-6),
        question("groups", "count", by="city", epsilon=5, delta=1e-6),
        question("named", "histogram", column="city", keys=list(HOSTILE), epsilon=5),
    )
    path = write_study(tmp_path, *asked, epsilon=40, url=f"sqlite:///{tmp_path}/books.db")
    lines = path.read_text().replace("people.csv", "people.parquet").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("schema")))
    return tmp_path


def seen(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def test_commands_print_keys_of_data_as_text_and_all_of_them(folder: Path) -> None:
    study = str(folder / "study.toml")
    run = CliRunner().invoke(app, ["run", study])
    assert run.exit_code == 0, run.output
    again = CliRunner().invoke(app, ["run", study, "--json"])
    listed = CliRunner().invoke(app, ["answers", study])
    rows = CliRunner().invoke(app, ["answers", study, "--json"])
    for said in (run, again, listed, rows):
        assert seen(said.output)
    for said in (run, listed):
        for name in ("found", "most", "groups", "named"):
            (line,) = (line for line in said.output.splitlines() if f" {name} " in line and "gnirts" in line)
            assert [key for key in HOSTILE if printable(key) not in line] == [], line
    found = {each["name"]: each["value"] for each in json.loads(again.output)["questions"]}
    assert set(found["found"]) == set(found["most"]) == {str(key) for key in HOSTILE}  # values are what they are
    assert "in all)" not in run.output + report_html(json.loads(again.output))


def test_reports_show_keys_of_data_as_text_and_all_of_them(folder: Path) -> None:
    CliRunner().invoke(app, ["run", str(folder / "study.toml"), "--report", str(folder / "r.html")])
    page = (folder / "r.html").read_text(encoding="utf-8")
    body = page[page.index("<main>") : page.index("<h3>The study</h3>")]
    assert seen(body.translate(SPACES))
    assert "…" not in body
    assert body.count("gnirts") >= 4


def test_frames_and_releases_print_keys_as_text() -> None:
    frame = Frame(("key\x1b[1m", "value"), tuple((key, 1) for key in HOSTILE))
    for text in (str(frame), frame._repr_html_()):
        assert seen(text)
    assert len(str(frame).splitlines()) == len(HOSTILE) + 1
    release = xp.Ledger(epsilon=9, delta=1e-6, noise=xp.SeededNoise(1)).run(
        xp.TopK(k=3, epsilon=1, delta=1e-6), on=dict.fromkeys(HOSTILE, 1000)
    )
    assert seen(str(release))
    assert len(str(release).splitlines()) == 1


def test_csv_keeps_values() -> None:
    """Formulas are the reader's to fear: changing values silently would be worse."""
    frame = Frame(("key", "value"), tuple((key, 1) for key in HOSTILE))
    read = list(csv.reader(StringIO(frame.to_csv(), newline="")))
    assert [row[0] for row in read[1:]] == [*HOSTILE]


@pytest.mark.parametrize("text", ["", "Rome", "Zürich, 東京 · ε ≤ 1", 'it\'s "quoted"'])
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
