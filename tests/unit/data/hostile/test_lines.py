"""Neighbouring CSV files that differ in one line, whatever its bytes are: as many rows, and all others unchanged."""

import gzip
import time
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.data.encodings import as_text, marked
from expost.data.expression.tree import Reference
from expost.data.lines import LONGEST_LINE, blocks
from hostile_bytes import HOSTILE, NOT_UTF8, csv_file

PEOPLE = [b"anna,Rome,1", b"bert,K\xc3\xb6ln,2", b'"carl, jr","say ""x""",3', b"dora,,4", b"emil,Paris,5"]
PLACES = (0, 2, len(PEOPLE) - 1)
READERS: dict[str, dict[str, Any]] = {
    "comma": {},
    "no quotation marks": {"quote": ""},
    "apostrophes": {"quote": "'"},
    "semicolon": {"delimiter": ";"},
    "tab": {"delimiter": "\t"},
    "decimal commas": {"decimal": ","},
    "unit separator": {"delimiter": "\x1f"},
    "latin-1": {"encoding": "latin-1"},
    "cp1252": {"encoding": "cp1252"},
    "mac": {"encoding": "mac-roman"},
}
WRITERS: dict[str, dict[str, Any]] = {
    "LF": {},
    "CRLF": {"end": b"\r\n"},
    "no last end": {"last": False},
    "byte-order mark": {"begin": b"\xef\xbb\xbf"},
    "packed": {"packed": True},
    "packed CRLF": {"packed": True, "end": b"\r\n"},
}


def rows_of(file: Path, **how: Any) -> tuple[int, list[Any]]:
    """The number of rows, which is public under substitution, and what each row says."""
    table = xp.read(file, unit="row", neighbours="substitute", **{"schema": {"n": "integer"}, **how})
    engine: Any = table.engine
    counted = table.count().exact()
    shown = ", ".join(engine.render(Reference(name, kind)) for name, kind in table.schema.items())
    return counted, engine.fetch(f"SELECT {shown} FROM {engine.source}")


PAIRS = [("LF", reader) for reader in READERS] + [(writer, "comma") for writer in WRITERS if writer != "LF"]
PAIRS += [("packed CRLF", "latin-1"), ("CRLF", "decimal commas")]


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_one_line_is_one_row_and_changes_no_other(tmp_path: Path, writer: str, reader: str) -> None:
    how, wrote = dict(READERS[reader]), WRITERS[writer]
    between = how.get("delimiter", ";" if how.get("decimal") else ",").encode()
    if how.get("encoding") and wrote.get("begin"):
        wrote = {**wrote, "begin": b""}  # which is letters in this encoding
    people = [line.replace(b",", between) for line in PEOPLE]
    form = {**wrote, "first": b"person,city,n".replace(b",", between)}
    count, rows = rows_of(csv_file(tmp_path, people, **form), **how)
    assert count == len(rows) == len(people)
    for place, (name, odd) in zip(cycle(PLACES), HOSTILE.items(), strict=False):
        lines = [*people[:place], odd, *people[place + 1 :]]
        if not wrote.get("last", True) and not lines[-1]:
            continue  # such a file ends with the line before: its writer cannot end with an empty one
        found, others = rows_of(csv_file(tmp_path, lines, **form), **how)
        assert found == count, name
        assert others[:place] + others[place + 1 :] == rows[:place] + rows[place + 1 :], name


@pytest.mark.parametrize("odd", HOSTILE)
def test_a_hostile_field_leaves_the_other_fields_where_they_are(tmp_path: Path, odd: str) -> None:
    """Unless it opens quotation marks, or closes some that are open."""
    line = b"zoe," + HOSTILE[odd] + b",7"
    _, rows = rows_of(csv_file(tmp_path, [*PEOPLE, line]), quote="")
    person, city, n = rows[-1]
    assert (person, n) == ("zoe", 7)
    assert city == (_shown(HOSTILE[odd]) or None)


def _shown(data: bytes) -> str:
    shown = "".join(
        "?" if "\ud800" <= letter <= "\udfff" else letter for letter in data.decode(errors="surrogateescape")
    )
    return "".join("????" if letter >= "\U0010f700" else letter for letter in shown)


@pytest.mark.parametrize("filled", [b"x", b"\xff", b'"', b","])
def test_long_lines(tmp_path: Path, filled: bytes) -> None:
    """Lines that end where a chunk ends, and lines above the limit."""
    rows = rows_of(csv_file(tmp_path, PEOPLE))[1]
    for size, packed in ((LONGEST_LINE // 2 - 50, False), (LONGEST_LINE - 11, False), (5_000_000, True)):
        lines = [*PEOPLE[:2], b"zoe,Rome,8," + filled * size, *PEOPLE[2:]]
        count, found = rows_of(csv_file(tmp_path, lines, packed=packed))
        assert count == len(lines)
        assert found[:2] + found[3:] == rows
        assert found[2] == ("zoe", "Rome", 8)


def test_of_a_line_that_is_too_long_the_beginning_is_read(tmp_path: Path) -> None:
    line = b"zoe," + b"x" * LONGEST_LINE + b",8"
    _, ((person, city, n),) = rows_of(csv_file(tmp_path, [line]))
    assert (person, city, n) == ("zoe", "x" * (LONGEST_LINE - 4), None)


def test_many_rows_across_all_chunks(tmp_path: Path) -> None:
    """More than is copied at once, with hostile lines at many places: rows stay in their order."""
    hostile = list(HOSTILE.values())
    lines = [b"p%d,%s,%d" % (i, b"x" * 50, i) if i % 97 else hostile[i // 97 % len(hostile)] for i in range(400_000)]
    count, rows = rows_of(csv_file(tmp_path, lines), quote="")
    assert count == len(lines)
    assert [n for i, (_, _, n) in enumerate(rows) if i % 97] == [i for i in range(400_000) if i % 97]


def test_declared_sizes_hold_whatever_a_line_says(tmp_path: Path) -> None:
    """It was once an error that depended on a value, and told how many lines could be read."""
    for odd in HOSTILE.values():
        file = csv_file(tmp_path, [*PEOPLE, odd])
        table = xp.read(file, unit="row", neighbours="substitute", size=6, schema={"n": "integer"})
        assert table.counted() == 6
        assert 15 <= table.sum("n", bounds=(0, 1)).exact() + 10 <= 16
        assert table.column("n").shape == (6,)


def test_empty_lines_are_rows_without_values(tmp_path: Path) -> None:
    count, rows = rows_of(csv_file(tmp_path, [b"", b"a", b"", b""], first=b"person"), schema={"person": "text"})
    assert (count, rows) == (4, [(None,), ("a",), (None,), (None,)])
    count, rows = rows_of(csv_file(tmp_path, [b"", b"a", b""], first=b"person", last=False), schema={"person": "text"})
    assert (count, rows) == (2, [(None,), ("a",)]), "there is no line after the last end of a line"


def test_a_header_without_rows(tmp_path: Path) -> None:
    for last in (False, True):
        assert rows_of(csv_file(tmp_path, [], last=last)) == (0, [])


# ---- who is who


@pytest.mark.parametrize("how", [{}, {"quote": ""}], ids=str)
def test_names_that_differ_in_bytes_that_are_not_text_are_two_units(tmp_path: Path, how: dict[str, Any]) -> None:
    """As one unit of one row, taking one of them away moved two counts by one each, where one was stated."""
    names = [
        *NOT_UTF8.values(),
        b"M\xf6ller",
        b"M?ller",
        b"??",
        "\U0010fbfc".encode(),
        "\udcfc".encode("utf-8", "surrogatepass"),
    ]
    lines = [name + b",Rome,1" for name in names]
    table = xp.read(csv_file(tmp_path, lines), unit=xp.Unit("person", rows=1), neighbours="add-remove", **how)
    assert table.count(of="units").exact() == len(names) == len(set(names))
    assert table.where("person = 'M?ller'").count(of="units").exact() == 3
    assert sorted(key for key, _ in table.discover("person").exact()) == sorted({_shown(name) for name in names})


def test_taking_one_unit_away_moves_a_histogram_by_one(tmp_path: Path) -> None:
    """Brute force over the neighbours of a table whose names are Latin-1."""
    lines = [b"M\xfcller,Rome,1", b"M\xf6ller,Paris,1", b"M\xe4ller,Rome,1", b"Miller,Paris,1"]

    def counts(some: Sequence[bytes], key: int) -> Any:
        file = csv_file(tmp_path, some)
        table = xp.read(file, unit=xp.Unit("person", rows=1), neighbours="add-remove", key=key)
        return table.histogram("city", keys=["Rome", "Paris"]).exact()

    for key in range(3):
        whole = counts(lines, key)
        for gone in range(len(lines)):
            assert abs(whole - counts([*lines[:gone], *lines[gone + 1 :]], key)).sum() == 1


# ---- lines and texts themselves


def _all_lines(file: Path, encoding: str | None, longest: int) -> list[str]:
    return [line for block in blocks(str(file), encoding, longest) for line in block.split("\n")]


_BYTES = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"\xc3\xa9", b"\xff", b"\xf0\x9f\x99\x82", b"\xe2\x82", b"\x00",
                     b"bcd", b"\xf4\x8f\xbf\xbf"]), max_size=40,
).map(b"".join)  # fmt: skip


@given(_BYTES, st.integers(8, 40), st.booleans())
def test_lines_are_what_each_is_by_itself(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, longest: int, packed: bool
) -> None:
    """The reference reads one line at a time: no chunk, and no other line, changes it."""
    file = tmp_path_factory.mktemp("lines") / f"any.csv{'.gz' if packed else ''}"
    file.write_bytes(gzip.compress(content) if packed else content)
    *lines, last = content.split(b"\n")
    expected = [line.decode(errors="surrogateescape")[:longest] for line in [*lines, *([last] if last else [])]]
    assert _all_lines(file, None, longest) == [marked(line.removesuffix("\r")) for line in expected]


@given(st.lists(st.text(st.sampled_from("aä€\r\ud800\udc00\U0001f642\ufeff"), max_size=9), min_size=1, max_size=9))
def test_lines_of_utf16(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Halves of surrogate pairs stand alone: one at the end of a line takes nothing of the next."""
    file = tmp_path_factory.mktemp("lines") / "any.csv"
    units = [line.encode("utf-16-le", "surrogatepass") + b"\n\x00" for line in lines]
    file.write_bytes(b"\xff\xfe" + b"".join(units))
    assert len(_all_lines(file, "utf-16", 10)) == len(lines)
    alone = []
    for unit in units:
        file.write_bytes(b"\xff\xfe" + unit)
        alone += _all_lines(file, "utf-16", 10)
    file.write_bytes(b"\xff\xfe" + b"".join(units))
    assert _all_lines(file, "utf-16", 10) == alone


@given(st.lists(st.binary(max_size=6) | st.sampled_from(list(HOSTILE.values())), min_size=2, max_size=2, unique=True))
def test_texts_of_different_bytes_differ(pair: list[bytes]) -> None:
    for codec in ("utf-8", "latin-1", "cp1252", "koi8_r"):
        assert as_text(pair[0], codec) != as_text(pair[1], codec)


@given(
    st.lists(
        st.text(st.sampled_from("a?\ud800\udcf4\udc8f\udcbf\U0010ffff\U0010fbfc\U0010fff4"), max_size=5),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_marked_texts_differ(pair: list[str]) -> None:
    assert marked(pair[0]) != marked(pair[1])
    for text in pair:
        marked(text).encode()  # text at last


def test_a_header_that_is_not_in_the_encoding_is_refused(tmp_path: Path) -> None:
    """Names of columns are public: what they say of the encoding may be told."""
    file = csv_file(tmp_path, [b"a,1"], first=b"Stra\xdfe,n")
    with pytest.raises(xp.InvalidValue, match="is not utf-8: pass its encoding, such as encoding='latin-1'"):
        xp.read(file, unit="row", neighbours="add-remove")
    assert "Straße" in xp.read(file, unit="row", neighbours="add-remove", encoding="latin-1").schema


def test_a_header_with_a_carriage_return_is_refused(tmp_path: Path) -> None:
    """Lines of old Macs end with CR alone: all rows would be names of columns, which are public."""
    file = csv_file(tmp_path, [b"anna,secret"], end=b"\r")
    with pytest.raises(xp.InvalidValue, match="contains a carriage return") as refused:
        xp.read(file, unit="row", neighbours="add-remove")
    assert "secret" not in str(refused.value)


def test_a_file_that_changes_before_the_first_question(tmp_path: Path) -> None:
    file = csv_file(tmp_path, PEOPLE)
    table = xp.read(file, unit="row", neighbours="add-remove")
    file.write_bytes(b"n,person\n1,anna\n")
    with pytest.raises(xp.InvalidValue, match="has changed since it was read"):
        table.count().exact()
    file.write_bytes(b"person,city,n\nanna,Rome,1\n")
    assert table.count().exact() == 1
    file.write_bytes(b"person,city,n\n")
    assert table.count().exact() == 1, "it was copied"


@pytest.mark.parametrize("line", [b'"x' + b',""y' * 10**6, b'"a,' * 10**6, b',"' * 10**6, b'"""y,' * 10**6])
def test_no_line_takes_long(tmp_path: Path, line: bytes) -> None:
    """A field that opens quotation marks is read to the end of the line at most once."""
    begun = time.monotonic()
    assert rows_of(csv_file(tmp_path, [line, *PEOPLE]))[0] == 6
    assert time.monotonic() - begun < 60
