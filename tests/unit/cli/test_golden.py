"""What people see when they ask for help or make a mistake, as reviewed snapshots in tests/golden."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from commands import CliRunner
from expost import Ledger
from expost.cli.main import app
from golden import check as golden
from studies import CANARY, COUNT, write_people, write_study

RUNNER = CliRunner()


def shown(folder: Path, *arguments: str) -> str:
    """What a command prints, and its exit code."""
    result = RUNNER.invoke(app, list(arguments), prog_name="expost", env={"TERMINAL_WIDTH": "80"})
    text = result.output.replace(str(folder), "FOLDER")
    assert "Traceback" not in text
    assert CANARY not in text
    return f"$ expost {' '.join(arguments).replace(str(folder), 'FOLDER')}\n{text}exit code {result.exit_code}\n"


def commands(group: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Every command and group of commands, except those of ``expost ledger``, which are in a page of their own."""
    yield path
    for name, command in getattr(group, "commands", {}).items():
        if name != "ledger":
            yield from commands(command, *path, name)


@pytest.mark.parametrize("path", list(commands(get_command(app))), ids=" ".join)
def test_help(tmp_path: Path, path: tuple[str, ...]) -> None:
    text = shown(tmp_path, *path, "--help")
    assert "Example: expost" in text or path in (("token",), ("job",))
    golden("-".join(["help", *path]), text)


QUESTION = "\n[[question]]\n"
MISTAKES = {
    "unknown-key": COUNT + "epsilom = 1\n",
    "unknown-kind": QUESTION + 'name = "a"\nkind = "medain"\nepsilon = 1\n',
    "wrong-type": QUESTION + 'name = "a"\nkind = "mean"\ncolumn = "cost"\nbounds = 5\nepsilon = 1\n',
    "no-amount": QUESTION + 'name = "a"\nkind = "count"\nwhere = "age > 1"\n',
    "two-amounts": COUNT + "share = 0.1\n",
    "no-delta": QUESTION + 'name = "a"\nkind = "stable_median"\ncolumn = "age"\nmissing = 0\nscale = 8\nepsilon = 1\n',
    "only-if-later": COUNT + 'only_if = "young.any"\n',
    "only-if-no-outcome": COUNT + COUNT.replace('"old"', '"b"') + 'only_if = "old.any"\n',
    "missing-column": QUESTION + 'name = "a"\nkind = "count"\nwhere = "agee > 1"\nepsilon = 1\n',
    "wrong-column": QUESTION + 'name = "a"\nkind = "mean"\ncolumn = "city"\nbounds = [0, 1]\nepsilon = 1\n',
    "text-compared": QUESTION + 'name = "a"\nkind = "count"\nwhere = "sum(age) > 1"\nepsilon = 1\n',
    "public-count": QUESTION + 'name = "a"\nkind = "count"\nepsilon = 1\n',
    "cannot-fit": COUNT.replace("0.5", "3") + COUNT.replace('"old"', '"b"').replace("0.5", "1.5"),
    "no-toml": "\n[[question]\n",
    "no-question": "",
    "several": QUESTION + 'name = "a b"\nkind = "count"\nepsilon = -1\nwher = "x"\n' + QUESTION + "kind = 3\n",
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(tmp_path: Path, name: str) -> None:
    study = write_study(tmp_path, MISTAKES[name])
    golden(f"mistake-{name}", shown(tmp_path, "run", str(study)))
    assert not (tmp_path / "books.db").exists(), "nothing was charged, and no ledger was made"


def test_missing_sections(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('titel = "x"\n\n[limit]\nepsilon = "much"\n' + COUNT)
    golden("mistake-sections", shown(tmp_path, "plan", str(study)))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("no-file", "people.csv", "poeple.csv"),
        ("no-unit", 'unit = "row"', 'unit = "persn"\nrows = 2'),
        ("unit-without-rows", 'unit = "row"', 'unit = "person"'),
        ("median-add-remove", "substitute", "add-remove"),
        ("bad-address", "sqlite:///books.db", "mysql://x/y"),
    ],
)
def test_mistakes_in_sections(tmp_path: Path, name: str, old: str, new: str) -> None:
    median = QUESTION + 'name = "m"\nkind = "stable_median"\ncolumn = "cost"\nscale = 80\nepsilon = 1\ndelta = 1e-6\n'
    median += "missing = 0\n"
    study = write_study(tmp_path, median)
    study.write_text(study.read_text().replace(old, new, 1))
    golden(f"mistake-{name}", shown(tmp_path, "run", str(study)))


def test_a_ledger_of_another_unit(tmp_path: Path) -> None:
    study = write_study(tmp_path, COUNT)
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(url, "people", epsilon=4, delta=1e-5, neighbours="substitute", unit="household")
    golden("mistake-other-unit", shown(tmp_path, "run", str(study)))
    assert not list(ledger.entries())


def test_a_ledger_of_another_limit(tmp_path: Path) -> None:
    study = write_study(tmp_path, COUNT)
    Ledger.create(
        f"sqlite:///{tmp_path}/books.db", "people", epsilon=9, neighbours="substitute", unit="visitor (one row each)"
    )
    text = shown(tmp_path, "plan", str(study))
    golden("mistake-other-limit", text)
    assert "A limit cannot be lowered" in text


def test_a_limit_that_its_owner_may_raise(tmp_path: Path) -> None:
    study = write_study(tmp_path, COUNT)
    Ledger.create(
        f"sqlite:///{tmp_path}/books.db", "people", epsilon=4, neighbours="substitute", unit="visitor (one row each)"
    )
    told = shown(tmp_path, "run", str(study))
    assert "expost ledger raise sqlite:///FOLDER/books.db people --delta 1e-5 --by" in told


def test_the_accounting_of_a_ledger_stays(tmp_path: Path) -> None:
    study = write_study(tmp_path, COUNT)
    Ledger.create(
        f"sqlite:///{tmp_path}/books.db", "people", 4, 1e-5, neighbours="substitute", unit="visitor (one row each)"
    )
    study.write_text(study.read_text().replace('name = "people"', 'name = "people"\naccounting = "renyi"', 1))
    golden("mistake-other-accounting", shown(tmp_path, "run", str(study)))


def test_plan_with_several_meters(tmp_path: Path) -> None:
    many = [COUNT.replace('"old"', f'"old{age}"').replace("60", f"{age}").replace("0.5", "0.05") for age in (50, 60)]
    noisy = QUESTION + 'name = "ages"\nkind = "histogram"\ncolumn = "age"\nbins = 8\nbounds = [0, 80]\n'
    study = write_study(tmp_path, *many, noisy + 'epsilon = 0.1\nnoise = "best"\n')
    study.write_text(study.read_text().replace('name = "people"', 'name = "people"\naccounting = "renyi"', 1))
    golden("plan-renyi", shown(tmp_path, "plan", str(study)))


def test_no_ledger_there(tmp_path: Path) -> None:
    (tmp_path / "books.db").write_bytes(b"this is no database, and longer than a header of one would be " * 20)
    text = shown(tmp_path, "run", str(write_study(tmp_path, COUNT)))
    golden("mistake-no-database", text)
    assert text.endswith("exit code 4\n")


def test_plan_and_report(tmp_path: Path) -> None:
    above = QUESTION + (
        'name = "busy"\nkind = "above"\ncolumn = "age"\nbins = 8\nbounds = [0, 80]\nthreshold = 9000\nat_most = 4\n'
        "share = 0.5\n"
    )
    rest = QUESTION + 'name = "last"\nkind = "count"\nwhere = "age < 20"\nepsilon = "rest"\nonly_if = "busy.none"\n'
    study = write_study(tmp_path, COUNT, above, rest)
    golden("plan", shown(tmp_path, "plan", str(study)))
    golden("report-before-run", shown(tmp_path, "report", str(study)))


def test_init_does_not_write_over(tmp_path: Path) -> None:
    data = write_people(tmp_path)
    target = tmp_path / "study.toml"
    golden("init", shown(tmp_path, "init", str(data), "-o", str(target)))
    golden("init-study", target.read_text())
    golden("init-again", shown(tmp_path, "init", str(data), "-o", str(target)))
