"""What may be written in a study: one table of keys, from which checks, documentation and templates are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from expost.checks import share_of
from expost.data.encodings import ENCODINGS

KeyType = Literal[
    "text", "mark", "number", "numbers", "whole", "texts", "pair", "pairs", "keys", "bins", "words", "widths", "scale",
    "repeat", "switch", "table", "positive", "times", "floor", "above 0", "epsilon", "share", "part", "delta",
    "own epsilon", "own delta", "accuracy", "columns", "group keys", "ranges",
]  # fmt: skip


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and bool(value) and all(map(check, value))


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _pair(value: Any) -> bool:
    return _list_of(_number)(value) and len(value) == 2


def _key(value: Any) -> bool:
    return isinstance(value, str | int)


def _group_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(map(_list_of(_key), value.values()))
    return _list_of(lambda each: _key(each) or _list_of(_key)(each))(value)


def _epsilon(value: Any) -> bool:
    return _number(value) and 1e-12 <= value <= 1e6


def _percent(value: Any) -> bool:
    return isinstance(value, str) and share_of(value) is not None


def pairs_of(bounds: Any, number: int) -> list[tuple[float, float]]:
    """A pair for each of so many columns: one pair is for all of them."""
    pairs = bounds if isinstance(bounds[0], list | tuple) else [bounds] * number
    return [(low, high) for low, high in pairs]


HOLDS: dict[KeyType, tuple[str, Callable[[Any], bool]]] = {
    "text": ("a text", _text),
    "mark": ("one character, or none", lambda v: isinstance(v, str) and len(v) <= 1),
    "number": ("a number", _number),
    "numbers": ("a list of numbers, such as [0.25, 0.75]", _list_of(_number)),
    "whole": ("a whole number", _whole),
    "positive": ("a whole number, at least 1", lambda v: _whole(v) and v >= 1),
    "times": ("a whole number from 1 to 1000", lambda v: _whole(v) and 1 <= v <= 1000),
    "floor": ("a number, at least 0", lambda v: _number(v) and v >= 0),
    "above 0": ("a number above 0", lambda v: _number(v) and v > 0),
    "texts": ('a list of texts, such as ["age", "cost"]', _list_of(_text)),
    "pair": ("a pair of numbers, such as [0, 100]", _pair),
    "pairs": ("a list of pairs of numbers, such as [[0, 100], [0, 9]]", _list_of(_pair)),
    "ranges": ("a pair of numbers, such as [0, 100], or a pair for each, such as [[0, 100], [0, 9]]",
               lambda v: _pair(v) or _list_of(_pair)(v)),
    "keys": ('a list of values, such as ["flu", "cold"]', _list_of(_key)),
    "columns": ('a text, or a list of texts, such as ["city", "year"]', lambda v: _text(v) or _list_of(_text)(v)),
    "group keys": ('a list of values, such as ["Rome", "Oslo"]; for several columns a list of lists, or a table such '
                   'as { city = ["Rome", "Oslo"], year = [2024, 2025] }, for all combinations', _group_keys),
    "bins": ("a whole number of bins, or a list of edges", lambda v: _whole(v) or _list_of(_number)(v)),
    "words": ('a table of texts, such as { age = "integer" }',
              lambda v: isinstance(v, dict) and all(map(_text, v.values()))),
    "widths": ("a number, or a list of numbers", lambda v: _number(v) or _list_of(_number)(v)),
    "scale": ("a number, or the name of an earlier question", lambda v: _number(v) or _text(v)),
    "repeat": ('a table such as { until = "released", floor = 0.1 }', lambda v: isinstance(v, dict)),
    "switch": ("true or false", lambda v: isinstance(v, bool)),
    "table": ("a table of keys", lambda v: isinstance(v, dict)),
    "epsilon": ("a number from 1e-12 to a million", _epsilon),
    "share": ("a number above 0, at most 1", lambda v: _number(v) and 0 < v <= 1),
    "part": ("a number above 0 and below 1", lambda v: _number(v) and 0 < v < 1),
    "delta": ("a number from 0 to below 1", lambda v: _number(v) and 0 <= v < 1),
    "own epsilon": ('a number from 1e-12 to a million, or "rest"', lambda v: _epsilon(v) or v == "rest"),
    "accuracy": ('a number above 0, or a share of the truth such as "2 %"',
                 lambda v: (_number(v) and v > 0) or _percent(v)),
    "own delta": ('a number above 0 and below 1, or "rest"', lambda v: (_number(v) and 0 < v < 1) or v == "rest"),
}  # fmt: skip
"""What a key of a type holds, in words, and whether a value is that."""


@dataclass(frozen=True)
class Key:
    """A key of a study: what it holds and what it means."""

    name: str
    type: KeyType
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()
    needs_delta: tuple[str, ...] = ()
    """Those of the choices that need a δ."""
    refers_to: str = ""
    """The kind of the earlier question that a text here names."""
    longest: int = 9_000
    """Characters, so that the ledger can keep it, with what is added to it."""
    setting: str = ""
    """What the question's record calls it, if not so."""
    read: Callable[[Any], Any] = lambda value: value
    """What the record has of a value."""

    def wrong(self, value: Any) -> str | None:
        """What is wrong with a value; None if nothing is."""
        words, check = HOLDS[self.type]
        if self.choices and value not in self.choices:
            return f"{self.name!r} is one of {', '.join(map(repr, self.choices))}"
        if isinstance(value, str) and (len(value) > self.longest or "\0" in value):
            return f"{self.name!r} has at most {self.longest} characters, and none is the character zero"
        if self.type in ("pair", "ranges") and value == []:
            return f"{self.name!r} is blank: state two numbers, such as [0, 100], that are known without this data"
        return None if check(value) else f"{self.name!r} is {words}"


TOP = (
    Key("title", "text", "what the study is called"),
    Key("data", "words", "where the data is"),
    Key("privacy", "words", "whose privacy is protected"),
    Key("limit", "words", "the most that may ever be spent"),
    Key("ledger", "words", "where the ledger is"),
    Key("derive", "words", "columns computed from others: name = expression"),
    Key("question", "words", "what is asked, in order: one [[question]] each"),
)
SECTIONS: dict[str, tuple[Key, ...]] = {
    "data": (
        Key("path", "text", "a CSV, Parquet or .duckdb file, relative to the study's folder", required=True),
        Key("table", "text", "the table of a .duckdb file"),
        Key("delimiter", "text", "the character between the fields of a CSV file"),
        Key("quote", "mark", "the character around fields of a CSV file, the double quotation mark by default; \"\" if "
            "none is quoted. No field contains the end of a line"),
        Key("decimal", "text", "the decimal sign of a CSV file's numbers, a point by default; with a comma, fields are "
            "separated by semicolons by default", choices=(".", ",")),
        Key("encoding", "text", "how a CSV file is written, utf-8 by default", choices=ENCODINGS),
        Key("engine", "text", "what computes: duckdb by default, or spark, for Parquet", choices=("duckdb", "spark")),
        Key("schema", "words", "the types of a CSV file's columns, which it does not state itself: integer, number, "
            "text, boolean, date, timestamp. Columns left out are text, and a value that does not fit is empty"),
        Key("version", "text", "change it when the data changes: stored answers belong to a version"),
        Key("expected", "positive", "about how many rows will count, if anybody may know that: plans reckon with it, "
            "and groups with equal shares of it. Nothing else depends on it"),
    ),
    "privacy": (
        Key("unit", "text", 'whose privacy: "row", or the column that identifies whom a row is about', required=True,
            longest=1000),
        Key("rows", "positive", "the most rows of one unit that count, if the unit is a column"),
        Key("groups", "positive", "the most cells of a histogram that one unit counts in"),
        Key("neighbours", "text", "what nobody may notice: one unit replaced by another (substitute; their number is "
            "then public), or one unit more or less (add-remove)", required=True,
            choices=("add-remove", "substitute")),
        Key("size", "positive", "the public number of units, under substitute"),
        Key("who", "text", "who one unit is, in a word for the ledger and the report; not the name of another column"),
    ),
    "limit": (
        Key("epsilon", "epsilon", "ε, for the whole life of the ledger", required=True),
        Key("delta", "delta", "δ, for the whole life of the ledger; 0 by default"),
    ),
    "ledger": (
        Key("url", "text", "sqlite:///file.db (relative to the study's folder), postgresql://…, or memory: for a trial",
            required=True),
        Key("name", "text", "the ledger's name", required=True, longest=200),
        Key("account", "text", "spend through this account, such as team/bob, which exists; the limit above is then "
            "the account's", longest=2000),
        Key("accounting", "text", "how charges add up, fixed when the ledger is made: basic, the default, adds up ε; "
            "renyi also counts Rényi prices and Gaussian noise, and admits what fits on one of these meters. Many "
            "small questions then cost less; the limit needs a delta. expost plan says which fits more",
            choices=("basic", "renyi")),
    ),
}  # fmt: skip
COMMON = (
    Key("name", "text", "what the question is called, once in a study", required=True, longest=200),
    Key("kind", "text", "what is asked", required=True),
    Key("label", "text", "the question in words, for the ledger and the report"),
    Key("epsilon", "own epsilon", 'ε: a number, or "rest" for all that remains'),
    Key("share", "share", "ε, as a share of the limit"),
    Key("share_of_remaining", "share", "ε, as a share of what remains when it is asked"),
    Key("delta", "own delta", 'δ: a number, or "rest"'),
    Key("only_if", "text", "ask only if an earlier answer was this: 'spread.released', 'visitors > 500'"),
    Key("repeat", "repeat", "ask again until an outcome, down to a floor of ε: { until = …, floor = …, at_most = … }"),
)
REPEAT = (
    Key("until", "text", "the outcome that ends it", required=True),
    Key("floor", "floor", "stop when less ε than this remains", required=True),
    Key("at_most", "times", "the most times that it is asked; 10 by default"),
)
AMOUNTS: dict[str, Literal["fixed", "limit", "remaining"]] = {
    "epsilon": "fixed",
    "share": "limit",
    "share_of_remaining": "remaining",
}
"""The keys that say how much ε a question gets, and of what."""
