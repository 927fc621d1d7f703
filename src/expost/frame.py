"""`Frame`: published rows under named columns, for whichever library people work with."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from expost.errors import InvalidValue, MissingDependency

_MOST_SHOWN = 20


@dataclass(frozen=True)
class Frame:
    """Published rows: the names of the columns, and a tuple for each row. None is an empty cell.

    Parameters
    ----------
    names
        What the columns are called.
    rows
        The rows, each as long as there are names.

    >>> Frame(("city", "count", "count_error"), (("Rome", 12, 3), ("Oslo", 5, 3)))["count"]
    [12, 5]
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of_release(cls, release: Any) -> Frame:
        """What was published: a row for each key, or one row, with the error at 95 % where it is one number."""
        value, question = release.value, getattr(release.mechanism, "question", None)
        if isinstance(value, Frame):
            return value
        error = _error(release.mechanism)
        if isinstance(value, dict):
            name = getattr(question, "text", "key")
            return cls((name, "value", "error"), tuple((key, each, error) for key, each in value.items()))
        several = value if isinstance(value, tuple | list) else [value]
        return cls(("value", "error"), tuple((each, error) for each in several))

    @classmethod
    def of_entries(cls, entries: Any) -> Frame:
        """The entries of a ledger: ``Frame.of_entries(ledger.entries())``."""
        names = (
            "id",
            "account",
            "what",
            "state",
            "reserved_epsilon",
            "reserved_delta",
            "charged_epsilon",
            "charged_delta",
        )
        rows = []
        for each in entries:
            charged = (None, None) if each.charged is None else (each.charged.epsilon, each.charged.delta)
            account, what = "/".join(each.request.account), each.request.label or f"{each.request.subject}"
            costs = (each.reserved.epsilon, each.reserved.delta, *charged)
            rows.append((each.id, account, what, f"{getattr(each.state, 'value', each.state)}", *costs))
        return cls(names, tuple(rows))

    def __getitem__(self, name: str) -> list[Any]:
        """A column."""
        if name not in self.names:
            raise InvalidValue(f"there is no column {name!r}: there are {', '.join(map(repr, self.names))}")
        return [row[self.names.index(name)] for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """{name: column}."""
        return {name: self[name] for name in self.names}

    def to_pandas(self) -> Any:
        """A frame of pandas."""
        return _module("pandas").DataFrame(self.to_dict())

    def to_polars(self) -> Any:
        """A frame of Polars."""
        return _module("polars").DataFrame(self.to_dict(), strict=False)

    def to_arrow(self) -> Any:
        """A table of Arrow."""
        return _module("pyarrow").table(self.to_dict())

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV, also written to a file if one is named. Empty cells are empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.names)
        writer.writerows(self.rows)
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def plot(self, value: str | None = None, ax: Any = None) -> Any:
        """A bar for each row, with its error if there is one: needs matplotlib. Gives the axes."""
        numbers = [name for name in self.names if _numeric(self[name]) and not name.endswith("_error")]
        chosen = value or (numbers[-1] if numbers else None)
        if chosen is None:
            raise InvalidValue("there is no column of numbers to plot")
        kept = [row for row in range(len(self)) if self[chosen][row] is not None]
        keys = [name for name in self.names[: self.names.index(chosen)] if name not in numbers[-1:]]
        keys = [name for name in keys if not name.endswith("_error") and (not _numeric(self[name]) or name == keys[0])]
        labels = [", ".join(str(self[name][row]) for name in keys) or str(row) for row in kept]
        error = f"{chosen}_error"
        bars = [self[error][row] or 0 for row in kept] if error in self.names else None
        axes = _module("matplotlib.pyplot").subplots()[1] if ax is None else ax
        axes.bar(labels, [self[chosen][row] for row in kept], yerr=bars)
        axes.set_ylabel(chosen)
        axes.tick_params(axis="x", rotation=45 if len(labels) > 6 else 0)
        return axes

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.names)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(_shown(cell))}</td>' for cell in row)}</tr>" for row in self.rows[:_MOST_SHOWN]
        )
        more = f"<p>{len(self)} rows in all</p>" if len(self) > _MOST_SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __str__(self) -> str:
        lines = [self.names, *([_shown(cell) for cell in row] for row in self.rows[:_MOST_SHOWN])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join(text + ([f"… {len(self)} rows in all"] if len(self) > _MOST_SHOWN else []))


def _error(mechanism: Any) -> float | None:
    """The error bound at 95 % of a mechanism that has one for all of its outputs."""
    try:
        return float(mechanism.error_bound("0.95"))
    except (AttributeError, TypeError):
        return None


def _numeric(column: list[Any]) -> bool:
    known = [cell for cell in column if cell is not None]
    return bool(known) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known)


def _shown(cell: Any) -> str:
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _module(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if package == "matplotlib":
            raise MissingDependency("plots", package, "plots") from None
        raise InvalidValue(f"{package} is not installed: {error.name} is missing; pip install {package}") from None
