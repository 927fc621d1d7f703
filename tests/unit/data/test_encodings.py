"""CSV files in other encodings: read alike, whatever bytes they contain."""

import codecs
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import InvalidValue
from expost.data.encodings import ENCODINGS
from expost.data.lines import blocks

TEXT = 'city,words\r\nGdańsk,"a; b"\r\nKöln,€\r\n'


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_lines_say_the_same(tmp_path: Path, encoding: str, ending: str) -> None:
    content = TEXT.encode(encoding, errors="replace")
    file = tmp_path / f"cities.{ending}"
    file.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert "\n".join(blocks(str(file), encoding)) == content.decode(encoding).replace("\r\n", "\n").removesuffix("\n")


@given(st.sampled_from(ENCODINGS), st.binary(max_size=300))
def test_no_byte_makes_reading_fail(tmp_path_factory: pytest.TempPathFactory, encoding: str, content: bytes) -> None:
    file = tmp_path_factory.mktemp("bytes") / "any.csv"
    file.write_bytes(codecs.BOM_UTF16_LE * (encoding == "utf-16") + content)
    for block in blocks(str(file), encoding):
        block.encode()


@pytest.mark.parametrize(
    ("name", "encoding", "content", "message"),
    [
        ("a.csv", "utf-16", TEXT.encode("utf-16-le"), "does not begin as utf-16 files do, with a byte-order mark"),
        ("a.csv.gz", "latin-1", gzip.compress(TEXT.encode("latin-1", "replace"), mtime=0)[:30], "cannot be unpacked"),
        ("a.csv.gz", "utf-8", gzip.compress(TEXT.encode(), mtime=0)[:30], "cannot be unpacked"),
        ("a.csv.gz", "latin-1", gzip.compress(b"", mtime=0)[:10] + b"\xff" * 40, "cannot be unpacked"),
        ("a.csv.gz", "latin-1", b"city\nRome\n", "cannot be read"),
        ("x" * 300 + ".csv", "latin-1", None, "cannot be read"),
    ],
)
def test_a_file_that_is_not_what_it_is_said_to_be(
    tmp_path: Path, name: str, encoding: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidValue, match=message):
        list(blocks(str(tmp_path / name), encoding))
