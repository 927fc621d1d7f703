"""Everything in the paper that can be computed, computed: plots, data, and a table of paper against computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from expost.checks import as_whole
from expost.errors import InvalidValue
from paper import claims, figure1, figure2, stopping_gain, table1
from paper.comparison import Comparison, markdown

Plot = Callable[[dict[str, Any], Path], None]
STOPS = (stopping_gain.TRAINING_STOPS, stopping_gain.RESPONSE_STOPS)


def recompute(
    folder: str | PathLike[str],
    *,
    runs: int = 200,
    stops: tuple[Sequence[int], Sequence[int]] = STOPS,
    progress: Callable[[str], None] | None = None,
) -> list[Comparison]:
    """Every figure and table of the paper, computed again; what differs from the paper, and why.

    ``folder`` gets each of them as JSON, PNG and SVG, and the table as comparison.json and comparison.md. ``runs``
    is how often Figure 1 is simulated for each number of large entries, ``stops`` how many stops are compared, in a
    training and in a series of responses. ``progress`` is told what is under way.
    """
    as_whole(runs, "runs")
    _require("matplotlib")
    _require("dp_accounting")
    target, tell = Path(folder), progress or (lambda _: None)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidValue(f"{str(folder)!r} cannot be a folder for results: {error.strerror}") from None
    found = {}
    for name, (title, compute, plot) in exhibits(runs, stops).items():
        tell(title)
        found[name] = data = compute()
        (target / f"{name}.json").write_text(_json(data))
        for kind in ("png", "svg"):
            plot(data, target / f"{name}.{kind}")
    tell("The numbers in the text")
    comparisons = [
        *claims.introduction(),
        *claims.figure_1(found["figure1"]),
        *claims.propose_test_release(),
        *claims.stopping(found["stopping_gain"]),
        *claims.figure_2(),
        *claims.table_1(found["table1"]),
        *claims.appendix(),
    ]
    (target / "comparison.json").write_text(_json([comparison._asdict() for comparison in comparisons]))
    (target / "comparison.md").write_text(markdown(comparisons))
    return comparisons


def exhibits(
    runs: int, stops: tuple[Sequence[int], Sequence[int]] = STOPS
) -> dict[str, tuple[str, Callable[[], dict[str, Any]], Plot]]:
    """By file name: what it is, how it is computed, how it is drawn."""
    return {
        "figure1": ("Figure 1: noise on the large entries", lambda: figure1.data(runs), figure1.plot),
        "figure2": ("Figure 2: noise of the test", figure2.data, figure2.plot),
        "tries": ("Section 6: models that can be tried", figure2.tries, figure2.plot_tries),
        "table1": ("Table 1: when advanced composition helps", table1.data, table1.plot),
        "stopping_gain": (
            "Section 5: Lemma 11 against the optimum",
            lambda: stopping_gain.data(*stops),
            stopping_gain.plot,
        ),
    }


def _require(module: str) -> None:
    if find_spec(module) is None:
        raise InvalidValue(f"recomputing the paper needs {module}: `make paper` installs it")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
