"""Every question of every kind of data, whole and by group, under both relations, of rows and of people.

Spark's cells are in ``tests/conformance/test_spark.py``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expost as xp
from asked_everywhere import (
    BY_GROUP,
    BY_NAME,
    CELLS,
    CITIES,
    QUESTIONS,
    WHOLE,
    Asked,
    Cell,
    check_published,
    in_table,
    made_rows,
    numbers_of,
    page_table,
    refused,
    remembering,
    run,
    truths,
)
from expost.data.searched import Searched
from expost.data.winsorized import WinsorizedMean
from expost.errors import InvalidValue
from expost.frame import NUMBERS, WHAT

ROOT = Path(__file__).resolve().parents[3]
DRAWS, DEARER = 24, 8
"""How often noise is drawn for each cell; and where each draw has queries of its own, within what it found."""
HERE = [cell for cell in CELLS if cell.data != "Spark frame"]
FRAMES = [cell for cell in CELLS if cell.data == "pandas frame"]
Sources = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return made_rows()


@pytest.fixture(scope="module")
def sources(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Sources:
    path = tmp_path_factory.mktemp("asked") / "rows.parquet"
    rows.to_parquet(path)
    return {"array": rows[["x", "y"]].to_numpy(), "pandas frame": rows, "Parquet file": path}


@pytest.fixture(scope="module")
def data(sources: Sources) -> dict[tuple[str, str, str], Any]:
    """What each cell is asked of: tables are read once."""
    found = {}
    for cell in HERE:
        source = sources[cell.data]
        if (cell.data, cell.relation, cell.unit) not in found:
            made = source if cell.data == "array" else in_table(source, cell)
            found[cell.data, cell.relation, cell.unit] = made
    return found


@pytest.mark.parametrize("name", BY_NAME)
def test_every_cell_is_answered_or_refused(name: str, data: dict[Any, Any]) -> None:
    """With the same noise answers are the same of every kind of data, and so are the exact numbers."""
    asked = BY_NAME[name]
    outputs: dict[Any, list[Any]] = {}
    numbers: dict[Any, list[Any]] = {}
    for cell in HERE:
        of = data[cell.data, cell.relation, cell.unit]
        if words := asked.refusal(cell):
            assert refused(asked, cell, of) == words, cell
            continue
        of, engine = (of, None) if cell.data == "array" else remembering(of)
        release = run(asked, cell, of)
        check_published(asked, release)
        place = cell.scope, cell.relation, "row" if cell.data == "array" else cell.unit
        numbers.setdefault(place, []).append([row[-4:] for row in release.frame.rows])
        if engine is not None:
            outputs.setdefault(place, []).append((release.output, release.frame, engine.exact))
    for found in (*numbers.values(), *outputs.values()):
        assert len(found) > 1
        assert all(each == found[0] for each in found[1:])


def test_what_is_compared_tells_one_row_from_another(rows: pd.DataFrame) -> None:
    """Of every kind of question: the exact numbers of a table with one more row are others."""
    cell = Cell("pandas frame", WHOLE, "add-remove", "person")
    other = rows.copy()
    other.loc[len(other)] = [len(rows), "b", 5.0, 49.0]
    for asked in {asked.kind: asked for asked in QUESTIONS}.values():
        found = []
        for frame in (rows, other):
            table, engine = remembering(in_table(frame, cell))
            run(asked, cell, table)
            found.append(engine.exact)
        assert found[0] != found[1], asked.name


COVERED = [asked.name for asked in QUESTIONS if asked.true is not None]


@pytest.mark.parametrize("name", COVERED)
def test_intervals_cover_where_there_is_an_error(name: str, data: dict[Any, Any], rows: pd.DataFrame) -> None:
    """Noise is drawn anew on exact numbers that were fetched once."""
    asked = BY_NAME[name]
    in_all, of_all = 0, 0
    for cell in FRAMES:
        if asked.refusal(cell):
            continue
        missed, known = drawn_anew(asked, cell, data[cell.data, cell.relation, cell.unit], rows)
        for key, times in missed.items():
            assert times <= most_missed(known[key]), (cell, key, times, known[key])
        in_all, of_all = in_all + sum(missed.values()), of_all + sum(known.values())
    assert of_all > DEARER
    assert in_all <= most_missed(of_all)


def most_missed(draws: int) -> float:
    """How many of so many intervals at 95 % may miss."""
    return float(0.05 * draws + 4 * (0.05 * 0.95 * draws) ** 0.5)


def drawn_anew(asked: Asked, cell: Cell, table: Any, rows: pd.DataFrame) -> tuple[dict[Any, int], dict[Any, int]]:
    """How often the interval of each number misses, and how often it is known."""
    table, _ = remembering(table)
    question, _ = asked.question(table, cell)
    mechanism = question.mechanism(epsilon=asked.epsilon, delta=asked.delta)
    noise = xp.SeededNoise(5)
    missed: dict[Any, int] = {}
    known: dict[Any, int] = {}
    for place in range(DEARER if asked.kind in (Searched, WinsorizedMean) else DRAWS):
        numbers = numbers_of(mechanism.answer_of(mechanism.sample(None, noise), place))
        numbers = {key: each for key, each in numbers.items() if isinstance(each, xp.Estimate) and not each.why}
        for key, true in truths(asked, cell, rows, numbers).items():
            low, high = numbers[key].interval(0.95)
            missed[key] = missed.get(key, 0) + (not low <= true <= high)
            known[key] = known.get(key, 0) + 1
    return missed, known


@pytest.mark.parametrize("asked", [asked for asked in QUESTIONS if asked.at_once], ids=lambda asked: asked.name)
def test_what_groups_are_not_asked_at_once(asked: Asked, data: dict[Any, Any]) -> None:
    groups = data["pandas frame", "add-remove", "row"].by("city", keys=CITIES)
    with pytest.raises(InvalidValue, match=re.escape(asked.at_once)):
        eval(f"groups.{asked.typed}", {"groups": groups})


@pytest.mark.parametrize("asked", ['by("x > 50").count()', 'by("x > 50").agg(n=xp.Count())', 'discover("city")'])
def test_keys_are_not_found_in_each_group_by_itself(asked: str, data: dict[Any, Any]) -> None:
    """Before, one was told to pass a delta, and then to leave it out."""
    groups = data["pandas frame", "add-remove", "row"].by("city", keys=CITIES)
    with pytest.raises(InvalidValue, match="no δ to share among groups"):
        groups.ask(lambda rows: eval(f"rows.{asked}", {"rows": rows, "xp": xp}))
    given = groups.ask(lambda rows: rows.by("x > 50", keys=[True, False]).count())
    assert len(xp.Ledger(epsilon=1).run(given, epsilon=1).frame) == 4


def test_a_statistic_is_asked_of_groups_in_three_ways(data: dict[Any, Any]) -> None:
    """By their method, by itself, and among others in one charge."""
    groups = data["pandas frame", "substitute", "person"].by("city", keys=CITIES)
    mean = xp.Mean("x", bounds=(0, 100))
    ways = (groups.mean("x", bounds=(0, 100)), None), (mean, groups), (groups.agg(**{"mean of x": mean}), None)
    found = [xp.Ledger(epsilon=1, noise=xp.SeededNoise(1)).run(what, on=on, epsilon=1) for what, on in ways]  # type: ignore[call-overload]
    assert found[0].frame == found[1].frame == found[2].frame


@pytest.mark.parametrize("keys", [CITIES, None], ids=["stated", "discovered"])
@pytest.mark.parametrize("cell", [cell for cell in FRAMES if cell.scope == BY_GROUP], ids=str)
def test_all_statistics_of_groups_are_asked_in_one_charge(cell: Cell, keys: Any, data: dict[Any, Any]) -> None:
    """Of groups that are stated, and of those that are discovered for a δ."""
    groups, delta = data[cell.data, cell.relation, cell.unit].by("city", keys=keys), 0 if keys else 1e-6
    several = [asked for asked in QUESTIONS if not asked.each]
    asked = groups.agg(**{each.name: eval(f"groups.{each.typed}", {"groups": groups}) for each in several})
    release = xp.Ledger(epsilon=200, delta=delta, noise=xp.SeededNoise(1)).run(asked, epsilon=200, delta=delta)
    assert release.charged == xp.Cost(200, delta=delta)
    assert {*release.frame["city"]} == {*CITIES}
    assert (release.frame.names[0], release.frame.names[-4:]) == (WHAT, NUMBERS)
    assert all(any(str(what).startswith(each.name) for what in release.frame["what"]) for each in several)


def test_the_page_has_the_table() -> None:
    page = ROOT / "docs" / "questions.md"
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- table -->\n")
    told, _, after = rest.partition("<!-- /table -->")
    if os.environ.get("EXPOST_GOLDEN") == "update":
        page.write_text(f"{before}<!-- table -->\n{page_table()}<!-- /table -->{after}", encoding="utf-8")
    else:
        assert told == page_table()


def test_the_proofs_exist() -> None:
    theory = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("theory*.md"))
    for asked in QUESTIONS:
        for label in [*asked.proofs, *([asked.bar] if asked.bar else [])]:
            assert re.search(rf"^:label: {label}$", theory, re.MULTILINE), label


def test_data_are_as_the_cells_need_them(rows: pd.DataFrame) -> None:
    """No unit has more rows or groups than count, and bounds move nothing: so that the truth is what is estimated."""
    assert rows.groupby("p").size().max() == 2
    assert not np.any((rows["x"] <= 0) | (rows["x"] >= 100) | (rows["y"] <= 0) | (rows["y"] >= 50))
