"""Tables of PostgreSQL, copied once: every value as text, which is then parsed like any other text.

PostgreSQL writes each value as text without failing, and parsing never fails: what is out of range (a date before the
year 1, a whole number of more than 64 bits) is NULL. All rows come from one snapshot.

The server is asked for its own bytes, in the encoding of the database, whatever PGCLIENTENCODING says: a server that
converts fails for characters that the other encoding does not have, or merges them. What is not text in that encoding
is marked, so that names that differ stay different.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from expost.data.encodings import as_text, has_marks
from expost.data.expression import Kind
from expost.data.expression.operators import CASTS
from expost.data.files import Form
from expost.errors import EngineFailed, InvalidValue, MissingDependency
from expost.mentions import Argument

if TYPE_CHECKING:
    from expost.data.frames import PlainColumn

_ROWS = 50_000
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    **dict.fromkeys(("float4", "float8", "numeric"), "number"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), "text"),
    "bool": "boolean",
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamptz"), "timestamp"),
}
_SETTINGS = (
    "SET datestyle = 'ISO, YMD'",
    "SET timezone = 'UTC'",
    "SET extra_float_digits = 1",
    "SET bytea_output = 'hex'",
)


def read_table(url: str, table: str | None, form: Form) -> tuple[list[PlainColumn], str]:
    """The columns of a table, and its name, without the address, which may contain a password."""
    if not isinstance(table, str) or not table:
        raise InvalidValue("a database has many tables: name one with ", Argument("table", "schema.visits"))
    form.refuse("a table of PostgreSQL")
    try:
        import psycopg

        from expost.data import frames
    except ModuleNotFoundError as error:  # pragma: no cover - the development environment has it
        extra = "postgres" if str(error.name) == "psycopg" else "frames"
        raise MissingDependency("tables of PostgreSQL", str(error.name), extra) from None
    del frames
    try:
        with psycopg.connect(url, client_encoding="SQL_ASCII") as connection:  # which every server has
            return list(_read(connection, table)), f"postgresql:{table}"
    except UnicodeEncodeError:
        raise InvalidValue(
            f"there is no table {table!r} in the database, whose encoding does not have these characters: is its name "
            "right?"
        ) from None
    except psycopg.Error as error:  # any message may quote data, or a password
        kind = type(error).__name__
    raise EngineFailed(kind)


def _without_conversion(connection: Any) -> str:
    """Make the server send its own bytes; Python's name of their encoding.

    A database in SQL_ASCII has bytes in no encoding in particular: most are UTF-8.
    """
    import psycopg

    encoding = connection.info.parameter_status("server_encoding")
    connection.execute(psycopg.sql.SQL("SET client_encoding TO {}").format(psycopg.sql.Literal(encoding)))
    try:
        codec = str(connection.info.encoding)
    except psycopg.NotSupportedError:
        raise InvalidValue(f"expost cannot read databases in {encoding}: copy the table to one in UTF8") from None
    return "utf-8" if encoding in ("SQL_ASCII", "UTF8") else codec


def _read(connection: Any, table: str) -> Iterator[PlainColumn]:
    from psycopg import IsolationLevel, sql

    connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
    for setting in _SETTINGS:
        connection.execute(setting)
    codec = _without_conversion(connection)
    _load_as_text(connection, codec)
    known = _types(connection, table, codec)
    chosen = {name: kind for name, kind in known.items() if _KINDS.get(kind) is not None}
    if not chosen:
        raise InvalidValue(f"no column of {table!r} is of a type that can be read: make a view that casts some to text")
    values = sql.SQL(", ").join(sql.SQL(_FORMS.get(kind, "{}::text")).format(sql.Identifier(name))
                                for name, kind in chosen.items())  # fmt: skip
    asked = sql.SQL("SELECT {} FROM {}").format(values, sql.Identifier(*table.split(".")))
    written = asked.as_string(None).encode(codec)  # psycopg itself writes nothing but ASCII to SQL_ASCII
    texts = dict(zip(chosen, _texts(connection, written, len(chosen)), strict=True))
    from expost.data.frames.plain import OTHER, PlainColumn

    for name, kind in known.items():
        if name not in texts:
            yield PlainColumn(name, None, "other", OTHER)
            continue
        wanted = _KINDS[kind]
        form = "$0" if wanted == "text" else str(CASTS["text", wanted].duckdb)
        yield PlainColumn(name, texts[name], wanted, form)


_FORMS = {"timestamptz": "({} AT TIME ZONE 'UTC')::text"}


def _types(connection: Any, table: str, codec: str) -> dict[str, str]:
    """The columns and their types."""
    from psycopg import sql

    quoted = sql.Literal(sql.Identifier(*table.split(".")).as_string(None)).as_string(None)
    asked = (
        "SELECT attname, typname FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid "
        f"WHERE attrelid = to_regclass({quoted}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    kind_of_table = f"SELECT relkind::text FROM pg_class WHERE oid = to_regclass({quoted})"
    if any(str(kind) in ("v", "f") for (kind,) in connection.execute(kind_of_table.encode(codec))):
        raise InvalidValue(
            f"{table!r} is a view or a foreign table, and what it computes may fail for some values: make a table of it"
        )
    found = {str(name): str(kind) for name, kind in connection.execute(asked.encode(codec))}
    if not found:
        raise InvalidValue(f"there is no table {table!r} in the database, or it has no columns: is its name right?")
    if any(map(has_marks, found)):
        raise InvalidValue(f"{table!r} has a column whose name is not text in UTF-8: rename it")
    if len({name.lower() for name in found}) < len(found):
        raise InvalidValue(f"{table!r} has columns whose names differ only in case: rename them")
    return found


def _texts(connection: Any, asked: bytes, columns: int) -> list[Any]:
    """The columns as marked text, read in batches."""
    import pyarrow as pa

    chunks: list[list[Any]] = [[] for _ in range(columns)]
    connection.execute(b"DECLARE expost NO SCROLL CURSOR FOR " + asked)
    while rows := connection.execute(f"FETCH FORWARD {_ROWS} FROM expost").fetchall():
        for chunk, column in zip(chunks, zip(*rows, strict=True), strict=True):
            chunk.append(pa.array(column, pa.large_string()))
    return [pa.chunked_array(chunk, pa.large_string()) for chunk in chunks]


def _load_as_text(connection: Any, codec: str) -> None:
    """Read names and texts of the server as marked text."""
    from psycopg.adapt import Loader

    class Text(Loader):
        """Loads the server's text."""

        def load(self, data: Any) -> str:
            return as_text(bytes(data), codec)

    for kind in ("text", "name"):
        connection.adapters.register_loader(kind, Text)
