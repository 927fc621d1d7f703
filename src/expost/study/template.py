"""A first study for a data file, from its schema. A CSV file has none: its types are guessed, and written down."""

from __future__ import annotations

import json
import re
import shlex
from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from expost.data import PrivateTable, Unit, files, read
from expost.data.expression import Kind
from expost.data.unit import Of
from expost.errors import InvalidValue, MissingDependency
from expost.study.grammar import SECTIONS
from expost.study.kinds import KINDS
from expost.study.people import names_somebody

_NUMBERS = ("integer", "number")
_SHARE = 0.07  # of seven questions: less than a half
_ROWS = 10
_BINS = 5
_LOOKED = """
# These types were guessed from the file's values, and are public from here on. One person's value may have decided a
# type: change it to what you expect. Only this table is used from now on. A value that does not fit is empty.
{doubts}[data.schema]
{columns}
"""
_HEAD = """\
# A study: what is asked of the data, in order, and what it may cost.
# Written by expost init{looked}. Edit names and numbers, then:
#
#   expost plan {file}
#   expost run {file}

title = {title}

[data]
path = {path}{table}
# version = "1"                 # {version}
{schema}
[privacy]
# {unit}
{whose}
# {neighbours}
neighbours = "substitute"
# {who}
# who = "visit"

[limit]                         # the questions below spend at most half of it
epsilon = 1.0                   # {epsilon}
delta = 1e-6                    # {delta}

[ledger]
# {address}
url = {url}
name = {name}
"""


MORE_NOISE = "noise grows with it: 1 if nobody has more than one row"
_BLANK = "  # blank: the lowest and the highest value that you expect, from what is known without this data"


def starter(
    data: str,
    *,
    file: Path,
    table: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> str:
    """The text of a study for a data file, relative to the folder of ``file``.

    Reads the schema only; and the values of a CSV file, which has none, for the types that it then writes down. The
    unit is the column that names whom a row is about, if one does. Bounds that are not given are blank: nothing can be
    asked until they are stated.
    """
    if encoding is None and table is None and files.ending(data) == "csv" and is_unicode(data):
        encoding = "utf-8"
    written: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    types = _guessed(data, files.Form(**written)) if table is None and files.ending(data) == "csv" else {}
    private = read(data, unit="row", neighbours="substitute", table=table, schema=_declared(types), **written)
    if not private.schema:
        raise InvalidValue(f"{data} has no columns: is the path right, and is it a table?")
    _refuse_unknown(bounds or {}, private)
    help_of = {key.name: key.help for keys in SECTIONS.values() for key in keys}
    stem = re.sub(r"\W+", "-", file.stem).strip("-") or "study"
    declared = "\n".join(f"{_quoted(name)} = {_quoted(kind)}" for name, kind in types.items())
    head = _HEAD.format(
        looked=" from names of columns and their values" if types else " from the schema; no value was read",
        schema=_LOOKED.format(columns=declared, doubts=_doubts(types)) if types else "",
        file=shlex.quote(file.name),
        title=_quoted(f"A first look at {Path(data).name}"),
        path=_quoted(_seen_from(data, file)),
        table="".join(
            f"\n{key} = {_quoted(value)}" for key, value in {"table": table, **written}.items() if value is not None
        ),
        url=_quoted(f"sqlite:///{stem}.ledger.db"),
        whose=_whose(_unit(private), help_of["rows"]),
        address=help_of["url"],
        name=_quoted(stem),
        **{name: help_of[name] for name in ("version", "unit", "neighbours", "who", "epsilon", "delta")},
    )
    columns = "\n".join(f"#   {' '.join(name.split()):<20} {kind}" for name, kind in private.schema.items())
    return head + ("" if types else f"\n# The columns of the data:\n{columns}\n") + _questions(private, bounds or {})


def _guessed(data: str, form: files.Form) -> dict[str, Kind]:
    try:
        from expost.data.duckdb import guessed
    except ModuleNotFoundError as error:
        raise MissingDependency("studies", str(error.name), "data") from None
    return guessed(data, form)


def _unit(table: PrivateTable) -> str | None:
    """The column that says whom a row is about, by its name."""
    named = (name for name, kind in table.schema.items() if kind in ("integer", "text") and names_somebody(name))
    return next(named, None)


def _whose(unit: str | None, rows: str) -> str:
    """The unit, and the most rows of one that count."""
    if unit is None:
        return f'unit = "row"  # if a column says whom a row is about, name it instead\n# {rows}\n# rows = 10'
    named = f"unit = {_quoted(unit)}  # by its name, whom a row is about: check it"
    return f"{named}\n# {rows}\nrows = {_ROWS}  # {MORE_NOISE}"


def _refuse_unknown(bounds: Mapping[str, tuple[float, float]], table: PrivateTable) -> None:
    for column in bounds:
        if table.schema.get(column) not in _NUMBERS:
            numbers = [name for name, kind in table.schema.items() if kind in _NUMBERS]
            listed = ", ".join(map(repr, numbers)) or "none"
            raise InvalidValue(f"bounds are for columns of numbers, got {column!r}: there are {listed}")


BEWARE = "# Beware: "


def _doubts(names: Iterable[str]) -> str:
    """Signs that the first line has no names of columns, or that the delimiter is another. Quotes no value."""
    columns, doubts = list(names), []
    if any(re.fullmatch(r"[-+]?[\d.]+|\d{4}-\d\d-\d\d.*", name.strip()) for name in columns):
        doubts.append("some columns are named by a number or a date; if the first line is a row, put names above it.")
    if len(columns) == 1 and re.search(r"[;\t|]", columns[0]):
        doubts.append(
            "there is one column; if there should be more, name the character between them: expost init --delimiter."
        )
    return "".join(f"{BEWARE}{each}\n" for each in doubts)


def is_unicode(data: str) -> bool:
    """Whether the first million bytes of a CSV file are UTF-8. True for other files, which state their encoding."""
    if not data.lower().endswith((".csv", ".tsv", ".txt")):
        return True
    with open(data, "rb") as file:
        beginning = file.read(2**20)
    try:
        getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return False
    return True


def _declared(types: dict[str, Kind]) -> dict[str, str] | None:
    return dict(types) or None


def _questions(table: PrivateTable, bounds: Mapping[str, tuple[float, float]]) -> str:
    unit = _unit(table)
    numbers = [name for name, kind in table.schema.items() if kind in _NUMBERS and name != unit]
    words = [name for name, kind in table.schema.items() if kind == "text" and name != unit]
    first = next((name for name in table.schema if name != unit), unit) or ""
    filled = f"{_identifier(first)} IS NOT NULL"
    blocks = [_block("filled", "count", f"how many rows have a value of {first}", where=filled)]
    if words:
        label = f"which values of {words[0]} are common"
        blocks.append(_block("common", "discover", label, delta=5e-7, column=words[0], count="rows"))
    if numbers:
        column = next(iter(bounds), numbers[-1])
        of: dict[str, object] = {"column": column, "bounds": list(bounds.get(column, ()))}
        if _worth_asking(table, column):
            blocks.append(_block("clipped", "lost", f"how much of {column} lies outside of its bounds", **of))
        blocks += [
            _block("average", "mean", f"the mean of {column}", **of),
            _block("bands", "histogram", f"rows by {column}", **of, bins=_BINS),
            *_busy(table, column, of),
            _block("middle", "median", f"the median of {column}", **of),
        ]
    return "".join(blocks)


def _busy(table: PrivateTable, column: str, of: Mapping[str, object]) -> list[str]:
    """Which bands have half of an equal share of the units; nothing if twice that, or none, may be misjudged.

    The number of units is public here; that of rows only if each is one.
    """
    whose = _of_units(table)
    half = whose.size // (2 * _BINS)
    threshold = half - half % 10 ** max(len(str(half)) - 2, 0)  # two digits
    counted: Of = "rows" if whose.unit.column is None else "units"
    cells = whose.histogram(column, bins=_BINS, bounds=(0, 1), of=counted)
    finder: Any = cells.above(threshold, at_most=_BINS).mechanism(epsilon=_SHARE)
    margin = ceil(finder.noise.margin("0.95", n=_BINS))
    if margin > threshold:
        return []
    label = f"which bands have more than {threshold:,} {counted}; sure of those with {margin:,} more or less"
    rest: dict[str, object] = {} if counted == "rows" else {"count": counted}
    return [_block("busy", "above", label, **of, bins=_BINS, threshold=threshold, at_most=_BINS, **rest)]


def _of_units(table: PrivateTable) -> PrivateTable:
    """The table of those whom rows are about, as the starter states them."""
    unit = _unit(table)
    return table if unit is None else replace(table, unit=Unit(unit, rows=_ROWS))


def _worth_asking(table: PrivateTable, column: str) -> bool:
    """Whether what is lost to bounds will be known within ten percentage points. The number of units is public here."""
    whose = _of_units(table)
    asked: Any = whose.lost(column, bounds=(0, 1)).mechanism(epsilon=_SHARE)
    return bool(asked.expected_error(whose.size, whose.size) <= 0.1)


def _block(name: str, kind: str, label: str, **values: object) -> str:
    lines = [f"\n# {KINDS[kind].help}", "[[question]]", f"name = {_quoted(name)}", f"kind = {_quoted(kind)}"]
    lines += [f"label = {_quoted(label)}", f"share = {_SHARE}"]
    for key, value in values.items():
        lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}{_BLANK if value == [] else ''}")
    known = [key for key in KINDS[kind].keys if key.name not in values]
    lines += [f"# {key.name}: {key.help}" for key in known]
    return "\n".join(lines) + "\n"


def _seen_from(data: str, file: Path) -> str:
    path = Path(data).resolve()
    try:
        return str(path.relative_to(file.resolve().parent))
    except ValueError:
        return str(path)


def _identifier(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
