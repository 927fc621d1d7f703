"""Plots of what was published: bars with their errors, quantiles, budgets. Needs matplotlib, the extra ``plots``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any, NamedTuple

from expost.comparison import Comparison
from expost.errors import MissingDependency

_WIDTH, _USUAL_HEIGHT, _LETTER = 6.4, 4.8, 0.085
"""Inches: of a figure, and of a letter below a bar."""
_WIDEST_UPRIGHT = 100
"""Characters that fit side by side in the widest figure."""
_HIGHEST = 40
"""Inches."""
_MOST_LABELS = 200
_ROOM = 0.1
"""Of the height, for numbers above bars."""
_NARROW = 0.12
"""Of a bar: a part with no room for its name."""
_MOST_NUMBERS = 40
"""Rows that have their numbers beside them; of more, letters would lie on each other."""
_INK, _DATA, _LIGHT = "#14212d", "#17649b", "#5798c9"
_BUDGET = {"spent": _DATA, "reserved": "#e0a030", "remaining": "#cfd8e3"}
INTERVALS = "with intervals at 95 %, of each by itself"
_COLUMNS = {
    Comparison.BELOW: "#3b6fb5",
    Comparison.ABOVE: "#c23b22",
    Comparison.FAR_ABOVE: "#c23b22",
    Comparison.NOT_COMPARED: "#8a949e",
}


def figure_class() -> Any:
    """What figures that are only saved are made of. Raises ``MissingDependency``."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise _missing() from None
    return Figure


def new_axes(ax: Any, height: float | None = None, width: float | None = None) -> Any:
    """The axes given, or new ones, whose size is in inches."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise _missing() from None
    size = (width or _WIDTH, height or _USUAL_HEIGHT)
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _missing() -> MissingDependency:
    return MissingDependency("plots", "matplotlib", "plots")


class PlottedNumber(NamedTuple):
    """A number, the ends of its interval, and both as people read them."""

    value: float
    low: float | None
    high: float | None
    text: str

    @property
    def is_known(self) -> bool:
        """Whether it has an interval with ends."""
        return self.low is not None and self.high is not None and isfinite(self.high - self.low)

    @property
    def is_endless(self) -> bool:
        """Whether it has an interval without."""
        return self.high is not None and not self.is_known

    @property
    def below(self) -> float:
        """How far its interval goes down; not a number if it has no ends."""
        return max(self.value - self.low, 0.0) if self.is_known and self.low is not None else nan

    @property
    def above(self) -> float:
        """How far its interval goes up."""
        return max(self.high - self.value, 0.0) if self.is_known and self.high is not None else nan


class PlotWords(NamedTuple):
    """What a plot says of its numbers."""

    what: str
    """Which statistic they are."""
    title: str
    of: str
    """What their labels are."""
    are_counts: bool = False
    in_percent: bool = False

    @property
    def unit(self) -> str:
        """What stands at the axis of the numbers."""
        return f"{self.what}, %" if self.in_percent else self.what


def draw_bars(labels: Sequence[str], values: Sequence[float], what: str, ax: Any, of: str = "") -> Any:
    """A bar for each label; lying, where labels are many or long. ``of`` is what labels are."""
    return _bars(labels, values, None, PlotWords(what, "", of), ax)


def _bars(
    labels: Sequence[str], values: Sequence[float], errors: Sequence[Any] | None, words: PlotWords, ax: Any
) -> Any:
    wide = len(labels) * (2 + max(map(len, labels), default=0))
    upright = wide <= _WIDEST_UPRIGHT
    size = max(_WIDTH, wide * _LETTER) if upright else _WIDTH
    axes = new_axes(ax, None if upright else _height(0.8 + 0.28 * len(labels), 2.5), size)
    places, whiskers = (
        range(len(labels)),
        {"capsize": 3, "color": _LIGHT, "ecolor": _INK, "error_kw": {"elinewidth": 1}},
    )
    if upright:
        axes.bar(places, values, yerr=errors, **whiskers)
        axes.set_xticks(places, labels)
        axes.margins(y=_ROOM)
        axes.set_ylabel(words.unit)
        axes.set_xlabel(words.of)
    else:
        axes.barh(places, values, xerr=errors, **whiskers)
        _name_rows(axes, labels, words.of)
        axes.set_xlabel(words.unit)
    return axes


def _height(wanted: float, least: float) -> float:
    return min(max(least, wanted), _HIGHEST)


def _name_rows(axes: Any, labels: Sequence[str], of: str) -> None:
    """The first row on top. So many labels that nobody could read them are left out."""
    axes.set_yticks(range(len(labels)), labels) if len(labels) <= _MOST_LABELS else axes.set_yticks([])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_ylabel(of)


def draw_comparisons(labels: Sequence[str], found: Sequence[str], ax: Any, of: str = "") -> Any:
    """A point for each label: in the column of what was found, with one for what was not compared."""
    axes = new_axes(ax, _height(1.1 + 0.28 * len(labels), 2.5))
    columns = [each for each in _COLUMNS if each in found or each is not Comparison.FAR_ABOVE]
    for place, each in enumerate(columns):
        rows = [row for row, word in enumerate(found) if word == each]
        axes.plot([place] * len(rows), rows, "o", color=_COLUMNS[each], fillstyle="full" if each else "none")
    axes.set_xticks(range(len(columns)), [str(each) for each in columns])
    axes.set_xlim(-0.5, len(columns) - 0.5)
    _name_rows(axes, labels, of)
    _title(axes, f"What was found by {of}" if of else "What was found", "")
    return axes


def draw_estimates(labels: Sequence[str], numbers: Sequence[PlottedNumber], words: PlotWords, ax: Any) -> Any:
    """Numbers with their intervals at 95 %: bars from zero for counts, points for everything else.

    An interval without ends is not drawn: its point is hollow. Each row has its number beside it.
    """
    values = [each.value for each in numbers]
    reach = [[each.below for each in numbers], [each.above for each in numbers]]
    upright = False
    if words.are_counts:
        axes = _bars(labels, values, reach, words, ax)
        upright = axes.get_ylabel() == words.unit
    else:
        axes = new_axes(ax, _height(1.1 + 0.32 * len(labels), 1.8))
        rows = range(len(labels))
        axes.errorbar(values, rows, xerr=reach, fmt="none", capsize=3, elinewidth=1, color=_INK)
        filled = ["white" if each.is_endless else _DATA for each in numbers]
        axes.scatter(values, rows, c=filled, edgecolors=_DATA, zorder=3)
        _name_rows(axes, labels, words.of)
        axes.set_xlabel(words.unit)
    tops = [each.value + (each.above if each.is_known else 0) for each in numbers]
    _write_numbers(axes, [each.text for each in numbers], tops, upright=upright)
    _title(axes, words.title, INTERVALS if any(each.is_known for each in numbers) else "")
    return axes


def _write_numbers(axes: Any, numbers: Sequence[str], tops: Sequence[float], *, upright: bool) -> None:
    """The number of each row beside it: above its bar where there is room, or at the right."""
    wide = _LETTER * sum(2 + len(number) for number in numbers)
    if len(numbers) > _MOST_NUMBERS or (upright and wide > axes.figure.get_size_inches()[0]):
        return
    for place, (number, top) in enumerate(zip(numbers, tops, strict=True)):
        if upright:
            axes.annotate(number, (place, top), (0, 3), textcoords="offset points", ha="center", fontsize="small")
        else:
            at = axes.get_yaxis_transform()
            axes.text(1.01, place, number, transform=at, va="center", fontsize="small", color=_INK)


def _name_parts(axes: Any, amounts: Mapping[str, float]) -> None:
    """What the parts of the first bar are, above them; of a narrow part the title says it by its place."""
    whole, before = sum(amounts.values()) or 1.0, 0.0
    for part, amount in amounts.items():
        if amount >= _NARROW * whole:
            axes.text(before + amount / 2, -0.45, f"{part} {amount:.3g}", ha="center", va="bottom", fontsize="small")
        before += amount


def _title(axes: Any, title: str, below: str) -> None:
    """What is shown, and how it is meant."""
    title = title[:1].upper() + title[1:]
    axes.set_title("\n".join(filter(None, (title, below))), loc="left", fontsize="medium")


def draw_budgets(budgets: dict[str, dict[str, float]], ax: Any) -> Any:
    """A bar for each account: what is spent, reserved and remaining of its ε, with these words at the first bar."""
    axes = new_axes(ax, 1.6 + 0.4 * len(budgets))
    for part, color in _BUDGET.items():
        before = [sum(list(amounts.values())[: list(_BUDGET).index(part)]) for amounts in budgets.values()]
        axes.barh(range(len(budgets)), [amounts[part] for amounts in budgets.values()], left=before, color=color)
    axes.set_yticks(range(len(budgets)), list(budgets))
    _name_parts(axes, next(iter(budgets.values())))
    axes.set_ylim(len(budgets) - 0.5, -0.9)
    axes.set_xlabel("ε")
    _title(axes, "What is spent, reserved and remaining, in ε", "")
    return axes
