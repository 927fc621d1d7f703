"""What can be asked of what: every question × kind of data × whole or by group × relation × unit.

It stands here once: ``docs/questions.md`` is written from it, and tests run every cell and check every refusal.
Questions are texts, so that what is documented is what is run.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import expost as xp
from expost.comparison import Comparison
from expost.data.discovery import Discovery, TopKeys
from expost.data.histograms import CellsAbove, Histogram
from expost.data.lost import SHARES, Lost
from expost.data.searched import Searched
from expost.data.table import PrivateTable
from expost.data.winsorized import WinsorizedMean
from expost.estimate import Estimate
from expost.estimates import Estimates
from expost.frame import ABOVE, NUMBERS, WHAT, Frame
from expost.mechanism import Release

DATA = "array", "pandas frame", "Parquet file", "Spark frame"
SCOPES = WHOLE, BY_GROUP = "whole", "by group"
RELATIONS = "add-remove", "substitute"
UNITS = "row", "person"
CITIES = ["a", "b"]
DELTA = 1e-5
PERSON = xp.Unit("p", rows=2, groups=2)


@dataclass(frozen=True)
class Cell:
    """Of what a question is asked: which kind of data, all of it or by group, under which relation, of which unit."""

    data: str
    scope: str
    relation: str
    unit: str


CELLS = [Cell(*each) for each in product(DATA, SCOPES, RELATIONS, UNITS)]

# ---- refusals: those of cells that do not exist

OF_ARRAYS = (
    "read takes a path, a list of paths, an open DuckDB connection with table=…, or a frame of pandas, Polars, Arrow, "
    "DuckDB or Spark; got ndarray: make a frame of an array, or ask it a statistic, as in "
    "ledger.run(xp.Mean(bounds=(0, 100)), on=ages, epsilon=0.1)"
)
PUBLIC = "the {} is public under substitution and needs no noise: it is table.size, or the length of an array"
NO_DELTA = (
    "ask() has no δ to share among groups, and the {} takes one to find keys: discover the keys of both at once, as "
    "in table.by('city', 'diagnosis').count()"
)
NO_RANGE = (
    "a {0} of groups, or beside others, is of values within bounds: pass bounds, or let a range be found for each "
    "group by itself, as in groups.ask(lambda rows: rows.{0}(…))"
)
NO_INTERVAL = (
    "'median of x' asks for an interval, which quantiles that are asked of all groups at once do not have: leave it "
    "out, or ask each group by itself, as in groups.ask(lambda rows: rows.median(…, interval=True))"
)

# ---- what is true


def _x(rows: pd.DataFrame) -> Any:
    return rows["x"].to_numpy()


def _y(rows: pd.DataFrame) -> Any:
    return rows["y"].to_numpy()


def _between_quantiles(rows: pd.DataFrame, number: Any) -> float:
    return float(_x(rows).clip(number.how.low, number.how.high).mean())


def _bins(rows: pd.DataFrame) -> dict[str, int]:
    found = np.histogram(_x(rows), [0, 25, 50, 75, 100])[0]
    return {f"[{25 * place}, {25 * place + 25})": int(count) for place, count in enumerate(found)} | {"other": 0}


def _cities(rows: pd.DataFrame) -> dict[str, int]:
    return {city: int((rows["city"] == city).sum()) for city in CITIES} | {"other": 0}


def _lost(rows: pd.DataFrame) -> dict[str, float]:
    return dict(zip(SHARES, ((_x(rows) < 20).mean(), (_x(rows) > 80).mean(), 0.0), strict=True))


@dataclass(frozen=True)
class Asked:
    """A question, as it is typed.

    Parameters
    ----------
    name
        What it is called.
    kind
        The class whose docstring names the proof.
    typed
        How a table is asked: the text after ``table.``
    array
        How an array is asked: the text after ``xp.``; empty if it cannot be.
    error
        What its error is, in words.
    bar
        The label of the proof of that error, if it has one.
    true
        What is estimated, made of rows and the number; None where no error is stated.
    each
        Whether groups are asked one by one, by ``ask``.
    at_once
        What is said if all groups are asked at once, where their method is there.
    columns
        How many columns an array has.
    epsilon
        What it is run with.
    delta
        The δ that it takes.
    method
        Where its settings are stated, if not in the table's method.
    """

    name: str
    kind: type
    typed: str
    array: str
    error: str
    bar: str = ""
    true: Callable[[pd.DataFrame, Any], Any] | None = None
    each: bool = False
    at_once: str = ""
    columns: int = 1
    epsilon: float = 2
    delta: float = 0
    method: Any = None

    @property
    def settings(self) -> list[str]:
        """The names of its parameters."""
        method = self.method or getattr(PrivateTable, self.typed.partition("(")[0])
        return [name for name in inspect.signature(method).parameters if name != "self"]

    @property
    def proofs(self) -> list[str]:
        """The labels of the proofs that it is private."""
        found = re.search(r"^\s*Proof: (.*)$", self.kind.__doc__ or "", re.MULTILINE)
        assert found is not None, self.kind
        return found[1].split(", ")

    @property
    def of_groups(self) -> str:
        """How the groups of a table are asked."""
        return f"ask(lambda rows: rows.{self.typed})" if self.each else self.typed

    def question(self, data: Any, cell: Cell) -> tuple[Any, Any]:
        """The question, and what it is asked of unless that is a table."""
        if cell.data == "array":
            if not self.array or cell.scope == BY_GROUP:  # there is no name for it: one tries to read the array
                data = xp.read(data, unit="row", neighbours=cell.relation)  # type: ignore[arg-type]
            return eval(f"xp.{self.array}", {"xp": xp}), data[:, 0] if self.columns == 1 else data
        if cell.scope == WHOLE:
            return eval(f"table.{self.typed}", {"table": data}), None
        return eval(f"groups.{self.of_groups}", {"groups": data.by("city", keys=CITIES)}), None

    def refusal(self, cell: Cell) -> str:
        """The words of the refusal, or nothing if this can be asked."""
        if cell.data == "array" and (not self.array or cell.scope == BY_GROUP):
            return OF_ARRAYS
        if cell.scope == BY_GROUP and self.kind in (Discovery, TopKeys):
            return NO_DELTA.format("discovery of units by city (NULL not counted)" if self.kind is Discovery else
                                   "top 2 of city")  # fmt: skip
        one_each = cell.unit == "row" or cell.data == "array" or "units" in self.typed
        public = cell.scope == WHOLE and cell.relation == "substitute" and one_each
        return PUBLIC.format(self.name) if self.kind is xp.Count and public else ""


IN_RANKS = "in ranks: how far that is in the column's unit is not known"
OF_NOISE = "of noise, by its own law"
BOUNDS = "of noise, and of values up to half a range beyond the one that was found"
NOT_KNOWN = "not known: it depends on the data how far noise moves it"
BOTH = "bounds=[(0, 100), (0, 50)]"
FIT = "bounds=[(0, 100)], target_bounds=(0, 50)"
MANY = 64
"""An ε for what needs more of it, or more rows: a range is looked for, for each group by itself."""

QUESTIONS = [
    Asked("count of rows", xp.Count, "count()", "Count()", OF_NOISE, "lem-laplace-error", lambda r, _: len(r)),
    Asked("count of units", xp.Count, 'count(of="units")', 'Count(of="units")', OF_NOISE, "lem-laplace-error",
          lambda r, _: r["u"].nunique()),
    Asked("sum", xp.Sum, 'sum("x", bounds=(0, 100))', "Sum(bounds=(0, 100))", OF_NOISE, "lem-laplace-error",
          lambda r, _: _x(r).sum()),
    Asked("mean", xp.Mean, 'mean("x", bounds=(0, 100))', "Mean(bounds=(0, 100))",
          "of noise, in the sum and in the number of values at once", "lem-mean-error", lambda r, _: _x(r).mean()),
    Asked("mean without bounds", Searched, 'mean("x")', "Mean()", BOUNDS, "lem-hidden-records",
          lambda r, _: _x(r).mean(), each=True, at_once=NO_RANGE.format("mean"), epsilon=MANY),
    Asked("ratio of two sums", xp.Ratio, f'ratio("x", "y", {BOTH})', f"Ratio({BOTH})",
          "of noise, in both sums at once", "lem-estimate-arithmetic", lambda r, _: _x(r).sum() / _y(r).sum(),
          columns=2),
    Asked("variance", xp.Variance, 'variance("x", bounds=(0, 100))', "Variance(bounds=(0, 100))",
          "of noise, in the moments at once", "lem-variance-error", lambda r, _: _x(r).var()),
    Asked("variance without bounds", Searched, 'variance("x")', "Variance()", NOT_KNOWN, each=True,
          at_once=NO_RANGE.format("variance"), epsilon=MANY),
    Asked("covariance", xp.Covariance, f'covariance("x", "y", {BOTH})', f"Covariance({BOTH})",
          "of noise, in the moments at once", "lem-covariance-error",
          lambda r, _: np.cov(_x(r), _y(r), ddof=0)[0, 1], columns=2),
    Asked("covariance without bounds", Searched, 'covariance("x", "y")', "Covariance()", NOT_KNOWN, each=True,
          at_once=NO_RANGE.format("covariance"), columns=2, epsilon=MANY),
    Asked("correlation", xp.Correlation, f'correlation("x", "y", {BOTH})', f"Correlation({BOTH})",
          "of noise, in a covariance and two variances at once", "lem-covariance-error",
          lambda r, _: np.corrcoef(_x(r), _y(r))[0, 1], columns=2),
    Asked("correlation without bounds", Searched, 'correlation("x", "y")', "Correlation()", NOT_KNOWN, each=True,
          at_once=NO_RANGE.format("correlation"), columns=2, epsilon=MANY),
    Asked("linear regression", xp.LinearRegression, f'regression(["x"], "y", {FIT})', f"LinearRegression({FIT})",
          "of noise, in all coefficients at once, where sums have noise; of the mechanism for columns not known",
          "lem-regression-error", columns=2),
    Asked("median", xp.Median, 'median("x", bounds=(0, 100))', "Median(bounds=(0, 100))", IN_RANKS,
          "lem-quantile-error"),
    Asked("median without bounds", xp.Median, 'median("x")', "Median()", IN_RANKS, "lem-unbounded", epsilon=MANY),
    Asked("median with an interval", xp.Median, 'median("x", bounds=(0, 100), interval=True)',
          "Median(bounds=(0, 100), interval=True)", "an interval in the column's unit that was chosen beside it",
          "lem-quantile-between", lambda r, _: np.median(_x(r)), each=True, at_once=NO_INTERVAL),
    Asked("quantile", xp.Quantile, 'quantile("x", 0.9, bounds=(0, 100))', "Quantile(quantile=0.9, bounds=(0, 100))",
          IN_RANKS, "lem-quantile-error"),
    Asked("quantile without bounds", xp.Quantile, 'quantile("x", 0.9)', "Quantile(quantile=0.9)", IN_RANKS,
          "lem-unbounded", epsilon=MANY),
    Asked("several quantiles", xp.Quantile, 'quantile("x", [0.25, 0.75], bounds=(0, 100))',
          "Quantile(quantile=[0.25, 0.75], bounds=(0, 100))", "in ranks, of all of them at once",
          "lem-quantile-error"),
    Asked("several quantiles without bounds", xp.Quantile, 'quantile("x", [0.25, 0.75])',
          "Quantile(quantile=[0.25, 0.75])", "in ranks, of all of them at once", "lem-unbounded", epsilon=MANY),
    Asked("winsorised mean", WinsorizedMean, 'winsorized_mean("x", trim=0.1, bounds=(0, 100))', "",
          "of noise, in the mean between the quantiles that were chosen", "lem-surely-between", _between_quantiles,
          each=True, epsilon=16),
    Asked("winsorised mean without bounds", WinsorizedMean, 'winsorized_mean("x", trim=0.1)', "",
          "of noise, in the mean between the quantiles that were chosen", "lem-surely-between", _between_quantiles,
          each=True, epsilon=MANY),
    Asked("histogram of keys", Histogram, 'histogram("city", keys=["a", "b"])', "", "of noise, of each count by itself",
          "lem-histogram-error", lambda r, _: _cities(r), each=True),
    Asked("histogram of bins", Histogram, 'histogram("x", bins=4, bounds=(0, 100))', "",
          "of noise, of each count by itself", "lem-histogram-error", lambda r, _: _bins(r), each=True),
    Asked("cells above a threshold", CellsAbove, 'histogram("x", bins=4, bounds=(0, 100)).above(300, at_most=4)', "",
          "none: cells are above, below or not compared", "lem-comparisons", each=True, epsilon=MANY,
          method=Histogram.above),
    Asked("discovered keys", Discovery, 'discover("city")', "",
          "an interval that holds although the count had to reach a threshold", "lem-reached-counts",
          lambda r, _: r.groupby("city")["u"].nunique().to_dict(), each=True, delta=DELTA),
    Asked("most frequent keys", TopKeys, 'discover("city").top(2)', "", "none: they are keys, without counts",
          each=True, delta=DELTA, method=Discovery.top),
    Asked("what bounds take away", Lost, 'lost("x", bounds=(20, 80))', "",
          "intervals that hold for all shares at once", "thm-lost", lambda r, _: _lost(r), each=True),
]  # fmt: skip
BY_NAME = {asked.name: asked for asked in QUESTIONS}

# ---- data


def made_rows() -> pd.DataFrame:
    """People with two rows each, in groups: no unit has more rows than count, and none lies on a bound."""
    chance, size = np.random.default_rng(1), 2000
    x = chance.uniform(5, 95, size).round(2)
    y = np.clip(x / 2 + chance.normal(0, 4, size), 0.5, 49.5).round(2)
    city = np.where(np.arange(size) % 3, "a", "b")
    return pd.DataFrame({"p": np.arange(size) // 2, "city": city, "x": x, "y": y})


def in_table(source: Any, cell: Cell, **more: Any) -> xp.PrivateTable:
    """A table of a frame or a file, as the cell says."""
    unit = PERSON if cell.unit == "person" else "row"
    return xp.read(source, unit=unit, neighbours=cell.relation, key=1, **more)  # type: ignore[arg-type]


class Remembering:
    """An engine that is asked each query once, and knows what it said."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.found = engine, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        if query not in self.found:
            self.found[query] = self.engine.fetch(query)
        return list(self.found[query])

    def arrays(self, query: str) -> Any:
        """The columns of a numeric query."""
        if query not in self.found:
            self.found[query] = self.engine.arrays(query)
        return [column.copy() for column in self.found[query]]

    @property
    def exact(self) -> list[Any]:
        """The exact numbers of every query, in any order of rows: the same on every engine."""
        return [sorted(map(_plain_row, _as_rows(found)), key=repr) for found in self.found.values()]


def _as_rows(found: Any) -> Iterable[Any]:
    return zip(*found, strict=True) if found and isinstance(found[0], np.ndarray) else found


def _plain_row(row: Any) -> tuple[Any, ...]:
    return tuple(map(_plain_cell, row))


def _plain_cell(cell: Any) -> Any:
    if isinstance(cell, bytes | bytearray):
        return bytes(cell).decode()
    return cell if cell is None or isinstance(cell, str | bool) else float(cell)


# ---- running


def run(asked: Asked, cell: Cell, data: Any, seed: int = 1) -> Release[Any]:
    """What one types, in a ledger of its own."""
    question, on = asked.question(data, cell)
    said: dict[str, Any] = {"neighbours": cell.relation, "unit": "p" if cell.unit == "person" else None}
    ledger = xp.Ledger(epsilon=asked.epsilon, delta=asked.delta, noise=xp.SeededNoise(seed), **said)
    found: Release[Any] = ledger.run(question, on=on, epsilon=asked.epsilon, delta=asked.delta)
    return found


def remembering(table: xp.PrivateTable) -> tuple[xp.PrivateTable, Remembering]:
    """The same table, and what its engine says to it from now on."""
    engine = Remembering(table.engine)
    return replace(table, engine=engine), engine


def refused(asked: Asked, cell: Cell, data: Any) -> str:
    """What is said to a question that cannot be asked of this."""
    try:
        run(asked, cell, data)
    except xp.InvalidValue as error:
        return str(error)
    raise AssertionError(f"{asked.name} is answered for {cell}")


def check_published(asked: Asked, release: Release[Any]) -> None:
    """Its frame has the one schema, and reads back as it was; what is no number has its cells."""
    frame = release.frame
    assert len(set(frame.names)) == len(frame.names)
    assert len(frame) > 0
    read = list(csv.reader(io.StringIO(frame.to_csv())))
    assert read == [[*frame.names], *(["" if cell is None else str(cell) for cell in row] for row in frame.rows)]
    assert Frame.from_json(json.loads(json.dumps(frame.to_json(), allow_nan=False))) == frame
    assert str(frame)
    if asked.kind is CellsAbove:
        assert frame.names[-1] == ABOVE
        assert {*frame[ABOVE]} <= {*Comparison}
        return
    assert (frame.names[0], frame.names[-4:]) == (WHAT, NUMBERS)
    for *_, value, low, high, error in frame.rows:
        assert value is not None, "it is withheld: these data are meant to have answers"
        assert (low is None) == (high is None) == (error is None)
        assert error is None or low <= value <= high
        assert error is None or asked.true is not None or asked.kind is xp.LinearRegression  # it has tests of its own
        assert error is not None or frame.notes or asked.kind is TopKeys


def numbers_of(answer: Any) -> dict[Hashable, Any]:
    """Every number of an answer by its key, that of one alone by None."""
    if isinstance(answer, Estimate):
        return {None: answer}
    return dict(answer.items()) if isinstance(answer, Estimates) else {}


def truths(asked: Asked, cell: Cell, rows: pd.DataFrame, numbers: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """What is true, for each of these numbers."""
    assert asked.true is not None
    rows = rows.assign(u=rows["p"] if cell.unit == "person" else np.arange(len(rows)))
    found: dict[Hashable, float] = {}
    for key, number in numbers.items():
        parts = key if isinstance(key, tuple) else (key,)
        city = None if cell.scope == WHOLE else parts[1] if parts[0] in SHARES else parts[0]
        true = asked.true(rows if city is None else rows[rows["city"] == city], number)
        inner = parts[0] if city is None or parts[0] in SHARES else parts[-1]
        found[key] = float(true[inner] if isinstance(true, dict) else true)
    return found


# ---- the page


def page_table() -> str:
    """The generated part of ``docs/questions.md``: every question, every cell, and the words of every refusal."""
    return "\n".join([*_settings(), "", *_where(), "", *_refused(), ""])


def _settings() -> list[str]:
    rows = ["| question | of a table, `table.…` | of an array, `xp.…` | settings | its error | proofs |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    for asked in QUESTIONS:
        array = f"`{asked.array}`" if asked.array else ""
        proofs = dict.fromkeys([*asked.proofs, *([asked.bar] if asked.bar else [])])
        rows.append(
            f"| {asked.name} | `{asked.typed}` | {array} | {', '.join(f'`{each}`' for each in asked.settings)} | "
            f"{asked.error} | {', '.join(f'{{prf:ref}}`{label}`' for label in proofs)} |"
        )
    return rows


def _where() -> list[str]:
    names = [name if scope == WHOLE else f"{name}, by group" for name, scope in product(DATA, SCOPES)]
    rows = [f"| question | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for asked in QUESTIONS:
        cells = [_mark(asked, [cell for cell in CELLS if (cell.data, cell.scope) == each]) for each in
                 product(DATA, SCOPES)]  # fmt: skip
        rows.append(f"| {asked.name} | {' | '.join(cells)} |")
    return rows


def _mark(asked: Asked, cells: list[Cell]) -> str:
    refused = [cell for cell in cells if asked.refusal(cell)]
    if not refused:
        if not asked.each or cells[0].scope == WHOLE:
            return "✓"
        return f"`ask` ({_all_refusals().index(asked.at_once) + 1})" if asked.at_once else "`ask`"
    (words,) = {asked.refusal(cell) for cell in refused}
    number = f"({_all_refusals().index(words) + 1})"
    if len(refused) == len(cells):
        return f"– {number}"
    both = {cell.unit for cell in refused} == {*UNITS}
    ((relation, unit), *_) = [(cell.relation, cell.unit) for cell in refused]
    return f"✓, not {relation}{'' if both else f' by {unit}'} {number}"


def _all_refusals() -> list[str]:
    cells = (words for asked in QUESTIONS for cell in CELLS if (words := asked.refusal(cell)))
    return list(dict.fromkeys([*cells, *(asked.at_once for asked in QUESTIONS if asked.at_once)]))


def _refused() -> list[str]:
    return [f"{place}. {words}" for place, words in enumerate(_all_refusals(), 1)]


if __name__ == "__main__":
    print(page_table())
