"""The examples of docs/adapters.md that run in other environments."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters.md"


def example(library: str) -> str:
    """The first program of a library's section."""
    section = PAGE.read_text().split(f"\n## {library}\n")[1].split("\n## ")[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found
    return found[1]
