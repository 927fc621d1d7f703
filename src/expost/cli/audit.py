"""`expost audit`: try to refute privacy guarantees by samples."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from expost.cli.console import FAILED, Json, err, option, out
from expost.cli.tables import print_json, print_table
from expost.errors import InvalidValue
from expost.plots import figure_class

if TYPE_CHECKING:
    from expost.verify.audit import AuditResult, EventShown, PartShown

_NAMES = ("mechanism", "pairs", "guarantee", "part_of", "many", "order", "prices")


def audit(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(help="Mechanisms of the library, or Python files.", metavar="NAME|FILE.py"),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every mechanism of the library.")] = False,
    samples: Annotated[int, typer.Option(help="Outputs drawn on each database of each pair.")] = 20_000,
    seconds: Annotated[
        float | None, option("How many seconds each mechanism may take, drawing and testing, instead of --samples.")
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Confidence: a true guarantee is refuted with probability at most 1 − this.")
    ] = 0.99,
    seed: Annotated[int, typer.Option(help="The same seed and samples give the same result.")] = 0,
    order: Annotated[float | None, option("Test Rényi prices at this order, too.")] = None,
    processes: Annotated[int | None, option("Processes that draw samples; all cores by default.")] = None,
    plot: Annotated[Path | None, option("Plot the ε that samples show against the ε of the guarantee.")] = None,
    json: Json = False,
) -> None:
    """Try to refute privacy guarantees: samples on neighbouring databases, and the event that tells them apart best.

    A Python file defines `mechanism` (a mechanism, or a function of data and noise), `pairs` of neighbouring databases
    and, for a function, its `guarantee`. Exit code 1: something was refuted. Nothing is ever proved.

    Example: expost audit SparseVector Laplace --seconds 20
    """
    from expost.verify.audit import audit as run
    from expost.verify.audit import catalogue

    wanted = list(catalogue.names()) if everything else subjects or []
    if not wanted:
        raise InvalidValue(f"say what to audit: a Python file, --all, or one of {', '.join(catalogue.names())}")
    if plot is not None:
        figure_class()  # what is missing is said before anything is drawn
    options: dict[str, Any] = {"samples": samples, "seconds": seconds, "confidence": confidence, "seed": seed}
    options["processes"] = processes or os.cpu_count() or 1
    asked = [(name, _at(order, _subject(name), everything)) for name in wanted]
    with _bar() as bar:
        found = [
            run(**subject, **options, progress=_progress(bar, f"{name} ({number} of {len(asked)})"))
            for number, (name, subject) in enumerate(asked, 1)
        ]
    if json:
        print_json([one.to_json() for one in found])
    else:
        _print(wanted, found)
    if plot is not None:
        _plot(plot, wanted, found)
    if any(one.refuted for one in found):
        raise typer.Exit(FAILED)


def _bar() -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


def _subject(name: str) -> dict[str, Any]:
    """A mechanism of the library, or what a Python file defines."""
    if not name.endswith(".py"):
        from expost.verify.audit import catalogue

        return catalogue.subject(name)._asdict()
    if not Path(name).is_file():
        raise InvalidValue(f"there is no file {name!r} to audit")
    defined = runpy.run_path(name)
    missing = [word for word in ("mechanism", "pairs") if word not in defined]
    if missing:
        raise InvalidValue(f"{name} defines no {' and no '.join(missing)}: an audit needs `mechanism` and `pairs`")
    return {word: defined[word] for word in _NAMES if word in defined}


def _at(order: float | None, subject: dict[str, Any], everything: bool) -> dict[str, Any]:
    """The subject with the order, unless it has its own. Of all mechanisms, those whose prices have a δ go without."""
    if order is None or "order" in subject:
        return subject
    mechanism = subject["mechanism"]
    if everything and mechanism.renyi_prices(order).delta:
        return subject
    return {**subject, "order": order}


def _progress(bar: Progress, name: str) -> Callable[[float], None]:
    """In place of the one before: there are more mechanisms than a terminal has lines."""
    for finished in bar.task_ids:
        bar.remove_task(finished)
    task = bar.add_task(name, total=1.0)
    return lambda share: bar.update(task, completed=share)


def _print(names: list[str], found: list[AuditResult]) -> None:
    rows = [row for name, one in zip(names, found, strict=True) for row in _rows(name, one)]
    print_table(("mechanism", "outputs", "guaranteed", "shown", "hits", ""), rows, right=(2, 3, 4))
    for name, one in zip(names, found, strict=True):
        verdict = "REFUTED" if one.refuted else "not refuted"
        out.print(f"{name}: {verdict}, {one.samples} samples a side, confidence {one.confidence:g}", soft_wrap=True)


def _rows(name: str, one: AuditResult) -> Iterator[tuple[str, ...]]:
    for row in one.parts:
        yield name, str(row.part), f"ε {row.guaranteed:.4g}", _epsilon(row.shown), _hits(row), _mark(row.refuted)
    for event in one.events:
        if event.refuted:
            outputs = f"outputs such as {', '.join(event.outputs)}"
            yield name, outputs, f"δ {event.guaranteed:.3g}", f"δ ≥ {event.shown:.3g}", _hits(event), _mark(True)
    if one.moment is not None:
        yield name, "Rényi moment", "1", f"≥ {one.moment:.4g}", "", _mark(one.moment > 1)


def _hits(row: PartShown | EventShown) -> str:
    return f"{row.hits[0]} : {row.hits[1]}"


def _mark(refuted: bool) -> str:
    return "REFUTED" if refuted else ""


def _epsilon(shown: float) -> str:
    return "nothing" if shown <= 0 else f"ε ≥ {shown:.4g}"


def _plot(path: Path, names: list[str], found: list[AuditResult]) -> None:
    """Bars: what each part guarantees, and what was shown."""
    rows = [(f"{name} {row.part}", row) for name, one in zip(names, found, strict=True) for row in one.parts][:60]
    figure = figure_class()(figsize=(8, 1.2 + 0.28 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows))
    axes.barh(places, [row.guaranteed for _, row in rows], color="#d9e2ec", label="guaranteed")
    colours = ["#c0392b" if row.refuted else "#2c6fbb" for _, row in rows]
    axes.barh(places, [max(row.shown, 0) if row.shown > -inf else 0 for _, row in rows], height=0.4, color=colours)
    axes.barh([0], [0], color="#2c6fbb", label="shown")
    axes.set_yticks(list(places), [label for label, _ in rows])
    axes.invert_yaxis()
    axes.set_xlabel("ε")
    axes.legend(loc="lower right")
    figure.savefig(path)
