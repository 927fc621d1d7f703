"""Patterns for text: LIKE, and regular expressions that can be matched in linear time.

A pattern is parsed here and written again for each regular expression library, so that no two of them can understand
it differently. What needs backtracking or depends on a locale is left out: back-references, look-around, lazy
repetition, flags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from expost.errors import InvalidValue
from expost.mentions import brief

LARGEST_PATTERN = 100
"""The most characters and classes of a pattern, with repetitions written out: it bounds the work per character."""
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": " \t\n\r\f"}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_REPEATED = re.compile(r"\*|\+|\?|\{([0-9]{1,4})(,([0-9]{0,4}))?\}")


@dataclass(frozen=True)
class Pattern:
    """A regular expression in the syntax of RE2, and in Python's."""

    re2: str
    python: str

    def found_in(self, text: str) -> bool:
        """Whether it matches anywhere in a text."""
        return re.search(self.python, text, re.ASCII) is not None


def regular(text: str) -> Pattern:
    """Parse a regular expression; raises if it is not supported."""
    reader = _Reader(text)
    pattern, size = reader.alternatives()
    if reader.rest:
        raise reader.wrong("a ')' has no '(' before it; write \\) for a literal ')'")
    if size > LARGEST_PATTERN:
        raise reader.wrong(f"with repetitions written out, it has {size} characters, and may have {LARGEST_PATTERN}")
    return Pattern(pattern.replace(_END, r"\z"), pattern.replace(_END, r"\Z"))


_END = "\0"  # a placeholder that no pattern contains: RE2 and Python write the end of a text differently


class _Reader:
    """Parses a pattern from left to right; each method returns what is written for a part, and its size."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0

    @property
    def rest(self) -> str:
        return self.text[self.place :]

    def wrong(self, why: str) -> InvalidValue:
        return InvalidValue(f"the pattern {brief(self.text)} cannot be matched: {why}")

    def take(self, *ways: str) -> str | None:
        """Consume the first of these that comes next; None if none does."""
        found = next((way for way in ways if self.text.startswith(way, self.place)), None)
        self.place += len(found or "")
        return found

    def character(self) -> str:
        if not self.rest:
            raise self.wrong("it ends too early")
        self.place += 1
        return self.text[self.place - 1]

    def alternatives(self) -> tuple[str, int]:
        parts = [self.sequence()]
        while self.take("|"):
            parts.append(self.sequence())
        return "|".join(part for part, _ in parts), sum(size for _, size in parts)

    def sequence(self) -> tuple[str, int]:
        written, total = "", 0
        while self.rest and self.rest[0] not in "|)":
            part, size = self.repeated()
            written, total = written + part, total + size
        return written, total

    def repeated(self) -> tuple[str, int]:
        anchor = {"^": r"\A", "$": _END, "\\b": r"\b"}.get(self.take("^", "$", "\\b") or "")
        if anchor is not None:
            if self.rest[:1] in ("*", "+", "?", "{"):
                raise self.wrong("^, $ and \\b cannot be repeated")
            return anchor, 1
        part, size = self.atom()
        sign = _REPEATED.match(self.text, self.place)
        if sign is None:
            return part, size
        self.place = sign.end()
        if self.rest[:1] in ("*", "+", "?", "{"):
            raise self.wrong("a repetition cannot be repeated or lazy: put it in parentheses to repeat it")
        least, most = int(sign[1] or 0), int(sign[3] or sign[1] or 1)
        if most < least or most > LARGEST_PATTERN:
            raise self.wrong(f"{{m,n}} needs m ≤ n ≤ {LARGEST_PATTERN}")
        return part + _repetition(sign, least, most), size * max(most, 1)

    def atom(self) -> tuple[str, int]:
        if self.take("("):
            if self.rest.startswith("?") and not self.take("?:"):
                raise self.wrong("(?…) is not supported; use (…) or (?:…)")
            return self.group()
        if self.take("["):
            return self.set_of(), 1
        letter = self.character()
        if letter == ".":
            return r"[^\n]", 1
        if letter == "\\":
            return self.escape(), 1
        if letter in "*+?{}])":
            raise self.wrong(f"write \\{letter} for a literal {letter!r}")
        return _written(letter), 1

    def group(self) -> tuple[str, int]:
        self.depth += 1
        if self.depth > 20:
            raise self.wrong("its parentheses are nested too deeply")
        part, size = self.alternatives()
        if not self.take(")"):
            raise self.wrong("a '(' is not closed")
        self.depth -= 1
        return f"(?:{part})", max(size, 1)

    def escape(self) -> str:
        letter = self.character()
        if letter.lower() in _CLASSES:
            return f"[{'^' if letter.isupper() else ''}{_ranges(_CLASSES[letter.lower()])}]"
        return _written(self.plain(letter))

    def plain(self, letter: str) -> str:
        """The character after a backslash."""
        if letter.isalnum() and letter not in _ESCAPED:
            raise self.wrong(
                f"\\{letter} is not supported: use \\d \\w \\s \\D \\W \\S \\b \\n \\t \\r \\f, or a sign such as \\."
            )
        return _ESCAPED.get(letter, letter)

    def set_of(self) -> str:
        negated, written = self.take("^") or "", ""
        while not (written and self.take("]")):
            if not self.rest or (not written and self.rest.startswith("]")):
                raise self.wrong("a '[' is not closed, or is empty; write \\] for a ']' within […]")
            written += self.member()
        return f"[{negated}{written}]"

    def member(self) -> str:
        letter = self.character()
        if letter == "[":
            raise self.wrong("write \\[ for a '[' within […]")
        if letter == "\\":
            letter = self.character()
            if letter in _CLASSES:
                return _ranges(_CLASSES[letter])
            letter = self.plain(letter)
        if self.rest.startswith("-") and self.rest[1:2] not in ("", "]"):
            self.place += 1
            last = self.character()
            last = self.plain(self.character()) if last == "\\" else last
            if last < letter:
                raise self.wrong("a range in […] must ascend, as in a-z")
            return f"{_written(letter)}-{_written(last)}"
        return _written(letter)


def _repetition(sign: re.Match[str], least: int, most: int) -> str:
    """A repetition in canonical form: RE2 reads {02} literally, Python as {2}."""
    if sign[1] is None:
        return sign[0]
    return f"{{{least}}}" if sign[2] is None else f"{{{least},{most if sign[3] else ''}}}"


def literal(text: str) -> str:
    """A pattern that matches a text literally."""
    return "".join(map(_written, text))


def _ranges(members: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "-" else _written(letter) for letter in members)


def _written(letter: str) -> str:
    """A character, escaped where it would be special; RE2 and Python agree on these escapes."""
    if letter == "\n":
        return r"\n"
    sign = letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != "_"
    return f"\\{letter}" if sign else letter


def like_pattern(pattern: str) -> Pattern:
    """A LIKE pattern as a regular expression: % is any text, _ is any character, and neither can be escaped."""
    written = "".join({"%": "(?:.|\n)*", "_": "(?:.|\n)"}.get(letter) or _written(letter) for letter in pattern)
    return Pattern(rf"\A{written}\z", rf"\A{written}\Z")


def is_like(text: str, pattern: str) -> bool:
    """Whether a text matches a LIKE pattern, in time at most proportional to the product of their lengths.

    Bit ``i`` of ``states``: the first ``i`` signs of the pattern match what was read.
    """
    signs = {sign: sum(1 << place for place, each in enumerate(pattern) if each == sign) for sign in set(pattern)}
    many, one = signs.get("%", 0), signs.get("_", 0)
    states = _through(1, many)
    for letter in text:
        fits = states & (many | one | signs.get(letter, 0))
        states = _through(fits & many | (fits & ~many) << 1, many)
    return bool(states >> len(pattern))


def _through(states: int, many: int) -> int:
    """These states, and those that are reached from them without a character: past each %."""
    while (reached := states | (states & many) << 1) != states:
        states = reached
    return states
