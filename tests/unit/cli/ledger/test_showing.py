"""`expost ledger …` shows what is in a ledger, and changes nothing."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from books import execute
from expost.ledger import Settings
from expost.ledger.sqlite.engine import SqliteEngine
from ledger_commands import failing, furnished, run, told


@pytest.mark.parametrize("what", [("show",), ("statement",), ("statement", "--by", "day")])
def test_json_is_of_one_instant(sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch, what: Any) -> None:
    """Found: limit, spent and reserved were read one after the other, and rows last: under load nothing added up."""
    url, guarantee = sqlite_url(), xp.Guarantee.uniform("0.01")
    ledger = xp.Ledger.create(url, "patients", epsilon=9, neighbours="add-remove", unit="patient")
    real = SqliteEngine.rows

    def rows(self: SqliteEngine, sql: str, *values: Any) -> Any:
        found = real(self, sql, *values)
        ledger.reserve(guarantee).settle("done")
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


def test_labels_are_no_markup(sqlite_url: Callable[[], str]) -> None:
    url = furnished(sqlite_url())
    ledger = xp.Ledger.load(url, "patients")
    with ledger.reserve(xp.Guarantee.uniform(0.1), label="[bold]x[/bold] [link=http://e]") as spending:
        spending.settle("done")
    for command in ("entries", "statement"):
        assert "[bold]x[/bold] [link=http://e]" in run(command, url, "patients").stdout


def test_reading_commands_change_nothing(clinic: str) -> None:
    """Found: show forfeited what a dead process had left."""
    ledger = xp.Ledger.load(clinic, "patients", settings=Settings(patience=14, beat=3600))
    ledger.reserve(xp.Guarantee.uniform("0.125"))
    head = ledger.verify()
    execute(clinic, """UPDATE expost_owner SET identity = replace(identity, '"started":"', '"started":"1')""")
    for command in ("show", "accounts", "entries", "statement", "verify", "open"):
        run(command, clinic, "patients")
    assert ledger.verify() == head
    assert told("recover", clinic, "patients")["forfeited"] == 1


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


def test_watching_tells_other_programs(clinic: str, tmp_path: Path) -> None:
    """Found: JSON of many lines, which a program that reads line by line cannot read; and nothing of size and age."""
    heads, ledger = tmp_path / "heads", xp.Ledger.load(clinic, "patients")
    ledger.reserve(xp.Guarantee.uniform("0.125"))
    (line,) = run("watch", clinic, "patients", str(heads), "--once").stdout.splitlines()
    facts = json.loads(line)
    assert (facts["open"], facts["size"] > 4096, 0 <= facts["oldest_open"] < 2 * 3600) == (1, True, True)
    gauges = run("watch", clinic, "patients", str(heads), "--once", "--prometheus").stdout.splitlines()
    values = dict(line.rsplit(" ", 1) for line in gauges if not line.startswith("#"))
    assert values['expost_ledger_open_entries{ledger="patients"}'] == "1"
    assert values['expost_ledger_epsilon_limit{ledger="patients"}'] == "3"
    assert abs(float(values['expost_ledger_verified_timestamp_seconds{ledger="patients"}']) - time.time()) < 600
    for name in {line.split()[2] for line in gauges if line.startswith("#")}:
        kinds = [line.split()[1] for line in gauges if line.startswith("#") and line.split()[2] == name]
        assert kinds == ["HELP", "TYPE"]
        assert sum(line.startswith(f"{name}{{") for line in gauges) == 1


def test_the_size_of_a_server_s_tables(postgres_url: Callable[[], str]) -> None:
    ledger: Any = xp.Ledger.create(postgres_url(), "patients", epsilon=9, neighbours="add-remove", unit="patient")
    assert 10**5 < ledger._store.size < 10**7


@pytest.mark.parametrize("accounting", ["basic", "renyi"])
def test_all_accounts_are_read_by_one_query(
    sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch, accounting: Any
) -> None:
    """Found: six queries for each account."""
    url = sqlite_url()
    limits = {"epsilon": 9, "delta": "1e-3"}
    ledger = xp.Ledger.create(url, "patients", **limits, neighbours="add-remove", unit="patient", accounting=accounting)
    for team in "ab":
        account = ledger.create_account(team, epsilon=2, delta="1e-5")
        for who in "xyz":
            account.create_account(who, epsilon=1, delta="1e-6").reserve(xp.Guarantee.uniform("0.25")).settle("done")
    ledger.account("b").close(by="me", reason="over")
    asked, real = list[str](), SqliteEngine.rows

    def rows(self: SqliteEngine, sql: str, *values: Any) -> Any:
        asked.append(sql)
        return real(self, sql, *values)

    monkeypatch.setattr(SqliteEngine, "rows", rows)
    found = told("accounts", url, "patients")
    assert len([sql for sql in asked if "expost_account" in sql]) == 1
    names = ["patients", *(f"patients/{team}{who}" for team in "ab" for who in ("", "/x", "/y", "/z"))]
    assert [each["name"] for each in found] == names
    assert [each["closed"] for each in found] == [False] * 5 + [True] * 4
    assert found == [told("show", url, *name.split("/", 1)[:1], *_account(name)) for name in names]


def _account(name: str) -> list[str]:
    below = name.partition("/")[2]
    return ["--account", below] if below else []
