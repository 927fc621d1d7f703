"""Check what a release says of itself: one version everywhere, a changelog for it, nothing uncommitted."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def complaints() -> list[str]:
    """What must be put right before this tree can be released."""
    version = re.findall(r'"(.+)"', (ROOT / "src/expost/_version.py").read_text())[0]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    found = []
    if "dev" in version:
        found.append(f"_version.py says {version}: give the release its number")
    if f"version: {version}\n" not in (ROOT / "CITATION.cff").read_text():
        found.append(f"CITATION.cff has another version than {version}: write that one")
    release = re.search(rf"^## {re.escape(version)}\b.*?(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if release is None:
        found.append(f"CHANGELOG.md has no heading for {version}: rename 'Unreleased', with the date")
    elif "### Durable format" not in release[0]:
        found.append(f"CHANGELOG.md does not say under {version} what became of the durable format: add that heading")
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True)
    if changed.stdout:
        found.append("there are changes that are not committed: commit or remove them")
    return found


if __name__ == "__main__":
    wrong = complaints()
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    sys.exit(bool(wrong))
