"""What a file might hold: every line is a row, and no byte of one is an error."""

import gzip
from pathlib import Path
from typing import Any

import duckdb
import pytest

import expost as xp
import expost.data


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("p,n\na,1\n")
    (tmp_path / "2.csv").write_text("n,p\n5,b\n")
    with pytest.raises(xp.InvalidValue, match="in the same order"):
        xp.read(tmp_path / "[12].csv", unit="row", neighbours="add-remove")
    with pytest.raises(xp.InvalidValue, match="in the same order"):
        xp.read(tmp_path / "*.csv", unit="row", neighbours="add-remove", schema={"p": "text", "n": "integer"})


def test_parquet_files_with_other_types_are_refused(tmp_path: Path) -> None:
    """They would be cast, and a cast may fail for what stands there."""

    def both(first: str, second: str) -> xp.PrivateTable:
        for name, columns in (("1", first), ("2", second)):
            duckdb.sql(f"COPY (SELECT {columns}) TO '{tmp_path}/{name}.parquet'")
        return xp.read(tmp_path / "*.parquet", unit="row", neighbours="add-remove")

    for second in (
        "(2::BIGINT ** 40)::BIGINT AS n, 'a' AS s",
        "'x' AS n, 'a' AS s",
        "1 AS n",
        "1 AS n, 'a' AS s, 2 AS m",
    ):
        with pytest.raises(xp.InvalidValue, match=r"2\.parquet has other columns than .*1\.parquet"):
            both("1 AS n, 'a' AS s", second)
    assert both("1 AS n, 'a' AS s", "'b' AS s, 2 AS n").sum("n", bounds=(0, 9)).exact() == 3


def test_bytes_that_are_no_text_fail_nothing(tmp_path: Path) -> None:
    """In a column of text that a Parquet file says is UTF-8: they are question marks, whatever the other rows are."""
    file = tmp_path / "latin.parquet"
    for others in ([], ["aaa"], ["zzz"]):
        rows = ", ".join(f"('{name}', 1)" for name in ["caf@@", *others])
        duckdb.sql(
            f"COPY (SELECT * FROM (VALUES {rows}) t(s, i)) TO '{file}' (FORMAT parquet, COMPRESSION uncompressed)"
        )
        file.write_bytes(file.read_bytes().replace(b"caf@@", b"caf\xe9\xff"))
        table = xp.read(file, unit="row", neighbours="add-remove")
        assert ("caf??", 1) in table.discover("s").exact()
        assert table.histogram("s", keys=["caf??"], other=None).exact().tolist() == [1]
        assert table.where("regexp_matches(s, 'f[?]{2}$')").count().exact() == 1
        for condition in (
            "s = 'caf??'",
            "s LIKE 'caf?%'",
            "s < 'cafZ' AND s > 'b'",
            "length(s) = 5",
            "lower(s) = 'caf??'",
        ):
            assert table.where(condition).count().exact() == 1
        people = xp.read(file, unit=xp.Unit("s", rows=1), neighbours="add-remove")
        assert people.count().exact() == len(others)  # nobody is known by a name of which bytes are gone


def test_every_line_of_csv_is_a_row(tmp_path: Path) -> None:
    """A quotation mark that is never closed once took all lines behind it into its row."""
    file = tmp_path / "typed.csv"
    rows = [f"p{i},{i}" for i in range(1000)]

    def counted(*more: str, **said: Any) -> int:
        file.write_text("\n".join(["p,n", *rows[:500], *more, *rows[500:]]) + "\n")
        table = xp.read(file, unit="row", neighbours="add-remove", schema={"n": "integer"}, **said)
        return int(table.where("n IS NOT NULL OR p IS NOT NULL").count().exact())

    for odd in ('"b,2', 'b","2', '"', '"""', 'x,"', ',,,"', 'a"b"c,3', '"a""b,1', "'x,4"):
        for quote in ({}, {"quote": ""}, {"quote": "'"}):
            assert counted(odd, **quote) - counted(**quote) in (0, 1), odd


FIELDS = {
    "a,1": ("a", 1),
    '"a","1"': ("a", 1),
    '"a, b",2': ("a, b", 2),
    '"say ""x""",3': ('say "x"', 3),
    '"",4': (None, 4),
    ",5": (None, 5),
    '"open,6': ('"open', 6),
    'mid"dle,7': ('mid"dle', 7),
    '"x" y,8': ('"x" y', 8),
    "z,9,more": ("z", 9),
    "alone": ("alone", None),
    "é🙂,10": ("é🙂", 10),
    "b,1.5": ("b", None),
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fields_of_csv(tmp_path: Path, end: str) -> None:
    file = tmp_path / "fields.csv"
    file.write_bytes((end.join(["p,n", *FIELDS, "", ""])).encode())
    table = xp.read(file, unit="row", neighbours="add-remove", schema={"n": "integer"})
    engine: Any = table.engine
    rows = [*FIELDS.values(), (None, None)]  # an empty line is a row, too
    assert engine.fetch('SELECT p, n FROM "expost_source"') == rows


def test_many_columns_of_csv(tmp_path: Path) -> None:
    """Fields of many columns are cut out of a line all at once."""
    file = tmp_path / "wide.csv"
    names = ",".join(f"c{i}" for i in range(60))
    rows = [",".join(f"{i}" for i in range(60)), '"a, ""b""",' * 30 + '"open,' + ",".join(["x"] * 28), "short,2", '",']
    file.write_text("\n".join([names, *rows]) + "\n")
    table = xp.read(file, unit="row", neighbours="add-remove", schema={"c59": "integer", "c1": "integer"})
    assert table.count().exact() == 4
    assert table.sum("c59", bounds=(0, 99)).exact() == 59
    assert table.sum("c1", bounds=(0, 99)).exact() == 3
    assert sorted(table.discover("c29", of="rows").exact()) == [("29", 1), ('a, "b"', 1)]
    assert sorted(table.discover("c30", of="rows").exact()) == [('"open', 1), ("30", 1)]


def test_a_header_ends_with_its_line(tmp_path: Path) -> None:
    """A quotation mark that is not closed there once took rows into the names of columns, which are public."""
    file = tmp_path / "open.csv"
    file.write_text('a,"b\nalice,secret\nbob,"x\n')
    table = xp.read(file, unit="row", neighbours="add-remove")
    assert table.schema == {"a": "text", "b": "text"}
    assert table.count().exact() == 2


def test_forms_of_csv_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("p;n\n'a;b';1\n")
    for match, wrong in (
        ("around fields", {"quote": "''"}),
        ("around fields", {"quote": 3}),
        ("between fields", {"delimiter": "; "}),
        ("between fields", {"delimiter": "\n"}),
        ("both the delimiter and the quotation mark", {"delimiter": '"'}),
    ):
        with pytest.raises(xp.InvalidValue, match=match):
            xp.read(file, unit="row", neighbours="add-remove", **wrong)
    with pytest.raises(xp.InvalidValue, match="are for CSV"):
        xp.read(tmp_path / "x.parquet", unit="row", neighbours="add-remove", quote="'")
    table = xp.read(file, unit="row", neighbours="add-remove", delimiter=";", quote="'")
    assert table.discover("p").exact() == [("a;b", 1)]
    file.write_text(",".join(f"c{i}" for i in range(1001)) + "\n")
    with pytest.raises(xp.InvalidValue, match="convert it to Parquet"):
        xp.read(file, unit="row", neighbours="add-remove")


def test_folders_are_no_columns(tmp_path: Path) -> None:
    """Their types were concluded from the names of all folders, and one person's changed everybody's values."""
    answers = []
    for days in (["2024-1-1", "2024-1-2"], ["2024-1-1", "2024-1-2", "unknown"]):
        for day in days:
            folder = tmp_path / f"{len(days)}" / f"day={day}"
            folder.mkdir(parents=True)
            duckdb.sql(f"COPY (SELECT 1 AS n FROM range(100)) TO '{folder}/a.parquet'")
            (folder / "a.csv").write_text("n\n1\n")
        table = xp.read(f"{tmp_path}/{len(days)}/*/a.parquet", unit="row", neighbours="add-remove")
        answers.append(table.schema)
        lines = xp.read(f"{tmp_path}/{len(days)}/*/a.csv", unit="row", neighbours="add-remove")
        assert lines.count().exact() == len(days)
    assert answers == [{"n": "integer"}, {"n": "integer"}]


def test_a_carriage_return_ends_a_line_only_with_a_line_feed(tmp_path: Path) -> None:
    file = tmp_path / "cr.csv"
    for odd, expected in (
        ("1,a\r\r\n2,b\r\n3,c\r\n", ["a\r", "b", "c"]),
        ("1,a\r\n2,b\r3,c\r\n4,d\r", ["a", "b\r3", "d"]),
    ):
        file.write_bytes(f"x,y\r\n{odd}".encode())
        table = xp.read(file, unit="row", neighbours="add-remove", schema={"x": "integer"})
        assert table.where("x IS NOT NULL").count().exact() == 3
        assert sorted(key for key, _ in table.discover("y").exact()) == expected


def test_decimals_with_more_digits_than_their_type(tmp_path: Path) -> None:
    """Such a value in a file ended the whole database, and other questions failed without being charged."""
    file = tmp_path / "decimal.parquet"
    query = "SELECT 7777.77::DECIMAL(20, 2) AS x, i AS y FROM range(10) r(i)"
    duckdb.sql(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION uncompressed)")
    content, stored = file.read_bytes(), (777777).to_bytes(16, "big")
    table = xp.read(file, unit="row", neighbours="add-remove")
    assert table.where("x >= 0").count().exact() == 10
    assert stored in content
    file.write_bytes(content.replace(stored, b"\x80" + bytes(15)))
    table = xp.read(file, unit="row", neighbours="add-remove")
    assert table.where("x IS NULL").count().exact() == 10
    assert table.where("y >= 1").count().exact() == 9


def test_compressed_files_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    """Once at a question, when it was paid for; and where a bit had changed, thousands of rows were gone in silence."""
    file = tmp_path / "t.csv.gz"
    whole = gzip.compress(b"p,n\n" + b"".join(b"p%d,%d\n" % (i, i) for i in range(20_000)))

    def counted(data: bytes) -> int:
        file.write_bytes(data)
        return int(xp.read(file, unit="row", neighbours="add-remove").count().exact())

    assert counted(whole) == 20_000
    assert counted(whole + gzip.compress(b"q,1\n")) == 20_001
    changed = [whole[:-cut] for cut in (1, 8, 9, len(whole) // 2)]
    changed += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (len(whole) // 2, -6, -2)]
    for damaged in (*changed, whole + b"more", whole + b"\0", b""):
        with pytest.raises(xp.InvalidValue, match=r"t\.csv\.gz is damaged, or was cut off"):
            counted(damaged)
