"""Text that people type and the audit trail keeps: one line of characters that are seen.

A line break would look like another line of the trail, and a mark that turns the direction of writing round would have
auditors read something else than what was written.
"""

from __future__ import annotations

LONGEST_SAID = 2000
RULE = (
    f"one line of 1 to {LONGEST_SAID} characters that are seen: no line breaks, tabs or marks that turn writing round"
)


def is_line(text: str) -> bool:
    """Whether it may stand in the trail."""
    return len(text) <= LONGEST_SAID and text.isprintable() and bool(text.strip())
