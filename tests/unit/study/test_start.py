"""A first study, from a schema."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

import expost as xp
from expost import Cost, InvalidValue, SeededNoise
from expost.data.duckdb import DuckDB
from expost.errors import InvalidStudy
from expost.study import parse_study, plan_study, read_study, run_study, starter
from studies import CANARY, write_people

pytestmark = pytest.mark.slow
TABLES = {
    "numbers": "SELECT i AS a, i / 2 AS \"odd name\" FROM range(5000) t(i)",
    "words": "SELECT 'w' || (i % 3) AS w FROM range(5000) t(i)",
    "neither": "SELECT i % 2 = 0 AS yes, DATE '2026-01-01' + CAST(i % 9 AS INTEGER) AS day FROM range(5000) t(i)",
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_with_bounds_it_runs_and_spends_at_most_half(tmp_path: Path, name: str) -> None:
    data = tmp_path / f"{name}.parquet"
    duckdb.sql(f"COPY ({TABLES[name]}) TO '{data}' (FORMAT parquet)")
    study = tmp_path / "study.toml"
    study.write_text(starter(str(data), file=study, bounds={"odd name": (0, 2500)} if name == "numbers" else None))
    result = run_study(read_study(study))
    assert result.error is None
    assert result.asked == len(result.outcomes) >= 1
    assert result.ledger.spent <= Cost("0.5", "5e-7")


def test_without_bounds_nothing_is_asked_that_needs_them(tmp_path: Path) -> None:
    """A median needs none. Before: bounds were blank, and before that placeholders of [0, 100] were asked about."""
    study = tmp_path / "study.toml"
    text = starter(str(write_people(tmp_path)), file=study)
    asked = {question.name: question for question in parse_study(text, study).questions}
    assert {question.kind for question in asked.values()} == {"count", "discover", "median"}
    assert not any("bounds" in question.values for question in asked.values())
    assert "--bounds cost=LOW,HIGH" in text
    result = run_study(parse_study(text.replace("sqlite:///study.ledger.db", "memory:"), study))
    (middle,) = (outcome.answer for outcome in result.outcomes if outcome.question.name == "middle")
    assert middle is not None
    assert middle.value is not None


def test_among_few_units_nothing_is_searched_for(tmp_path: Path) -> None:
    """As far as that is public: a median without bounds would always be withheld."""
    data, study = tmp_path / "few.csv", tmp_path / "study.toml"
    data.write_text("cost\n" + "5\n" * 9)
    text = starter(str(data), file=study)
    assert "There are too few rows to look for a median" in text
    assert {question.kind for question in parse_study(text, study).questions} == {"count"}
    assert plan_study(parse_study(text, study)).fits


def test_every_column_with_bounds_is_asked_about(tmp_path: Path) -> None:
    """Before: of several, only the first."""
    study = tmp_path / "study.toml"
    text = starter(str(write_people(tmp_path)), file=study, bounds={"cost": (0, 500), "age": (0, 80)})
    asked = {question.name: question.values.get("column") for question in parse_study(text, study).questions}
    assert asked | {"average": "cost", "average_age": "age", "middle": "cost", "clipped": "cost"} == asked
    assert plan_study(parse_study(text, study)).worst.epsilon >= 0.5


def test_people_may_come_and_go(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    data = str(write_people(tmp_path))
    for said, relation in (
        ({}, "add-remove"), ({"unit": "row"}, "substitute"), ({"neighbours": "substitute"}, "substitute"),
        ({"unit": "row", "neighbours": "add-remove"}, "add-remove"),
    ):  # fmt: skip
        text = starter(data, file=study, **said)  # type: ignore[arg-type]
        assert parse_study(text, study).privacy.neighbours == relation
        assert plan_study(parse_study(text, study)).fits


def test_codes_and_free_texts_are_not_asked_about(tmp_path: Path) -> None:
    data, study = tmp_path / "x.csv", tmp_path / "study.toml"
    data.write_text("patient,cost,zip,lastName,flight no,ward,comment\n1,5,1010,Ng,17,A,none\n")
    text = starter(str(data), file=study)
    assert "Those of cost are not known" in text
    assert 'column = "ward"' in text
    assert "--bounds cost=" in text


@pytest.mark.parametrize(
    ("columns", "unit"),
    [
        ("age,patient_id,person", "patient_id"),
        ("Customer No,age", "Customer No"),
        ("id,age", "id"),
        ("year,passenger_id,age", "passenger_id"),
        ("PassengerId,age", "PassengerId"),
        ("flight no,RespondentID,age", "RespondentID"),
        ("userid,age", "userid"),
        ("hhid,age", "hhid"),
        ("flight_id,idle,age", "row"),
        ("persona,username,age", "row"),
    ],
)
def test_the_unit_is_whom_a_row_is_about_by_its_name(tmp_path: Path, columns: str, unit: str) -> None:
    data = tmp_path / "x.csv"
    data.write_text(columns + "\n" + ",".join("7" * len(columns.split(","))) + "\n")
    text = starter(str(data), file=tmp_path / "study.toml", bounds={"age": (0, 110)})
    study = parse_study(text, tmp_path / "study.toml")
    assert f'\nunit = "{unit}"' in text
    assert plan_study(study).fits


def test_bounds_are_of_columns_of_numbers(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="'city': there are 'age', 'cost'"):
        starter(str(write_people(tmp_path)), file=tmp_path / "study.toml", bounds={"city": (0, 1)})


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_nothing_is_queried_and_no_value_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: Any) -> None:
    data = write_people(tmp_path)

    def refuse(*args: object) -> None:
        raise AssertionError("a value was read")

    fetch = DuckDB.fetch

    def count_rows(engine: DuckDB, query: str) -> list[tuple[Any, ...]]:
        units = (
            f'(SELECT DISTINCT u FROM (SELECT "person" AS u FROM {engine.source} WHERE "person" IS NOT NULL) AS r) AS r'
        )
        public = {f"SELECT count(*) FROM {counted}" for counted in (engine.source, units)}
        assert relation == "substitute", "nothing is public about how many there are"
        assert query in public, "more was read than the public numbers of rows and of units"
        return fetch(engine, query)

    monkeypatch.setattr(DuckDB, "fetch", count_rows)
    monkeypatch.setattr(DuckDB, "arrays", refuse)
    text = starter(str(data), file=tmp_path / "study.toml", bounds={"age": (0, 110)}, neighbours=relation)
    assert CANARY not in text
    assert plan_study(parse_study(text, tmp_path / "study.toml")).fits


def test_names_and_numbers_are_all_that_is_edited(tmp_path: Path) -> None:
    write_people(tmp_path)
    text = starter(str(tmp_path / "people.csv"), file=tmp_path / "study.toml", bounds={"cost": (0, 10)})
    edited = text.replace('column = "cost"', 'column = "age"').replace("[0, 10]", "[0, 80]").replace("1.0  ", "90.0  ")
    assert edited != text
    result = run_study(parse_study(edited, tmp_path / "study.toml"))
    assert result.error is None
    average = next(outcome for outcome in result.outcomes if outcome.question.name == "average").answer
    assert average is not None
    assert abs(average.value - 39.5) < 2


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("{}.12.2025", "text"),
        ("{}/12/2025 10:30:00", "text"),
        ("2025-12-{}", "date"),
        ("2025-12-{} 10:30:00", "timestamp"),
        ("2025-12-{}T10:30:00", "timestamp"),
        ("2025-12-{}T10:30:00Z", "text"),
    ],
)
def test_dates_that_would_be_read_as_empty_are_guessed_to_be_text(tmp_path: Path, written: str, kind: str) -> None:
    """Found: 31.12.2025 was guessed to be a date, and every row of the study then had none."""
    data, file = tmp_path / "visits.csv", tmp_path / "study.toml"
    data.write_text("\n".join(["seen;age", *(f"{written.format(10 + i % 20)};{i % 80}" for i in range(500))]) + "\n")
    assert f'"seen" = "{kind}"' in starter(str(data), file=file, delimiter=";")


def test_dates_can_be_made_of_text(tmp_path: Path) -> None:
    """As docs/study.md has it."""
    data = tmp_path / "visits.csv"
    data.write_text("seen\n" + "31.12.2025\n" * 500)
    day = "CAST(right(seen, 4) || '-' || substring(seen, 4, 2) || '-' || left(seen, 2) AS DATE)"
    assert day in (Path(__file__).parents[3] / "docs" / "study.md").read_text(encoding="utf-8")
    table = xp.read(data, unit="row", neighbours="add-remove").derive(day=day)
    last = xp.Ledger(epsilon=100).run(table.where("day = '2025-12-31'").count(), epsilon=100)
    assert abs(last.value - 500) < 1


def test_types_of_a_csv_file_are_stated(tmp_path: Path) -> None:
    data, file = tmp_path / "odd.csv", tmp_path / "study.toml"
    rows = "".join(f"{i},2026-01-{i % 28 + 1:02},12:{i % 60:02}:00,2026-01-01 10:00:00\n" for i in range(5000))
    data.write_text("age,day,hour,at\n" + rows)
    text = starter(str(data), file=file, bounds={"age": (0, 5000)})
    assert '"age" = "integer"\n"day" = "date"\n"hour" = "text"\n"at" = "timestamp"\n' in text
    before = plan_study(parse_study(text, file))
    data.write_text("age,day,hour,at\n" + rows.replace("\n7,", "\nseven,").replace("12:08:00", "noon"))
    after = parse_study(text, file)
    assert plan_study(after).lines == before.lines, "one odd row changes nothing that is public"
    bare = "".join(line for line in text.splitlines(True) if line[:1] != '"' and line != "[data.schema]\n")
    with pytest.raises(InvalidStudy, match=r"study.toml:10: \[data\] a CSV file does not state"):
        parse_study(bare, file)


@pytest.mark.parametrize(
    ("header", "delimiter", "said"),
    [
        ("17,Rome", None, "if the first line is a row"),
        ("2026-01-02,x", None, "if the first line is a row"),
        ("age;city", None, "--delimiter ';' --force, and --decimal , if"),
        ("age;city", ";", None),
        ("age,city", None, None),
        ('"select","two\nlines"', None, None),
    ],
)
def test_first_lines(tmp_path: Path, header: str, delimiter: str | None, said: str | None) -> None:
    data, file = tmp_path / "x.csv", tmp_path / "study.toml"
    data.write_text(header + "\n" + f"5{delimiter or ','}b\n" * 5000)
    text = starter(str(data), file=file, delimiter=delimiter)
    assert ("# Beware: " in text) == (said is not None)
    assert said is None or said in text
    assert plan_study(parse_study(text, file)).fits


def test_every_band_is_compared(tmp_path: Path) -> None:
    """Before, three were allowed, and the largest of five was denied whenever three others came before it."""
    data = tmp_path / "visits.parquet"
    duckdb.sql(f"COPY (SELECT least(i // 2000, 109) AS age FROM range(220000) t(i)) TO '{data}' (FORMAT parquet)")
    study = tmp_path / "study.toml"
    study.write_text(starter(str(data), file=study, bounds={"age": (0, 110)}))
    outcomes = {outcome.question.name: outcome for outcome in run_study(read_study(study)).outcomes}
    busy = outcomes["busy"].answer
    assert busy is not None
    assert busy.value == dict.fromkeys(["0 to 21", "22 to 43", "44 to 65", "66 to 87", "88 to 109"], "above")
    assert busy.notice == ""


@pytest.mark.parametrize("rows", [1_000, 8_000, 40_000])
def test_bands_are_compared_where_that_can_be_right(tmp_path: Path, rows: int) -> None:
    """Before: with 1,000 whatever the number of rows; right in all five bands in a quarter of the runs."""
    data, study = tmp_path / "visits.parquet", tmp_path / "study.toml"
    ages = f"SELECT CASE WHEN i < {rows // 2} THEN 10 ELSE 30 END AS age FROM range({rows}) t(i)"
    duckdb.sql(f"COPY ({ages}) TO '{data}' (FORMAT parquet)")
    study.write_text(starter(str(data), file=study, bounds={"age": (0, 110)}))
    asked = {question.name: question for question in read_study(study).questions}
    assert ("busy" in asked) == (rows > 8_660)
    if "busy" not in asked:
        return
    assert asked["busy"].values["threshold"] == rows // 10
    right = 0
    for place in range(20):
        text = study.read_text().replace('url = "sqlite:///study.ledger.db"', 'url = "memory:"')
        outcomes = run_study(parse_study(text, study), noise=SeededNoise(place)).outcomes
        (busy,) = (outcome.answer for outcome in outcomes if outcome.question.name == "busy")
        assert busy is not None
        right += list(busy.value.values()) == ["above", "above", "below", "below", "below"]
    assert right >= 18
