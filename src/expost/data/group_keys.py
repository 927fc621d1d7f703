"""The keys of groups: given ones of one or several columns, or those that are discovered in the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from expost.data import query
from expost.data.expression import Tree
from expost.data.histograms import MOST_KEYS, in_order, listed_keys
from expost.errors import InvalidValue
from expost.mentions import brief

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

GroupKey = tuple[Any, ...]
_MOST_COMBINED = 2**62


def stated_keys(texts: Sequence[str], keys: Any) -> tuple[GroupKey, ...]:
    """The given keys, a tuple for each group.

    ``keys`` is a list of values for one column, or of tuples for several; a mapping from each column to its values, for
    all combinations; or a public frame that has these columns.
    """
    if hasattr(keys, "to_dict") and hasattr(keys, "columns"):  # pandas, Polars
        columns = [str(name) for name in keys.columns]
        _has_all(texts, columns)
        found: list[Any] = list(zip(*(keys[text].to_list() for text in texts), strict=True))
    elif hasattr(keys, "to_pydict"):  # Arrow
        _has_all(texts, keys.column_names)
        found = list(zip(*(keys.column(text).to_pylist() for text in texts), strict=True))
    elif isinstance(keys, Mapping):
        _has_all(texts, list(keys))
        found = list(product(*(list(keys[text]) for text in texts)))
    elif isinstance(keys, str) or not hasattr(keys, "__iter__"):
        raise InvalidValue(f"keys are a list of values, got {brief(keys)}")
    else:
        found = [key if isinstance(key, tuple) else (key,) for key in keys]
    listed = tuple(tuple(value.item() if hasattr(value, "item") else value for value in key) for key in found)
    short = [key for key in listed if len(key) != len(texts)]
    if short:
        raise InvalidValue(
            f"a key needs a value for each of {len(texts)} columns ({', '.join(texts)}), got one with {len(short[0])}"
        )
    if not 1 <= len(listed) <= MOST_KEYS or len(set(listed)) < len(listed):
        raise InvalidValue(
            f"keys are 1 to {MOST_KEYS} different values; got {len(listed)}, of which {len(set(listed))} differ"
        )
    return listed


def _has_all(texts: Sequence[str], columns: Sequence[str]) -> None:
    for text in texts:
        if text not in columns:
            raise InvalidValue(f"keys need values of {text!r}, but have only {', '.join(map(repr, columns))}: add them")


class Places:
    """The index of each given key, in SQL: of the columns ``k0``, ``k1``, … first one by one, then combined."""

    def __init__(
        self, table: PrivateTable, texts: Sequence[str], trees: Sequence[Tree], keys: Sequence[GroupKey]
    ) -> None:
        self._keys, sizes, places, parts = keys, list[int](), list[dict[Any, int]](), list[str]()
        for column, (text, tree) in enumerate(zip(texts, trees, strict=True)):
            distinct = listed_keys(text, tree, dict.fromkeys(key[column] for key in keys))
            ordered, written = in_order(table, tree, distinct)
            sizes.append(len(ordered))
            places.append({value: place for place, value in enumerate(ordered)})
            parts.append(f"({query.key_of(written, f'k{column}')})")
        combined = prod(sizes)
        if combined > _MOST_COMBINED:
            raise InvalidValue(
                f"the keys of {len(sizes)} columns have more than 2^62 combinations of their values: derive one column "
                "from several, or group by fewer"
            )
        if combined >= 2**31:  # an engine would multiply in 32 bits, and overflow for some rows
            parts = [f"CAST({part} AS BIGINT)" for part in parts]
        self.together = " + ".join(
            part if column == len(sizes) - 1 else f"{part} * {prod(sizes[column + 1 :])}"
            for column, part in enumerate(parts)
        )
        """The combined index of all columns; NULL if any value is not among the keys."""
        numbers = {
            sum(places[column][value] * prod(sizes[column + 1 :]) for column, value in enumerate(key)): key
            for key in keys
        }
        self._ordered = sorted(numbers)
        self.chosen = "m" if len(numbers) == combined else query.key_of([str(n) for n in self._ordered], "m")
        """The index of a key, among all combinations or, if not all of them are keys, among the keys."""
        found = self._ordered if self.chosen == "m" else range(len(self._ordered))
        self.key_at: dict[int, GroupKey] = {
            int(place): numbers[n] for place, n in zip(found, self._ordered, strict=True)
        }


def kept_groups(
    table: PrivateTable, keys: Sequence[Tree], places: Places | None, cells: Sequence[tuple[Tree, str]]
) -> tuple[str, list[str]]:
    """The rows that count, and the columns that identify their group: ``g``, or ``g0``, ``g1``, … if discovered.

    Each row has its unit ``u`` and cells ``c0``, ``c1``, … At most ``unit.rows`` rows in ``unit.groups`` groups are
    kept per unit, by a keyed hash of their own content.

    Proof: lem-unit-truncation
    """
    owner, unit = table.unit.column, table.unit
    whose = [] if owner is None else [query.UNIT]
    named = [] if owner is None else [f"{table.engine.owner(owner)} AS u"]
    named += [f"{query.valued(table, tree)} AS k{i}" for i, tree in enumerate(keys)]
    named += [f"{query.valued(table, tree)} AS v{i}" for i, (tree, _) in enumerate(cells)]
    rows = f"SELECT {', '.join(named)} FROM {query.relation(table)}"
    if owner is not None:
        rows += f" WHERE {table.engine.owner(owner)} IS NOT NULL"
    made = [f"{cell} AS c{i}" for i, (_, cell) in enumerate(cells)]
    if places is None:
        groups = [f"g{i}" for i in range(len(keys))]
        grouped = [f"k{i} AS g{i}" for i in range(len(keys))]
    else:
        groups, grouped = ["g"], [f"{places.chosen} AS g"]
        values = [f"v{i}" for i in range(len(cells))]
        rows = f"SELECT {', '.join([*whose, f'{places.together} AS m', *values])} FROM {query.nested(rows)}"
    rows = f"SELECT {', '.join([*whose, *grouped, *made])} FROM {query.nested(rows)}"
    rows = f"SELECT * FROM {query.nested(rows)} WHERE {' AND '.join(f'{group} IS NOT NULL' for group in groups)}"
    if owner is None:
        return rows, groups
    content = [*groups, *(f"c{i}" for i in range(len(cells)))]
    listed = ", ".join(content)
    numbered = [f"row_number() OVER (PARTITION BY u, {listed}{query.any_order(table)}) AS j"]
    if unit.groups < unit.rows:
        order = table.engine.scramble(table.key, [query.UNIT, *groups])
        numbered.append(f"dense_rank() OVER (PARTITION BY u ORDER BY {order}, {', '.join(groups)}) AS q")
    inner = f"SELECT *, {', '.join(numbered)} FROM {query.nested(rows)}"
    within = f" WHERE q <= {unit.groups}" if unit.groups < unit.rows else ""
    order = table.engine.scramble(table.key, [query.UNIT, *content, "j"])
    placed = (
        f"SELECT *, row_number() OVER (PARTITION BY u ORDER BY {order}, {listed}, j) AS p FROM {query.nested(inner)}"
    )
    return f"SELECT u, {listed} FROM {query.nested(placed + within)} WHERE p <= {unit.rows}", groups
