"""What is read in Spark, and by whose settings; what is refused before any charge; studies on Spark."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import expost as xp
from expost.cli.main import app
from expost.data.spark.scans import rows_of
from expost.errors import EngineFailed, InvalidValue, MissingDependency
from spark_session import WHY_NOT, session, write_parquet

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
NAN = float("nan")
ROWS = [("p", "a", 1, 0.5)] + [("q", "b", 0, NAN)] * 9
SCHEMA = "person string, city string, n bigint, x double"


def read(source: Any, **said: Any) -> xp.PrivateTable:
    return xp.read(source, unit="row", neighbours="add-remove", **said)


def write(folder: Path, rows: list[Any] = ROWS) -> Path:
    """A file whose statistics say of x that it is at most 0.5, for NaN is not among them."""
    pq.write_table(as_arrow(rows), folder / "t.parquet")
    return folder / "t.parquet"


def as_arrow(rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(("person", "city", "n", "x"), row, strict=True)) for row in rows])


def frame_of(rows: list[Any]) -> Any:
    return session().createDataFrame(rows, SCHEMA).localCheckpoint()


# ---- what is read


def of_table(path: Path) -> xp.PrivateTable:
    session().sql(f"CREATE TABLE visits USING parquet LOCATION '{path}'")
    return read(session(), table="default.visits")


def of_view(path: Path) -> xp.PrivateTable:
    session().read.parquet(str(path)).createOrReplaceTempView("visits")
    return read(session(), table="visits")


def of_orc(path: Path) -> xp.PrivateTable:
    folder = str(path.with_suffix(".orc"))
    session().read.parquet(str(path)).write.orc(folder)
    return read(session().read.orc(folder))


def of_cached(path: Path) -> xp.PrivateTable:
    frame = session().read.parquet(str(path)).cache()
    assert frame.where("x > 1").count() == 0  # as Spark would leave them out
    return read(frame)


SOURCES: dict[str, Callable[[Path], xp.PrivateTable]] = {
    "frame": lambda path: read(session().read.parquet(str(path))),
    "path": lambda path: read(path, engine="spark"),
    "paths": lambda path: read([str(path)], engine="spark"),
    "folder": lambda path: read(str(path.parent / "*.parquet"), engine="spark"),
    "table": of_table,
    "view": of_view,
    "orc": of_orc,
    "cached": of_cached,
    "checkpoint": lambda path: read(session().read.parquet(str(path)).localCheckpoint()),
    "checkpoint, cached": lambda path: read(session().read.parquet(str(path)).localCheckpoint().cache()),
    "rows of the plan": lambda path: read(session().createDataFrame(as_arrow(ROWS), SCHEMA)),
}


@pytest.fixture
def clean() -> Iterator[None]:
    yield
    session().catalog.clearCache()
    session().catalog.dropTempView("visits")
    session().sql("DROP TABLE IF EXISTS visits")


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("source", SOURCES)
def test_no_row_is_left_out_by_statistics(source: str, tmp_path: Path) -> None:
    """NaN is above all numbers, and is in no file's statistics: one larger row would bring all of them back."""
    table = SOURCES[source](write(tmp_path))
    assert table.schema == {"person": "text", "city": "text", "n": "integer", "x": "number"}
    assert table.where("x > 1").count().exact() == 9
    assert "x > 1" in repr(table.where("x > 1"))


def test_tables_are_the_same_if_they_read_the_same(tmp_path: Path) -> None:
    path = write(tmp_path)
    frame = session().read.parquet(str(path))
    assert read(frame).engine == read(frame).engine != read(session().read.parquet(str(path))).engine
    assert read(path, engine="spark").engine == read(path, engine="spark").engine
    assert hash(read(frame).engine) == hash(read(frame).engine)


# ---- by whose settings

THEIRS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.filterPushdown": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
    "spark.sql.parquet.int96RebaseModeInRead": "EXCEPTION",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
}


def all_settings(of: Any) -> dict[str, str]:
    return dict(of.conf.getAll)


@pytest.fixture
def theirs() -> Iterator[dict[str, str]]:
    """Settings of the caller's session, which are as they were after each of our questions."""
    for name, value in THEIRS.items():
        session().conf.set(name, value)
    before = all_settings(session())
    yield before
    for name in THEIRS:
        session().conf.unset(name)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("cached", [False, True])
def test_settings_of_both_stay_apart(cached: bool, theirs: dict[str, str], tmp_path: Path) -> None:
    """Dates before 1582 fail by their settings, and not by ours; whatever was cached."""
    old = {"d": [date(1200, 1, 1)], "t": [datetime(1200, 1, 1)], "n": [2**63 - 1], "s": ["a"]}
    pq.write_table(pa.table(old), tmp_path / "old")
    frame = session().read.parquet(str(tmp_path / "old"))
    table = read(frame.cache() if cached else frame)
    with pytest.raises(Exception, match="INCONSISTENT_BEHAVIOR_CROSS_VERSION"):
        frame.select("d", "t").collect()
    assert table.where("d < DATE '1300-01-01' AND t < TIMESTAMP '1300-01-01 00:00:00'").count().exact() == 1
    assert table.derive(y="n + n").where("y IS NULL AND S = 'a'").count().exact() == 1
    assert all_settings(session()) == theirs
    with pytest.raises(EngineFailed):  # a query that we never make
        table.engine.fetch("SELECT raise_error(s) FROM expost_source")
    assert all_settings(session()) == theirs


def test_settings_of_the_application_that_decide_results_are_put_back() -> None:
    """A new session begins with them; the spread of work, catalogs and the like are kept."""
    from expost.data.spark.settings import SPARK_SETTINGS

    class Session:
        """Records what is asked of its settings."""

        def __init__(self, given: dict[str, str]) -> None:
            self.given, self.conf = given, self

        def newSession(self) -> "Session":
            return Session(dict(self.given))

        @property
        def getAll(self) -> dict[str, str]:
            return dict(self.given)

        def isModifiable(self, name: str) -> bool:
            return name != "spark.sql.extensions"

        def unset(self, name: str) -> None:
            del self.given[name]

        def set(self, name: str, value: str) -> None:
            self.given[name] = value

    from expost.data.spark.settings import session_beside

    kept = {"spark.sql.shuffle.partitions": "7", "spark.sql.catalog.x": "y", "spark.app.name": "n",
            "spark.sql.extensions": "e"}  # fmt: skip
    gone = {
        "spark.sql.legacy.castComplexTypesToString.enabled": "true",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.parquet.filterPushdown": "true",
    }
    application = Session({**kept, **gone})
    assert session_beside(application).given == {**kept, **SPARK_SETTINGS}
    assert application.given == {**kept, **gone}
    assert dict(session_beside(session()).conf.getAll).items() >= SPARK_SETTINGS.items()


# ---- what is refused


def test_what_computes_is_refused() -> None:
    frame = frame_of(ROWS[:2])
    with pytest.raises(InvalidValue, match=r"computes something \(Filter\).*localCheckpoint"):
        read(frame.where("n > 0"))
    with pytest.raises(InvalidValue, match=r"computes something \(LogicalRDD\).*localCheckpoint"):
        read(session().sparkContext.parallelize([1, 0]).map(lambda n: (1 // n,)).toDF("n bigint"))
    with pytest.raises(InvalidValue, match=r"computes something \(LogicalRDD\).*localCheckpoint"):
        read(frame.where("n > 0").localCheckpoint(eager=False))
    with pytest.raises(InvalidValue, match=r"computes something \(Range\)"):
        read(session().range(5))
    assert read(frame.where("n > 0").localCheckpoint()).count().exact() == 1


def test_what_is_publicly_wrong_is_refused() -> None:
    frame = frame_of(ROWS[:2])
    wrong: list[tuple[str, Any, dict[str, Any]]] = [
        ("many tables", session(), {}),
        ("many tables", session(), {"table": 7}),
        ("table 'nowhere': is its name right", session(), {"table": "nowhere"}),
        ("table 'no; where': is its name right", session(), {"table": "no; where"}),
        ("is the path right", "/nowhere.parquet", {"engine": "spark"}),
        ("leave out table=", frame, {"table": "t"}),
        ("leave out table=", "/nowhere.parquet", {"table": "t", "engine": "spark"}),
        ("'duckdb' or 'spark'", frame, {"engine": "flink"}),
        ("leave out engine=", frame, {"engine": "duckdb"}),
        ("for CSV files", frame, {"schema": {"n": "integer"}}),
        ("got pyarrow.lib.Table", pa.table({"n": [1]}), {"engine": "spark"}),
        ("two columns 'A'", frame.selectExpr("n AS a", "n AS A").localCheckpoint(), {}),
        ("column without a name", frame.selectExpr("n AS ``").localCheckpoint(), {}),
    ]
    for message, source, said in wrong:
        with pytest.raises(InvalidValue, match=message):
            read(source, **said)
    nested = read(frame.selectExpr("array(n) AS l", "n", "map('a', n) AS m", "NULL AS v").localCheckpoint())
    assert nested.schema == {"l": "other", "n": "integer", "m": "other", "v": "other"}
    for ask in (
        lambda: nested.histogram("l", keys=[1]),
        lambda: nested.where("l = 1"),
        lambda: nested.by("m", keys=[1]),
    ):
        with pytest.raises(InvalidValue, match="is of a type that questions cannot use"):
            ask()
    for pattern in ("regexp_matches(city, '(a|b)*')", "regexp_matches(city, 'a+')", "city LIKE 'a%_b%c'",
                    "city LIKE '%a%b%c%d%e%'"):  # fmt: skip
        with pytest.raises(InvalidValue, match="Spark cannot match"):
            _ = read(frame).where(pattern).count().plan
    with pytest.raises(InvalidValue, match="of Spark have no order"):
        xp.read(frame, unit="row", neighbours="substitute").column("x")


def test_readers_that_fail_for_some_values_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,a\nx,b\n")
    for mode in ("FAILFAST", "PERMISSIVE"):
        parsed = session().read.csv(str(tmp_path / "t.csv"), schema="n int, s string", mode=mode)
        with pytest.raises(InvalidValue, match=r"read by CSVFileFormat.*localCheckpoint"):
            read(parsed)
    assert read(parsed.localCheckpoint()).where("n > 0").count().exact() == 1
    write_parquet([], tmp_path / "t.parquet")
    for option in ("datetimeRebaseMode", "int96RebaseMode"):
        careful = session().read.option(option, "exception").parquet(str(tmp_path / "t.parquet"))
        with pytest.raises(InvalidValue, match="an old date makes a query fail"):
            read(careful)
    session().conf.set("spark.sql.sources.useV1SourceList", "")
    try:  # these take the settings of the session that made them
        with pytest.raises(InvalidValue, match=r"read by DataSourceV2Relation.*localCheckpoint"):
            read(session().read.parquet(str(tmp_path / "t.parquet")))
    finally:
        session().conf.unset("spark.sql.sources.useV1SourceList")


def test_tables_of_hive_in_other_formats_are_refused() -> None:
    class Plan:
        """As Spark has it for a table of Hive that is not stored as Parquet or ORC: these it reads by itself."""

        def __getattr__(self, name: str) -> Any:
            return lambda: self

        def getName(self) -> str:
            return "org.apache.spark.sql.catalyst.catalog.HiveTableRelation"

    with pytest.raises(InvalidValue, match=r"read by HiveTableRelation.*localCheckpoint"):
        rows_of(SimpleNamespace(_jdf=Plan()), None)


def test_files_whose_types_differ_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"n": ["a"]}), tmp_path / "2.parquet")
    with pytest.raises(InvalidValue, match="do their columns agree"):
        read(tmp_path, engine="spark")


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependency, match=r"expost\[spark\]"):
        read("t.parquet", engine="spark")


def test_without_java(tmp_path: Path) -> None:
    code = "import expost as xp; xp.read('t.parquet', engine='spark', unit='row', neighbours='add-remove')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 1
    assert "InvalidValue: Spark does not start" in done.stderr
    assert "Java 17 or newer; is JAVA_HOME set" in done.stderr


def test_a_closed_session_is_refused_before_any_charge(tmp_path: Path) -> None:
    closed, table, ledger = session(), read(session().read.parquet(str(write(tmp_path)))), xp.Ledger(epsilon=1)
    asked, unasked = table.count().mechanism(epsilon=0.5), table.where("n > 0").count()
    assert ledger.run(asked).charged.epsilon == 0.5
    session().stop()
    session.cache_clear()
    with pytest.raises(InvalidValue, match="session is closed: start another"):
        read(closed, table="visits")
    with pytest.raises(InvalidValue, match="session is closed: start another"):
        ledger.run(unasked.mechanism(epsilon=0.25))
    with pytest.raises(InvalidValue, match="session is closed: start another"):
        ledger.run(table.count().mechanism(epsilon=0.25))
    assert ledger.remaining.epsilon == 0.5
    assert read(session().read.parquet(str(write(tmp_path)))).count().exact() == 10  # a new session


# ---- studies

STUDY = """
[data]
path = "t.parquet"
engine = "spark"

[privacy]
unit = "person"
rows = 20
neighbours = "add-remove"

[limit]
epsilon = 100000
delta = 1e-6

[ledger]
url = "sqlite:///ledger.db"
name = "visits"

[[question]]
name = "large"
kind = "count"
where = "x > 1"
epsilon = 30000

[[question]]
name = "cities"
kind = "histogram"
column = "city"
keys = ["a", "b", "c"]
epsilon = 30000
"""


def test_a_study_runs_on_spark(tmp_path: Path) -> None:
    write(tmp_path)
    study = tmp_path / "visits.toml"
    study.write_text(STUDY)
    command = lambda *words: CliRunner().invoke(app, list(words))  # noqa: E731
    planned = command("plan", str(study))
    assert planned.exit_code == 0, planned.output
    ran = command("run", str(study))
    assert ran.exit_code == 0, ran.output
    assert "large  9 ±" in ran.output
    assert "a: 1, b: 9, c: 0" in ran.output
    again = command("run", str(study))
    assert "a: 1, b: 9, c: 0" in again.output
    assert xp.Ledger.load(f"sqlite:///{tmp_path}/ledger.db", "visits").remaining.epsilon == 40_000
    for mistake, message in (
        (("t.parquet", "gone.parquet"), "is the path right"),
        (('engine = "spark"', 'engine = "spark"\ntable = "t"'), "leave out table"),
        (("x > 1", "regexp_matches(city, 'a+')"), "Spark cannot match"),
        (('engine = "spark"', 'engine = "flink"'), "engine"),
    ):
        study.write_text(STUDY.replace(*mistake).replace("visits", "others"))
        wrong = command("run", str(study))
        assert wrong.exit_code == 2, wrong.output
        assert message in " ".join(wrong.output.split())
    assert list(xp.Ledger.load(f"sqlite:///{tmp_path}/ledger.db", "others").entries()) == []  # nothing was charged
