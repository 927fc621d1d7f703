"""Studies run end to end: receipts that add up, mistakes found before any charge, nothing told."""

import json
import re
import shlex
from pathlib import Path

import pytest

from commands import CliRunner
from expost import Cost, Ledger
from expost.cli.main import app
from expost.data.duckdb import DuckDB
from expost.errors import InvalidStudy
from expost.study import plan_study, read_study, record_of, run_study
from studies import (
    CANARY,
    COUNT,
    EVERYTHING,
    MIDDLE,
    SPREAD,
    write_study,
)

pytestmark = pytest.mark.slow


def test_receipts_add_up(tmp_path: Path) -> None:
    result = run_study(read_study(write_study(tmp_path, EVERYTHING, epsilon=400)))
    charged = sum((receipt.charged for outcome in result.outcomes for receipt in outcome.receipts), Cost(0))
    assert charged == result.ledger.spent
    assert len({receipt.entry for outcome in result.outcomes for receipt in outcome.receipts}) == 28
    record = json.loads(json.dumps(record_of(result)))
    assert record["answered"] == 27


def test_planning_reads_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a value was read")

    monkeypatch.setattr(DuckDB, "fetch", refuse)
    monkeypatch.setattr(DuckDB, "arrays", refuse)
    plan = plan_study(read_study(write_study(tmp_path, EVERYTHING, epsilon=400)))
    assert plan.fits
    assert not (tmp_path / "books.db").exists()


def test_units_with_several_rows(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, COUNT.replace('"old"', '"people"') + 'count = "units"\n')
    path.write_text(
        path.read_text().replace('unit = "row"', 'unit = "person"\nrows = 2').replace("substitute", "add-remove")
    )
    result = run_study(read_study(path))
    assert [outcome.state for outcome in result.outcomes] == ["answered"] * 2
    assert result.size is None


def test_accounts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(
        url, "people", epsilon=10, delta=1e-3, neighbours="substitute", unit="visitor (one row each)"
    )
    path = write_study(tmp_path, COUNT)
    ledger.create_account("alice", Cost(4, 1e-5))
    path.write_text(path.read_text().replace('name = "people"', 'name = "people"\naccount = "alice"', 1))
    result = run_study(read_study(path))
    assert (result.ledger.limit, ledger.spent) == (Cost(4, 1e-5), Cost(0.5))
    assert result.ledger.name == "people/alice"


def test_no_value_in_any_message(tmp_path: Path) -> None:
    wrong = ("word > 1", f"word = {CANARY}", "CAST(word AS INTEGER) > 1", "word + 1 > 2")
    for place, condition in enumerate(wrong):
        folder = tmp_path / str(place)
        folder.mkdir()
        study = write_study(folder, COUNT.replace("age >= 60", condition.replace(CANARY, "zanzibar")))
        result = CliRunner().invoke(app, ["run", str(study)])
        assert CANARY not in result.output
        assert "Traceback" not in result.output


def test_what_cannot_be_asked_is_no_matter_of_budget(tmp_path: Path) -> None:
    tiny = '[derive]\ntiny = "age * 1e-300"\n' + SPREAD.format("tiny") + MIDDLE.format(9) + COUNT
    result = run_study(read_study(write_study(tmp_path, tiny)))
    assert [outcome.state for outcome in result.outcomes] == ["answered", "not possible", "answered"]
    assert "short of" not in result.outcomes[1].why
    assert result.error is None


def test_no_units_are_found_before_any_charge(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, MIDDLE.replace('"s"', "8").format(9))
    (tmp_path / "people.csv").write_text("person,age,city,cost,word\n")
    with pytest.raises(InvalidStudy, match=r"study.toml:4: \[data\] the data has no visitor"):
        run_study(read_study(path))
    assert not (tmp_path / "books.db").exists()


def test_data_that_is_a_folder(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    (tmp_path / "people.csv").unlink()
    (tmp_path / "people.csv").mkdir()
    with pytest.raises(InvalidStudy, match="is a folder, and expost reads only folders of Parquet files"):
        plan_study(read_study(path))


@pytest.mark.parametrize("option", ["--record", "--report"])
def test_where_nothing_can_be_written_nothing_is_charged(tmp_path: Path, option: str) -> None:
    path = write_study(tmp_path, COUNT)
    (tmp_path / "place").mkdir()
    result = CliRunner().invoke(app, ["run", str(path), option, str(tmp_path / "place")])
    assert result.exit_code == 2
    assert "cannot be written" in result.output
    assert not (tmp_path / "books.db").exists()


def test_a_run_in_memory_says_so(tmp_path: Path) -> None:
    path, page = write_study(tmp_path, COUNT, url="memory:"), tmp_path / "page.html"
    result = CliRunner().invoke(app, ["run", str(path), "--report", str(page)])
    assert "keeps no ledger" in result.stderr
    assert "old" in result.stdout.splitlines()[0], "answers are for other programs, too"
    assert "for this process; what another publishes comes on top" in page.read_text()
    assert "whole life" not in page.read_text()


def test_types_are_wrong_where_they_stand(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    inline = path.read_text()
    path.write_text(inline.replace('"integer", city', '"intege", city'))
    with pytest.raises(InvalidStudy, match=r"study.toml:5: \[data\] column 'age' cannot be of type 'intege'"):
        plan_study(read_study(path))
    path.write_text(inline.replace('"integer", city', '"intege", city').replace('unit = "row"', 'unit = "e"\nrows = 1'))
    with pytest.raises(InvalidStudy, match=r"study.toml:5: \[data\] column 'age'"):
        plan_study(read_study(path))
    table = 'path = "people.csv"\n[data.schema]\n"person" = "integer"\n"aeg" = "integer"\n'
    path.write_text(re.sub(r'path = "people.csv"\nschema.*\n', table, inline))
    with pytest.raises(InvalidStudy, match=r"study.toml:7: \[data\] .*has no column 'aeg'"):
        plan_study(read_study(path))


def test_no_folder_for_the_ledger(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, url="sqlite:///nowhere/books.db")
    for command in ("plan", "run"):
        result = CliRunner().invoke(app, [command, str(path)])
        assert result.exit_code == 2
        assert "study.toml:17: [ledger] there is no folder" in result.output


def test_a_ledger_to_be_made_is_said_in_full(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    path.write_text(path.read_text().replace('name = "people"', 'name = "people"\naccount = "alice"', 1))
    with pytest.raises(InvalidStudy) as error:
        plan_study(read_study(path))
    command = str(error.value).partition("expost ")[2]
    assert CliRunner().invoke(app, [*shlex.split(command)]).exit_code == 0
    with pytest.raises(InvalidStudy) as error:
        plan_study(read_study(path))
    command = str(error.value).partition("with expost ")[2]
    assert CliRunner().invoke(app, [*shlex.split(command)]).exit_code == 0
    assert run_study(read_study(path)).error is None


@pytest.mark.parametrize("account", ["alice-extra", "alicf", "team/bop", "team", "taem/bob", "alice/x"])
def test_a_study_creates_no_account(tmp_path: Path, account: str) -> None:
    """A typo, or an account of one's own, would be a limit of its own."""
    unit = "visitor (one row each)"
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(url, "people", epsilon=10, delta=1e-3, neighbours="substitute", unit=unit)
    ledger.create_account("alice", Cost(4, 1e-5))
    ledger.create_account("team", Cost(5, 1e-4)).create_account("bob", Cost(4, 1e-5))
    path = write_study(tmp_path, COUNT)
    text = path.read_text()
    for command in (plan_study, run_study):
        path.write_text(text.replace('name = "people"', f'name = "people"\naccount = "{account}"', 1))
        with pytest.raises(InvalidStudy, match=r"study.toml:19: \[ledger\] .*(has no account|has a limit)"):
            command(read_study(path))
    assert [each.name for each in ledger.accounts] == ["people/alice", "people/team"]
    assert not list(ledger.entries())
    path.write_text(text.replace('name = "people"', 'name = "people"\naccount = "team/bob"', 1))
    assert run_study(read_study(path)).ledger.name == "people/team/bob"
    assert ledger.account("team").spent == Cost(0.5)


@pytest.mark.parametrize(("unit", "theirs", "fits"), [
    ('unit = "person"\nrows = 2', "person", True),
    ('unit = "person"\nrows = 2', "visitor", True),
    ('unit = "person"\nrows = 2', "visitor (column age)", True),
    ('unit = "person"\nrows = 2', "person (one row each)", False),
    ('unit = "person"\nrows = 2', "household", False),
    ('unit = "person"\nrows = 2', "persons", True),
    ('unit = "person"\nrows = 2', "Person ID", True),
    ('unit = "row"', "row", True),
    ('unit = "row"', "visitor", False),
    ('unit = "row"', "visitor (one row each)", True),
    ('unit = "row"', "person", False),
])  # fmt: skip
def test_a_ledger_made_with_a_plain_unit(tmp_path: Path, unit: str, theirs: str, fits: bool) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    Ledger.create(url, "people", epsilon=4, delta=1e-5, neighbours="substitute", unit=theirs)
    path = write_study(tmp_path, COUNT)
    path.write_text(path.read_text().replace('unit = "row"', unit, 1))
    if fits:
        assert plan_study(read_study(path)).fits
    else:
        with pytest.raises(InvalidStudy, match=r"expost ledger create .* --unit 'visitor .* --neighbours substitute"):
            plan_study(read_study(path))
