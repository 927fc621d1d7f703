"""`expost ledger …` on real ledgers."""

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from typer.testing import Result

import expost as xp
import golden
from books import execute
from commands import CliRunner
from expost.cli.console import Commands
from expost.cli.ledger import app as app_of_ledgers
from expost.cli.main import app
from expost.ledger import Settings, transfer
from expost.ledger.sqlite.engine import SqliteEngine

COMMANDS = [found.name or getattr(found.callback, "__name__", "") for found in app_of_ledgers.registered_commands]
SECRET = 424_243


def run(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, ["ledger", *arguments], input=typed, env={"COLUMNS": "100", "TERM": "dumb"})


def told(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def clinic(sqlite_url: Callable[[], str]) -> str:
    """A ledger with an account that settled one entry with a key and left one open."""
    return furnished(sqlite_url())


def furnished(url: str) -> str:
    ledger = xp.Ledger.create(url, "patients", epsilon=3, delta=1e-6, neighbours="add-remove", unit="patient")
    alice = ledger.create_account("alice", epsilon=2)
    alice.run(xp.Laplace(epsilon=1, sensitivity=1, neighbours="add-remove"), on=SECRET, key="count", label="visits")
    with alice.reserve(xp.Guarantee({"small": 0.25, "large": 0.5}), label="job 17") as spending:
        spending.settle("small")
    return url


# ---- reading


@pytest.mark.parametrize("what", [("show",), ("statement",), ("statement", "--by", "day")])
def test_json_is_of_one_instant(sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch, what: Any) -> None:
    """Found: limit, spent and reserved were read one after the other, and rows last: under load nothing added up."""
    url, claim = sqlite_url(), xp.Guarantee.uniform("0.01")
    ledger = xp.Ledger.create(url, "patients", epsilon=9, neighbours="add-remove", unit="patient")
    real = SqliteEngine.rows

    def rows(self: SqliteEngine, sql: str, *values: Any) -> Any:
        found = real(self, sql, *values)
        ledger.reserve(claim).settle("done")
        return found

    monkeypatch.setattr(SqliteEngine, "rows", rows)
    facts = told(what[0], url, "patients", *what[1:])
    spent = xp.Cost.from_json(facts["spent"])
    assert spent + xp.Cost.from_json(facts["remaining"]) == xp.Cost.from_json(facts["limit"])
    if "rows" in facts:
        charged = [row["charged"].removeprefix("ε ") for row in facts["rows"]]
        assert spent == sum(map(xp.Cost, charged), xp.Cost(0))


def test_show(clinic: str) -> None:
    result = run("show", clinic, "patients")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "patients (unit patient, neighbours add-remove)",
        "  limit      ε 3, δ 1e-6",
        "  spent      ε 1.25",
        "  reserved   ε 0",
        "  remaining  ε 1.75, δ 1e-6",
    ]
    facts = told("show", clinic, "patients", "--account", "alice")
    assert facts["name"] == "patients/alice"
    assert facts["remaining"] == {"epsilon": "0.75", "delta": "0"}
    assert [ledger["name"] for ledger in told("show", clinic)] == ["patients"]
    assert "patients (unit" in run("show", clinic).stdout


def test_accounts(clinic: str) -> None:
    assert [found["name"] for found in told("accounts", clinic, "patients")] == ["patients", "patients/alice"]
    lines = run("accounts", clinic, "patients").stdout.splitlines()
    assert lines[3].split() == ["patients/alice", "ε", "2", "ε", "1.25", "ε", "0", "ε", "0.75"]


def test_entries_tell_the_receipt_and_never_the_output(clinic: str) -> None:
    first, second = told("entries", clinic, "patients")
    assert (first["what"], first["key"], first["charged"]["epsilon"]) == ("visits", "count", "1")
    assert (second["part"], second["refunded"]["epsilon"], second["state"]) == ("small", "0.25", "settled")
    assert "job 17" in run("entries", clinic, "patients").stdout
    published = xp.Ledger.load(clinic, "patients").account("alice")
    release = published.run(
        xp.Laplace(epsilon=1, sensitivity=1, neighbours="add-remove"), on=0, key="count", label="visits"
    )
    for command in ("entries", "statement", "show", "accounts"):
        for form in ([], ["--json"]):
            assert str(release.value) not in run(command, clinic, "patients", *form).output


def test_entries_are_selected(clinic: str) -> None:
    assert [entry["id"] for entry in told("entries", clinic, "patients", "--last", "1")] == [2]
    assert told("entries", clinic, "patients", "--state", "forfeited") == []
    assert len(told("entries", clinic, "patients", "--account", "alice", "--state", "settled")) == 2


def test_statement(clinic: str) -> None:
    ledger = xp.Ledger.load(clinic, "patients")
    assert run("statement", clinic, "patients").stdout == ledger.statement() + "\n"
    assert run("statement", clinic, "patients", "--by", "day").stdout == ledger.statement(by="day") + "\n"
    rows = told("statement", clinic, "patients")["rows"]
    assert [(row["what"], row["charged"]) for row in rows] == [("visits", "ε 1"), ("job 17", "ε 0.25")]
    assert told("statement", clinic, "patients", "--by", "day")["rows"][0]["refunded"] == "ε 0.25"


# ---- making and governing


def test_create_and_accounts_below_accounts(new_url: Callable[[], str]) -> None:
    url = new_url()
    limits = ("--epsilon", "1/3", "--delta", "1e-6")
    made = told("create", url, "people", *limits, "--unit", "person", "--neighbours", "substitute")
    assert (made["limit"]["epsilon"], made["neighbours"], made["unit"]) == ("0.333333333333", "substitute", "person")
    told("create-account", url, "people", "clinic", "--epsilon", "0.25")
    assert told("create-account", url, "people", "clinic/bob", "--epsilon", "0.125")["name"] == "people/clinic/bob"
    assert xp.Ledger.load(url, "people").account("clinic").account("bob").limit == xp.Cost("0.125")
    assert told("verify", url, "people")["line"] == 3
    assert told("entries", url, "people") == []


def test_raise_and_close(new_url: Callable[[], str]) -> None:
    url = furnished(new_url())
    note = ("--by", "ethics board", "--reason", "decision 12")
    raised = told("raise", url, "patients", "--epsilon", "4", *note)
    assert raised["limit"] == {"epsilon": "4", "delta": "1e-6"}
    assert told("raise", url, "patients", "--account", "alice", "--delta", "1e-7", *note)["limit"]["epsilon"] == "2"
    refused = run("close", url, "patients", *note, typed="n\n")
    assert refused.exit_code == 1
    assert not xp.Ledger.load(url, "patients").closed
    assert run("close", url, "patients", *note, typed="y\n").exit_code == 0
    assert "closed)" in run("show", url, "patients").stdout
    assert told("close", url, "patients", "--account", "alice", "--yes", *note)["closed"] is True
    last = list(xp.Ledger.load(url, "patients").audit())[-1]
    assert (last.kind, last.body["by"], last.body["reason"]) == ("close", "ethics board", "decision 12")


# ---- looking after it


def test_recover_charges_what_a_killed_process_left(clinic: str) -> None:
    script = (
        f"import expost as xp, time; ledger = xp.Ledger.load({clinic!r}, 'patients')\n"
        "ledger.reserve(xp.Guarantee.uniform(0.5), label='never ends'); print('reserved', flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(xp.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert told("recover", clinic, "patients") == {"name": "patients", "forfeited": 1}
    assert run("recover", clinic, "patients").stdout == "nothing was left behind\n"
    assert [entry["what"] for entry in told("entries", clinic, "patients", "--state", "forfeited")] == ["never ends"]


def test_verify_and_export(new_url: Callable[[], str], tmp_path: Path) -> None:
    url = furnished(new_url())
    result = run("verify", url, "patients")
    assert result.exit_code == 0
    head = result.stdout.splitlines()[1].removeprefix("head ")
    furnish_more = xp.Ledger.load(url, "patients")
    with furnish_more.reserve(xp.Guarantee.uniform(0.1)) as spending:
        spending.settle("done")
    assert run("verify", url, "patients", "--known", head).exit_code == 0
    trail = tmp_path / "trail.jsonl"
    told("export", url, "patients", str(trail))
    assert len(trail.read_text().splitlines()) == told("verify", url, "patients")["line"]
    again = run("export", url, "patients", str(trail))
    assert (again.exit_code, "exists" in again.output) == (2, True)
    assert run("export", url, "patients", str(tmp_path / "no" / "where")).exit_code == 2
    other = head.split(":")[0] + ":" + "0" * 64
    rewritten = run("verify", url, "patients", "--known", other)
    assert rewritten.exit_code == 4
    assert "rewritten" in rewritten.stderr


def test_verify_fails_on_changed_books_and_changes_nothing(clinic: str) -> None:
    path = clinic.removeprefix("sqlite:///")
    with sqlite3.connect(path) as books:
        for (name,) in books.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            books.execute(f"DROP TRIGGER {name}")
        books.execute("UPDATE expost_account SET epsilon_spent = 0")
    books.close()
    result = run("verify", clinic, "patients")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "not those that follow from the audit trail" in result.stderr


# ---- mistakes


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
    page = Path(__file__).resolve().parents[3] / "docs" / "ledger.md"
    (session,) = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    steps = [step.partition("\n") for step in session.split("$ expost ledger ")[1:]]
    assert len(steps) >= 5
    for command, _, shown in steps:
        result = run(*shlex.split(command))
        said = "".join(f"{line.rstrip()}\n" for line in result.stdout.splitlines())
        assert re.sub("[0-9a-f]{64}", "…", said) == shown, command


def test_labels_are_no_markup(sqlite_url: Callable[[], str]) -> None:
    url = furnished(sqlite_url())
    ledger = xp.Ledger.load(url, "patients")
    with ledger.reserve(xp.Guarantee.uniform(0.1), label="[bold]x[/bold] [link=http://e]") as spending:
        spending.settle("done")
    for command in ("entries", "statement"):
        assert "[bold]x[/bold] [link=http://e]" in run(command, url, "patients").stdout


# ---- what custodians do rarely


def failing(code: int, *arguments: str) -> Result:
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result


def test_open_entries_are_listed_and_forfeited(clinic: str) -> None:
    ledger = xp.Ledger.load(clinic, "patients")
    ledger.reserve(xp.Guarantee.uniform("0.125"), label="job", lease=3600)
    ledger.reserve(xp.Guarantee.uniform("0.125"), label="mine")
    first, second = told("open", clinic, "patients")
    assert (first["what"], first["owner"], second["what"], second["lease_until"]) == ("job", None, "mine", None)
    shown = run("open", clinic, "patients").stdout
    assert "lease" in shown
    assert f"process {os.getpid()}" in shown
    assert told("forfeit", clinic, "patients", str(first["id"]), "--yes")["state"] == "forfeited"
    assert "forfeited, charged ε 0.125" in run("forfeit", clinic, "patients", str(second["id"]), "--yes").stdout
    assert told("open", clinic, "patients") == []


def test_reading_commands_change_nothing(clinic: str) -> None:
    """Found: show forfeited what a dead process had left."""
    ledger = xp.Ledger.load(clinic, "patients", settings=Settings(patience=14))
    ledger.reserve(xp.Guarantee.uniform("0.125"))
    head = ledger.verify()
    execute(clinic, """UPDATE expost_owner SET identity = replace(identity, '"started":"', '"started":"1')""")
    for command in ("show", "accounts", "entries", "statement", "verify", "open"):
        run(command, clinic, "patients")
    assert ledger.verify() == head
    assert told("recover", clinic, "patients")["forfeited"] == 1


def test_copies(clinic: str, tmp_path: Path) -> None:
    ledger, note = xp.Ledger.load(clinic, "patients"), ("--by", "me", "--reason", "disk died")
    head = ledger.verify()
    (copied,) = told("backup", clinic, str(tmp_path / "monday.db"))
    assert (copied["line"], copied["hash"]) == tuple(head)
    failing(2, "backup", clinic, str(tmp_path / "monday.db"))
    new = f"sqlite:///{tmp_path}/restored.db"
    run("restore", str(tmp_path / "monday.db"), new, "patients", "--known", str(head), *note)
    assert xp.Ledger.load(new, "patients").spent == ledger.spent
    late = f"{head.sequence + 1}:{head.hash}"
    failing(4, "restore", str(tmp_path / "monday.db"), f"{new}2", "patients", "--known", late, *note)
    run("export", clinic, "patients", str(tmp_path / "trail.jsonl"))
    (made,) = told("import", f"{new}3", "patients", str(tmp_path / "trail.jsonl"), *note)
    assert made["line"] == head.sequence + 1  # and a line that says that outputs were not imported
    (moved,) = told("move", clinic, "patients", f"{new}4", *note)
    assert (moved["line"], moved["hash"]) == tuple(head)
    assert ledger.closed
    assert not xp.Ledger.load(f"{new}4", "patients").closed
    failing(2, "import", f"{new}5", "patients", str(tmp_path / "none"), *note)


@pytest.mark.parametrize("way", ["to the server", "from the server"])
def test_ledgers_move_between_databases(
    way: str, sqlite_url: Callable[[], str], postgres_url: Callable[[], str], tmp_path: Path
) -> None:
    """With accounts, outputs, what is open and the trail, byte by byte; and back up to a file."""
    here, there = (sqlite_url(), postgres_url()) if way == "to the server" else (postgres_url(), sqlite_url())
    ledger, note = xp.Ledger.load(furnished(here), "patients"), ("--by", "me", "--reason", "a new server")
    ledger.account("alice").reserve(xp.Guarantee.uniform("0.125"), lease=10**-6)
    ledger.raise_limit(epsilon=4, by="the board \u00e9", reason="\U0001f600")
    ledger.recover()
    trail, statement, answer = [event.line for event in ledger.audit()], ledger.statement(), ledger.output("count")
    (copied,) = told("backup", here, str(tmp_path / "monday.db"))
    (moved,) = told("move", here, "patients", there, *note)
    assert copied == moved | {"name": "patients"}
    again = xp.Ledger.load(there, "patients")
    assert ledger.closed
    assert ([event.line for event in again.audit()], again.statement()) == (trail, statement)
    assert again.output("count") == answer
    alice = again.account("alice")
    alice.reserve(xp.Guarantee({"small": 0.25, "large": 0.5})).settle("small")
    alice.create_account("below", epsilon=1).reserve(xp.Guarantee.uniform("0.125")).settle("any")
    again.verify()
    with pytest.raises(xp.LedgerClosed):
        ledger.reserve(xp.Guarantee.uniform("0.125"))


def test_a_ledger_that_is_spent_from_does_not_move(
    clinic: str, sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: it was closed for ever, and the copy, which lacked what was spent, could be spent from."""
    ledger, there, copy = xp.Ledger.load(clinic, "patients"), sqlite_url(), transfer.copy_ledger

    def slow(*given: Any) -> Any:
        head = copy(*given)
        ledger.reserve(xp.Guarantee.uniform("0.125")).settle("any")
        return head

    note = ("--by", "me", "--reason", "a new server")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(transfer, "copy_ledger", slow)
        failing(4, "move", clinic, "patients", there, *note)
    assert xp.Ledger.load(there, "patients").closed
    assert not ledger.closed
    told("move", clinic, "patients", sqlite_url(), *note)
    assert ledger.closed


def test_a_ledger_of_the_first_commits_is_imported(tmp_path: Path) -> None:
    file, new = tmp_path / "early.db", f"sqlite:///{tmp_path}/new.db"
    connection = apsw.Connection(str(file))
    connection.execute((Path(__file__).parents[2] / "early" / "patients.sql").read_text()).fetchall()
    connection.close()
    before = file.read_bytes()
    (made,) = told("import", new, "patients", str(file), "--by", "me", "--reason", "upgrade")
    assert (made["line"], made["hash"][:8]) == (13, "568f89cd")
    assert file.read_bytes() == before
    ledger = xp.Ledger.load(new, "patients")
    assert ledger.output("coin") == 2
    assert (ledger.account("alice").limit, ledger.spent) == (xp.Cost(2.5, "1e-4"), xp.Cost(2.75, "3e-6"))
    ledger.reserve(xp.Guarantee.uniform("0.125")).settle("any")
    head = ledger.verify()
    ledger.reserve(xp.Guarantee.uniform("0.125")).settle("any")
    assert ledger.verify(head, since=True).sequence == head.sequence + 2


def test_watching(clinic: str, tmp_path: Path) -> None:
    heads, ledger = tmp_path / "heads", xp.Ledger.load(clinic, "patients")
    first = json.loads(run("watch", clinic, "patients", str(heads), "--once").stdout)
    ledger.reserve(xp.Guarantee.uniform("0.125")).settle("any")
    second = json.loads(run("watch", clinic, "patients", str(heads), "--once").stdout)
    assert second["line"] == first["line"] + 2
    run("watch", clinic, "patients", str(heads), "--once")
    assert heads.read_text().split() == [f"{look['line']}:{look['hash']}" for look in (first, second)]
    known = f"{first['line']}:{first['hash']}"
    assert told("verify", clinic, "patients", "--known", known, "--since")["line"] == second["line"]
    heads.write_text(f"{second['line']}:{'0' * 64}\n")
    assert "was rewritten" in failing(4, "watch", clinic, "patients", str(heads), "--once").stderr


def test_outputs_are_dropped_and_keys_stay_used(clinic: str) -> None:
    ledger = xp.Ledger.load(clinic, "patients")
    note = ("--by", "me", "--reason", "kept two years")
    run("drop-outputs", clinic, "patients", "--upto", "1", "--yes", *note)
    with pytest.raises(xp.InvalidValue, match="was dropped"):
        ledger.output("count")
    ledger.verify()
    run("clock", clinic, "patients", *note)
    assert [event.kind for event in ledger.audit()][-2:] == ["drop", "clock"]
    ledger.verify()
