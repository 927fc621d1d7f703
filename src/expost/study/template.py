"""A first study for a data file, from its schema. A CSV file has none: its types are guessed, and written down."""

from __future__ import annotations

import json
import re
import shlex
from codecs import getincrementaldecoder
from collections.abc import Iterable
from pathlib import Path

from expost.data import PrivateTable, files, read
from expost.data.duckdb import guessed
from expost.data.expression import Kind
from expost.errors import InvalidValue
from expost.study.grammar import SECTIONS
from expost.study.kinds import KINDS

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
unit = "row"
# {rows}
# rows = 10
# {neighbours}
neighbours = "substitute"
# {who}
# who = "visit"

[limit]
epsilon = 1.0                   # {epsilon}
delta = 1e-6                    # {delta}

[ledger]
# {address}
url = {url}
name = {name}
"""


def starter(data: str, *, file: Path, table: str | None = None, delimiter: str | None = None) -> str:
    """The text of a study for a data file, relative to the folder of ``file``.

    Reads the schema only; and the values of a CSV file, which has none, for the types that it then writes down.
    """
    form = files.Form(delimiter=delimiter)
    types = guessed(data, form) if table is None and files.ending(data) == "csv" else {}
    private = read(data, unit="row", neighbours="substitute", table=table, delimiter=delimiter, schema=_declared(types))
    if not private.schema:
        raise InvalidValue(f"{data} has no columns")
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
            f"\n{key} = {_quoted(value)}"
            for key, value in (("table", table), ("delimiter", delimiter))
            if value is not None
        ),
        url=_quoted(f"sqlite:///{stem}.ledger.db"),
        address=help_of["url"],
        name=_quoted(stem),
        **{name: help_of[name] for name in ("version", "unit", "rows", "neighbours", "who", "epsilon", "delta")},
    )
    columns = "\n".join(f"#   {' '.join(name.split()):<20} {kind}" for name, kind in private.schema.items())
    return head + ("" if types else f"\n# The columns of the data:\n{columns}\n") + _questions(private)


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


def _questions(table: PrivateTable) -> str:
    numbers = [name for name, kind in table.schema.items() if kind in ("integer", "number")]
    words = [name for name, kind in table.schema.items() if kind == "text"]
    first = next(iter(table.schema))
    filled = f"{_identifier(first)} IS NOT NULL"
    blocks = [_block("filled", "count", f"how many rows have a {first}", "share = 0.1", where=filled)]
    if words:
        label = f"which values of {words[0]} are common"
        blocks.append(_block("common", "discover", label, "share = 0.2\ndelta = 5e-7", column=words[0], count="rows"))
    if numbers:
        column, bounds = numbers[-1], [0, 100]
        blocks += [
            _block("average", "mean", f"the mean of {column}", "share = 0.1", column=column, bounds=bounds, missing=0),
            _block("bands", "histogram", f"rows by {column}", "share = 0.2", column=column, bins=5, bounds=bounds),
            _block("busy", "above", "which bands are large", "share_of_remaining = 0.3", column=column, bins=5,
                   bounds=bounds, threshold=1000, at_most=3),
            _block("middle", "median", f"the median of {column}", 'epsilon = "rest"', column=column, bounds=bounds),
        ]  # fmt: skip
    return "".join(blocks)


def _block(name: str, kind: str, label: str, amount: str, **values: object) -> str:
    lines = [f"\n# {KINDS[kind].help}", "[[question]]", f"name = {_quoted(name)}", f"kind = {_quoted(kind)}"]
    lines += [f"label = {_quoted(label)}", amount]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
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
