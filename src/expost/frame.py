"""`Frame`: published rows under named columns, for whichever library people work with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10
from pathlib import Path
from typing import Any

from expost.comparison import Comparison
from expost.errors import InvalidValue, MissingDependency
from expost.mentions import printable

MOST_SHOWN = 20
"""How many rows people see."""
_PICTURE = re.compile(r"\.(png|svg|pdf|jpe?g)$", re.IGNORECASE)
_LONG = 1e15  # numbers with more digits are shown as powers of ten
_MOST_PLACES = 15  # what is smaller is
_BOTH = "\r\n"  # what Python's writer of CSV puts in quotes is what ends its own lines: a single \r must be, too
ABOVE = "above"
"""The column that says of each row: above, below, or not compared."""
WHAT, NUMBERS = "what", ("value", "low", "high", "error")
"""The first and the last columns of every frame of numbers; its keys are between them.

The ends are those of the interval at 95 %, and the error is how far noise moved the value at most, at 95 %.
"""


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
        How many of the last rows are about all others together.
    notes
        What to know beside the rows, such as why no error is known.

    >>> print(Frame(("what", "city", "value", "low", "high", "error"), (("rows", "Rome", 12, 9, 15, 3),)))
    city  rows
    Rome  12 ± 3
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_numbers(self) -> bool:
        """Whether its rows are numbers with what is known of their errors."""
        return self.names[:1] == (WHAT,) and self.names[-4:] == NUMBERS

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

    def to_json(self) -> dict[str, Any]:
        """Names and rows in plain JSON: numbers, texts, null for empty cells. What JSON has no number for is a text."""
        found: dict[str, Any] = {"names": [*self.names], "rows": [[*map(plain, row)] for row in self.rows]}
        return (
            found
            | ({"total": int(self.total)} if self.total else {})
            | ({"notes": [*self.notes]} if self.notes else {})
        )

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Frame:
        """The frame that :meth:`to_json` wrote."""
        frame = cls(tuple(found["names"]), (), int(found.get("total", 0)), tuple(found.get("notes", ())))
        first = len(frame.names) - len(NUMBERS) if frame.is_numbers else len(frame.names)
        # A value that has no error may be a text that was found in data, such as the key "inf".
        rows = (
            tuple(
                _unplain(cell, place > first or (place == first and row[-1] is not None))
                for place, cell in enumerate(row)
            )
            for row in found["rows"]
        )
        return replace(frame, rows=tuple(rows))

    def to_pandas(self) -> Any:
        """A frame of pandas."""
        return _module("pandas").DataFrame(self.to_dict())

    def to_polars(self) -> Any:
        """A frame of Polars."""
        return _module("polars").DataFrame(self.to_dict(), strict=False)

    def to_arrow(self) -> Any:
        """A table of Arrow. A column of keys of several kinds, such as 1, 2 and 'other', is text."""
        return _module("pyarrow", "frames").table({name: _of_one_kind(self[name]) for name in self.names})

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
        """Numbers with their intervals at 95 %: bars from zero for counts, points for everything else.

        Needs matplotlib. ``value`` says which statistic, or which column, by default the last one. Gives the axes.
        Where there are only comparisons with a threshold, a point for each row says what was found.
        """
        from expost.plots import draw_bars, draw_comparisons

        if value in (None, ABOVE) and self.names[-1] == ABOVE and {*self[ABOVE]} <= {*Comparison}:
            labels = [", ".join(map(_shown, row[:-1])) for row in self.rows]
            return draw_comparisons(labels, self[ABOVE], ax, ", ".join(self.names[:-1]))
        if self.is_numbers:
            return self._estimates(value, ax)
        columns = [name for name in self.names if _numeric(self[name])]
        if value is not None and value not in columns:
            raise InvalidValue(
                f"{value!r} is not a column of numbers: {', '.join(map(repr, columns)) or 'there is none'}"
            )
        if not columns:
            raise InvalidValue(f"there is no column of numbers to plot: there are {', '.join(map(repr, self.names))}")
        chosen = value or columns[-1]
        labels = [", ".join(_shown(row[place]) for place in self._texts) or str(n) for n, row in enumerate(self.rows)]
        return draw_bars(labels, self[chosen], chosen, ax)

    def _estimates(self, value: str | None, ax: Any) -> Any:
        from expost.plots import PlottedNumber, PlotWords, draw_estimates

        chosen, rows = self._statistic(value)
        in_percent = all(is_share(str(row[0])) for row in rows)
        keys, whats = self.names[1:-4], {str(row[0]) for row in rows}
        words = PlotWords(
            chosen,
            title_of([chosen], keys) if whats == {chosen} != {"value"} else "",
            ", ".join(keys),
            are_counts(chosen, [row[-4] for row in rows], [row[-1] for row in rows]),
            in_percent,
        )
        numbers = []
        for row in rows:
            number, low, high, error = (_times(cell, 100 if in_percent else 1) for cell in row[-4:])
            numbers.append(PlottedNumber(number, low, high, with_error(number, error)))
        return draw_estimates([self._label(row) for row in rows], numbers, words, ax)

    def _label(self, row: tuple[Any, ...]) -> str:
        """What a row is called: by its keys, or by what it is."""
        keys = zip(self.names[1:-4], row[1:-4], strict=True)
        return ", ".join(_shown(quantile_shown(name, key)) for name, key in keys) or str(row[0])

    def _statistic(self, value: str | None) -> tuple[str, list[tuple[Any, ...]]]:
        """A statistic and its rows: those with a number, without the total."""
        rows = [row for row in self.rows[: len(self) - self.total] if _numeric([row[-4]])]
        statistics = list(dict.fromkeys(row[0] for row in rows))
        if not rows or (value is not None and value not in statistics):
            there = ", ".join(map(repr, statistics)) or "no numbers"
            saved = f"; to keep a picture, plot().figure.savefig({value!r})" if value and _PICTURE.search(value) else ""
            raise InvalidValue(f"there is no {value or 'number'!r} to plot: there are {there}{saved}")
        if len(rows) == len(statistics) and value is None:  # each has a name of its own
            return "value", rows
        chosen = value or statistics[-1]
        return chosen, [row for row in rows if row[0] == chosen]

    @property
    def _texts(self) -> list[int]:
        return [place for place, name in enumerate(self.names) if not _numeric(self[name])]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """What people see: of numbers the value and its error in one cell."""
        if not self.is_numbers:
            return [*map(_shown, self.names)], [[*map(_shown, row)] for row in self.rows[:MOST_SHOWN]]
        several = len({row[0] for row in self.rows}) != 1
        names = [*(["what"] if several else []), *self.names[1:-4], "value" if several else str(self.rows[0][0])]
        return [*map(_shown, names)], [
            [*map(_shown, row[0 if several else 1 : -4]), with_error(row[-4], row[-1])]
            for row in map(self._labelled, range(min(len(self), MOST_SHOWN)))
        ]

    def _labelled(self, place: int) -> tuple[Any, ...]:
        """A row, which says so if it is about all others together and has no key."""
        row = self.rows[place]
        keyless = place >= len(self) - self.total and row[1:2] == (None,)
        return (row[0], "total", *row[2:]) if keyless else row

    def _below(self, rows: int) -> list[str]:
        """What stands below the rows, of which there are so many in all."""
        more = [f"… {rows:,} rows in all"] if rows > MOST_SHOWN else []
        return more + [f"no error: {note}" for note in self.notes]

    def text(self, rows: int | None = None) -> str:
        """What people see: the first rows, under their names; ``rows`` says how many there are, if not all are here."""
        names, cells = self._cells()
        lines = [names, *cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join(text + self._below(len(self) if rows is None else rows))

    def html(self, rows: int | None = None) -> str:
        """The same as a table of HTML."""
        from expost.markup import html_table, html_text

        return html_table(*self._cells()) + "".join(map(html_text, self._below(len(self) if rows is None else rows)))

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        return self.text()


_RANKED = "median", "quantile"
_SHARES = "share of ", "values below the bounds", "values above the bounds", "units with more such rows"


def are_counts(what: str, values: Iterable[Any], errors: Iterable[Any]) -> bool:
    """Whether numbers are drawn as bars from zero: whole ones whose errors are known, and that are no quantiles."""
    whole = all(isinstance(value, int) for value in values)
    return whole and not what.startswith(_RANKED) and all(error is not None and isfinite(error) for error in errors)


def is_share(what: str) -> bool:
    """Whether a statistic is a share, which people read in per cent."""
    return what.startswith(_SHARES)


_AND = " and "
_POSITIONS = ("quantile", "place", "feature", "term", "level", "step", "from", "to")
"""Columns of rows that are no groups of records."""


def title_of(whats: Sequence[str], by: Sequence[str]) -> str:
    """What numbers are, and what groups go by."""
    what = ", ".join(whats)
    if "quantile" in by and what.startswith("quantile "):
        what = what.replace("quantile", "quantiles", 1)
    return " by ".join(filter(None, (what, _AND.join(name for name in by if name not in _POSITIONS))))


def _times(cell: Any, factor: int) -> Any:
    return cell if cell is None or factor == 1 else factor * cell


def quantile_shown(name: str, key: Any) -> Any:
    """A key as people read it: a quantile goes by its share, and that of a half by its name."""
    if name != "quantile" or not isinstance(key, int | float):
        return key
    return "median" if key == 1 / 2 else f"{100 * key:.6g} %"


def number_text(value: float) -> str:
    """A number as people read it."""
    if float(value).is_integer() and abs(value) < _LONG:
        return f"{int(value):,}"
    if not isfinite(value) or abs(value) >= _LONG:
        return f"{value:.4g}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def with_error(value: Any, error: float | None) -> str:
    """A number and what noise may have moved it by, to the error's second digit; the error rounds up."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return _shown(value)
    if error is None:
        return number_text(value)
    plain = isfinite(value) and isfinite(error) and error > 0 and max(abs(value), error) < _LONG
    if isinstance(value, int) or not plain or (places := max(0, 1 - floor(log10(error)))) > _MOST_PLACES:
        return f"{number_text(value)} ± {_reach_text(error)}"
    return f"{value:z,.{places}f} ± {ceil(error * 10**places) / 10**places:,.{places}f}"


def _reach_text(error: float) -> str:
    return number_text(error) if isfinite(error) else "∞"


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV that reads back as it was, whatever characters end lines elsewhere."""
    import csv

    class Lines(list[str]):
        def write(self, line: str) -> None:
            self.append(f"{line.removesuffix(_BOTH)}\n")

    lines = Lines()
    csv.writer(lines, lineterminator=_BOTH).writerows(rows)
    return "".join(lines)


_ENDLESS = ("inf", "-inf", "nan")


def plain(cell: Any) -> Any:
    """A cell as JSON has it: what it has no number for is a text."""
    if hasattr(cell, "tolist"):  # numbers and arrays of numpy
        cell = cell.tolist()
    if isinstance(cell, tuple | list):
        return [*map(plain, cell)]
    if isinstance(cell, float):
        return float(cell) if isfinite(cell) else str(float(cell))
    return cell if cell is None or type(cell) in (bool, int, str) else int(cell) if isinstance(cell, int) else str(cell)


def _unplain(cell: Any, is_number: bool) -> Any:
    """A cell from JSON."""
    if isinstance(cell, list):
        return tuple(_unplain(each, is_number) for each in cell)
    return float(cell) if is_number and isinstance(cell, str) and cell in _ENDLESS else cell


def _of_one_kind(column: list[Any]) -> list[Any]:
    """The cells of a column; as text if only some of them are."""
    if len({isinstance(cell, str) for cell in column if cell is not None}) < 2:
        return column
    return [None if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in column]


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
        raise MissingDependency("answers as data frames", str(error.name), extra) from None
