"""Branch coverage of what guarantees and money depend on must not fall below the floors in pyproject.toml."""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

FLOORS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["tool"]["expost"]["floors"]


def main() -> int:
    """Print each package's coverage; 1 if one is below the floor."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(report)], check=True)
        files = json.loads(report.read_text())["files"]
    short = 0
    for package, floor in FLOORS.items():
        totals = [entry["summary"] for name, entry in files.items() if f"src/expost/{package}" in name]
        branches = sum(total["num_branches"] for total in totals)
        share = 100 * sum(total["covered_branches"] for total in totals) / branches
        print(f"{package:14} {share:6.2f} % of {branches} branches, at least {floor} %")
        short += share < floor
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
