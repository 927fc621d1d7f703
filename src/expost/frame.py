"""`Frame`: published rows under named columns, for whichever library people work with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expost.comparison import Comparison
from expost.errors import InvalidValue, MissingDependency
from expost.mentions import printable

_MOST_SHOWN = 20
_BOTH = "\r\n"  # what Python's writer of CSV puts in quotes is what ends its own lines: a single \r must be, too
ERROR, IN_RANKS = "_error", "_error_in_ranks"
"""How the columns of errors end: in the units of the value, or in ranks."""
ABOVE = "above"
"""The column that says of each row: above, below, or not compared."""


class AsFrame:
    """What can be read as a :class:`Frame`."""

    @property
    def frame(self) -> Frame:
        """Its rows."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """A frame of pandas."""
        return self.frame.to_pandas()

    def to_polars(self) -> Any:
        """A frame of Polars."""
        return self.frame.to_polars()

    def to_arrow(self) -> Any:
        """A table of Arrow."""
        return self.frame.to_arrow()

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV, also written to a file if one is named. Empty cells are empty."""
        return self.frame.to_csv(path)


@dataclass(frozen=True)
class Frame:
    """Published rows: the names of the columns, and a tuple for each row. None is an empty cell.

    Parameters
    ----------
    names
        What the columns are called.
    rows
        The rows, each as long as there are names.
    total
        Whether the last row is about all others together.

    >>> Frame(("city", "count", "count_error"), (("Rome", 12, 3), ("Oslo", 5, 3)))["count"]
    [12, 5]
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: bool = False

    @classmethod
    def of_release(cls, release: Any) -> Frame:
        """What was published: a row for each key or quantile, or one row, with the error at 95 % where there is one."""
        value, question = release.value, getattr(release.mechanism, "question", None)
        own = value if isinstance(value, Frame) else getattr(value, "frame", None)
        if isinstance(own, Frame):
            return own
        error = _error(release.mechanism)
        if isinstance(value, dict):
            name = _column_of(question, "key")
            compared = _compared(value)
            if compared:
                names = (name, *_inner_names(release.mechanism, len(compared[0]) - 2), ABOVE)
                return cls(names, compared)
            return cls((name, "value", "error"), tuple((key, each, error) for key, each in value.items()))
        levels = getattr(question, "levels", None)
        several = value if isinstance(value, tuple | list) else [value]
        if release.withheld:  # no answer is an empty cell
            several, error = [None] * len(levels or (None,)), None
        if levels is not None and len(levels) == len(several):
            rows = tuple((float(level), each, error) for level, each in zip(levels, several, strict=True))
            return cls(("quantile", "value", f"value{IN_RANKS}"), rows)
        return cls(("value", "error"), tuple((each, error) for each in several))

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
        return _module("pyarrow", "frames").table(self.to_dict())

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV, also written to a file if one is named. Empty cells are empty.

        Texts are written as they are. Spreadsheets take those that begin with ``=``, ``+``, ``-`` or ``@`` for
        formulas: import columns of keys that were found in data as text.
        """
        text = csv_text([self.names, *self.rows])
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def plot(self, value: str | None = None, ax: Any = None) -> Any:
        """A column of numbers: a bar for each row but the total, with its error; quantiles as points.

        Needs matplotlib. ``value`` names the column, by default the last one of numbers. Gives the axes. Where there
        are only comparisons with a threshold, a point for each row says what was found.
        """
        from expost.plots import draw_bars, draw_comparisons, draw_quantiles

        if value in (None, ABOVE) and self.names[-1] == ABOVE and {*self[ABOVE]} <= {*Comparison}:
            labels = [", ".join(map(_shown, row[:-1])) for row in self.rows]
            return draw_comparisons(labels, self[ABOVE], ax)
        numbers = [name for name in self.names if _numeric(self[name]) and not _is_error(name)]
        if value is not None and value not in numbers:
            raise InvalidValue(
                f"{value!r} is not a column of numbers: {', '.join(map(repr, numbers)) or 'there is none'}"
            )
        if not numbers:
            raise InvalidValue(f"there is no column of numbers to plot: there are {', '.join(map(repr, self.names))}")
        chosen = value or numbers[-1]
        rows = self.rows[: len(self) - self.total]
        kept = [dict(zip(self.names, row, strict=True)) for row in rows if row[self.names.index(chosen)] is not None]
        values = [row[chosen] for row in kept]
        if self.names[0] == "quantile" and chosen != "quantile":
            return draw_quantiles([row["quantile"] for row in kept], values, chosen, ax)
        keys = self._keys(chosen)
        labels = [", ".join(_shown(row[name]) for name in keys) or str(place) for place, row in enumerate(kept)]
        error = f"{chosen}{ERROR}" if f"{chosen}{ERROR}" in self.names else "error"
        errors = [row.get(error) for row in kept]
        return draw_bars(labels, values, None if None in errors else errors, chosen, ax)

    def _keys(self, chosen: str) -> list[str]:
        """The columns that say what a row is about: those before the first that has an error beside it."""
        first = next(
            (place for place, name in enumerate(self.names[:-1]) if _is_error(self.names[place + 1])), len(self.names)
        )
        return [name for name in self.names[:first] if name != chosen]

    def _repr_html_(self) -> str:
        from expost.markup import html_table

        more = f"<p>{len(self)} rows in all</p>" if len(self) > _MOST_SHOWN else ""
        return html_table(map(_shown, self.names), (map(_shown, row) for row in self.rows[:_MOST_SHOWN])) + more

    def __str__(self) -> str:
        lines = [[_shown(cell) for cell in row] for row in (self.names, *self.rows[:_MOST_SHOWN])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join(text + ([f"… {len(self)} rows in all"] if len(self) > _MOST_SHOWN else []))


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV that reads back as it was, whatever characters end lines elsewhere."""
    import csv

    class Lines(list[str]):
        def write(self, line: str) -> None:
            self.append(f"{line.removesuffix(_BOTH)}\n")

    lines = Lines()
    csv.writer(lines, lineterminator=_BOTH).writerows(rows)
    return "".join(lines)


def _error(mechanism: Any) -> float | None:
    """The error bound at 95 % of a mechanism that has one for all of its outputs."""
    try:
        return float(mechanism.error_bound("0.95"))
    except (AttributeError, TypeError):
        return None


def _compared(value: dict[Any, Any]) -> tuple[tuple[Any, ...], ...]:
    """A row for each comparison of a dictionary, or of a dictionary of them for each group; none if it has others."""
    rows: list[tuple[Any, ...]] = []
    for key, each in value.items():
        inner = _compared(each) if isinstance(each, dict) else ((str(each),),) if isinstance(each, Comparison) else ()
        if not inner:
            return ()
        rows += [(key, *row) for row in inner]
    return tuple(rows)


def _inner_names(mechanism: Any, number: int) -> tuple[str, ...]:
    """What the cells of groups are called: by what was counted, unless groups are by that, too."""
    question = getattr(next(iter(getattr(mechanism, "mechanisms", ())), None), "question", None)
    outer, inner = _column_of(mechanism.question, "key"), _column_of(question, "cell")
    return (inner if inner != outer else f"{inner} (cell)",) * number


def _column_of(question: Any, otherwise: str) -> str:
    """What the column is called that a question counts by, or groups go by."""
    first = next(iter(getattr(question, "values", ())), getattr(question, "value", None))
    return str(getattr(first, "name", otherwise))


def _is_error(name: str) -> bool:
    return name == "error" or name.endswith((ERROR, IN_RANKS))


def _numeric(column: list[Any]) -> bool:
    known = [cell for cell in column if cell is not None]
    return bool(known) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known)


def _shown(cell: Any) -> str:
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else printable(str(cell))


def _module(name: str, extra: str | None = None) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependency(f"frames of {name}", str(error.name), extra) from None
