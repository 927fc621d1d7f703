"""Check the message of a commit: a subject of at most 72 characters, then an empty line."""

import sys
from pathlib import Path

LONGEST = 72


def complaints(message: str) -> list[str]:
    """What is wrong with a message; comments of git do not count."""
    subject, *rest = [line for line in message.splitlines() if not line.startswith("#")] or [""]
    found = []
    if not subject.strip():
        found.append("the subject is empty: say what the commit does, in the imperative")
    if len(subject) > LONGEST:
        found.append(f"the subject has {len(subject)} characters, at most {LONGEST} are shown: shorten it")
    if subject.endswith("."):
        found.append("the subject ends with a full stop: leave it out")
    if rest and rest[0].strip():
        found.append("the second line is not empty: leave one between subject and body")
    return found


if __name__ == "__main__":
    wrong = complaints(Path(sys.argv[1]).read_text())
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    sys.exit(bool(wrong))
