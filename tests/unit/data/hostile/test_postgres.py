"""Tables of PostgreSQL in any encoding: distinct texts stay distinct, and no character makes reading fail."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

import expost as xp
from expost.data.expression.tree import Reference
from expost.errors import InvalidValue
from hostile_bytes import NOT_UTF8, ODD_UTF8, postgres_database, postgres_table
from servers import Server

NAMES = ["Müller", "Möller", "M?ller", "Miller", "Strauß"]
CLIENTS = [None, "UTF8", "LATIN1", "SQL_ASCII", "WIN1251", "no such thing"]


def read(url: str, table: str, **how: Any) -> xp.PrivateTable:
    return xp.read(url, table=table, **{"unit": "row", "neighbours": "add-remove", **how})


def texts(table: xp.PrivateTable, name: str = "person") -> list[Any]:
    engine: Any = table.engine
    shown = engine.render(Reference(name, "text"))
    return [text for (text,) in engine.fetch(f"SELECT {shown} FROM {engine.source}")]


@pytest.fixture(scope="module")
def databases(server: Server) -> dict[str, str]:
    return {name: postgres_database(server, name) for name in ("UTF8", "LATIN1", "SQL_ASCII", "WIN1252", "EUC_JP")}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("encoding", "codec"), [("UTF8", "utf-8"), ("LATIN1", "latin-1"), ("SQL_ASCII", "utf-8"),
                                                 ("WIN1252", "cp1252")])  # fmt: skip
def test_texts_are_read_as_they_are(
    databases: dict[str, str], monkeypatch: pytest.MonkeyPatch, encoding: str, codec: str, client: str | None
) -> None:
    """Whatever PGCLIENTENCODING says: ä was once ?, and two people were one; one € made reading fail."""
    names = [*NAMES, "3 €", "Łódź", "東京"] if codec == "utf-8" else NAMES
    rows = [(name.encode(codec), b"Rome", b"1") for name in names]
    made = postgres_table(databases[encoding], rows)
    if client is not None:
        monkeypatch.setenv("PGCLIENTENCODING", client)
    table = read(databases[encoding], made, unit=xp.Unit("person", rows=1))
    assert texts(table) == names
    assert table.count(of="units").exact() == len(names)
    assert table.where("person = 'Müller'").count().exact() == 1
    assert table.sum("n", bounds=(0, 1)).exact() == len(names)


def test_an_address_may_name_an_encoding(databases: dict[str, str]) -> None:
    made = postgres_table(databases["UTF8"], [("3 €".encode(), b"Rome", b"1")])
    for said in ("client_encoding=latin1", "options=-cclient_encoding%3Dlatin1"):
        assert texts(read(f"{databases['UTF8']}?{said}", made)) == ["3 €"]


def test_any_bytes_of_sql_ascii(databases: dict[str, str]) -> None:
    """Distinct bytes are distinct units, and what is not UTF-8 is shown as question marks."""
    odd = [value for value in (NOT_UTF8 | ODD_UTF8).values() if b"\0" not in value]
    names = [*odd, b"M\xf6ller", b"M?ller", b"??"]
    made = postgres_table(databases["SQL_ASCII"], [(name, b"Rome", b"1") for name in names])
    table = read(databases["SQL_ASCII"], made, unit=xp.Unit("person", rows=1))
    assert table.count(of="units").exact() == len(names) == len(set(names))
    assert table.where("person = 'M?ller'").count(of="units").exact() == 3
    assert texts(table)[: len(NOT_UTF8) - 1][1] == "M?ller"


def test_taking_one_unit_away_moves_a_histogram_by_one(databases: dict[str, str]) -> None:
    """Brute force over neighbours, in each encoding that can hold these bytes."""
    people = [(b"M\xfcller", b"Rome", b"1"), (b"M\xf6ller", b"Paris", b"1"), (b"M\xe4ller", b"Rome", b"1")]

    def counts(url: str, rows: Sequence[tuple[bytes, ...]], key: int) -> Any:
        table = read(url, postgres_table(url, rows), unit=xp.Unit("person", rows=1), key=key)
        return table.histogram("city", keys=["Rome", "Paris"]).exact()

    for encoding in ("LATIN1", "SQL_ASCII", "WIN1252"):
        for key in range(3):
            whole = counts(databases[encoding], people, key)
            for gone in range(len(people)):
                fewer = counts(databases[encoding], [*people[:gone], *people[gone + 1 :]], key)
                assert abs(whole - fewer).sum() == 1, encoding


@pytest.mark.parametrize(
    ("encoding", "byte"), [("WIN1252", b"\x81"), ("EUC_JP", b"\xa9\xa9"), ("EUC_JP", b"\x8f\xff\xff")]
)
def test_a_character_that_unicode_does_not_have(databases: dict[str, str], encoding: str, byte: bytes) -> None:
    """The server itself cannot convert it, and would fail for the whole table."""
    made = postgres_table(databases[encoding], [(b"a" + byte, b"Rome", b"1"), (b"a", b"Rome", b"1")])
    with psycopg.connect(databases[encoding], client_encoding="UTF8") as connection, pytest.raises(psycopg.Error):
        connection.execute(f"SELECT person FROM {made}").fetchall()
    table = read(databases[encoding], made, unit=xp.Unit("person", rows=1))
    assert texts(table) == ["a" + "?" * len(byte), "a"]
    assert table.count(of="units").exact() == 2


def test_names_of_columns_and_tables(databases: dict[str, str]) -> None:
    """They are public, and in the encoding of the database, too."""
    for encoding, codec in (("LATIN1", "latin-1"), ("UTF8", "utf-8"), ("SQL_ASCII", "utf-8")):
        with psycopg.connect(databases[encoding], autocommit=True, client_encoding="SQL_ASCII") as connection:
            connection.execute('CREATE TABLE "straße" ("größe" int, t text)'.encode(codec))
            connection.execute("INSERT INTO \"straße\" VALUES (3, 'ü')".encode(codec))
        table = read(databases[encoding], "straße")
        assert list(table.schema) == ["größe", "t"]
        assert table.sum("größe", bounds=(0, 9)).exact() == 3
        assert texts(table, "t") == ["ü"]
    with pytest.raises(InvalidValue, match="does not have these characters"):
        read(databases["LATIN1"], "łódź")
    with psycopg.connect(databases["SQL_ASCII"], autocommit=True, client_encoding="SQL_ASCII") as connection:
        connection.execute(b'CREATE TABLE odd ("gr\xf6\xdfe" int)')
    with pytest.raises(InvalidValue, match="whose name is not text"):
        read(databases["SQL_ASCII"], "odd")


def test_an_encoding_that_python_does_not_know(server: Server) -> None:
    url = postgres_database(server, "MULE_INTERNAL")
    with pytest.raises(InvalidValue, match="cannot read databases in MULE_INTERNAL: copy the table to one in UTF8"):
        read(url, postgres_table(url, [(b"a", b"Rome", b"1")]))
