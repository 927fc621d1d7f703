"""Parquet files of any types and any bytes: what no library writes, and what a hostile or careless one might.

A file of one row group, whose pages are written here byte by byte. :data:`ODD` lists the types of the format, each
with bytes that a reader may stumble over: times beyond what an engine can hold, decimals with more digits than
declared, text that is not UTF-8. Each row of such a file is sound by the format's own rules of length, so that a
reader which fails does so because of a value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PHYSICAL = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
FIXED = "FIXED_LEN_BYTE_ARRAY"
Shape = Literal["flat", "struct", "list"]
SHAPES: tuple[Shape, ...] = ("flat", "struct", "list")


# ---- Thrift's compact protocol, as far as Parquet's metadata needs it


@dataclass(frozen=True)
class Item:
    """A value with the number of its type in the protocol."""

    kind: int
    data: bytes


def varint(number: int) -> bytes:
    """An unsigned number, seven bits to a byte."""
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def signed(number: int) -> bytes:
    """A number as zigzag and varint."""
    return varint(2 * number if number >= 0 else -2 * number - 1)


def i8(number: int) -> Item:
    return Item(3, struct.pack("b", number))


def i32(number: int) -> Item:
    return Item(5, signed(number))


def i64(number: int) -> Item:
    return Item(6, signed(number))


def truth(value: bool) -> Item:
    return Item(1 if value else 2, b"")


def binary(data: bytes | str) -> Item:
    data = data.encode() if isinstance(data, str) else data
    return Item(8, varint(len(data)) + data)


def listed(items: Iterable[Item]) -> Item:
    """A list; its items are of one type."""
    items = list(items)
    kind = items[0].kind
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([240 | kind]) + varint(len(items))
    return Item(9, head + b"".join(item.data for item in items))


def record(fields: dict[int, Item | None]) -> Item:
    """A structure: its fields by their numbers; None is left out."""
    written, last = b"", 0
    for number, item in sorted(fields.items()):
        if item is not None:
            written += bytes([(number - last) << 4 | item.kind]) + item.data
            last = number
    return Item(12, written + b"\0")


EMPTY = record({})


# ---- types


@dataclass(frozen=True)
class Odd:
    """A type of Parquet, and values of it as they stand in a page: the first is usual, all others are odd."""

    physical: str
    values: Sequence[bytes]
    converted: int | None = None
    logical: Item | None = None
    length: int | None = None
    precision: int | None = None
    scale: int | None = None


def _int32(*numbers: int) -> list[bytes]:
    return [struct.pack("<i", number) for number in numbers]


def _int64(*numbers: int) -> list[bytes]:
    return [struct.pack("<q", number) for number in numbers]


def _texts(*texts: bytes) -> list[bytes]:
    return [struct.pack("<I", len(text)) + text for text in texts]


def _unit(of: int, adjusted: bool) -> Item:
    """A time or timestamp in milliseconds (1), microseconds (2) or nanoseconds (3)."""
    return record({1: truth(adjusted), 2: record({of: EMPTY})})


def _decimal(precision: int, scale: int) -> Item:
    return record({5: record({1: i32(scale), 2: i32(precision)})})


def _whole(bits: int, sign: bool) -> Item:
    return record({10: record({1: i8(bits), 2: truth(sign)})})


_SMALL = (2**31 - 1, -(2**31), -(2**31) + 1, 2_932_897, -719_163, 86_400_000, -1)
_LARGE = (
    2**63 - 1, -(2**63), 2**63 - 2, -(2**63) + 1, 9_223_372_036_854_776, -9_223_372_036_854_776, 253_402_300_800_000,
    86_400_000_000, 86_400_000_001, -1,
)  # fmt: skip
_BYTES = (b"", b"\xff\xfe", b"caf\xe9", b"caf\xff", b"a\0b", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"{", b"x" * 70_000)
_IMPALA = [struct.pack("<QI", nanos, day) for nanos, day in [
    (0, 2_440_588), (2**64 - 1, 2_440_588), (0, 2**32 - 1), (0, 0), (2**63, 2**31), (86_400_000_000_000, 2**31 - 1),
]]  # fmt: skip
_HALVES = [struct.pack("<H", bits) for bits in (0x3C00, 0x7E00, 0x7C00, 0xFC00, 0x8000, 0x0001, 0xFFFF)]

ODD: dict[str, Odd] = {
    "boolean": Odd("BOOLEAN", [b"\1", b"\0"]),
    "int32": Odd("INT32", _int32(1, *_SMALL)),
    **{f"int{bits}": Odd("INT32", _int32(1, *_SMALL), kind, _whole(bits, True)) for bits, kind in ((8, 15), (16, 16))},
    **{f"uint{bits}": Odd("INT32", _int32(1, *_SMALL), kind, _whole(bits, False))
       for bits, kind in ((8, 11), (16, 12), (32, 13))},
    "int64": Odd("INT64", _int64(1, *_LARGE)),
    "uint64": Odd("INT64", _int64(1, *_LARGE), 14, _whole(64, False)),
    "float": Odd("FLOAT", [struct.pack("<f", x) for x in (1.0, float("nan"), float("inf"), -0.0, 3e38)]),
    "double": Odd("DOUBLE", [struct.pack("<d", x) for x in (1.0, float("nan"), float("-inf"), -0.0, 1e308)]),
    "int96": Odd("INT96", _IMPALA),
    "date": Odd("INT32", _int32(1, *_SMALL), 6, record({6: EMPTY})),
    "time ms": Odd("INT32", _int32(1, *_SMALL), 7, record({7: _unit(1, True)})),
    "time us": Odd("INT64", _int64(1, *_LARGE), 8, record({7: _unit(2, True)})),
    "time ns": Odd("INT64", _int64(1, *_LARGE), None, record({7: _unit(3, True)})),
    "time us, local": Odd("INT64", _int64(1, *_LARGE), None, record({7: _unit(2, False)})),
    "timestamp ms": Odd("INT64", _int64(1, *_LARGE), 9, record({8: _unit(1, True)})),
    "timestamp ms, converted": Odd("INT64", _int64(1, *_LARGE), 9),
    "timestamp ms, local": Odd("INT64", _int64(1, *_LARGE), None, record({8: _unit(1, False)})),
    "timestamp us": Odd("INT64", _int64(1, *_LARGE), 10, record({8: _unit(2, True)})),
    "timestamp us, converted": Odd("INT64", _int64(1, *_LARGE), 10),
    "timestamp us, local": Odd("INT64", _int64(1, *_LARGE), None, record({8: _unit(2, False)})),
    "timestamp ns": Odd("INT64", _int64(1, *_LARGE), None, record({8: _unit(3, True)})),
    "timestamp ns, local": Odd("INT64", _int64(1, *_LARGE), None, record({8: _unit(3, False)})),
    "decimal in 32": Odd("INT32", _int32(1, *_SMALL), 5, _decimal(4, 2), None, 4, 2),
    "decimal in 32, nine digits": Odd("INT32", _int32(1, *_SMALL), 5, _decimal(9, 9), None, 9, 9),
    "decimal in 64": Odd("INT64", _int64(1, *_LARGE), 5, _decimal(10, 3), None, 10, 3),
    "decimal in 64, few digits": Odd("INT64", _int64(1, *_LARGE), 5, _decimal(3, 0), None, 3, 0),
    "decimal in bytes": Odd(
        "BYTE_ARRAY", _texts(b"\1", b"\x7f" * 16, b"\x80" + b"\0" * 15, b"\x7f" * 8, b"\x7f" * 17, b"\1" * 40, b""), 5,
        _decimal(10, 3), None, 10, 3),
    "decimal in bytes, wide": Odd(
        "BYTE_ARRAY", _texts(b"\1", b"\x7f" * 16, b"\x80" + b"\0" * 15, b"\x7f" * 17, b"\1" * 40, b""), 5,
        _decimal(38, 3), None, 38, 3),
    "decimal in fixed bytes": Odd(
        FIXED, [b"\0" * 15 + b"\1", b"\x7f" * 16, b"\x80" + b"\0" * 15], 5, _decimal(20, 3), 16, 20, 3),
    "decimal in fixed bytes, few digits": Odd(
        FIXED, [b"\0" * 15 + b"\1", b"\x7f" * 16, b"\x80" + b"\0" * 15], 5, _decimal(5, 3), 16, 5, 3),
    "decimal in fixed bytes, long": Odd(
        FIXED, [b"\0" * 19 + b"\1", b"\x7f" * 20, b"\x80" + b"\0" * 19], 5, _decimal(38, 3), 20, 38, 3),
    "decimal, wide": Odd(
        FIXED, [b"\0" * 31 + b"\1", b"\x7f" * 32, b"\x80" + b"\0" * 31], 5, _decimal(76, 3), 32, 76, 3),
    "text": Odd("BYTE_ARRAY", _texts(b"a", *_BYTES), 0, record({1: EMPTY})),
    "text, converted": Odd("BYTE_ARRAY", _texts(b"a", *_BYTES), 0),
    "enum": Odd("BYTE_ARRAY", _texts(b"a", *_BYTES), 4, record({4: EMPTY})),
    "json": Odd("BYTE_ARRAY", _texts(b"{}", *_BYTES), 19, record({12: EMPTY})),
    "bson": Odd("BYTE_ARRAY", _texts(b"\5\0\0\0\0", *_BYTES), 20, record({13: EMPTY})),
    "bytes": Odd("BYTE_ARRAY", _texts(b"a", *_BYTES)),
    "text of fixed length": Odd(FIXED, [b"abc", b"a\xff\xfe", b"\xe9\xe9\xe9"], 0, record({1: EMPTY}), 3),
    "bytes of fixed length": Odd(FIXED, [b"abc", b"a\xff\xfe"], None, None, 3),
    "uuid": Odd(FIXED, [b"\0" * 16, b"\xff" * 16, b"\x80" + b"\0" * 15], None, record({14: EMPTY}), 16),
    "half": Odd(FIXED, _HALVES, None, record({15: EMPTY}), 2),
    "interval": Odd(FIXED, [b"\0" * 12, b"\xff" * 12, b"\xff\xff\xff\x7f" * 3], 21, None, 12),
    "unknown": Odd("INT32", _int32(1, *_SMALL), None, record({11: EMPTY})),
}  # fmt: skip
"""The types of the format, with hostile values."""


# ---- files


@dataclass(frozen=True)
class Column:
    """A column of a file: every value is there, none is NULL."""

    name: str
    odd: Odd
    values: Sequence[bytes]
    shape: Shape = "flat"

    @property
    def path(self) -> tuple[str, ...]:
        return {"flat": (self.name,), "struct": (self.name, "a"), "list": (self.name, "list", "element")}[self.shape]

    def schema(self) -> list[Item]:
        """The elements of the schema, parents first."""
        leaf = _element(self.path[-1], self.odd)
        if self.shape == "struct":
            return [record({3: i32(0), 4: binary(self.name), 5: i32(1)}), leaf]
        if self.shape == "list":
            outer = record({3: i32(1), 4: binary(self.name), 5: i32(1), 6: i32(3), 10: record({3: EMPTY})})
            return [outer, record({3: i32(2), 4: binary("list"), 5: i32(1)}), leaf]
        return [leaf]

    def levels(self) -> bytes:
        """Repetition and definition levels: one value in each row."""
        levels = (0, 3) if self.shape == "list" else (1,)
        run = varint(len(self.values) << 1)
        return b"".join(struct.pack("<I", len(run) + 1) + run + bytes([level]) for level in levels)


def _element(name: str, odd: Odd) -> Item:
    stated = {2: odd.length, 6: odd.converted, 7: odd.scale, 8: odd.precision}
    numbers = {place: i32(number) for place, number in stated.items() if number is not None}
    return record({1: i32(PHYSICAL.index(odd.physical)), 3: i32(1), 4: binary(name), 10: odd.logical, **numbers})


def write_odd(path: Path, columns: Sequence[Column], *, statistics: bool = True, dictionary: bool = False) -> Path:
    """Write a file; its statistics say that the second and third values are the least and the largest."""
    data, chunks = b"PAR1", []
    for column in columns:
        pages, offset = _pages(column, dictionary and column.odd.physical != "BOOLEAN"), len(data)
        data += b"".join(pages)
        chunks.append(_chunk(column, offset, pages, statistics))
    rows = len(columns[0].values)
    root = record({4: binary("schema"), 5: i32(len(columns))})
    group = record({1: listed(chunks), 2: i64(len(data)), 3: i64(rows)})
    schema = [root, *(element for column in columns for element in column.schema())]
    footer = record({1: i32(2), 2: listed(schema), 3: i64(rows), 4: listed([group]), 6: binary("expost tests")}).data
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return path


def odd_file(
    path: Path,
    odd: Odd,
    values: Sequence[bytes],
    shape: Shape = "flat",
    *,
    statistics: bool = True,
    dictionary: bool = False,
) -> Path:
    """A file of two columns: ``n`` counts from 1, and ``c`` has the values."""
    numbers = Column("n", ODD["int64"], _int64(*range(1, len(values) + 1)))
    return write_odd(path, [numbers, Column("c", odd, values, shape)], statistics=statistics, dictionary=dictionary)


def _pages(column: Column, dictionary: bool) -> list[bytes]:
    """A page of values; or one with the dictionary, and one that refers to it."""
    rows = len(column.values)
    if not dictionary:
        packed = _bits(column.values) if column.odd.physical == "BOOLEAN" else b"".join(column.values)
        return [_page(column.levels() + packed, {1: i32(0), 5: _data_header(rows, 0)})]
    distinct = sorted(set(column.values))
    width = max(1, (len(distinct) - 1).bit_length())
    runs = b"".join(varint(2) + bytes([distinct.index(value)]) for value in column.values)
    head = record({1: i32(len(distinct)), 2: i32(0)})
    return [
        _page(b"".join(distinct), {1: i32(2), 7: head}),
        _page(column.levels() + bytes([width]) + runs, {1: i32(0), 5: _data_header(rows, 8)}),
    ]


def _bits(values: Sequence[bytes]) -> bytes:
    number = sum(value[0] << place for place, value in enumerate(values))
    return number.to_bytes(-(-len(values) // 8), "little")


def _data_header(rows: int, encoding: int) -> Item:
    return record({1: i32(rows), 2: i32(encoding), 3: i32(3), 4: i32(3)})


def _page(body: bytes, header: dict[int, Item | None]) -> bytes:
    return record({2: i32(len(body)), 3: i32(len(body)), **header}).data + body


def _chunk(column: Column, offset: int, pages: list[bytes], statistics: bool) -> Item:
    size, rows = sum(map(len, pages)), len(column.values)
    dictionary = len(pages) > 1
    told = None
    if statistics and column.odd.physical != "BOOLEAN":
        cut = 4 if column.odd.physical == "BYTE_ARRAY" else 0
        ends = [binary(value[cut:]) for value in (*column.values[1:3], column.values[0], column.values[0])][:2]
        told = record({1: ends[1], 2: ends[0], 3: i64(0), 5: ends[1], 6: ends[0]})
    meta = record({
        1: i32(PHYSICAL.index(column.odd.physical)), 2: listed([i32(0), i32(3), i32(8)]),
        3: listed(map(binary, column.path)), 4: i32(0), 5: i64(rows), 6: i64(size), 7: i64(size),
        9: i64(offset + (len(pages[0]) if dictionary else 0)), 11: i64(offset) if dictionary else None, 12: told,
    })  # fmt: skip
    return record({2: i64(offset), 3: meta})
