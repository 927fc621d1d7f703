"""A durable ledger: an analyst's process is killed while it samples, and nothing is lost.

The child reserves 0.5, looks at the data, and is killed before it settles. Its output may have leaked, so
the worst case is charged when the ledger is loaded again. Everything that was acknowledged is still there, and
the audit trail adds up.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import expost as xp

VISITS = 1_204  # the private count


def main() -> None:
    """Spend, crash, recover, replay, and print the statement."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/clinic.db"
        ledger = xp.Ledger.create(url, "patients", epsilon=2, neighbours="add-remove", unit="patient")
        alice = ledger.create_account("alice", epsilon=1.5)
        coin = xp.mechanisms.Coin(epsilon=0.25, sensitivity=1, neighbours="add-remove")
        for day in ("monday", "tuesday", "wednesday"):
            print(alice.run(coin, on=VISITS, key=day))
        noted = ledger.verify()

        print("\nA child process reserves 0.5 and is killed while it samples …")
        crash(url)
        again = xp.Ledger.load(url, "patients")
        lost = list(again.entries())[-1]
        print(f"… so entry {lost.id} was {lost.state} at load: charged {lost.charged} of {lost.reserved} reserved.")

        print("\nMonday's request once more, with the same key: the stored answer, no new sample.")
        print(again.account("alice").run(coin, on=VISITS, key="monday"))

        print(f"\n{again.statement()}\n\n{again.statement(by='day')}\n")
        head = again.verify(known=noted)
        print(f"The audit trail adds up: {head.sequence} lines, head {head.hash[:16]}…")


def crash(url: str) -> None:
    """A process that reserves, and is killed before it settles."""
    script = (
        "import expost as xp, sys, time\n"
        f"ledger = xp.Ledger.load({url!r}, 'patients').account('alice')\n"
        "ledger.reserve(xp.Guarantee({'small': '0.1', 'large': '0.5'}), label='a job that never ends')\n"
        "print('reserved', flush=True)\n"
        "time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(xp.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    main()
