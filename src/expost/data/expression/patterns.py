"""Patterns for text: LIKE, and the regular expressions that every engine matches in linear time.

A pattern is read here, character by character, and written anew for whoever matches it, so that no two readers of its
text can differ. Left out is what needs backtracking or a table of languages: references to groups, looking around,
lazy repetition, flags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from expost.cost import said
from expost.errors import InvalidValue

LARGEST_PATTERN = 100
"""The most characters and classes of a pattern, its repetitions written out: it bounds the work for each character."""
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": " \t\n\r\f"}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_REPEATED = re.compile(r"\*|\+|\?|\{([0-9]{1,4})(,([0-9]{0,4}))?\}")


@dataclass(frozen=True)
class Pattern:
    """A regular expression as RE2 reads it, and as Python does."""

    re2: str
    python: str

    def found_in(self, text: str) -> bool:
        """Whether it matches anywhere in a text."""
        return re.search(self.python, text, re.ASCII) is not None


def regular(text: str) -> Pattern:
    """The regular expression that a person wrote, or why it cannot be taken."""
    reader = _Reader(text)
    pattern, size = reader.alternatives()
    if reader.rest:
        raise reader.wrong("a ')' closes nothing")
    if size > LARGEST_PATTERN:
        raise reader.wrong(f"it is too large: repetitions written out, it may have {LARGEST_PATTERN} characters")
    return Pattern(pattern.replace(_END, r"\z"), pattern.replace(_END, r"\Z"))


_END = "\0"  # no pattern has it: what ends a text is written differently by RE2 and Python


class _Reader:
    """Reads a pattern from left to right; each part is what is written for it, and how many characters it matches."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0

    @property
    def rest(self) -> str:
        return self.text[self.place :]

    def wrong(self, why: str) -> InvalidValue:
        return InvalidValue(f"the pattern {said(self.text)} cannot be matched: {why}")

    def take(self, *ways: str) -> str | None:
        """The first of the ways that comes next, which is then behind us."""
        found = next((way for way in ways if self.text.startswith(way, self.place)), None)
        self.place += len(found or "")
        return found

    def character(self) -> str:
        if not self.rest:
            raise self.wrong("something is missing at its end")
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
                raise self.wrong("an end of the text cannot be repeated")
            return anchor, 1
        part, size = self.atom()
        sign = _REPEATED.match(self.text, self.place)
        if sign is None:
            return part, size
        self.place = sign.end()
        if self.rest[:1] in ("*", "+", "?", "{"):
            raise self.wrong("what is repeated cannot be repeated again, nor lazily: put it in parentheses")
        least, most = int(sign[1] or 0), int(sign[3] or sign[1] or 1)
        if most < least or most > LARGEST_PATTERN:
            raise self.wrong(f"{{m,n}} repeats at least m and at most n times, up to {LARGEST_PATTERN}")
        return part + _repetition(sign, least, most), size * max(most, 1)

    def atom(self) -> tuple[str, int]:
        if self.take("("):
            if self.rest.startswith("?") and not self.take("?:"):
                raise self.wrong("(?…) is not among what is matched, but (…) and (?:…) are")
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
                f"\\{letter} is none of \\d \\w \\s \\D \\W \\S \\b \\n \\t \\r \\f, or a sign such as \\."
            )
        return _ESCAPED.get(letter, letter)

    def set_of(self) -> str:
        negated, written = self.take("^") or "", ""
        while not (written and self.take("]")):
            if not self.rest or (not written and self.rest.startswith("]")):
                raise self.wrong("a '[' is not closed, or has nothing in it; write \\] for a ']' within […]")
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
                raise self.wrong("a range in […] ascends, as in a-z")
            return f"{_written(letter)}-{_written(last)}"
        return _written(letter)


def _repetition(sign: re.Match[str], least: int, most: int) -> str:
    """A repetition in one form: RE2 takes {02} literally, Python as {2}."""
    if sign[1] is None:
        return sign[0]
    return f"{{{least}}}" if sign[2] is None else f"{{{least},{most if sign[3] else ''}}}"


def literal(text: str) -> str:
    """A literal text, in a pattern."""
    return "".join(map(_written, text))


def _ranges(members: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "-" else _written(letter) for letter in members)


def _written(letter: str) -> str:
    """A character, with a backslash before it where it would mean something else; RE2 and Python agree on these."""
    if letter == "\n":
        return r"\n"
    sign = letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != "_"
    return f"\\{letter}" if sign else letter


def like_pattern(pattern: str) -> Pattern:
    """A whole text of the form of a LIKE pattern: % is any text, _ is any character, nothing escapes them."""
    written = "".join({"%": "(?:.|\n)*", "_": "(?:.|\n)"}.get(letter) or _written(letter) for letter in pattern)
    return Pattern(rf"\A{written}\z", rf"\A{written}\Z")


def is_like(text: str, pattern: str) -> bool:
    """Whether a text has the form of a LIKE pattern, in a time that grows with length times length at most."""
    states = {0}
    for letter in text:
        states = _through(states, pattern)
        states = {
            place if pattern[place] == "%" else place + 1
            for place in states
            if place < len(pattern) and pattern[place] in ("%", "_", letter)
        }
    return len(pattern) in _through(states, pattern)


def _through(states: set[int], pattern: str) -> set[int]:
    """The places that are reached without a character: those behind a %, too."""
    reached = set(states)
    for place in sorted(states):
        while place < len(pattern) and pattern[place] == "%":
            place += 1
            reached.add(place)
    return reached
