"""The text of a first study, from what was chosen for it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import Any

from expost.cost import Number
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.study.grammar import SECTIONS
from expost.study.kinds import KINDS
from expost.study.start import MORE_NOISE, Choices, KnownBounds, Looked

_MOST = 0.5  # of the limit, of all questions
_LARGEST_SHARE = 0.07  # of seven questions: less than a half
_SEARCHED = 0.2  # of the limit, without bounds: less finds only the middle of many thousand values
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
neighbours = {relation}
# {who}
# who = "visit"

[limit]                         # the questions below spend at most half of it
epsilon = {limit:<15}       # {epsilon}
delta = 1e-6                    # {delta}

[ledger]
# {address}
url = {url}
name = {name}
"""
_NO_BOUNDS = """
# Sums, means and histograms need bounds: the lowest and the highest value that you expect, from what is known without
# this data. Those of {columns} are not known, so that none of these is asked. With
#
#   expost init {data} --bounds {first}=LOW,HIGH
#
# they are. {found}
"""
_FOUND = "The median below needs none: it is looked for everywhere, which takes more ε."
_NOT_FOUND = "There are too few {units} to look for a median without them."


def starter(
    data: str,
    *,
    file: Path,
    table: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    unit: str | None = None,
    rows: int | None = None,
    neighbours: Neighbours | None = None,
    epsilon: Number | None = None,
    bounds: KnownBounds | None = None,
) -> str:
    """The text of a study for a data file, relative to the folder of ``file``.

    Reads the schema only; and the values of a CSV file, which has none, for the types that it then writes down. The
    unit is the column that names whom a row is about, if one does, and neighbours are then add-remove. Bounds that are
    not given are not guessed: what needs them is not asked.
    """
    looked = Looked.at(data, table=table, delimiter=delimiter, decimal=decimal, encoding=encoding)
    made = Choices.of(looked, unit=unit, rows=rows, neighbours=neighbours, epsilon=epsilon, bounds=bounds)
    return study_text(made, file)


def study_text(made: Choices, file: Path) -> str:
    """The text of a study about what was chosen, relative to the folder of ``file``."""
    looked, help_of = made.looked, {key.name: key.help for keys in SECTIONS.values() for key in keys}
    stem = re.sub(r"\W+", "-", file.stem).strip("-") or "study"
    declared = "\n".join(f"{_quoted(name)} = {_quoted(kind)}" for name, kind in looked.types.items())
    head = _HEAD.format(
        looked=" from names of columns and their values" if looked.types else " from the schema; no value was read",
        schema=_LOOKED.format(columns=declared, doubts=_doubts(looked.types)) if looked.types else "",
        file=shlex.quote(file.name),
        title=_quoted(f"A first look at {Path(looked.data).name}"),
        path=_quoted(_seen_from(looked.data, file)),
        table="".join(f"\n{key} = {_quoted(value)}" for key, value in looked.reading.items()),
        url=_quoted(f"sqlite:///{stem}.ledger.db"),
        whose=_whose(made, help_of["rows"]),
        relation=_quoted(made.neighbours) + _relation_why(made),
        limit=made.epsilon,
        address=help_of["url"],
        name=_quoted(stem),
        **{name: help_of[name] for name in ("version", "unit", "neighbours", "who", "epsilon", "delta")},
    )
    columns = "\n".join(f"#   {' '.join(name.split()):<20} {kind}" for name, kind in looked.schema.items())
    return head + ("" if looked.types else f"\n# The columns of the data:\n{columns}\n") + _questions(made, file)


def _whose(made: Choices, rows: str) -> str:
    """The unit, and the most rows of one that count."""
    if made.unit is None:
        return f'unit = "row"  # if a column says whom a row is about, name it instead\n# {rows}\n# rows = 10'
    named = f"unit = {_quoted(made.unit)}" + _unless(made, "unit", "by its name, whom a row is about: check it")
    return f"{named}\n# {rows}\nrows = {made.rows}" + _unless(made, "rows", MORE_NOISE)


def _relation_why(made: Choices) -> str:
    """What it means that neighbours are these."""
    many = "how many rows there are" if made.unit is None else f"how many different values {made.unit} has"
    return _unless(made, "neighbours", f"{many} is {'private' if made.neighbours == 'add-remove' else 'public'}")


def _unless(made: Choices, name: str, why: str) -> str:
    """Why something was proposed; nothing of what was stated."""
    return "" if name in made.stated else f"  # {why}"


BEWARE = "# Beware: "


def _doubts(names: Iterable[str]) -> str:
    """Signs that the first line has no names of columns, or that the delimiter is another. Quotes no value."""
    columns, doubts = list(names), []
    if any(re.fullmatch(r"[-+]?[\d.]+|\d{4}-\d\d-\d\d.*", name.strip()) for name in columns):
        doubts.append("some columns are named by a number or a date; if the first line is a row, put names above it.")
    if len(columns) == 1 and (between := re.search(r"[;\t|]", columns[0])):
        character = {"\t": "$'\\t'"}.get(between[0], repr(between[0]))
        doubts.append(
            f"there is one column; if there should be more, say what stands between them: expost init --delimiter "
            f"{character} --force, and --decimal , if numbers have a decimal comma."
        )
    return "".join(f"{BEWARE}{each}\n" for each in doubts)


def _questions(made: Choices, file: Path) -> str:
    """Questions that fit the columns, and what the bounds allow."""
    means = max(len(made.bounds), 1)
    share = min(_LARGEST_SHARE, int(_MOST * 100 / (6 + means)) / 100)
    return "".join([*_how_many(made, share), *_common(made, share), *_of_numbers(made, share, file)])


def _how_many(made: Choices, share: float) -> Iterator[str]:
    """How many units and rows there are, as far as that is private."""
    if made.neighbours == "add-remove" and made.unit is not None:
        yield _block("units", "count", f"how many different values of {made.unit} there are", share, count="units")
    if made.neighbours == "add-remove":
        yield _block("rows", "count", "how many rows there are", share)
    else:
        schema = made.looked.schema
        first = next((name for name in schema if name != made.unit), next(iter(schema)))
        filled = f"{_identifier(first)} IS NOT NULL"
        yield _block("filled", "count", f"how many rows have a value of {first}", share, where=filled)


def _common(made: Choices, share: float) -> Iterator[str]:
    words = made.looked.words(made.unit)
    if words:
        label = f"which values of {words[0]} are common"
        yield _block("common", "discover", label, share, delta=5e-7, column=words[0], count="rows")


def _of_numbers(made: Choices, share: float, file: Path) -> Iterator[str]:
    """What is asked of columns of numbers: within bounds, where some are known."""
    if not made.bounds:
        yield from _without_bounds(made, share, file)
    for place, (column, (low, high)) in enumerate(made.bounds.items()):
        of = {"column": column, "bounds": [low, high]}
        if not place and _worth_asking(made, column, share):
            yield _block("clipped", "lost", f"how much of {column} lies outside of its bounds", share, **of)
        yield _block(_mean_of(made, place), "mean", f"the mean of {column}", share, **of)
        if not place:
            yield _block("bands", "histogram", f"rows by {column}", share, **of, bins=_BINS)
            yield from _busy(made, column, of, share)
            yield _block("middle", "median", f"the median of {column}", share, **of)


def _mean_of(made: Choices, place: int) -> str:
    """What the question about the mean of a column is called."""
    called = [re.sub(r"\W+", "_", column).strip("_") for column in made.bounds]
    if not place:
        return "average"
    alone = called[place] and called.count(called[place]) == 1
    return f"average_{called[place]}" if alone else f"average_{place + 1}"


def _without_bounds(made: Choices, share: float, file: Path) -> Iterator[str]:
    """What to write where no bounds are known, and what needs none."""
    amounts = made.looked.amounts(made.unit)
    if not amounts:
        return
    possible = _is_possible(made, amounts[-1])
    found = _FOUND if possible else _NOT_FOUND.format(units="units" if made.unit else "rows")
    data = shlex.quote(_seen_from(made.looked.data, file))
    yield _NO_BOUNDS.format(columns=", ".join(amounts), data=data, first=shlex.quote(amounts[-1]), found=found)
    if possible:
        yield _block("middle", "median", f"the median of {amounts[-1]}", _SEARCHED, column=amounts[-1])


def _is_possible(made: Choices, column: str) -> bool:
    """Whether a median is found without bounds, as far as that is public: among few units it is always withheld."""
    try:
        made.table.median(column).mechanism(epsilon=_SEARCHED * float(made.epsilon)).check(None)
    except InvalidValue:
        return False
    return True


def _busy(made: Choices, column: str, of: Mapping[str, Any], share: float) -> Iterator[str]:
    """Which bands have half of an equal share of the units; nothing if twice that, or none, may be misjudged.

    Asks only where the number of units is public; that of rows is only if each is one.
    """
    if made.neighbours != "substitute":
        return
    half = made.table.size // (2 * _BINS)
    threshold = half - half % 10 ** max(len(str(half)) - 2, 0)  # two digits
    counted: Any = "rows" if made.unit is None else "units"
    cells = made.table.histogram(column, bins=_BINS, bounds=(0, 1), of=counted)
    finder: Any = cells.above(threshold, at_most=_BINS).mechanism(epsilon=share * float(made.epsilon))
    margin = ceil(finder.noise.margin("0.95", n=_BINS))
    if margin <= threshold:
        label = f"which bands have more than {threshold:,} {counted}; sure of those with {margin:,} more or less"
        rest: dict[str, object] = {} if counted == "rows" else {"count": counted}
        yield _block("busy", "above", label, share, **of, bins=_BINS, threshold=threshold, at_most=_BINS, **rest)


def _worth_asking(made: Choices, column: str, share: float) -> bool:
    """Whether what is lost to bounds will be known within ten percentage points, as far as that is public."""
    if made.neighbours != "substitute":
        return True
    size = made.table.size
    asked: Any = made.table.lost(column, bounds=(0, 1)).mechanism(epsilon=share * float(made.epsilon))
    return bool(asked.expected_error(size, size) <= 0.1)


def _block(name: str, kind: str, label: str, share: float, **values: object) -> str:
    lines = [f"\n# {KINDS[kind].help}", "[[question]]", f"name = {_quoted(name)}", f"kind = {_quoted(kind)}"]
    lines += [f"label = {_quoted(label)}", f"share = {share}"]
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
