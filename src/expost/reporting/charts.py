"""Published numbers as an HTML table that is its own plot: a row has its name, its number, and its mark on one axis.

Counts and sums are bars from zero, everything else is a point; both with their intervals. Nothing is said twice,
nothing is left out, and what is drawn can be copied. No script, no font and no picture from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any, NamedTuple

from expost.comparison import Comparison
from expost.frame import ABOVE, Frame, are_counts, is_share, quantile_shown, title_of
from expost.mentions import printable
from expost.plots import INTERVALS
from expost.reporting.numbers import number_shown, percent, with_reach
from expost.reporting.rows import is_number, key_text

_STEPS = (1, 2, 2.5, 5, 10)
_MOST_STEPS = 4
"""As many numbers fit below each other's axis on the narrowest screen."""
_HEIGHT = 22
_EDGE = 0.04
"""Of the width, so that no point is cut."""
_NEAR_END = 8
"""Per cent of the width, within which a number would leave the chart."""
_OFF_ZERO = "the axis does not begin at 0"
_PLACE = "place"
COEFFICIENTS = frozenset(("term", "feature"))
_PLAIN = "value"
_AND = " and "


def text_html(text: str) -> str:
    """A text on one line, with nothing in it that a page would obey, or that would break before its ±."""
    return escape(printable(text)).replace(" ± ", "\u00a0±\u00a0")


def chart_of(question: Mapping[str, Any]) -> str:
    """The chart of an answer in a record or a job's result; nothing if it is one number, or not of numbers."""
    if question.get("frame") is None or is_number(question["value"]):
        return ""
    frame = Frame.from_json(question["frame"])
    if not can_be_drawn(frame):
        return ""
    return number_charts(frame, from_zero=bool(question.get("from_zero")), labels=question.get("labels") or ())


def can_be_drawn(frame: Frame) -> bool:
    """Whether a frame is several numbers that have places on one axis: coefficients have units of their own."""
    if not COEFFICIENTS.isdisjoint(frame.names):
        return False
    values = [row[-4] for row in frame.rows] if frame.is_numbers else []
    known = [value for value in values if value is not None]
    return len(values) > 1 and bool(known) and all(is_number(value) and isfinite(value) for value in known)


def number_charts(
    frame: Frame, *, from_zero: bool | None = None, labels: Sequence[str] = (), notes: bool = True, under: str = ""
) -> str:
    """A chart for each statistic of a frame; one for all if each is one number.

    ``from_zero`` is whether they are counts or sums; None if numbers that are whole and know their errors are. Rows go
    by their keys, unless ``labels`` calls them otherwise. A title that they stand ``under`` is not said again.
    """
    called = [*labels] if len(labels) == len(frame) else row_names(frame)
    parts = [_Part.of(frame, places, called, from_zero) for places in _statistics(frame)]
    drawn = "".join(part.html(under) for part in parts)
    return drawn + (notes_html(frame) if notes else "")


def number_chart(frame: Frame, *, from_zero: bool, labels: Sequence[str] = ()) -> str:
    """The chart of one statistic."""
    return number_charts(frame, from_zero=from_zero, labels=labels)


def notes_html(frame: Frame) -> str:
    """Why no error is known of some numbers."""
    return "".join(f'<p class="why">No error: {text_html(note)}.</p>' for note in frame.notes)


def row_names(frame: Frame) -> list[str]:
    """What rows are called within their statistic: by their keys; quantiles by their share, and no key by what it is.

    The last rows may be about all others together.
    """
    several = len({row[0] for row in frame.rows}) > 1
    own = several and len(_statistics(frame)) == 1
    first = len(frame) - frame.total
    return [_name(frame.names[1:-4], row, own=own, total=place >= first) for place, row in enumerate(frame.rows)]


def _name(names: Sequence[str], row: Sequence[Any], *, own: bool, total: bool) -> str:
    """What a row is called; ``own`` says that each row is a statistic of its own."""
    keys = row[1:-4]
    if total and keys and all(key is None for key in keys):
        return "all together"
    if not keys or own:
        return key_text([row[0], *(key for key in keys if key is not None)])
    return key_text([_key(name, key) for name, key in zip(names, keys, strict=True)])


def _key(name: str, key: Any) -> Any:
    return key + 1 if name == _PLACE and isinstance(key, int) else quantile_shown(name, key)


def _statistics(frame: Frame) -> list[list[int]]:
    """The rows of each statistic; all of them together if each is one number of its own."""
    by_what: dict[str, list[int]] = {}
    for place, row in enumerate(frame.rows):
        by_what.setdefault(str(row[0]), []).append(place)
    return [[*range(len(frame))]] if len(by_what) == len(frame) else list(by_what.values())


class _Part(NamedTuple):
    """The rows of one statistic, and how they are drawn."""

    what: str
    by: str
    labels: list[str]
    rows: list[tuple[Any, ...]]
    totals: set[int]
    from_zero: bool
    percent: bool

    @classmethod
    def of(cls, frame: Frame, places: list[int], called: Sequence[str], from_zero: bool | None) -> _Part:
        rows = [frame.rows[place] for place in places]
        whats = {str(row[0]) for row in rows}
        what = whats.pop() if len(whats) == 1 else ""
        in_percent = is_share(what or str(rows[0][0]))
        values, errors = [row[-4] for row in rows], [row[-1] for row in rows]
        counted = are_counts(what, values, errors) if from_zero is None else from_zero
        return cls(
            "" if what == _PLAIN else what,
            _AND.join(frame.names[1:-4]) if what else "",
            [called[place] for place in places],
            [_in_percent(row) for row in rows] if in_percent else rows,
            {at for at, place in enumerate(places) if place >= len(frame) - frame.total},
            counted,
            in_percent,
        )

    @property
    def title(self) -> str:
        """What the numbers are, and of which groups."""
        return title_of([self.what], self.by.split(_AND) if self.by else [])

    def html(self, under: str) -> str:
        """The chart."""
        axis = Axis.of([*self._ends()], from_zero=self.from_zero)
        with_errors = any(row[-1] is not None for row in self.rows)
        title = _sentence(self.title)
        parts = (f"<b>{text_html(title)}</b>" * bool(self.what and title != under), INTERVALS * with_errors)
        caption = "; ".join(filter(None, (", ".join(filter(None, parts)), _OFF_ZERO * axis.is_off_zero)))
        rows = "".join(self._row(at, axis) for at in range(len(self.rows)))
        return (
            f'<figure class="chart"><figcaption>{_sentence(caption)}</figcaption><table><thead><tr>'
            f'<th scope="col">{text_html(self.by or "what")}</th>'
            f'<th scope="col" class="n">{"%" if self.percent else "value"}{" ± at 95 %" if with_errors else ""}</th>'
            f'<th scope="col" class="m">{axis.svg}</th></tr></thead><tbody>{rows}</tbody></table></figure>'
        )

    def _drawn(self, at: int) -> bool:
        """Whether a row has a mark: a total would make all bars short."""
        return not (self.from_zero and at in self.totals)

    def _ends(self) -> Iterator[float]:
        """Everything that has to be on the axis."""
        for at, row in enumerate(self.rows):
            if self._drawn(at):
                yield from (float(each) for each in row[-4:-1] if each is not None and isfinite(each))

    def _row(self, at: int, axis: Axis) -> str:
        value, low, high, _ = numbers = self.rows[at][-4:]
        unclear = ' class="n soft"' if low is not None and low <= 0 <= high else ' class="n"'
        mark = "" if value is None or not self._drawn(at) else _mark(float(value), low, high, axis, self.from_zero)
        return (
            f'<tr><th scope="row">{text_html(self.labels[at])}</th><td{unclear}>{number_html(*numbers)}</td>'
            f'<td class="m">{_svg(axis.lines + mark)}</td></tr>'
        )


def number_html(value: Any, low: float | None = None, high: float | None = None, error: float | None = None) -> str:
    """A number with its error beside it."""
    if not is_number(value):
        return "withheld" if value is None else text_html(str(value))
    number, reach = with_reach(value, low, high, error)
    return number + (f'<span class="pm">\u00a0{reach}</span>' if reach else "")


def _in_percent(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[:-4], *(each if each is None else percent(each) for each in row[-4:]))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _mark(value: float, low: float | None, high: float | None, axis: Axis, from_zero: bool) -> str:
    at, middle = axis.x(value), _HEIGHT / 2
    drawn = ""
    if from_zero:
        left, right = sorted((axis.x(0), at))
        drawn = f'<rect class="bar" x="{left:.2f}%" y="5" width="{max(right - left, 0.2):.2f}%" height="12"/>'
    if low is not None and high is not None:
        drawn += _whisker(axis.x(low), axis.x(high))
    return drawn if from_zero else f'{drawn}<circle class="dot" cx="{at:.2f}%" cy="{middle:g}" r="4"/>'


def _whisker(start: float, end: float) -> str:
    """An error bar, drawn twice: a broad one below sets it off."""
    lines = ((start, 11, end, 11), (start, 6, start, 16), (end, 6, end, 16))
    return "".join(
        f'<line class="{kind}" x1="{x1:.2f}%" y1="{y1}" x2="{x2:.2f}%" y2="{y2}"/>'
        for kind in ("halo", "error")
        for x1, y1, x2, y2 in lines
    )


class Axis(NamedTuple):
    """The axis of a chart: where it begins and ends, and round numbers between."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, numbers: Sequence[float], *, from_zero: bool) -> Axis:
        """An axis that fits these numbers; it has 0 on it where lengths are compared."""
        low, high = (min(numbers), max(numbers)) if numbers else (0.0, 0.0)
        if from_zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
        edge = 0.0 if from_zero else (high - low) * _EDGE
        low, high = low - edge, high + edge
        step = _step((high - low) / _MOST_STEPS)
        return cls(low, high, tuple(step * place for place in range(ceil(low / step), floor(high / step) + 1)))

    def x(self, value: float) -> float:
        """Where a number lies, in per cent of the width; what is beyond lies at the end."""
        return min(max(100 * (value - self.low) / (self.high - self.low), 0.0), 100.0)

    @property
    def is_off_zero(self) -> bool:
        """Whether 0 is not on it."""
        return not self.low <= 0 <= self.high

    @property
    def lines(self) -> str:
        """A line for each tick; the one at 0 is stronger."""
        return "".join(
            f'<line class="{"axis" if tick == 0 else "grid"}" x1="{self.x(tick):.2f}%" y1="0" x2="{self.x(tick):.2f}%" '
            f'y2="{_HEIGHT}"/>'
            for tick in self.ticks
        )

    @property
    def svg(self) -> str:
        """The numbers at its ticks."""
        drawn = "".join(map(self._number, self.ticks))
        name = f"axis from {number_shown(self.ticks[0])} to {number_shown(self.ticks[-1])}"
        return f'<svg width="100%" height="{_HEIGHT}" role="img" aria-label="{name}">{drawn}</svg>'

    def _number(self, tick: float) -> str:
        at = self.x(tick)
        anchor = "start" if at < _NEAR_END else "end" if at > 100 - _NEAR_END else "middle"
        return f'<text x="{at:.2f}%" y="16" text-anchor="{anchor}">{number_shown(tick)}</text>'


def _step(least: float) -> float:
    """The least round number that is not below."""
    size = 10.0 ** floor(log10(least))
    return next(size * each for each in _STEPS if size * each >= least * (1 - 1e-9))


def _svg(inside: str) -> str:
    """A picture of what the row says in words."""
    return f'<svg width="100%" height="{_HEIGHT}" aria-hidden="true">{inside}</svg>'


_SIGNS = {
    Comparison.ABOVE: '<path d="M6 1 11.5 11H.5Z" class="up"/>',
    Comparison.BELOW: '<path d="M6 10.5 1 1.5H11Z" class="down"/>',
    Comparison.NOT_COMPARED: '<path d="M1 6H11" class="left"/>',
}
_SIGNS[Comparison.FAR_ABOVE] = _SIGNS[Comparison.ABOVE]
_UNKNOWN = "The scan ended before their turn. Nothing is known about them."


def lists_html(frame: Frame, labels: Sequence[str] = ()) -> str:
    """What was found by comparing: above, below, and what was not compared, of which nothing is known."""
    called = labels if len(labels) == len(frame) else [key_text(row[:-1]) for row in frame.rows]
    found: dict[str, list[str]] = {str(each): [] for each in (Comparison.FAR_ABOVE, *_SIGNS)}
    for label, row in zip(called, frame.rows, strict=True):
        found.setdefault(str(row[-1]), []).append(label)
    return f'<div class="states">{"".join(_list(word, names) for word, names in found.items() if names)}</div>'


def _list(word: str, names: Sequence[str]) -> str:
    sign = _SIGNS.get(Comparison(word), "")
    left = word == Comparison.NOT_COMPARED
    items = "".join(f"<li>{text_html(name)}</li>" for name in names)
    return (
        f'<div class="{"unknown" if left else "found"}"><h4><svg width="12" height="12" aria-hidden="true">{sign}</svg>'
        f'{text_html(_sentence(word))} <span class="soft">{len(names)}</span></h4><ul>{items}</ul>'
        f"{f'<p>{_UNKNOWN}</p>' if left else ''}</div>"
    )


def is_compared(frame: Frame) -> bool:
    """Whether a frame says of cells on which side of a threshold they are."""
    return frame.names[-1:] == (ABOVE,) and {str(word) for word in frame[ABOVE]} <= {str(each) for each in Comparison}


def table_html(frame: Frame) -> str:
    """Any other rows, all of them."""
    if frame.is_numbers:
        several = len({row[0] for row in frame.rows}) > 1
        names = [*(["what"] if several else []), *frame.names[1:-4], _PLAIN if several else str(frame.rows[0][0])]
        rows = [
            [*([text_html(str(row[0]))] if several else []),
             *("" if key is None else text_html(str(_key(name, key)))
               for name, key in zip(frame.names[1:-4], row[1:-4], strict=True)), number_html(*row[-4:])]
            for row in frame.rows
        ]  # fmt: skip
    else:
        names = [*frame.names]
        rows = [[number_html(cell) if cell is not None else "" for cell in row] for row in frame.rows]
    head = "".join(f'<th scope="col">{text_html(name)}</th>' for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="rows"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
