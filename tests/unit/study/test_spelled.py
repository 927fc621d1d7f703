"""Keys that are spelled otherwise than in the data: told from what was published, and never by a look at the data."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import expost as xp
from expost.study import parse_study, run_study
from studies import question, write_people, write_study

pytestmark = pytest.mark.slow


def notice(folder: Path, **keys: object) -> str:
    study = write_study(folder, question("cities", "histogram", column=keys.pop("column", "city"), epsilon=1, **keys))
    (outcome,) = run_study(parse_study(study.read_text().replace("sqlite:///books.db", "memory:"), study)).outcomes
    assert outcome.answer is not None
    return outcome.answer.notice


def test_keys_that_few_have_are_told(tmp_path: Path) -> None:
    """Before: 99 % were in "other", without a notice."""
    city = pd.read_csv(write_people(tmp_path))["city"].value_counts().index[0]
    assert "most of what was counted has none of these keys: are they spelled as in the data, capital" in notice(
        tmp_path, keys=[city.swapcase()]
    )
    assert notice(tmp_path, keys=[city.swapcase()], other="none of them")
    assert "no value within these bins" in notice(tmp_path, column="age", bins=2, bounds=[0, 1])
    assert notice(tmp_path, column="age", bins=2, bounds=[0, 80]) == ""


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_it_follows_from_published_numbers(neighbours: Any) -> None:
    table = xp.read(pd.DataFrame({"ward": ["A", "B"] * 500}), unit="row", neighbours=neighbours)
    for keys, told in ((["a", "b"], True), (["A", "b"], False), (["A", "B"], False)):
        cells = table.histogram("ward", keys=keys)
        release = xp.Ledger(1).run(cells, epsilon=1)
        assert ("none of these keys" in str(release)) == told
        assert bool(cells.mostly_other(release.output, 20)) == told
    assert not table.histogram("ward", keys=["a"], other=None).mostly_other({"a": 0}, 20)


def test_two_keys_that_differ_by_case_are_told(tmp_path: Path) -> None:
    city = pd.read_csv(write_people(tmp_path))["city"].value_counts().index[0]
    both = f"{city!r} and {city.upper()!r} are two keys"
    assert both in notice(tmp_path, keys=[city, city.upper()])
    study = write_study(tmp_path, question("old", "count", by=["city"], by_keys=[city, city.upper()], epsilon=1))
    (outcome,) = run_study(parse_study(study.read_text().replace("sqlite:///books.db", "memory:"), study)).outcomes
    assert outcome.answer is not None
    assert both in outcome.answer.notice
