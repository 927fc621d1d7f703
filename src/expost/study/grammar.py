"""What may stand in a study: one table of keys, from which checks, documentation and templates are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Type = Literal[
    "text", "mark", "number", "whole", "texts", "pair", "keys", "bins", "words", "amount", "widths", "scale", "repeat"
]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and bool(value) and all(map(check, value))


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


TYPES: dict[Type, tuple[str, Callable[[Any], bool]]] = {
    "text": ("a text", _text),
    "mark": ("one character, or none", lambda v: isinstance(v, str) and len(v) <= 1),
    "number": ("a number", _number),
    "whole": ("a whole number", _whole),
    "texts": ('a list of texts, such as ["age", "cost"]', _list_of(_text)),
    "pair": ("a pair of numbers, such as [0, 100]", lambda v: _list_of(_number)(v) and len(v) == 2),
    "keys": ('a list of values, such as ["flu", "cold"]', _list_of(lambda v: isinstance(v, str | int))),
    "bins": ("a whole number of bins, or a list of edges", lambda v: _whole(v) or _list_of(_number)(v)),
    "words": ('a table of texts, such as { age = "integer" }',
              lambda v: isinstance(v, dict) and all(map(_text, v.values()))),
    "amount": ('a number, or "rest"', lambda v: _number(v) or v == "rest"),
    "widths": ("a number, or a list of numbers", lambda v: _number(v) or _list_of(_number)(v)),
    "scale": ("a number, or the name of an earlier question", lambda v: _number(v) or _text(v)),
    "repeat": ('a table such as { until = "released", floor = 0.1 }', lambda v: isinstance(v, dict)),
}  # fmt: skip


@dataclass(frozen=True)
class Key:
    """A key of a study: what it holds and what it means."""

    name: str
    type: Type
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()
    longest: int = 9_000
    """Characters, so that the ledger can keep it, with what is added to it."""

    def wrong(self, value: Any) -> str | None:
        """What is wrong with a value; None if nothing is."""
        words, check = TYPES[self.type]
        if self.choices and value not in self.choices:
            return f"{self.name!r} is one of {', '.join(map(repr, self.choices))}"
        if isinstance(value, str) and (len(value) > self.longest or "\0" in value):
            return f"{self.name!r} has at most {self.longest} characters, and none is the character zero"
        return None if check(value) else f"{self.name!r} is {words}"


TOP = (
    Key("title", "text", "what the study is called"),
    Key("data", "words", "where the data is"),
    Key("privacy", "words", "whose privacy is protected"),
    Key("limit", "words", "the most that may ever be spent"),
    Key("ledger", "words", "where the books are kept"),
    Key("derive", "words", "columns computed from others: name = expression"),
    Key("question", "words", "what is asked, in order: one [[question]] each"),
)

SECTIONS: dict[str, tuple[Key, ...]] = {
    "data": (
        Key("path", "text", "a CSV, Parquet or .duckdb file, seen from the study's folder", required=True),
        Key("table", "text", "the table of a .duckdb file"),
        Key("delimiter", "text", "what stands between the fields of a CSV file"),
        Key("quote", "mark", "what stands around fields of a CSV file, if anything: the double quotation mark unless "
            "something else is said; no field has the end of a line in it"),
        Key("schema", "words", "what the columns of a CSV file hold, which it needs: integer, number, text, "
            "boolean, date, timestamp; others are text, and what does not fit is empty"),
        Key("version", "text", "change it when the data changes: stored answers belong to a version"),
    ),
    "privacy": (
        Key("unit", "text", 'whose privacy: "row", or the column that says who a row is about', required=True,
            longest=1000),
        Key("rows", "whole", "the most rows that count of any one, if the unit is a column"),
        Key("groups", "whole", "the most cells of a histogram that any one counts in"),
        Key("neighbours", "text", "what nobody may notice: one replaced by another (substitute; their number is then "
            "public), or one more or less (add-remove)", required=True, choices=("add-remove", "substitute")),
        Key("size", "whole", "the public number of units, under substitute"),
        Key("who", "text", "who one unit is, in a word for the ledger and the report; not the name of another column"),
    ),
    "limit": (
        Key("epsilon", "number", "ε, in all and for ever", required=True),
        Key("delta", "number", "δ, in all and for ever; 0 if it is left out"),
    ),
    "ledger": (
        Key("url", "text", "sqlite:///file.db (seen from the study's folder), postgresql://…, or memory: for a trial",
            required=True),
        Key("name", "text", "the ledger's name", required=True, longest=200),
        Key("account", "text", "spend through this account; the limit above is then the account's", longest=200),
    ),
}  # fmt: skip

COMMON = (
    Key("name", "text", "what the question is called, once in a study", required=True, longest=200),
    Key("kind", "text", "what is asked", required=True),
    Key("label", "text", "the question in words, for the ledger and the report"),
    Key("epsilon", "amount", 'ε: a number, or "rest" for all that remains'),
    Key("share", "number", "ε: so much of the limit"),
    Key("share_of_remaining", "number", "ε: so much of what remains when it is asked"),
    Key("delta", "amount", 'δ: a number, or "rest"'),
    Key("only_if", "text", "ask only if an earlier answer was so: 'spread.released', 'visitors > 500'"),
    Key("repeat", "repeat", "ask again until an outcome, down to a floor of ε: { until = …, floor = …, at_most = … }"),
)
REPEAT = (
    Key("until", "text", "the outcome that ends it", required=True),
    Key("floor", "number", "stop when less ε than this remains", required=True),
    Key("at_most", "whole", "stop after so many times; 10 if it is left out"),
)
AMOUNTS = ("epsilon", "share", "share_of_remaining")
