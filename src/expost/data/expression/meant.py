"""What was probably meant where an expression cannot be read. Knows its text and the names of columns, and no value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from expost.data.expression.tokens import Token
from expost.data.expression.tree import Kind

WORDS_OF_SQL = frozenset(
    ("AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "NULL", "TRUE",
     "FALSE", "AS", "FROM", "SELECT", "DISTINCT", "INTERVAL", "WITH")
)  # fmt: skip
"""Words that are no names of columns unless they are in quotation marks."""
_COMPARED = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "LIKE", "ILIKE")
_IN_QUOTES: tuple[Kind | None, ...] = ("text", "date", "timestamp", None)  # None: of an operator, whose kind is unknown
_MOST_WORDS = 6
_QUOTED = " A name that is no plain word goes in double quotation marks"


def quoted_name(name: str) -> str:
    """The name of a column as expressions have it: in quotation marks, unless it is a plain word."""
    return name if is_word(name) else '"' + name.replace('"', '""') + '"'


def is_word(name: str) -> bool:
    """Whether expressions can name a column of this name without quotation marks."""
    return re.fullmatch(r"[^\W\d]\w*", name) is not None and name.upper() not in WORDS_OF_SQL


def text_literal(text: str) -> str:
    """A text as expressions have it."""
    return "'" + text.replace("'", "''") + "'"


def instead_of_name(tokens: Sequence[Token], place: int, schema: Mapping[str, Kind]) -> str:
    """What to write instead of the name at this place, of which there is no column."""
    apart = column_in_words(tokens, place, schema)
    if apart is not None:
        return f"did you mean {apart!r}?" if is_word(apart) else f"did you mean {quoted_name(apart)}?{_QUOTED}"
    near = get_close_matches(_given(tokens[place]), schema, n=1)
    text = _as_text(tokens, place, schema)
    if near:
        return f"did you mean {near[0]!r}?" + (f" Text goes in single quotes, as in {text}" if text else "")
    if text:
        return f"text goes in single quotes, as in {text}"
    return f"there are {', '.join(map(repr, schema))}"


def column_in_words(tokens: Sequence[Token], place: int, schema: Mapping[str, Kind]) -> str | None:
    """The column whose name is spelled by the tokens from this place on, whatever is between its words."""
    plain: dict[str, list[str]] = {}
    for column in schema:
        plain.setdefault(_letters(column), []).append(column)
    for number in range(_MOST_WORDS, 0, -1):
        together = tokens[place : place + number]
        # a name ends with a word, or with a number that follows one: not with the sign, or the value, behind it
        spelled = _letters("".join(map(_given, together)))
        if together[-1].way in ("word", "quoted", "number") and len(plain.get(spelled, ())) == 1:
            return plain[spelled][0]
    return None


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _given(token: Token) -> str:
    return token.unquoted if token.way in ("quoted", "text") else token.text


def _as_text(tokens: Sequence[Token], place: int, schema: Mapping[str, Kind]) -> str:
    """The comparison with this name as a text; nothing where no text is compared."""
    before = tokens[place - 1] if place else None
    if before is not None and before.word in _COMPARED and _is_quotable(tokens, place - 2, schema):
        other = tokens[place - 2]
        compared = f"{other.text} {before.text} " if other.way in ("word", "quoted") else ""
        return compared + text_literal(_words(tokens, place))
    if _is_listed(tokens, place):
        return text_literal(_words(tokens, place))
    if place + 2 < len(tokens) and tokens[place + 1].word in _COMPARED and _is_known_text(tokens[place + 2], schema):
        return f"{text_literal(_given(tokens[place]))} {tokens[place + 1].text} {tokens[place + 2].text}"
    return ""


def _is_quotable(tokens: Sequence[Token], place: int, schema: Mapping[str, Kind]) -> bool:
    """Whether what ends at this place may be compared with a text."""
    return place >= 0 and tokens[place].way != "number" and _kind(tokens[place], schema) in _IN_QUOTES


def _is_known_text(token: Token, schema: Mapping[str, Kind]) -> bool:
    return _kind(token, schema) == "text"


def _kind(token: Token, schema: Mapping[str, Kind]) -> Kind | None:
    kinds = (kind for name, kind in schema.items() if name.lower() == _given(token).lower())
    return next(kinds, None) if token.way in ("word", "quoted") else None


def _is_listed(tokens: Sequence[Token], place: int) -> bool:
    """Whether a name stands in the list of IN."""
    while place and (tokens[place - 1].way in ("word", "quoted", "text", "number") or tokens[place - 1].word == ","):
        place -= 1
    return place > 1 and tokens[place - 1].word == "(" and tokens[place - 2].word == "IN"


def _words(tokens: Sequence[Token], place: int) -> str:
    """The words from this place on: a text of several words, where quotation marks were forgotten."""
    words = [_given(tokens[place])]
    if tokens[place].way == "word":
        for token in tokens[place + 1 :]:
            if token.way != "word" or token.word in WORDS_OF_SQL:
                break
            words.append(token.text)
    return " ".join(words)
