"""Plots of what was published: bars with their errors, quantiles, budgets. Needs matplotlib, the extra ``plots``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from expost.comparison import Comparison
from expost.errors import MissingDependency

_WIDEST_UPRIGHT = 60
"""Characters that fit side by side."""
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


def draw_bars(labels: Sequence[str], values: Sequence[float], errors: Sequence[Any] | None, what: str, ax: Any) -> Any:
    """A bar for each label, with its error; lying, where labels are many or long."""
    upright = len(labels) * (2 + max(map(len, labels), default=0)) <= _WIDEST_UPRIGHT
    axes = new_axes(ax, None if upright else max(2.5, 0.8 + 0.28 * len(labels)))
    places, whiskers = range(len(labels)), {"capsize": 3, "error_kw": {"elinewidth": 1}}
    if upright:
        axes.bar(places, values, yerr=errors, **whiskers)
        axes.set_xticks(places, labels)
        axes.set_ylabel(what)
    else:
        axes.barh(places, values, xerr=errors, **whiskers)
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        axes.set_xlabel(what)
    return axes


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


def draw_quantiles(levels: Sequence[float], values: Sequence[float], what: str, ax: Any) -> Any:
    """The values by their quantiles."""
    axes = new_axes(ax)
    axes.plot(levels, values, marker="o")
    axes.set_xlabel("quantile")
    axes.set_ylabel(what)
    axes.set_xlim(0, 1)
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
