"""Tables of bytes that no careful writer would write: as CSV files, and as tables of PostgreSQL in any encoding.

For tests and for the fuzzer of private tables. A row is bytes, and what it says is decided by whoever reads them.
"""

from __future__ import annotations

import gzip
import secrets
from collections.abc import Sequence
from pathlib import Path

from servers import Server

NOT_UTF8: dict[str, bytes] = {
    "a byte that begins nothing": b"\xff",
    "latin-1": b"M\xfcller",
    "an overlong NUL": b"\xc0\x80",
    "an overlong slash": b"\xe0\x80\xaf",
    "half of a surrogate pair": b"\xed\xa0\x80",
    "a surrogate pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "a character that is cut off": b"\xe2\x82",
    "a longer one that is cut off": b"\xf0\x9f\x98",
    "a character that another begins in": b"\xe2\x28\xa1",
    "the second half of a character": b"\x80\x80",
    "UTF-16": "\ufeffMü".encode("utf-16-le").replace(b"\n", b""),
}
"""Bytes that are not UTF-8, without line feeds and delimiters."""
ODD_UTF8: dict[str, bytes] = {
    "NUL": b"a\x00b",
    "a byte-order mark": b"\xef\xbb\xbfa",
    "a mark": "\U0010fbfc".encode(),
    "the last character": "\U0010ffff".encode(),
    "a replacement character": "\ufffd".encode(),
    "other line ends": "a\x0b\x0c\x1c\x85\u2028b".encode(),
    "separators": b"\x1e\x1f\x1e\x1f",
    "separators, then text": b"\x1e\x1f\x1e\x1fa\x1e\x1f",
    "one carriage return": b"\r",
    "carriage returns": b"a\rb\r\r",
    "a carriage return in quotes": b'"a\rb"',
    "an open quotation mark": b'"',
    "an open field": b'"a',
    "three quotation marks": b'"""',
    "a quoted nothing": b'""',
    "quotation marks in the middle": b'a"b"c',
    "other quotation marks": b"'a",
    "a backslash": b"a\\",
    "a comment": b"#a",
    "NULL": b"\\N",
    "nothing": b"",
    "blanks": b"  \t ",
}
"""Text that readers of CSV are known to take for something else, without line feeds and commas."""
HOSTILE = NOT_UTF8 | ODD_UTF8


def csv_file(
    folder: Path,
    lines: Sequence[bytes],
    *,
    first: bytes = b"person,city,n",
    end: bytes = b"\n",
    last: bool = True,
    begin: bytes = b"",
    packed: bool = False,
) -> Path:
    """A new CSV file with these lines after its first, each with the end of a line, the last one only if ``last``."""
    content = begin + end.join([first, *lines]) + (end if last else b"")
    file = folder / f"{secrets.token_hex(4)}.csv{'.gz' if packed else ''}"
    file.write_bytes(gzip.compress(content, 1) if packed else content)
    return file


def postgres_database(server: Server, encoding: str) -> str:
    """The address of a new database in this encoding, whose texts are compared by their bytes."""
    import psycopg

    name = f"d{secrets.token_hex(6)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    return server.url_of(name)


def postgres_table(
    url: str, rows: Sequence[Sequence[bytes | None]], *, columns: str = "person text, city text, n int"
) -> str:
    """The name of a new table that has these bytes, which the server takes as they are; None is NULL."""
    import psycopg

    name = f"t{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True, client_encoding="SQL_ASCII") as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in rows:
                copy.write(b"\t".join(rb"\N" if value is None else _copied(value) for value in row) + b"\n")
    return name


def _copied(value: bytes) -> bytes:
    """A value as COPY reads it."""
    for sign, written in ((b"\\", rb"\\"), (b"\t", rb"\t"), (b"\n", rb"\n"), (b"\r", rb"\r")):
        value = value.replace(sign, written)
    return value
