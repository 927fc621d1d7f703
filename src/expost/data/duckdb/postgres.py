"""Tables of PostgreSQL, copied once: every value as text, which is then parsed like any other text.

PostgreSQL writes each value as text without failing, and parsing never fails: what is out of range (a date before the
year 1, a whole number of more than 64 bits) is NULL. All rows come from one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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
        with psycopg.connect(url) as connection:
            return list(_read(connection, table)), f"postgresql:{table}"
    except psycopg.Error as error:  # any message may quote data, or a password
        kind = type(error).__name__
    raise EngineFailed(kind)


def _read(connection: Any, table: str) -> Iterator[PlainColumn]:
    from psycopg import IsolationLevel, sql

    connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
    for setting in _SETTINGS:
        connection.execute(setting)
    known = _types(connection, table)
    chosen = {name: kind for name, kind in known.items() if _KINDS.get(kind) is not None}
    if not chosen:
        raise InvalidValue(f"no column of {table!r} is of a type that can be read: make a view that casts some to text")
    values = sql.SQL(", ").join(sql.SQL(_FORMS.get(kind, "{}::text")).format(sql.Identifier(name))
                                for name, kind in chosen.items())  # fmt: skip
    asked = sql.SQL("SELECT {} FROM {}").format(values, sql.Identifier(*table.split(".")))
    texts = dict(zip(chosen, _texts(connection, asked, len(chosen)), strict=True))
    from expost.data.frames.plain import OTHER, PlainColumn

    for name, kind in known.items():
        if name not in texts:
            yield PlainColumn(name, None, "other", OTHER)
            continue
        wanted = _KINDS[kind]
        form = "$0" if wanted == "text" else str(CASTS["text", wanted].duckdb)
        yield PlainColumn(name, texts[name], wanted, form)


_FORMS = {"timestamptz": "({} AT TIME ZONE 'UTC')::text"}


def _types(connection: Any, table: str) -> dict[str, str]:
    """The columns and their types."""
    import psycopg

    asked = (
        "SELECT attname, typname FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid "
        "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    quoted = ".".join(psycopg.sql.Identifier(part).as_string(connection) for part in table.split("."))
    found = {str(name): str(kind) for name, kind in connection.execute(asked, (quoted,))}
    if not found:
        raise InvalidValue(f"there is no table {table!r} in the database, or it has no columns: is its name right?")
    if len({name.lower() for name in found}) < len(found):
        raise InvalidValue(f"{table!r} has columns whose names differ only in case: make a view that renames them")
    return found


def _texts(connection: Any, asked: Any, columns: int) -> list[Any]:
    """The columns as text, read in batches; bytes that are not UTF-8 become question marks."""
    import pyarrow as pa
    from psycopg.adapt import Loader

    from expost.data.frames.objects import as_text

    class Text(Loader):
        """Loads the server's text."""

        def load(self, data: Any) -> str:
            return as_text(bytes(data))

    chunks: list[list[Any]] = [[] for _ in range(columns)]
    with connection.cursor("expost") as cursor:
        cursor.adapters.register_loader("text", Text)
        cursor.itersize = _ROWS
        cursor.execute(asked)
        while rows := cursor.fetchmany(_ROWS):
            for chunk, column in zip(chunks, zip(*rows, strict=True), strict=True):
                chunk.append(pa.array(column, pa.large_string()))
    return [pa.chunked_array(chunk, pa.large_string()) for chunk in chunks]
