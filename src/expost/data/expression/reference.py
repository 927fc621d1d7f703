"""The reference of expressions in Markdown, generated from the table of operators."""

from __future__ import annotations

from expost.data.expression import operators
from expost.data.expression.functions import CAST_NAMES, FUNCTIONS
from expost.data.expression.tree import Operator

MEANINGS: dict[str, tuple[str, str]] = {
    "=": ("a = b", "equal; NaN equals itself"),
    "<>": ("a <> b, a != b", "not equal"),
    "<": ("a < b", "numbers in their order, NaN above all; text by code points"),
    "<=": ("a <= b", "the same, or equal"),
    ">": ("a > b", "the other way round"),
    ">=": ("a >= b", "the same, or equal"),
    "BETWEEN": ("a BETWEEN b AND c", "a >= b AND a <= c"),
    "IN": ("a IN (b, c)", "a = b OR a = c"),
    "IS NULL": ("a IS NULL, IS NOT NULL", "whether there is no value"),
    "IS DISTINCT FROM": ("a IS DISTINCT FROM b", "not equal, NULL being equal to itself; also IS TRUE, IS FALSE"),
    "AND": ("a AND b", "false if one is false, else NULL if one is NULL"),
    "OR": ("a OR b", "true if one is true, else NULL if one is NULL"),
    "NOT": ("NOT a", "the opposite; NULL stays NULL"),
    "CASE": ("CASE WHEN a THEN b ELSE c END, if(a, b, c)", "b if a is true, else c; CASE x WHEN 1 THEN … as well"),
    "coalesce": ("coalesce(a, b)", "the first that is not NULL"),
    "nullif": ("nullif(a, b)", "NULL if a = b, else a"),
    "greatest": ("greatest(a, b)", "the largest of those that are not NULL"),
    "least": ("least(a, b)", "the smallest of those that are not NULL"),
    "+": ("a + b", "sum; a date and a number of days"),
    "-": ("a - b", "difference; days between two dates"),
    "*": ("a * b", "product"),
    "/": ("a / b", "quotient as a number; NULL if b is 0"),
    "//": ("a // b", "quotient rounded towards zero; NULL if b is 0"),
    "%": ("a % b", "remainder, with the sign of a; NULL if b is 0"),
    "negative": ("-a", "the opposite"),
    "abs": ("abs(a)", "the distance from zero"),
    "sign": ("sign(a)", "−1, 0 or 1; 0 for NaN"),
    "floor": ("floor(a)", "the largest whole number that is not larger"),
    "ceil": ("ceil(a)", "the smallest whole number that is not smaller"),
    "round": ("round(a), round(a, 2)", "the nearest, half away from zero; with digits, round(a * 100) / 100"),
    "sqrt": ("sqrt(a)", "the square root; NULL below zero"),
    "isnan": ("isnan(a)", "whether it is NaN"),
    "isinf": ("isinf(a)", "whether it is ±∞"),
    "lower": ("lower(a)", "small letters, one code point for one"),
    "upper": ("upper(a)", "capital letters, one code point for one"),
    "trim": ("trim(a)", "without spaces at both ends"),
    "ltrim": ("ltrim(a)", "without spaces at the beginning"),
    "rtrim": ("rtrim(a)", "without spaces at the end"),
    "length": ("length(a)", "how many code points it has"),
    "||": ("a || b", f"one after the other, cut to {operators.LONGEST_MADE} characters"),
    "starts_with": ("starts_with(a, b)", "whether a begins with b"),
    "ends_with": ("ends_with(a, b)", "whether a ends with b"),
    "contains": ("contains(a, b)", "whether b occurs in a"),
    "strpos": ("strpos(a, b)", "where b begins in a, from 1; 0 if nowhere"),
    "add_months": ("a + INTERVAL 3 MONTH", "months, quarters or years later; the last day of a month that is shorter"),
    "add_seconds": ("a + INTERVAL (b) HOUR", "seconds, minutes, hours, days or weeks later (or earlier)"),
    **{part: (f"{part}(a)", f"the {part}; also extract({part} FROM a)") for part in
       ("year", "quarter", "month", "day", "hour", "minute", "second")},
    "week": ("week(a)", "the week of ISO 8601"),
    "dayofweek": ("dayofweek(a)", "Sunday is 0"),
    "isodow": ("isodow(a)", "Monday is 1, Sunday 7"),
    "dayofyear": ("dayofyear(a)", "1 January is 1"),
    **{f"date_trunc('{unit}')": (f"date_trunc('{unit}', a)", f"where the {unit} begins") for unit in
       (*operators.UNITS, *operators.UNITS_OF_TIME)},
    **{f"date_diff('{unit}')": (f"date_diff('{unit}', a, b)", f"how many {unit}s begin between a and b")
       for unit in (*operators.UNITS, *operators.UNITS_OF_TIME)},
}  # fmt: skip
"""The syntax and the meaning of each operator."""
STATED = {
    "left": ("left(a, 2)", "the first characters, as many as is stated"),
    "right": ("right(a, 2)", "the last characters"),
    "substring": ("substring(a, 2, 3)", "from the second character on, three of them"),
    "LIKE": ("a LIKE 'x%', ILIKE", "whether all of it has the form: % any text, _ any character; ILIKE in lower()"),
    "regexp_matches": ("regexp_matches(a, '^x[0-9]+')", "whether the pattern matches somewhere"),
}


def expression_reference() -> str:
    """Every operator, with the kinds it takes and gives, and every cast."""
    named: dict[str, list[Operator]] = {}
    for operator in operators.TABLE:
        named.setdefault(operator.name, []).append(operator)
    rows = [_row(*MEANINGS[name], ways) for name, ways in named.items()]
    rows += [f"| `{form}` | text | {'boolean' if name in ('LIKE', 'regexp_matches') else 'text'} | {meaning} |"
             for name, (form, meaning) in STATED.items()]  # fmt: skip
    casts = [f"{taken} → {given}" for taken, given in operators.CASTS if taken != given]
    words = ", ".join(f"`{word}`" for word in CAST_NAMES)
    return "\n".join(
        (
            "| written | takes | gives | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
            f"Functions by name: {', '.join(f'`{name}`' for name in FUNCTIONS)}.",
            "",
            f"`CAST(a AS …)`, `a::…` with {words}: {', '.join(casts)}.",
            "",
        )
    )


def _row(form: str, meaning: str, ways: list[Operator]) -> str:
    takes = {way.takes for way in ways}
    same = len(takes) == len(operators.VALUE_KINDS) and {way.takes[-1] for way in ways} == set(operators.VALUE_KINDS)
    taken = "any kind" if same else "; ".join(dict.fromkeys(", ".join(way.takes) for way in ways))
    gives = {way.gives for way in ways}
    given = "the same" if same and len(gives) > 1 else "; ".join(dict.fromkeys(way.gives for way in ways))
    cell = form.replace("|", "\\|")
    return f"| `{cell}` | {taken} | {given} | {meaning} |"
