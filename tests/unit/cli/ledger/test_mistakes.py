"""Help, documents and mistakes of `expost ledger …`."""

import re
import shlex
import sqlite3
from pathlib import Path

import pytest

import expost as xp
import golden
from commands import CliRunner
from expost.cli.console import Commands
from expost.cli.ledger import app as app_of_ledgers
from expost.ledger import Settings
from ledger_commands import run

COMMANDS = [found.name or getattr(found.callback, "__name__", "") for found in app_of_ledgers.registered_commands]


def mistakes(url: str, folder: Path) -> dict[str, list[str]]:
    (folder / "junk.db").write_text("these are not the books\n" * 100)
    sqlite3.connect(folder / "other.db").execute("CREATE TABLE t (x)").connection.close()
    limit = ["--epsilon", "1", "--unit", "person", "--neighbours", "substitute"]
    note = ["--by", "me", "--reason", "so"]
    return {
        "no such file": ["show", f"sqlite:///{folder}/none.db"],
        "not a database": ["show", f"sqlite:///{folder}/junk.db"],
        "another database": ["show", f"sqlite:///{folder}/other.db"],
        "no address": ["show", "clinic.db", "patients"],
        "unknown ledger": ["show", url, "patient"],
        "unknown account": ["statement", url, "patients", "--account", "bob"],
        "no ledger for the account": ["show", url, "--account", "bob"],
        "taken name": ["create", url, "patients", *limit],
        "no number": ["create", url, "new", "--epsilon", "three", *limit[2:]],
        "negative limit": ["create", url, "new", "--epsilon", "-1", *limit[2:]],
        "Rényi without δ": ["create", url, "new", *limit, "--accounting", "renyi"],
        "Rényi with too little": [
            "create",
            url,
            "new",
            "--epsilon",
            "1e-6",
            "--delta",
            "1e-9",
            *limit[2:],
            "--accounting",
            "renyi",
        ],
        "another accounting": ["create", url, "patients", *limit, "--delta", "1e-6", "--accounting", "renyi"],
        "no limit": ["create", url, "new", *limit[2:]],
        "unknown neighbours": ["create", url, "new", *limit[:-1], "both"],
        "lower limit": ["raise", url, "patients", "--epsilon", "1", *note],
        "nothing to raise": ["raise", url, "patients", *note],
        "no reason": ["close", url, "patients", "--by", "me", "--yes"],
        "no head": ["verify", url, "patients", "--known", "last tuesday"],
        "old backup": ["verify", url, "patients", "--known", f"99:{'0' * 64}"],
    }


def test_messages_name_commands_that_there_are() -> None:
    sources = (Path(__file__).parents[4] / "src").rglob("*.py")
    named = {name for path in sources for name in re.findall(r"expost ledger ([a-z][a-z-]+)", path.read_text())}
    assert "create-account" in named
    assert named <= set(COMMANDS)


def test_mistakes_are_told_in_words(clinic: str, tmp_path: Path) -> None:
    before = xp.Ledger.load(clinic, "patients").verify()
    pages = []
    for title, arguments in mistakes(clinic, tmp_path).items():
        result = run(*arguments)
        assert result.exit_code in (2, 4), title
        assert isinstance(result.exception, SystemExit), title
        assert result.stdout == "", title
        words = result.stderr.replace(clinic.removeprefix("sqlite:///"), "clinic.db").replace(str(tmp_path), "…")
        pages.append(f"── {title} (exit code {result.exit_code})\n{words}")
    golden.check("ledger-mistakes", "\n".join(pages))
    assert xp.Ledger.load(clinic, "patients").verify() == before


def test_a_server_that_does_not_answer() -> None:
    """Told to a command that is not as patient as ours."""
    commands = Commands("hasty", "")

    @commands.add()
    def show(url: str) -> None:
        xp.Ledger.load(url, "patients", read_only=True, settings=Settings(patience=0.1))

    result = CliRunner().invoke(commands, ["postgresql://me:hunter2@127.0.0.1:1/x"])
    assert result.exit_code == 4
    assert "the database does not answer" in result.stderr
    assert "hunter2" not in result.output


def test_help_is_reviewed() -> None:
    pages = [run("--help").stdout, *(run(command, "--help").stdout for command in COMMANDS)]
    assert all("Example:" in page for page in pages[1:])
    golden.check("ledger-help", "\n".join(pages))


def test_the_documented_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).resolve().parents[4] / "docs" / "ledger.md"
    (session,) = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    steps = [step.partition("\n") for step in session.split("$ expost ledger ")[1:]]
    assert len(steps) >= 5
    for command, _, shown in steps:
        result = run(*shlex.split(command))
        said = "".join(f"{line.rstrip()}\n" for line in result.stdout.splitlines())
        assert re.sub("[0-9a-f]{64}", "…", said) == shown, command
