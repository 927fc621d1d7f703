"""Plots of what was published: bars with their errors, quantiles, budgets. Needs matplotlib, the extra ``plots``."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, nan
from typing import Any

from expost.comparison import Comparison
from expost.errors import MissingDependency

_WIDEST_UPRIGHT = 60
"""Characters that fit side by side."""
_HIGHEST = 40
"""Inches."""
_MOST_LABELS = 200
_BUDGET = {"spent": "#3b6fb5", "reserved": "#e0a030", "remaining": "#cfd8e3"}
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


def new_axes(ax: Any, height: float | None = None) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise _missing() from None
    size = None if height is None else (6.4, height)
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _missing() -> MissingDependency:
    return MissingDependency("plots", "matplotlib", "plots")


def draw_bars(
    labels: Sequence[str], values: Sequence[float], errors: Sequence[Any] | None, what: str, ax: Any, of: str = ""
) -> Any:
    """A bar for each label, with its error; lying, where labels are many or long. ``of`` is what labels are."""
    upright = len(labels) * (2 + max(map(len, labels), default=0)) <= _WIDEST_UPRIGHT
    axes = new_axes(ax, None if upright else _height(0.8 + 0.28 * len(labels), 2.5))
    places, whiskers = range(len(labels)), {"capsize": 3, "error_kw": {"elinewidth": 1}}
    if upright:
        axes.bar(places, values, yerr=errors, **whiskers)
        axes.set_xticks(places, labels)
        axes.set_ylabel(what)
        axes.set_xlabel(of)
    else:
        axes.barh(places, values, xerr=errors, **whiskers)
        _name_rows(axes, labels, of)
        axes.set_xlabel(what)
    return axes


def _height(wanted: float, least: float) -> float:
    return min(max(least, wanted), _HIGHEST)


def _name_rows(axes: Any, labels: Sequence[str], of: str) -> None:
    """The first row on top. So many labels that nobody could read them are left out."""
    axes.set_yticks(range(len(labels)), labels) if len(labels) <= _MOST_LABELS else axes.set_yticks([])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_ylabel(of)


def draw_comparisons(labels: Sequence[str], found: Sequence[str], ax: Any) -> Any:
    """A point for each label: in the column of what was found, with one for what was not compared."""
    axes = new_axes(ax, max(2.5, 0.8 + 0.28 * len(labels)))
    columns = [each for each in _COLUMNS if each in found or each is not Comparison.FAR_ABOVE]
    for place, each in enumerate(columns):
        rows = [row for row, word in enumerate(found) if word == each]
        axes.plot([place] * len(rows), rows, "o", color=_COLUMNS[each], fillstyle="full" if each else "none")
    axes.set_xticks(range(len(columns)), [str(each) for each in columns])
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.invert_yaxis()
    return axes


def draw_estimates(
    labels: Sequence[str], values: Sequence[Any], errors: Sequence[Any], what: str, ax: Any, of: str = ""
) -> Any:
    """Numbers with their intervals at 95 %: bars from zero for counts, points for everything else.

    An interval without ends is not drawn: its point is hollow.
    """
    known = [error is not None and isfinite(error) for error in errors]
    reach = [error if finite else nan for error, finite in zip(errors, known, strict=True)]
    if all(isinstance(value, int) for value in values) and all(known):
        axes = draw_bars(labels, values, reach, what, ax, of)
    else:
        axes = new_axes(ax, _height(0.8 + 0.32 * len(labels), 1.8))
        rows = range(len(labels))
        axes.errorbar(values, rows, xerr=reach, fmt="none", capsize=3, elinewidth=1, color=_BUDGET["spent"])
        filled = [_BUDGET["spent"] if error != inf else "white" for error in errors]
        axes.scatter(values, rows, c=filled, edgecolors=_BUDGET["spent"], zorder=3)
        _name_rows(axes, labels, of)
        axes.set_xlabel(what)
    if any(known):
        axes.set_title("with intervals at 95 %, of each by itself", fontsize="small")
    return axes


def draw_budgets(budgets: dict[str, dict[str, float]], ax: Any) -> Any:
    """A bar for each account: what is spent, reserved and remaining of its ε."""
    axes = new_axes(ax, 1.4 + 0.4 * len(budgets))
    for part, color in _BUDGET.items():
        before = [sum(list(amounts.values())[: list(_BUDGET).index(part)]) for amounts in budgets.values()]
        axes.barh(
            range(len(budgets)), [amounts[part] for amounts in budgets.values()], left=before, color=color, label=part
        )
    axes.set_yticks(range(len(budgets)), list(budgets))
    axes.invert_yaxis()
    axes.set_xlabel("ε")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.25 if len(budgets) < 3 else 1.15), ncols=3, frameon=False)
    return axes
