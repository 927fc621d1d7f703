"""When two names mean the same unit: one rule, for ledgers in Python and for studies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.data.unit import as_unit, stated_unit
from expost.unit_names import in_full, same_unit

pytestmark = pytest.mark.counted
SAME = [
    ("patient", "patient"), ("patient", "patient_id"), ("patients", "PatientID"), ("Patient No", "patient"),
    ("patient", "patient (column pid)"), ("pid", "patient (column pid)"), ("patient (column pid)", "pid"),
    ("patient (column pid)", "patient (column mrn)"), ("patient_id (column patient_id)", "patient"), ("row", "row"),
    ("row", "visit (one row each)"), ("visit (one row each)", "visit ID (one row each)"), ("Ärztin", "ärztin"),
    ("患者", "患者_id"), ("person-year", "person_year"), ("$$", "$$"), ("row (column row)", "row (column row)"),
]  # fmt: skip
OTHERS = [
    ("patient", "row"), ("patient", "patient (one row each)"), ("patient (one row each)", "patient"),
    ("row", "patient"), ("visit (one row each)", "row"), ("visit (one row each)", "claim (one row each)"),
    ("patient", "household"), ("patient (column pid)", "visit (column pid)"), ("患者", "世帯"), ("$$", "%%"),
    ("row", "row (column row)"), ("row (column row)", "row"), ("row", in_full("row")), ("row", in_full("row_id")),
    ("patient", "patient visit"),
]  # fmt: skip


@pytest.mark.parametrize(("books", "asked"), SAME)
def test_names_of_one_unit(books: str, asked: str) -> None:
    assert same_unit(books, asked)


@pytest.mark.parametrize(("books", "asked"), OTHERS)
def test_names_of_different_units(books: str, asked: str) -> None:
    assert not same_unit(books, asked)


words = st.text(min_size=1, max_size=12)


@given(words, st.none() | words, st.none() | words)
def test_every_unit_is_its_own_and_no_row_is_a_person(column: str, name: str | None, row: str | None) -> None:
    person, rows = in_full(column, name), in_full(None, row)
    assert same_unit(person, person)
    assert same_unit(rows, rows)
    assert not same_unit(person, rows)
    assert not same_unit(rows, person)


def test_units_of_tables_have_names() -> None:
    assert xp.Unit("pid", rows=5, name="patient").title == "patient (column pid)"
    assert xp.Unit("patient_id", rows=5).title == "patient_id"
    assert as_unit("row").title == "row"
    assert as_unit("visit (one row each)").title == "visit (one row each)"
    assert repr(as_unit("visit (one row each)")) == "'visit (one row each)'"
    assert repr(xp.Unit("pid", rows=5, name="patient")) == "Unit('pid', rows=5, groups=5, name='patient')"
    assert xp.Unit("pid", rows=5, name="patient") == xp.Unit("pid", rows=5)  # what is computed is the same
    assert stated_unit("row", None, None, "visit") == as_unit("visit (one row each)")
    assert stated_unit("pid", 5, 2, "patient").title == "patient (column pid)"
    assert stated_unit("pid", 5, 2, "pid").title == "pid"
    for wrong in ("", 3, b"patient"):
        with pytest.raises(xp.InvalidValue, match="a unit is named by a text"):
            xp.Unit("pid", rows=5, name=wrong)  # type: ignore[arg-type]
    for unstated in (" (one row each)", "patient", "patient (column pid)"):
        with pytest.raises(xp.InvalidValue, match="unit says whose privacy is protected"):
            as_unit(unstated)


def test_caps_are_no_part_of_the_name() -> None:
    titles = {xp.Unit("patient", rows=rows, groups=groups).title for rows in (1, 9) for groups in (1, 3)}
    assert titles == {"patient"}
