"""`expost ledger …` in this process, and a ledger to try it on."""

import json
from typing import Any

from typer.testing import Result

import expost as xp
from commands import CliRunner
from expost.cli.main import app

SECRET = 424_243


def run(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, ["ledger", *arguments], input=typed, env={"COLUMNS": "100", "TERM": "dumb"})


def told(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def furnished(url: str) -> str:
    ledger = xp.Ledger.create(url, "patients", epsilon=3, delta=1e-6, neighbours="add-remove", unit="patient")
    alice = ledger.create_account("alice", epsilon=2)
    alice.run(xp.Laplace(epsilon=1, sensitivity=1, neighbours="add-remove"), on=SECRET, key="count", label="visits")
    with alice.reserve(xp.Guarantee({"small": 0.25, "large": 0.5}), label="job 17") as spending:
        spending.settle("small")
    return url


def failing(code: int, *arguments: str) -> Result:
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result
