"""The keys of groups: given ones of one or several columns, or those that are discovered in the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any

from expost.data import query, rows
from expost.data.expression import Expression
from expost.data.histograms import MOST_KEYS, in_order, listed_keys
from expost.errors import InvalidValue
from expost.mentions import brief

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

GroupKey = tuple[Any, ...]
_MOST_COMBINED = 2**62


def stated_keys(names: Sequence[str], keys: Any) -> tuple[GroupKey, ...]:
    """The given keys, a tuple for each group.

    ``keys`` is a list of values for one column, or of tuples for several; a mapping from each column to its values, for
    all combinations; or a public frame that has these columns.
    """
    if hasattr(keys, "to_dict") and hasattr(keys, "columns"):  # pandas, Polars
        columns = [str(column) for column in keys.columns]
        _has_all(names, columns)
        found: list[Any] = list(zip(*(keys[name].to_list() for name in names), strict=True))
    elif hasattr(keys, "to_pydict"):  # Arrow
        _has_all(names, keys.column_names)
        found = list(zip(*(keys.column(name).to_pylist() for name in names), strict=True))
    elif isinstance(keys, Mapping):
        _has_all(names, list(keys))
        found = _combined(names, [_at_most(keys[name]) for name in names])
    else:
        found = [key if isinstance(key, tuple) else (key,) for key in _at_most(keys)]
    listed = tuple(tuple(value.item() if hasattr(value, "item") else value for value in key) for key in found)
    short = [key for key in listed if len(key) != len(names)]
    if short:
        raise InvalidValue(
            f"a key needs a value for each of {len(names)} columns ({', '.join(names)}), got one with {len(short[0])}"
        )
    if not 1 <= len(listed) <= MOST_KEYS or len(set(listed)) < len(listed):
        raise InvalidValue(
            f"keys are 1 to {MOST_KEYS} different values; got {len(listed)}, of which {len(set(listed))} differ"
        )
    return listed


def _at_most(values: Any) -> list[Any]:
    """A list of keys, read no further than one more than there may be: a range, or a generator, may have no end."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidValue(f"keys are a list of values, got {brief(values)}")
    listed = list(islice(values, MOST_KEYS + 1))
    if len(listed) > MOST_KEYS:
        raise InvalidValue(f"keys are 1 to {MOST_KEYS} different values; got more: state fewer, or discover them")
    return listed


def _combined(names: Sequence[str], values: Sequence[list[Any]]) -> list[GroupKey]:
    """All combinations of the values of each column. They are counted before any is made."""
    number = prod(map(len, values))
    if number > MOST_KEYS:
        each = " × ".join(str(len(one)) for one in values)
        raise InvalidValue(
            f"keys are 1 to {MOST_KEYS} different values; all combinations of {', '.join(names)} are "
            f"{each} = {number}: state fewer, list the combinations that are wanted, or discover them"
        )
    return list(product(*values))


def _has_all(names: Sequence[str], columns: Sequence[str]) -> None:
    for name in names:
        if name not in columns:
            raise InvalidValue(f"keys need values of {name!r}, but have only {', '.join(map(repr, columns))}: add them")


class Places:
    """The index of each given key, in SQL: of the columns ``k0``, ``k1``, … first one by one, then combined."""

    def __init__(self, table: PrivateTable, values: Sequence[Expression], keys: Sequence[GroupKey]) -> None:
        self._keys, sizes, places, parts = keys, list[int](), list[dict[Any, int]](), list[str]()
        for column, value in enumerate(values):
            distinct = listed_keys(value, dict.fromkeys(key[column] for key in keys))
            ordered, written = in_order(table, value.kind, distinct)
            sizes.append(len(ordered))
            places.append({key: place for place, key in enumerate(ordered)})
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


def rows_in_groups(
    table: PrivateTable, keys: Sequence[Expression], places: Places | None, cells: Sequence[tuple[Expression, str]]
) -> tuple[str, list[str]]:
    """The rows that count, and the columns that identify their group: ``g``, or ``g0``, ``g1``, … if discovered.

    Cells are called ``c0``, ``c1``, …, and made of ``v0``, ``v1``, … Rows in no group are left out.
    """
    by = {f"k{i}": key for i, key in enumerate(keys)}
    values = {f"v{i}": value for i, (value, _) in enumerate(cells)}
    groups = {f"g{i}": name for i, name in enumerate(by)} if places is None else {"g": places.chosen}
    kept = rows.rows_that_count(
        table,
        by | values,
        groups=groups,
        cells={f"c{i}": cell for i, (_, cell) in enumerate(cells)},
        needed=groups,
        between={} if places is None else {"m": places.together},
        known=None if places is None else len(places.key_at),
    )
    return kept, list(groups)
