"""A service with the data of the demonstration and three analysts: they ask through the client, and it stops.

Run after ``python examples/randhie.py FOLDER``, in the same folder.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import expost as xp
from expost.service.database import ServiceTables
from expost.service.governance import issue_token

SERVER = """\
[server]
listen = "127.0.0.1:0"
answer_every = 0.5

[ledger]
url = "sqlite:///books.db"

[data.visits]
path = "randhie.parquet"
title = "Doctor visits"
ledger = "randhie"
synthetic = true

[data.visits.privacy]
unit = "row"
who = "person-year"
neighbours = "substitute"

[data.visits.derive]
health = "CASE WHEN hlthp = 1 THEN 'poor' WHEN hlthf = 1 THEN 'fair' WHEN hlthg = 1 THEN 'good' ELSE 'excellent' END"

[data.visits.bounds]
mdvis = [0, 20]
"""
ANALYSTS = ("alice", "bob", "carol")


def main(folder: Path) -> None:
    """Create a ledger and tokens, serve, ask, and stop."""
    (folder / "server.toml").write_text(SERVER)
    url = f"sqlite:///{folder}/books.db"
    unit = "person-year (one row each)"
    ledger = xp.Ledger.create(url, "randhie", epsilon=4, delta=1e-5, neighbours="substitute", unit=unit)
    accounts = {name: ledger.create_account(name, epsilon=2, delta=1e-5) for name in ANALYSTS}
    tables = ServiceTables(url)
    tokens = {
        name: issue_token(tables, account, "analyst", account.name, name=name, days=1)[1]
        for name, account in accounts.items()
    }
    tables.close()
    command = [sys.executable, "-m", "expost", "serve", str(folder / "server.toml")]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().decode().split()[-1]
            print(f"serving {address}, where the same tokens open the dashboard\n")
            ask(address, tokens)
        finally:
            server.terminate()
    head = xp.Ledger.load(url, "randhie").verify()
    print(f"stopped; the audit trail verifies, its head is {head.sequence}:{head.hash[:16]}…")


def ask(address: str, tokens: dict[str, str]) -> None:
    """Each analyst asks something else, with the same Python as at home."""
    for name, token in tokens.items():
        with xp.connect(address, token) as there:
            visits = there.data["visits"]
            kinds = ["poor", "fair", "good", "excellent"]
            questions: dict[str, tuple[Any, float]] = {
                "alice": (visits.where("mdvis > 0").count(), 0.1),
                "bob": (visits.histogram("health", keys=kinds, other=None).above(5000, at_most=3), 1),
                "carol": (visits.median("mdvis", bounds=(0, 20)), 0.2),
            }
            question, epsilon = questions[name]
            print(f"{name}: {there.run(question, epsilon=epsilon)}")
            print(f"  remaining {there.ledger.remaining} of {there.ledger.limit}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo-service").resolve())
