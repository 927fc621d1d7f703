"""The words of an expression, and a place among them: the part of reading that knows no grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from expost.cost import said
from expost.errors import InvalidValue

DEEPEST = 100
"""How far expressions, and calls in their trees, may be nested."""
_TOKENS = re.compile(
    r"""(?P<space>\s+)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w))
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><>|!=|<=|>=|==|\|\||//|::|[-+*/%=<>(),.])""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """One word, sign, number or quoted text."""

    way: str
    text: str

    @property
    def word(self) -> str:
        """In capitals, if it is a word or a sign."""
        return self.text.upper() if self.way in ("word", "sign") else ""

    @property
    def unquoted(self) -> str:
        """What is between its quotation marks."""
        mark = self.text[0]
        return self.text[1:-1].replace(mark * 2, mark)


_LAST = Token("end", "")


class Tokens:
    """The tokens of an expression, and how far they have been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens, self.place, self.depth = [*self._split()], 0, 0

    def _split(self) -> Iterator[Token]:
        place = 0
        while place < len(self.text):
            found = _TOKENS.match(self.text, place)
            if found is None or self.text.startswith(("--", "/*"), place):
                raise self.wrong(f"{self.text[place : place + (1 if found is None else 2)]!r} is unexpected")
            place = found.end()
            if found.lastgroup != "space":
                yield Token(str(found.lastgroup), found[0])

    # ---- what is wrong

    def wrong(self, why: str) -> InvalidValue:
        """The text is not an expression."""
        return InvalidValue(f"{said(self.text)} is not an expression: {why}; write for instance 'age >= 18'")

    def refused(self, what: str, why: str) -> InvalidValue:
        """It is an expression, but has something that is not allowed."""
        return InvalidValue(f"{what} is not allowed in {said(self.text)}: {why}")

    def unfit(self, name: str, wanted: str, given: str) -> InvalidValue:
        """An operator is given values of kinds that it does not take."""
        return InvalidValue(
            f"{name} takes {wanted}, and is given {given} in {said(self.text)}: CAST(… AS …) says what is meant"
        )

    def too_deep(self) -> InvalidValue:
        """Nested further than an engine can be relied on to read."""
        return InvalidValue(
            f"{said(self.text)} is nested too deeply, or a chain too long: write IN (…), or derive() parts"
        )

    # ---- reading on

    @property
    def next(self) -> Token:
        """The token that is read next."""
        return self.tokens[self.place] if self.place < len(self.tokens) else _LAST

    @property
    def ended(self) -> bool:
        """Whether all was read."""
        return self.next is _LAST

    def take_any(self) -> Token:
        """The next token, whatever it is."""
        self.place += 1
        return self.tokens[self.place - 1]

    def take(self, *words: str) -> str | None:
        """The next word or sign, if it is one of these."""
        return self.take_any().word if self.next.word and self.next.word in words else None

    def take_words(self, *words: str) -> bool:
        """Several words in a row, or none of them."""
        ahead = [token.word for token in self.tokens[self.place : self.place + len(words)]]
        self.place += len(words) if ahead == list(words) else 0
        return ahead == list(words)

    def expect(self, word: str) -> None:
        """The next word or sign, which must be this one."""
        if not self.take(word):
            raise self.missing(word)

    def missing(self, what: str) -> InvalidValue:
        """Something should come next and does not."""
        return self.wrong(f"{what} is missing {'at its end' if self.ended else f'before {self.next.text!r}'}")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """One level further down."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.too_deep()
        yield
        self.depth -= 1
