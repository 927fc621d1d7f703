"""Published numbers as an HTML table that is its own plot: a row has its name, its number, and its mark on one axis.

Counts and sums are bars from zero, everything else is a point; both with their intervals. Nothing is said twice,
nothing is left out, and what is drawn can be copied. No script, no font and no picture from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any, NamedTuple

from expost.frame import Frame, number_text, with_error
from expost.mentions import printable
from expost.study.shown import is_number, row_labels

_STEPS = (1, 2, 2.5, 5, 10)
_MOST_STEPS = 4
"""As many numbers fit below each other's axis on the narrowest screen."""
_HEIGHT = 22
_EDGE = 0.04
"""Of the width, so that no point is cut."""
_NEAR_END = 8
"""Per cent of the width, within which a number would leave the chart."""
INTERVALS = "with intervals at 95 %, of each by itself"
_OFF_ZERO = "the axis does not begin at 0"


def chart_of(question: Mapping[str, Any]) -> str:
    """The chart of an answer in a record or a job's result; nothing if it is one number, or not of numbers."""
    if question.get("frame") is None or is_number(question["value"]):
        return ""
    frame = Frame.from_json(question["frame"])
    values = [row[-4] for row in frame.rows] if frame.is_numbers else []
    known = [value for value in values if value is not None]
    if len(values) < 2 or not known or not all(is_number(value) and isfinite(value) for value in known):
        return ""
    labels = question.get("labels") or []
    called = labels if len(labels) == len(frame) else row_labels(frame)
    return number_chart(frame, from_zero=bool(question.get("from_zero")), labels=called)


def number_chart(frame: Frame, *, from_zero: bool, labels: Sequence[str] | None = None) -> str:
    """A frame of numbers as a table with marks; its rows go by their keys, unless they are called otherwise."""
    called = row_labels(frame) if labels is None else labels
    axis = Axis.of([*_ends(frame)], from_zero=from_zero)
    several = len({row[0] for row in frame.rows}) > 1
    what = "" if several else str(frame.rows[0][0])
    heads = [", ".join([*(["what"] if several else []), *frame.names[1:-4]]) or "what", what or "value"]
    said = [what, INTERVALS * any(row[-1] is not None for row in frame.rows)]
    caption = "; ".join(filter(None, (", ".join(filter(None, said)), _OFF_ZERO * axis.is_off_zero)))
    rows = "".join(_row(label, row, axis, from_zero) for label, row in zip(called, frame.rows, strict=True))
    notes = "".join(f"<p>No error: {escape(note)}.</p>" for note in frame.notes)
    return (
        f'<figure class="chart"><figcaption>{escape(caption)}</figcaption><table><thead><tr>'
        f'<th scope="col">{escape(printable(heads[0]))}</th><th scope="col" class="n">{escape(heads[1])}</th>'
        f'<th scope="col" class="m">{axis.svg}</th></tr></thead><tbody>{rows}</tbody></table>{notes}</figure>'
    )


def _ends(frame: Frame) -> Iterator[float]:
    """Everything that has to be on the axis."""
    for row in frame.rows:
        yield from (float(each) for each in row[-4:-1] if each is not None and isfinite(each))


def _row(label: str, row: Sequence[Any], axis: Axis, from_zero: bool) -> str:
    value, low, high, error = row[-4:]
    shown = escape("withheld" if value is None else with_error(value, error)).replace(" ± ", "&nbsp;±&nbsp;")
    unclear = ' class="n soft"' if low is not None and low <= 0 <= high else ' class="n"'
    mark = "" if value is None else _mark(float(value), low, high, axis, from_zero)
    return (
        f'<tr><th scope="row">{escape(printable(label))}</th><td{unclear}>{shown}</td>'
        f'<td class="m">{_svg(axis.lines + mark)}</td></tr>'
    )


def _mark(value: float, low: float | None, high: float | None, axis: Axis, from_zero: bool) -> str:
    at, middle = axis.x(value), _HEIGHT / 2
    drawn = ""
    if from_zero:
        left, right = sorted((axis.x(0), at))
        drawn = f'<rect class="bar" x="{left:.2f}%" y="5" width="{max(right - left, 0.2):.2f}%" height="12"/>'
    if low is not None and high is not None:
        drawn += _whisker(axis.x(low), axis.x(high))
    return drawn if from_zero else f'{drawn}<circle class="dot" cx="{at:.2f}%" cy="{middle:g}" r="4.5"/>'


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
        low, high = min(numbers), max(numbers)
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
        return _svg("".join(map(self._number, self.ticks)))

    def _number(self, tick: float) -> str:
        at = self.x(tick)
        anchor = "start" if at < _NEAR_END else "end" if at > 100 - _NEAR_END else "middle"
        return f'<text x="{at:.2f}%" y="16" text-anchor="{anchor}">{escape(number_text(tick))}</text>'


def _step(least: float) -> float:
    """The least round number that is not below."""
    size = 10.0 ** floor(log10(least))
    return next(size * each for each in _STEPS if size * each >= least * (1 - 1e-9))


def _svg(inside: str) -> str:
    """A picture of what the row says in words."""
    return f'<svg width="100%" height="{_HEIGHT}" aria-hidden="true">{inside}</svg>'
