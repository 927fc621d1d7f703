"""What notebooks show of a private table: names, kinds and rules, never values or the number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from expost.data.table import PrivateTable


class ShownTable:
    """Shows the schema of a table as HTML."""

    def _repr_html_(self: PrivateTable) -> str:  # type: ignore[misc]
        from expost.markup import html_lines, html_table

        facts = str(self).splitlines()[: -len(self.columns) or None]
        derived = {step.column: step.description for step in self.steps if step.column is not None}
        rows = [(name, kind, derived.get(name, "")) for name, kind in self.columns]
        lines = html_lines(facts[0], [" ".join(fact.split()) for fact in facts[1:]])
        return lines + html_table(("column", "holds", "derived as"), rows)
