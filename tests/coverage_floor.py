"""Branch coverage of the rooms that money and promises depend on must not fall below this."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

FLOOR = 95.0
ROOMS = ("errors.py", "bracket.py", "cost.py", "guarantee.py", "accounting/", "ledger/")


def main() -> int:
    """Print each room's coverage; 1 if one is below the floor."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(report)], check=True)
        files = json.loads(report.read_text())["files"]
    short = 0
    for room in ROOMS:
        totals = [entry["summary"] for name, entry in files.items() if f"src/expost/{room}" in name]
        branches = sum(total["num_branches"] for total in totals)
        share = 100 * sum(total["covered_branches"] for total in totals) / branches
        print(f"{room:14} {share:6.2f} % of {branches} branches")
        short += share < FLOOR
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
