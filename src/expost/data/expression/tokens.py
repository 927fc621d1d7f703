"""The tokeniser: the tokens of an expression, the position among them, and errors about the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from expost.errors import InvalidValue
from expost.mentions import brief

DEEPEST = 100
"""How deeply expressions, and calls in their trees, may be nested."""
_TOKENS = re.compile(
    r"""(?P<space>\s+)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w))
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><>|!=|<=|>=|==|\|\||//|::|[-+*/%=<>(),.])""",
    re.VERBOSE,
)
_INSTEAD = {
    "&": "write AND between conditions",
    "|": "write OR between conditions",
    "~": "write NOT before a condition",
    "!": "write NOT before a condition",
    "'": "a text begins and ends with a single quotation mark, and one within it is doubled, as in 'it''s'",
    '"': "a name begins and ends with a double quotation mark",
    **dict.fromkeys("‘’‚`´", "text goes in straight single quotes, as in 'Rome'"),
    **dict.fromkeys("“”„", "text goes in straight single quotes, as in 'Rome', and names of columns in double ones"),
}
"""What to write instead of a character that no expression has."""


@dataclass(frozen=True)
class Token:
    """One word, sign, number or quoted text."""

    way: str
    text: str

    @property
    def word(self) -> str:
        """The word or sign in upper case; empty for other tokens."""
        return self.text.upper() if self.way in ("word", "sign") else ""

    @property
    def unquoted(self) -> str:
        """What is between its quotation marks."""
        mark = self.text[0]
        return self.text[1:-1].replace(mark * 2, mark)


_LAST = Token("end", "")


class Tokens:
    """The tokens of an expression, and the position of the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens, self.place, self.depth = [*self._split()], 0, 0

    def _split(self) -> Iterator[Token]:
        place = 0
        while place < len(self.text):
            found = _TOKENS.match(self.text, place)
            if found is None or self.text.startswith(("--", "/*"), place):
                sign = self.text[place] if found is None else self.text[place : place + 2]
                more = [_INSTEAD[sign]] if sign in _INSTEAD else []
                raise self.wrong(f"{sign!r} is unexpected", *more)
            place = found.end()
            if found.lastgroup != "space":
                yield Token(str(found.lastgroup), found[0])

    # ---- errors

    def wrong(self, why: str, remedy: str = "write for instance 'age >= 18'") -> InvalidValue:
        """An error: the text is not an expression."""
        return InvalidValue(f"{brief(self.text)} is not an expression: {why}; {remedy}")

    def refused(self, what: str, why: str) -> InvalidValue:
        """An error: the expression contains something that is not allowed."""
        return InvalidValue(f"{what} is not allowed in {brief(self.text)}: {why}")

    def unfit(self, name: str, wanted: str, given: str) -> InvalidValue:
        """An error: an operator has arguments of kinds that it does not take."""
        return InvalidValue(f"{name} takes {wanted}, but has {given} in {brief(self.text)}: convert with CAST(… AS …)")

    def too_deep(self) -> InvalidValue:
        """An error: nested more deeply than engines reliably parse."""
        return InvalidValue(
            f"{brief(self.text)} is nested too deeply, or has too many operators: write IN (…), or derive parts of it"
        )

    # ---- reading tokens

    @property
    def next(self) -> Token:
        """The next token."""
        return self.tokens[self.place] if self.place < len(self.tokens) else _LAST

    @property
    def ended(self) -> bool:
        """Whether all tokens were read."""
        return self.next is _LAST

    def take_any(self) -> Token:
        """Consume the next token."""
        self.place += 1
        return self.tokens[self.place - 1]

    def take(self, *words: str) -> str | None:
        """Consume the next word or sign, if it is one of these."""
        return self.take_any().word if self.next.word and self.next.word in words else None

    def take_words(self, *words: str) -> bool:
        """Consume several words in a row, or nothing."""
        ahead = [token.word for token in self.tokens[self.place : self.place + len(words)]]
        self.place += len(words) if ahead == list(words) else 0
        return ahead == list(words)

    def expect(self, word: str) -> None:
        """Consume the next word or sign; raises unless it is this one."""
        if not self.take(word):
            raise self.missing(word)

    def missing(self, what: str) -> InvalidValue:
        """An error: something else should come next."""
        return self.wrong(f"{what} is missing {'at its end' if self.ended else f'before {self.next.text!r}'}")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Nest one level deeper."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.too_deep()
        yield
        self.depth -= 1
