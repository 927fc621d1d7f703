"""From text to trees: the SQL of one row, read by precedence.

What is not understood is refused, with the place and what would do. Kinds are found on the way: a whole number becomes
a number where one is needed, a date a timestamp, and a text that is stated beside a date is read as one; nothing else
is converted without being asked to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Any, Never, cast

from expost.cost import said
from expost.data.expression import calendar, operators, patterns
from expost.data.expression.tree import Call, Kind, Operator, Reference, Stated, Tree, uncomputable
from expost.errors import InvalidValue

_LONGEST, _DEEPEST = 10_000, 100
_TOKENS = re.compile(
    r"""(?P<space>\s+)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w))
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><>|!=|<=|>=|==|\|\||//|::|[-+*/%=<>(),.])""",
    re.VERBOSE,
)
_RESERVED = frozenset(
    ("AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "NULL", "TRUE",
     "FALSE", "AS", "FROM", "SELECT", "DISTINCT")
)  # fmt: skip
TYPES: dict[str, Kind] = {
    **dict.fromkeys(("INTEGER", "INT", "BIGINT"), "integer"),
    **dict.fromkeys(("DOUBLE", "NUMBER"), "number"),
    **dict.fromkeys(("TEXT", "VARCHAR"), "text"),
    **dict.fromkeys(("BOOLEAN", "BOOL"), "boolean"),
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}
"""What CAST calls the kinds."""
_SYNONYMS = {"ceiling": "ceil", "len": "length", "substr": "substring", "dow": "dayofweek", "doy": "dayofyear"}
_SYNONYMS |= {"prefix": "starts_with", "suffix": "ends_with", "ifnull": "coalesce", "datediff": "date_diff"}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_BY_NAME: dict[str, list[Operator]] = {}
for _operator in operators.TABLE:
    _BY_NAME.setdefault(_operator.name, []).append(_operator)
_FUNCTIONS = (
    frozenset(name for name in _BY_NAME if name.islower() and name.isidentifier())
    - {"negative"}
    - {name for name in _BY_NAME if name.startswith("add_")}
)
_SPECIAL = frozenset(
    ("if", "cast", "try_cast", "extract", "date_trunc", "date_diff", "left", "right", "substring", "regexp_matches")
)
FUNCTIONS = tuple(sorted(_FUNCTIONS | _SPECIAL))
"""The names of functions."""
_AGGREGATES = frozenset(
    ("sum", "count", "avg", "mean", "min", "max", "median", "mode", "stddev", "variance", "quantile")
)
_INEXACT = frozenset(("exp", "ln", "log", "log2", "log10", "pow", "power", "sin", "cos", "tan", "asin", "acos", "atan"))


def parse(text: Any, schema: Mapping[str, Kind]) -> Tree:
    """The expression that a text writes, with its columns as the schema spells them."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidValue(f"an expression is text in SQL such as 'age >= 18', got {said(text)}")
    if len(text) > _LONGEST:
        raise InvalidValue(f"an expression has at most {_LONGEST} characters, got {len(text)}: derive() parts of it")
    if not is_text(text):
        raise InvalidValue("an expression is text that can be written in UTF-8, without NUL")
    return _parsed(text, tuple(schema.items()))


@lru_cache(maxsize=1024)
def _parsed(text: str, schema: tuple[tuple[str, Kind], ...]) -> Tree:
    reader = _Reader(text, dict(schema))
    try:
        tree = reader.whole()
    except RecursionError:
        raise reader.too_deep() from None
    if uncomputable(tree):
        raise InvalidValue(f"{said(text)} has a part without columns that cannot be computed")
    return tree


def is_text(value: str) -> bool:
    """Whether an engine can be given this text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def find(name: Any, schema: Mapping[str, Kind]) -> str:
    """The column of that name, as the schema spells it."""
    if not isinstance(name, str):
        raise InvalidValue(f"a column is given by its name, got {said(name)}")
    if name in schema:
        return name
    alike = [column for column in schema if column.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    near = get_close_matches(name, schema, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, schema))}"
    raise InvalidValue(f"there is no column {name!r}: {hint}")


# ---- kinds


def call(name: str, arguments: Sequence[Tree], origin: str) -> Tree:
    """The operator of that name for arguments of these kinds."""
    found = [(_distance(each, arguments), each) for each in _BY_NAME[name]]
    fitting = [(distance, each) for distance, each in found if distance is not None]
    if not fitting:
        raise _unfit(name, arguments, origin)
    _, best = min(fitting, key=lambda pair: pair[0])
    return apply(best, arguments)


def apply(operator: Operator, arguments: Sequence[Tree]) -> Call:
    """The operator on arguments that become what it takes."""
    kinds = _kinds(operator, len(arguments))
    return Call(operator, tuple(_become(each, kind) for each, kind in zip(arguments, kinds, strict=True)))


def _kinds(operator: Operator, arguments: int) -> tuple[Kind, ...]:
    extra = arguments - len(operator.takes) if operator.many else 0
    return operator.takes + operator.takes[-1:] * max(extra, 0)


def _distance(operator: Operator, arguments: Sequence[Tree]) -> int | None:
    """How much must be converted for an operator to fit; None if it cannot."""
    kinds = _kinds(operator, len(arguments))
    if len(kinds) != len(arguments):
        return None
    each = [_away(argument, kind) for argument, kind in zip(arguments, kinds, strict=True)]
    return None if None in each else sum(cast(list[int], each))


def _away(tree: Tree, kind: Kind) -> int | None:
    if tree.kind == kind or tree.kind is None:
        return 0
    if (tree.kind, kind) in (("integer", "number"), ("date", "timestamp")):
        return 1
    return 2 if _is_text(tree) and kind in ("date", "timestamp") and _become_time(tree, kind) else None


def _is_text(tree: Tree) -> bool:
    return isinstance(tree, Stated) and tree.kind == "text"


def _become_time(tree: Tree, kind: Kind) -> Stated | None:
    text = str(cast(Stated, tree).value)
    value = calendar.as_date(text) if kind == "date" else calendar.as_timestamp(text)
    return None if value is None else Stated(value, kind)


def _become(tree: Tree, kind: Kind) -> Tree:
    if tree.kind == kind:
        return tree
    if isinstance(tree, Stated) and tree.value is None:
        return Stated(None, kind)
    if _is_text(tree):
        return cast(Stated, _become_time(tree, kind))
    converted = Call(operators.CASTS[cast(Kind, tree.kind), kind], (tree,))
    if isinstance(tree, Stated):
        return Stated(converted.operator.meaning(tree.value), kind)
    return converted


def _unfit(name: str, arguments: Sequence[Tree], origin: str) -> InvalidValue:
    kinds = [each.kind for each in arguments]
    if any(map(_is_text, arguments)) and set(kinds) - {"text", None}:
        return InvalidValue(
            f"{said(origin)} has a text that does not fit where it stands: write a date as DATE '2024-01-31', and a "
            "number without quotation marks"
        )
    takes = sorted({" and ".join(each.takes) for each in _BY_NAME[name]})
    wanted = ", or ".join(takes) if len(takes) <= 3 else "values of one kind"
    given = " and ".join(kind or "NULL" for kind in kinds)
    called = f"{name}()" if name.islower() else name
    return InvalidValue(
        f"{called} takes {wanted}, and is given {given} in {said(origin)}: CAST(… AS …) says what is meant"
    )


# ---- reading


@dataclass(frozen=True)
class _Token:
    way: str
    text: str

    @property
    def word(self) -> str:
        """In capitals, if it is a word or a sign."""
        return self.text.upper() if self.way in ("word", "sign") else ""


_LAST = _Token("end", "")


class _Reader:
    """Reads an expression from left to right; each method reads what binds more tightly than the one before it."""

    def __init__(self, text: str, schema: Mapping[str, Kind]) -> None:
        self.text, self.schema = text, schema
        self.tokens, self.place, self.depth = [*self._split()], 0, 0

    def _split(self) -> Iterator[_Token]:
        place = 0
        while place < len(self.text):
            found = _TOKENS.match(self.text, place)
            if found is None or self.text.startswith(("--", "/*"), place):
                raise self.wrong(f"{self.text[place : place + (1 if found is None else 2)]!r} means nothing here")
            place = found.end()
            if found.lastgroup != "space":
                yield _Token(str(found.lastgroup), found[0])

    def wrong(self, why: str) -> InvalidValue:
        return InvalidValue(f"{said(self.text)} is not an expression: {why}; write for instance 'age >= 18'")

    def refused(self, what: str, why: str) -> InvalidValue:
        return InvalidValue(f"{what} is not allowed in {said(self.text)}: {why}")

    def too_deep(self) -> InvalidValue:
        return InvalidValue(
            f"{said(self.text)} is nested too deeply, or a chain too long: write IN (…), or derive() parts"
        )

    @property
    def next(self) -> _Token:
        return self.tokens[self.place] if self.place < len(self.tokens) else _LAST

    def take(self, *words: str) -> str | None:
        """The word or sign that comes next, if it is one of these; it is then behind us."""
        if self.next.word and self.next.word in words:
            self.place += 1
            return self.tokens[self.place - 1].word
        return None

    def take_words(self, *words: str) -> bool:
        """Several words in a row, or none of them."""
        ahead = [token.word for token in self.tokens[self.place : self.place + len(words)]]
        if ahead != list(words):
            return False
        self.place += len(words)
        return True

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.wrong(f"{word} is missing {self.where}")

    @property
    def where(self) -> str:
        return "at its end" if self.next is _LAST else f"before {self.next.text!r}"

    def call(self, name: str, *arguments: Tree) -> Tree:
        made = call(name, arguments, self.text)
        if made.depth > _DEEPEST:
            raise self.too_deep()
        return made

    def whole(self) -> Tree:
        tree = self.expression()
        if self.next is not _LAST:
            raise self.wrong(f"{self.next.text!r} means nothing where it stands")
        return tree

    def expression(self) -> Tree:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.too_deep()
        tree = self._chain("OR", lambda: self._chain("AND", self.negation))
        self.depth -= 1
        return tree

    def _chain(self, word: str, part: Callable[[], Tree]) -> Tree:
        parts = [part()]
        while self.take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else self.call(word, *parts)

    def negation(self) -> Tree:
        if not self.take("NOT"):
            return self.predicate()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.too_deep()
        tree = self.call("NOT", self.negation())
        self.depth -= 1
        return tree

    def predicate(self) -> Tree:
        tree = self.joined()
        while True:
            further = self.compared(tree)
            if further is None:
                return tree
            tree = further

    def compared(self, tree: Tree) -> Tree | None:
        """What stands behind a value and makes it a condition."""
        if self.take("IS"):
            return self.is_what(tree)
        denied = self.take_words("NOT", "IN") or self.take_words("NOT", "BETWEEN")
        denied = denied or self.take_words("NOT", "LIKE") or self.take_words("NOT", "ILIKE")
        self.place -= 1 if denied else 0
        word = self.take("IN", "BETWEEN", "LIKE", "ILIKE")
        if word is None:
            sign = self.take("=", "==", "<>", "!=", "<", "<=", ">", ">=")
            if sign is None:
                return None
            return self.call({"==": "=", "!=": "<>"}.get(sign, sign), tree, self.joined())
        made = self.among(tree) if word == "IN" else self.between(tree) if word == "BETWEEN" else self.like(tree, word)
        return self.call("NOT", made) if denied else made

    def is_what(self, tree: Tree) -> Tree:
        denied = self.take("NOT") is not None
        if self.take_words("DISTINCT", "FROM"):
            made = self.call("IS DISTINCT FROM", tree, self.joined())
        elif self.take("NULL"):
            made = self.call("IS NULL", tree)
        else:
            word = self.take("TRUE", "FALSE")
            if word is None:
                raise self.wrong("IS goes with NULL, TRUE, FALSE or DISTINCT FROM, and NOT before these")
            made = self.call("NOT", self.call("IS DISTINCT FROM", tree, Stated(word == "TRUE", "boolean")))
        return self.call("NOT", made) if denied else made

    def among(self, tree: Tree) -> Tree:
        self.expect("(")
        if self.next.word == "SELECT":
            self.no_query()
        return self.call("IN", tree, *self.listed())

    def between(self, tree: Tree) -> Tree:
        low = self.joined()
        self.expect("AND")
        return self.call("BETWEEN", tree, low, self.joined())

    def like(self, tree: Tree, word: str) -> Tree:
        pattern = self.stated_text(self.primary(), word)
        if len(pattern) > patterns.LARGEST and re.search("[%_]", pattern.strip("%")):
            raise self.wrong(f"a pattern of {word} with % or _ inside has at most {patterns.LARGEST} characters")
        if word == "ILIKE":
            tree, pattern = self.call("lower", tree), operators.lower(pattern)
        return self.applied(operators.like(pattern), tree)

    def applied(self, operator: Operator, tree: Tree) -> Tree:
        if _distance(operator, [tree]) is None:
            raise InvalidValue(
                f"{operator.name} in {said(self.text)} takes {operator.takes[0]}, and is given {tree.kind}: "
                "CAST(… AS …) says what is meant"
            )
        return apply(operator, [tree])

    def stated_text(self, tree: Tree, word: str) -> str:
        if not isinstance(tree, Stated) or not isinstance(tree.value, str):
            raise self.wrong(f"the pattern of {word} is a stated text, as in name {word} 'A%'")
        return tree.value

    def joined(self) -> Tree:
        tree = self.sums()
        while self.take("||"):
            tree = self.call("||", tree, self.sums())
        return tree

    def sums(self) -> Tree:
        tree = self.products()
        while sign := self.take("+", "-"):
            tree = self.moved(tree, sign) if self.take("INTERVAL") else self.call(sign, tree, self.products())
        return tree

    def products(self) -> Tree:
        tree = self.signed()
        while sign := self.take("*", "/", "//", "%"):
            if self.take("*"):
                raise self.refused("**", _LAST_DIGIT)
            tree = self.call(sign, tree, self.signed())
        return tree

    def signed(self) -> Tree:
        if self.take("+"):
            return self.signed()
        if not self.take("-"):
            return self.cast_after(self.primary())
        if self.next.way == "number":
            return self.cast_after(self.number("-"))
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.too_deep()
        tree = self.call("negative", self.signed())
        self.depth -= 1
        return tree

    def cast_after(self, tree: Tree) -> Tree:
        while self.take("::"):
            tree = self.cast(tree)
        return tree

    def number(self, sign: str = "") -> Stated:
        text = sign + self.next.text
        self.place += 1
        if len(text) > 400:
            raise self.wrong("a number has at most 400 characters")
        if re.fullmatch(r"-?[0-9]+", text):
            if not operators.LEAST <= int(text) <= operators.MOST:
                raise self.wrong(f"{text} has more than 64 bits: write {text}.0 for a number")
            return Stated(int(text), "integer")
        return Stated(float(text), "number")

    def primary(self) -> Tree:
        token = self.next
        if token.way == "number":
            return self.number()
        self.place += 1
        if token.way == "text":
            return Stated(_unquoted(token.text), "text")
        if token.way == "quoted":
            return self.column(_unquoted(token.text))
        if token.word == "(":
            return self.parenthesis()
        if token.way == "word":
            return self.named(token)
        self.place -= 1
        raise self.wrong(f"a value is missing {self.where}")

    def parenthesis(self) -> Tree:
        if self.next.word in ("SELECT", "WITH", "FROM"):
            self.no_query()
        tree = self.expression()
        self.expect(")")
        return tree

    def no_query(self) -> Never:
        raise self.refused("a query", "an expression is about one row, and a query looks at others")

    def named(self, token: _Token) -> Tree:
        """What begins with a word: a constant, CASE, a date, a function, a column."""
        word = token.word
        if word in ("TRUE", "FALSE"):
            return Stated(word == "TRUE", "boolean")
        if word == "NULL":
            return Stated(None, None)
        if word == "CASE":
            return self.case()
        if word in ("DATE", "TIMESTAMP") and self.next.way == "text":
            return self.time(word)
        if word in _RESERVED:
            self.place -= 1
            raise self.wrong(f"a value is missing {self.where}")
        if self.take("("):
            return self.function(_SYNONYMS.get(token.text.lower(), token.text.lower()))
        if word == "INTERVAL":
            raise self.wrong("an INTERVAL is added to a date or a timestamp, or taken from one")
        return self.column(token.text)

    def column(self, name: str) -> Tree:
        if self.take("."):
            raise InvalidValue(f"{name!r} in {said(self.text)} has two names: give the column's alone")
        found = find(name, self.schema)
        if self.schema[found] == "other":
            raise InvalidValue(
                f"column {found!r} holds what expressions cannot read: take another, or write it as text"
            )
        return Reference(found, self.schema[found])

    def time(self, word: str) -> Stated:
        text = _unquoted(self.next.text)
        self.place += 1
        found = _become_time(Stated(text, "text"), "date" if word == "DATE" else "timestamp")
        if found is None:
            example = "DATE '2024-01-31'" if word == "DATE" else "TIMESTAMP '2024-01-31 18:30:00'"
            raise self.wrong(f"{word} {text!r} is none: write {example}, in the years 1 to 9999")
        return found

    def case(self) -> Tree:
        subject = None if self.next.word == "WHEN" else self.expression()
        branches: list[tuple[Tree, Tree]] = []
        while self.take("WHEN"):
            when = self.expression()
            self.expect("THEN")
            branches.append((when if subject is None else self.call("=", subject, when), self.expression()))
        tree = self.expression() if self.take("ELSE") else Stated(None, None)
        self.expect("END")
        if not branches or len(branches) > _DEEPEST:
            raise self.wrong(f"CASE has from one to {_DEEPEST} branches: CASE WHEN … THEN … ELSE … END")
        return self.choice(branches, tree)

    def choice(self, branches: Sequence[tuple[Tree, Tree]], tree: Tree) -> Tree:
        """The value of the first condition that is true. All values become of one kind first."""
        kinds = {value.kind for value in (*(value for _, value in branches), tree)} - {None}
        wider = {"integer": "number", "date": "timestamp"}
        kind = next((k for k in kinds if all(k in (each, wider.get(str(each))) for each in kinds)), None)
        if kind is None:
            raise self.wrong("the values of a CASE are all of one kind: CAST(… AS …) says which")
        tree = _become(tree, kind)
        for when, value in reversed(branches):
            tree = self.call("CASE", when, _become(value, kind), tree)
        return tree

    # ---- functions

    def listed(self) -> list[Tree]:
        """Arguments, up to the closing parenthesis."""
        if self.take(")"):
            return []
        trees = [self.expression()]
        while self.take(","):
            trees.append(self.expression())
        self.expect(")")
        return trees

    def function(self, name: str) -> Tree:
        special: dict[str, Callable[[], Tree]] = {
            "cast": self.cast_call,
            "try_cast": self.cast_call,
            "extract": self.extract,
            "date_trunc": self.date_trunc,
            "date_diff": self.date_diff,
            "if": self.if_call,
            "round": self.round_call,
            "regexp_matches": self.regexp,
            **{part: partial(self.part_of_text, part) for part in ("left", "right", "substring")},
        }
        if name in special:
            return special[name]()
        if name not in _FUNCTIONS:
            raise self.refused(f"{name}()", _why_not(name))
        arguments = self.listed()
        if not arguments:
            raise self.wrong(f"{name}() is given nothing")
        return self.call(name, *arguments)

    def cast_call(self) -> Tree:
        tree = self.expression()
        self.expect("AS")
        made = self.cast(tree)
        self.expect(")")
        return made

    def cast(self, tree: Tree) -> Tree:
        word = self.next.word or self.next.text
        kind = TYPES.get(word)
        if kind is None:
            raise self.refused(f"CAST to {said(word)}", "cast to INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP")
        self.place += 1
        if tree.kind is None:
            return Stated(None, kind)
        operator = operators.CASTS.get((tree.kind, kind))
        if operator is None:
            why = {("number", "text"): "CAST it to INTEGER first", ("number", "boolean"): "write x <> 0"}
            remedy = why.get((tree.kind, kind), "there is no such meaning")
            raise self.refused(f"CAST of {tree.kind} to {kind}", remedy)
        return Call(operator, (tree,))

    def if_call(self) -> Tree:
        arguments = self.listed()
        if len(arguments) != 3:
            raise self.wrong("if() has a condition and two values: if(age < 18, 'young', 'old')")
        return self.choice([(arguments[0], arguments[1])], arguments[2])

    def round_call(self) -> Tree:
        tree, *digits = self.listed() or [Stated(None, None)]
        if not digits:
            return self.call("round", tree)
        places = digits[0].value if len(digits) == 1 and isinstance(digits[0], Stated) else None
        if not isinstance(places, int) or isinstance(places, bool) or not 0 <= places <= 15:
            raise self.wrong("round() has a value and, if any, a stated number of digits from 0 to 15: round(x, 2)")
        scale = Stated(float(10**places), "number")
        return self.call("/", self.call("round", self.call("*", tree, scale)), scale)

    def regexp(self) -> Tree:
        arguments = self.listed()
        if len(arguments) != 2:
            raise self.wrong("regexp_matches() has a text and a pattern, and no flags: lower() what should not matter")
        pattern = self.stated_text(arguments[1], "regexp_matches()")
        return self.applied(operators.regexp_matches(pattern), arguments[0])

    def part_of_text(self, name: str) -> Tree:
        tree, *numbers = self.listed() or [Stated(None, None)]
        counts = [each.value for each in numbers if isinstance(each, Stated) and type(each.value) is int]
        wanted = {"left": (1,), "right": (1,), "substring": (1, 2)}[name]
        first = 1 if name == "substring" else 0
        if len(counts) != len(numbers) or len(counts) not in wanted or not all(0 <= n <= 10**6 for n in counts):
            raise self.wrong(f"{name}() has a text and stated whole numbers from {first} on, as in {name}(name, 2)")
        if name == "substring" and counts[0] < 1:
            raise self.wrong("substring() counts from 1: substring(name, 1, 2)")
        if name == "substring":
            return self.applied(operators.substring(counts[0], (*counts, 10**6)[1]), tree)
        return self.applied(operators.left(counts[0]) if name == "left" else operators.right(counts[0]), tree)

    # ---- time

    def unit(self) -> str:
        """A unit of time, as a word or in quotation marks."""
        token = self.next
        if token.way not in ("word", "text"):
            raise self.wrong(f"a unit of time is missing {self.where}")
        self.place += 1
        return _unit(token.text if token.way == "word" else _unquoted(token.text))

    def extract(self) -> Tree:
        name = _SYNONYMS.get(unit := self.unit(), unit)
        self.expect("FROM")
        tree = self.expression()
        self.expect(")")
        if name not in (*calendar.PARTS, *calendar.PARTS_OF_TIME):
            known = ", ".join((*calendar.PARTS, *calendar.PARTS_OF_TIME))
            raise self.refused(f"extract({unit} FROM …)", f"there are {known}")
        return self.call(name, tree)

    def of_unit(self, name: str, unit: str, *arguments: Tree) -> Tree:
        operator = f"{name}('{unit}')"
        if operator not in _BY_NAME:
            known = ", ".join((*operators.UNITS, *operators.UNITS_OF_TIME))
            raise self.refused(f"{name}({unit!r}, …)", f"its units are {known}")
        return self.call(operator, *arguments)

    def date_trunc(self) -> Tree:
        unit = self.unit()
        self.expect(",")
        return self.of_unit("date_trunc", unit, *self.listed())

    def date_diff(self) -> Tree:
        unit = self.unit()
        self.expect(",")
        return self.of_unit("date_diff", unit, *self.listed())

    def moved(self, tree: Tree, sign: str) -> Tree:
        """A date or timestamp and an interval: INTERVAL 3 DAY, INTERVAL '3 days', INTERVAL (n) MONTH."""
        count, unit = self.interval()
        if unit not in (*_SECONDS, *_MONTHS):
            raise self.refused(f"INTERVAL of {said(unit)}", f"its units are {', '.join((*_MONTHS, *_SECONDS))}")
        size = _MONTHS.get(unit) or (_SECONDS[unit] // (86_400 if tree.kind == "date" and unit in _DAYS else 1))
        times = count if size == 1 else self.call("*", count, Stated(size, "integer"))
        by = times if sign == "+" else self.call("negative", times)
        if unit in _MONTHS:
            return self.call("add_months", tree, by)
        return self.call("+" if tree.kind == "date" and unit in _DAYS else "add_seconds", tree, by)

    def interval(self) -> tuple[Tree, str]:
        if self.next.way == "text":
            found = re.fullmatch(r"\s*([+-]?[0-9]{1,18})\s*([A-Za-z]*)\s*", _unquoted(self.next.text))
            if found is None:
                raise self.wrong("an interval is a whole number and a unit, as in INTERVAL '3' DAY")
            self.place += 1
            return Stated(int(found[1]), "integer"), _unit(found[2]) if found[2] else self.unit()
        count = self.number() if self.next.way == "number" else self.primary()
        return count, self.unit()


_DAYS = ("day", "week")
_LAST_DIGIT = (
    "engines differ in its last digit, so that a row's value could depend on others; compute it before the table is "
    "read, or write x * x and sqrt(x)"
)


def _why_not(name: str) -> str:
    if name in _INEXACT:
        return _LAST_DIGIT
    if name in _AGGREGATES:
        return "an expression is about one row; ask the table for count(), sum(), mean() or histogram()"
    if name == "concat":
        return "write a || b, without NULL coalesce(a, '') || b"
    if name == "try":
        return "it is not needed: what cannot be computed is NULL"
    near = get_close_matches(name, FUNCTIONS, n=1)
    hint = f"did you mean {near[0]}()? " if near else ""
    return f"{hint}only functions of one row that always give the same value are, and expost.data.ALLOWED lists them"


def _unit(word: str) -> str:
    """A unit of time, in the singular."""
    single = word.lower().removesuffix("s")
    return single if single in (*_SECONDS, *_MONTHS) else word.lower()


def _unquoted(token: str) -> str:
    mark = token[0]
    return token[1:-1].replace(mark * 2, mark)
