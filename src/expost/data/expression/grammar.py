"""The parser: from SQL text over one row to typed trees, by precedence. Errors name a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Never

from expost.data.expression import operators, patterns
from expost.data.expression.fitting import apply, as_time, call
from expost.data.expression.functions import INEXACT, add_interval, cast, choice, function, stated_text
from expost.data.expression.meant import WORDS_OF_SQL, column_in_words, instead_of_name, quoted_name
from expost.data.expression.tokens import DEEPEST, Token, Tokens
from expost.data.expression.tree import Kind, Reference, Stated, Tree, is_text, uncomputable, unusable
from expost.errors import InvalidValue
from expost.mentions import brief

_LONGEST = 10_000


def parse(text: Any, schema: Mapping[str, Kind]) -> Tree:
    """Parse an expression; its columns are spelled as in the schema. Errors are ``about`` the text."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidValue(f"an expression is text in SQL such as 'age >= 18', got {brief(text)}")
    if len(text) > _LONGEST:
        raise InvalidValue(f"an expression has at most {_LONGEST} characters, got {len(text)}: derive parts of it")
    if not is_text(text):
        raise InvalidValue("an expression is valid UTF-8 without NUL: remove other characters")
    try:
        return _parsed(text, tuple(schema.items()))
    except InvalidValue as error:
        error.about = text
        raise


@lru_cache(maxsize=1024)
def _parsed(text: str, schema: tuple[tuple[str, Kind], ...]) -> Tree:
    reader = Reader(text, dict(schema))
    try:
        tree = reader.whole()
    except RecursionError:
        raise reader.too_deep() from None
    if uncomputable(tree):
        raise InvalidValue(f"{brief(text)} has a part without columns that cannot be computed: correct it")
    return tree


def find_column(name: Any, schema: Mapping[str, Kind]) -> str:
    """The column of that name, as the schema spells it."""
    if not isinstance(name, str):
        raise InvalidValue(f"a column is given by its name, a text, got {brief(name)}")
    found = _spelled(name, schema)
    if found is not None:
        return found
    near = get_close_matches(name, schema, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, schema))}"
    raise InvalidValue(f"there is no column {name!r}: {hint}")


def _spelled(name: str, schema: Mapping[str, Kind]) -> str | None:
    """The one column of that name, whatever the case of its letters."""
    if name in schema:
        return name
    alike = [column for column in schema if column.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


class Reader(Tokens):
    """A recursive-descent parser; each method parses what binds more tightly than the one before it."""

    def __init__(self, text: str, schema: Mapping[str, Kind]) -> None:
        super().__init__(text)
        self.schema = schema

    def whole(self) -> Tree:
        """Parse the whole text as one expression."""
        tree = self.expression()
        if not self.ended:
            raise self._unexpected()
        return tree

    def _unexpected(self) -> InvalidValue:
        """An error: the text goes on where it could end."""
        return self.wrong(f"{self.next.text!r} is unexpected", *filter(None, [self.meant_at(self.place - 1)]))

    def meant_at(self, place: int) -> str:
        """Which column is probably meant by several words that begin at this place; nothing if they spell none."""
        column = column_in_words(self.tokens, place, self.schema)
        alone = column is None or column == _spelled(self.tokens[place].text, self.schema)
        return "" if column is None or alone else f"did you mean {quoted_name(column)}?"

    def expression(self) -> Tree:
        """Parse an expression."""
        with self.deeper():
            return self._chain("OR", lambda: self._chain("AND", self._negation))

    def _chain(self, word: str, part: Callable[[], Tree]) -> Tree:
        parts = [part()]
        while self.take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else call(self, word, *parts)

    def _negation(self) -> Tree:
        if not self.take("NOT"):
            return self._predicate()
        with self.deeper():
            return call(self, "NOT", self._negation())

    # ---- conditions

    def _predicate(self) -> Tree:
        tree, further = self._joined(), True
        while further:
            following = self._compared(tree)
            tree, further = following or tree, following is not None
        return tree

    def _compared(self, tree: Tree) -> Tree | None:
        """Parse what follows a value and makes it a condition; None if nothing does."""
        if self.take("IS"):
            return self._is_what(tree)
        sign = self.take("=", "==", "<>", "!=", "<", "<=", ">", ">=")
        if sign is not None:
            return call(self, {"==": "=", "!=": "<>"}.get(sign, sign), tree, self._joined())
        for word, read in (
            ("IN", self._among),
            ("BETWEEN", self._between),
            ("LIKE", self._like),
            ("ILIKE", self._like),
        ):
            denied = self.take_words("NOT", word)
            if denied or self.take(word):
                return self._unless(denied, read(tree, word))
        return None

    def _unless(self, denied: bool, tree: Tree) -> Tree:
        return call(self, "NOT", tree) if denied else tree

    def _is_what(self, tree: Tree) -> Tree:
        denied = self.take("NOT") is not None
        if self.take_words("DISTINCT", "FROM"):
            return self._unless(denied, call(self, "IS DISTINCT FROM", tree, self._joined()))
        if self.take("NULL"):
            return self._unless(denied, call(self, "IS NULL", tree))
        word = self.take("TRUE", "FALSE")
        if word is None:
            raise self.wrong("IS is followed by NULL, TRUE, FALSE or DISTINCT FROM, or by NOT and one of these")
        return self._unless(not denied, call(self, "IS DISTINCT FROM", tree, Stated(word == "TRUE", "boolean")))

    def _among(self, tree: Tree, word: str) -> Tree:
        self.expect("(")
        if self.next.word == "SELECT":
            self._no_query()
        return call(self, "IN", tree, *self.listed())

    def _between(self, tree: Tree, word: str) -> Tree:
        low = self._joined()
        self.expect("AND")
        return call(self, "BETWEEN", tree, low, self._joined())

    def _like(self, tree: Tree, word: str) -> Tree:
        pattern = stated_text(self, self.primary(), word)
        if len(pattern) > patterns.LARGEST_PATTERN and re.search("[%_]", pattern.strip("%")):
            raise self.wrong(
                f"a pattern of {word} with % or _ inside has at most {patterns.LARGEST_PATTERN} characters"
            )
        if word == "ILIKE":
            tree, pattern = call(self, "lower", tree), operators.lower(pattern)
        return apply(self, operators.like(pattern), tree)

    # ---- values

    def _joined(self) -> Tree:
        tree = self._sums()
        while self.take("||"):
            tree = call(self, "||", tree, self._sums())
        return tree

    def _sums(self) -> Tree:
        tree = self._products()
        while sign := self.take("+", "-"):
            tree = add_interval(self, tree, sign) if self.take("INTERVAL") else call(self, sign, tree, self._products())
        return tree

    def _products(self) -> Tree:
        tree = self._signed()
        while sign := self.take("*", "/", "//", "%"):
            if self.take("*"):
                raise self.refused("**", INEXACT)
            tree = call(self, sign, tree, self._signed())
        return tree

    def _signed(self) -> Tree:
        if self.take("+"):
            return self._signed()
        if not self.take("-"):
            return self._cast_after(self.primary())
        if self.next.way == "number":
            return self._cast_after(self.number("-"))
        with self.deeper():
            return call(self, "negative", self._signed())

    def _cast_after(self, tree: Tree) -> Tree:
        while self.take("::"):
            tree = cast(self, tree)
        return tree

    def number(self, sign: str = "") -> Stated:
        """Parse a numeric literal."""
        text = sign + self.take_any().text
        if len(text) > 400:
            raise self.wrong("a number has at most 400 characters")
        if not re.fullmatch(r"-?[0-9]+", text):
            return Stated(float(text), "number")
        if not operators.LEAST_INTEGER <= int(text) <= operators.MOST_INTEGER:
            raise self.wrong(f"{text} has more than 64 bits: write {text}.0 for a number")
        return Stated(int(text), "integer")

    def primary(self) -> Tree:
        """Parse a value without operators around it."""
        token = self.next
        if token.way == "number":
            return self.number()
        if self.ended or (token.way == "sign" and token.word != "(") or self._reserved(token):
            raise self.missing("a value")
        self.take_any()
        if token.way == "text":
            return Stated(token.unquoted, "text")
        if token.way == "quoted":
            return self._column(token.unquoted)
        return self._parenthesis() if token.word == "(" else self._named(token)

    def _reserved(self, token: Token) -> bool:
        return token.word in WORDS_OF_SQL - {"TRUE", "FALSE", "NULL", "CASE", "INTERVAL", "WITH"}

    def _parenthesis(self) -> Tree:
        if self.next.word in ("SELECT", "WITH", "FROM"):
            self._no_query()
        tree = self.expression()
        self.expect(")")
        return tree

    def _no_query(self) -> Never:
        raise self.refused("a query", "an expression is about one row, and a query reads others")

    def listed(self) -> list[Tree]:
        """Parse arguments, up to the closing parenthesis."""
        if self.take(")"):
            return []
        trees = [self.expression()]
        while self.take(","):
            trees.append(self.expression())
        self.expect(")")
        return trees

    def _named(self, token: Token) -> Tree:
        """Parse what begins with a word: a constant, CASE, a date, a function or a column."""
        word = token.word
        if word in ("TRUE", "FALSE"):
            return Stated(word == "TRUE", "boolean")
        if word == "NULL":
            return Stated(None, None)
        if word == "CASE":
            return self._case()
        if word in ("DATE", "TIMESTAMP") and self.next.way == "text":
            return self._time(word)
        if self.take("("):
            return function(self, token.text)
        if word == "INTERVAL":
            raise self.wrong("an INTERVAL can only be added to, or subtracted from, a date or a timestamp")
        return self._column(token.text)

    def _column(self, name: str) -> Tree:
        if self.take("."):
            raise InvalidValue(f"{name!r} in {brief(self.text)} is followed by a dot: write the column's name alone")
        found = _spelled(name, self.schema)
        if found is None:
            hint = instead_of_name(self.tokens, self.place - 1, self.schema)
            raise InvalidValue(f"there is no column {name!r}: {hint}")
        if self.schema[found] == "other":
            raise InvalidValue(unusable(found))
        return Reference(found, self.schema[found])

    def _time(self, word: str) -> Stated:
        text = self.take_any().unquoted
        found = as_time(Stated(text, "text"), "date" if word == "DATE" else "timestamp")
        if found is None:
            example = "DATE '2024-01-31'" if word == "DATE" else "TIMESTAMP '2024-01-31 18:30:00'"
            raise self.wrong(f"{text!r} is not a {word.lower()} in the years 1 to 9999: write {example}")
        return found

    def _case(self) -> Tree:
        subject = None if self.next.word == "WHEN" else self.expression()
        branches: list[tuple[Tree, Tree]] = []
        while self.take("WHEN"):
            when = self.expression()
            self.expect("THEN")
            branches.append((when if subject is None else call(self, "=", subject, when), self.expression()))
        tree = self.expression() if self.take("ELSE") else Stated(None, None)
        self.expect("END")
        if not branches or len(branches) > DEEPEST:
            raise self.wrong(f"CASE takes 1 to {DEEPEST} branches: CASE WHEN … THEN … ELSE … END")
        return choice(self, branches, tree)
