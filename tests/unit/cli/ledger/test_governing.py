"""`expost ledger …` makes, governs, mends and verifies ledgers."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from ledger_commands import furnished, run, told


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
    last = list(xp.Ledger.load(url, "patients").audit_trail())[-1]
    assert (last.kind, last.body["by"], last.body["reason"]) == ("close", "ethics board", "decision 12")


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
    assert len(trail.read_text().splitlines()) == told("verify", url, "patients")["line"] + 1
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
        books.execute("UPDATE expost_account SET charged_epsilon = 0")
    books.close()
    result = run("verify", clinic, "patients")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "not those that follow from the audit trail" in result.stderr


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


def test_outputs_are_dropped_and_keys_stay_used(clinic: str) -> None:
    ledger = xp.Ledger.load(clinic, "patients")
    note = ("--by", "me", "--reason", "kept two years")
    run("drop-outputs", clinic, "patients", "--upto", "1", "--yes", *note)
    with pytest.raises(xp.InvalidValue, match="was dropped"):
        ledger.output("count")
    ledger.verify()
    run("clock", clinic, "patients", *note)
    assert [event.kind for event in ledger.audit_trail()][-2:] == ["drop", "clock"]
    ledger.verify()
