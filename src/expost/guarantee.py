"""`Guarantee`: the privacy of a mechanism, output by output.

A guarantee is the triple (P, E, δ) of output differential privacy: a partition P of the outputs into
labelled parts, an ε for each part, and one δ for all of them. For neighbours x, x' and every set S of
outputs,

    Pr[M(x) ∈ S]  ≤  δ + Σ_part e^{E(part)} · Pr[M(x') ∈ S ∩ part].

The lemmas that make new guarantees out of old ones are this class's constructors and methods; each
names its proof in ``docs/theory*.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from fractions import Fraction
from functools import partial
from math import ceil
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias, cast, get_args

from expost import bracket
from expost.checks import as_unit_name, as_whole, common_unit
from expost.cost import DELTA_UNITS, EPSILON_UNITS, Cost, Number, decimal_text, reading_up
from expost.errors import InvalidValue, NeighbourMismatch, UnknownPart
from expost.mentions import brief

Part: TypeAlias = int | str | tuple["Part", ...]
"""A label: an int (of at most 1,000 digits), a string, or a tuple of labels (at most 32 deep). Ledgers keep it."""
Neighbours: TypeAlias = Literal["add-remove", "substitute"]
"""Which databases differ by one person: one record more or less, or one record exchanged."""
_BOUND = 10**1000  # of integers in labels


class Guarantee:
    """What a mechanism guarantees: an ε for each part of its outputs, and one δ. Immutable.

    Parameters
    ----------
    epsilons
        ε of each part: a mapping from label to number.
    delta
        δ of all parts together.
    otherwise
        ε of every label that is not listed. None if there is no other label.
    neighbours
        The relation of the guarantee: ``"add-remove"`` ("unbounded DP"), ``"substitute"`` ("bounded DP"), or None for
        whichever the declared sensitivity was for.
    unit
        Whose privacy it is, such as ``"patient"``: neighbours differ by one of these. None for whichever the declared
        sensitivity was for; questions to a table have that of the table.

    Guarantees round up: ε to 10⁻¹², δ to 10⁻¹⁸.

    >>> coin = Guarantee({"answered": 1, "nothing": 0})
    >>> coin.epsilon_of("nothing"), coin.worst_case
    (0.0, Cost(1))

    Proof: thm-odp-hockey-stick
    """

    __slots__ = ("_delta", "_hash", "_known_key", "_neighbours", "_otherwise", "_table", "_unit", "_worst")
    _delta: int
    _hash: int | None
    _known_key: tuple[Any, ...] | None
    _neighbours: Neighbours | None
    _otherwise: Cost | None
    _table: Mapping[Part, Cost]
    _unit: str | None
    _worst: Cost

    def __init__(
        self,
        epsilons: Mapping[Part, Number],
        delta: Number = 0,
        *,
        otherwise: Number | None = None,
        neighbours: Neighbours | None = None,
        unit: str | None = None,
    ) -> None:
        if not isinstance(epsilons, Mapping):
            raise InvalidValue(f"the parts are a mapping from label to ε, got {epsilons!r}")
        table = {as_part(part): Cost(epsilon) for part, epsilon in epsilons.items()}
        rest = None if otherwise is None else Cost(otherwise)
        delta_units = Cost(0, delta).delta_units
        prices = [*table.values(), *([] if rest is None else [rest])]
        if not prices:
            raise InvalidValue("a guarantee needs at least one part: list parts, or give `otherwise=`")
        put = partial(object.__setattr__, self)  # past the guarantee's own refusal to change
        put("_table", MappingProxyType(table))
        put("_otherwise", rest)
        put("_delta", delta_units)
        put("_neighbours", as_neighbours(neighbours))
        put("_unit", as_unit_name(unit))
        put("_hash", None)
        put("_known_key", None)
        put("_worst", Cost.of_units(max(price.epsilon_units for price in prices), delta_units))

    # ---- the lemmas as constructors

    @classmethod
    def uniform(
        cls, epsilon: Number, delta: Number = 0, *, neighbours: Neighbours | None = None, unit: str | None = None
    ) -> Self:
        """The guarantee of every (ε, δ)-differentially private mechanism: ε for any part.

        >>> Guarantee.uniform(0.5).epsilon_of("whatever came out")
        0.5

        Proof: lem-dp-to-odp
        """
        return cls({}, delta, otherwise=epsilon, neighbours=neighbours, unit=unit)

    @classmethod
    def from_subsets(
        cls, subsets: Mapping[Part, tuple[Number, Number]], *, neighbours: Neighbours | None = None
    ) -> Self:
        """From subset guarantees {part: (ε, δ)}, each proved on its part alone. The δ's add up.

        >>> Guarantee.from_subsets({"small": (1, 1e-6), "large": (2, 3e-6)})
        Guarantee({'small': 1, 'large': 2}, delta=4e-6)

        Proof: lem-subsets
        """
        if not isinstance(subsets, Mapping) or not all(
            isinstance(pair, tuple | list) and len(pair) == 2 for pair in subsets.values()
        ):
            raise InvalidValue(f"subsets are a mapping from part to (ε, δ), got {brief(subsets)}")
        costs = {part: Cost(*pair) for part, pair in subsets.items()}
        delta = Fraction(sum(cost.delta_units for cost in costs.values()), DELTA_UNITS)
        return cls({part: cost.exact_epsilon for part, cost in costs.items()}, delta, neighbours=neighbours)

    @classmethod
    def parallel(cls, blocks: Iterable[Guarantee], *, split: Literal["record", "value"]) -> Self:
        """Mechanisms on the disjoint blocks of a fixed split of the data, one guarantee per block.

        One person touches one block, so the price is that of the costliest block: the parts are
        ``(block, part)``, computed from the blocks' parts by :func:`costliest`, and δ is the largest. Labels
        that a block prices by ``otherwise`` cost as much here as the worst of any block.

        ``split="record"``: each record's block is fixed by who it is, never by what it says.
        ``split="value"``: a record's contents choose its block. A record that changes may then leave one
        block and enter another, so the blocks need guarantees for add-remove neighbours, and so does the
        result; ``.under("substitute")`` converts it.

        >>> Guarantee.parallel([Guarantee({"hit": 1, "miss": 0})] * 2, split="record")
        Guarantee({(0, 'hit'): 1, (0, 'miss'): 0, (1, 'hit'): 1, (1, 'miss'): 0})

        Proof: lem-parallel
        """
        blocks = list(blocks) if isinstance(blocks, Iterable) else []
        if not blocks or not all(isinstance(block, Guarantee) for block in blocks):
            raise InvalidValue(f"parallel composition takes a list of guarantees, at least one, got {brief(blocks)}")
        if split not in ("record", "value"):
            raise InvalidValue(f"split must be 'record' or 'value', got {split!r}")
        relation = blocks[0]._neighbours
        for block in blocks:
            if block._neighbours != relation:
                raise NeighbourMismatch(str(block._neighbours), str(relation), "the first block")
        if split == "value" and relation != "add-remove":
            raise InvalidValue(
                f"a split by value needs guarantees for 'add-remove' neighbours, these are for {relation!r}: "
                "a record that changes its value may leave one block and enter another"
            )
        table: dict[Part, Cost] = {
            (j, part): price for j, block in enumerate(blocks) for part, price in block._table.items()
        }
        open_ended = any(block._otherwise is not None for block in blocks)
        worst = max((block._worst for block in blocks), key=lambda cost: cost.epsilon_units)
        delta, unit = max(block._delta for block in blocks), common_unit(block._unit for block in blocks)
        return cls._of(table, worst if open_ended else None, delta, relation, unit)

    # ---- the lemmas as methods

    def post_process(self, images: Mapping[Part, Part | Set[Part]]) -> Self:
        """The guarantee after relabelling the parts: a new part costs the most of those that can become it.

        ``images`` says for each part of the table what it becomes: one label, or a set of labels when the
        relabelling is randomised. Labels priced by ``otherwise`` keep themselves.

        >>> fine = Guarantee({0: 0.1, 1: 0.4, 2: 0.9})
        >>> fine.post_process({0: "few", 1: "few", 2: "many"})
        Guarantee({'few': 0.4, 'many': 0.9})

        Proof: lem-post-processing
        """
        if not isinstance(images, Mapping):
            raise InvalidValue(f"images are a mapping from each part to what it becomes, got {brief(images)}")
        missing = [part for part in self._table if part not in images]
        unknown = [part for part in images if part not in self._table]
        if missing or unknown:
            raise InvalidValue(
                "post-processing must map every part of the table and no other: "
                f"missing {missing!r}, not in the table {unknown!r}"
            )
        table: dict[Part, Cost] = {}
        for part, price in self._table.items():
            for image in as_parts(images[part]):
                table[image] = max(table.get(image, price), price)
                if self._otherwise is not None and image not in self._table:  # it also comes from itself
                    table[image] = max(table[image], self._otherwise)
        return self._of(table, self._otherwise, self._delta, self._neighbours, self._unit)

    def group(self, size: int) -> Self:
        """The same mechanism seen by a group of ``size`` people: size·E, and δ·(1 + e^s + … + e^{(size−1)s}).

        s is the largest E. The mechanism must be defined on every database on the way.

        >>> Guarantee({"yes": 1, "no": 0.25}).group(2)
        Guarantee({'yes': 2, 'no': 0.5})

        Proof: lem-group
        """
        as_whole(size, "the size of a group")
        delta = _group_delta(self._delta, self._worst.exact_epsilon, size)
        if delta > DELTA_UNITS:
            raise InvalidValue(
                f"for groups of {size}, δ would be above 1, which guarantees nothing: take a smaller δ or ε"
            )
        table = {part: price * size for part, price in self._table.items()}
        otherwise = None if self._otherwise is None else self._otherwise * size
        return self._of(table, otherwise, delta, self._neighbours, self._unit)

    def under(self, neighbours: Neighbours) -> Self:
        """The guarantee for another neighbour relation, where there is one.

        From add-remove to substitution: exchanging a record is removing one and adding one, a group of two.
        The mechanism must be defined, and its guarantee true, on the database in between, which has one record
        less. There is no conversion back: a guarantee for databases of one size says nothing about other sizes.

        >>> Guarantee.uniform(1, neighbours="add-remove").under("substitute")
        Guarantee.uniform(2, neighbours='substitute')

        Proof: lem-group
        """
        target = as_neighbours(neighbours)
        if target is None:
            raise InvalidValue("give the relation to convert to: 'add-remove' or 'substitute'")
        if target == self._neighbours:
            return self
        if self._neighbours is None:
            raise InvalidValue(f"this guarantee has no neighbour relation to convert to {target!r}: give neighbours=")
        if target != "substitute":
            raise NeighbourMismatch(self._neighbours, target, "the wanted guarantee")
        pair = self.group(2)
        return self._of(pair._table, pair._otherwise, pair._delta, target, self._unit)

    def of_unit(self, unit: str | None) -> Self:
        """The same guarantee, with the unit called so; None leaves it as it is. Raises for another unit than its own.

        >>> Guarantee.uniform(1).of_unit("patient"), Guarantee.uniform(1, unit="patient_id").of_unit("patient").unit
        (Guarantee.uniform(1, unit='patient'), 'patient')
        """
        if unit in (None, self._unit):
            return self
        common_unit((as_unit_name(unit), self._unit))
        made, changed = object.__new__(type(self)), {"_unit": unit, "_hash": None, "_known_key": None}
        for name in Guarantee.__slots__:  # not made anew, because tables may be long
            object.__setattr__(made, name, changed[name] if name in changed else getattr(self, name))
        return made

    # ---- reading

    @property
    def parts(self) -> tuple[Part, ...]:
        """The labels in the table; labels priced by ``otherwise`` are not listed."""
        return tuple(self._table)

    @property
    def otherwise(self) -> Cost | None:
        """What labels cost that are not in the table; None if there may be no others."""
        return self._otherwise

    @property
    def delta(self) -> float:
        """The one δ, as a float for reading; what is lost in reading goes up, for this is a guarantee."""
        return reading_up(self._delta, DELTA_UNITS)

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation of the guarantee."""
        return self._neighbours

    @property
    def unit(self) -> str | None:
        """Whose privacy it is."""
        return self._unit

    @property
    def worst_case(self) -> Cost:
        """(sup E, δ): the ordinary differential privacy of the mechanism, and what a ledger reserves.

        Proof: lem-odp-to-dp
        """
        return self._worst

    @property
    def best_case(self) -> Cost:
        """(min E, δ): the least that a run can be charged."""
        prices = list(self._table.values()) if self._otherwise is None else [*self._table.values(), self._otherwise]
        return Cost.of_units(min(price.epsilon_units for price in prices), self._delta)

    def cost_of(self, part: Part) -> Cost:
        """(E(part), δ), exactly: what a ledger charges when this part came out."""
        price = self._table.get(part) if is_part(part) else None
        if price is None:
            if self._otherwise is None or not is_part(part):
                raise UnknownPart(part, self)
            price = self._otherwise
        return Cost.of_units(price.epsilon_units, self._delta) if self._delta else price

    def epsilon_of(self, part: Part) -> float:
        """E(part), as a float for reading; what is lost in reading goes up, for this is a guarantee."""
        return reading_up(self.cost_of(part).epsilon_units, EPSILON_UNITS)

    def __contains__(self, part: object) -> bool:
        return is_part(part) and (part in self._table or self._otherwise is not None)

    # ---- keeping

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; :meth:`from_json` reads them back exactly."""
        written = {
            "parts": [[part, _epsilon_text(price)] for part, price in self._table.items()],
            "otherwise": None if self._otherwise is None else _epsilon_text(self._otherwise),
            "delta": decimal_text(self._delta, 18),
            "neighbours": self._neighbours,
        }
        return written if self._unit is None else {**written, "unit": self._unit}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The guarantee that :meth:`to_json` wrote."""
        try:
            rows = [(part_from_json(part), epsilon) for part, epsilon in data["parts"]]
            parts = dict(rows)
            if len(parts) < len(rows):
                raise InvalidValue(f"a guarantee in JSON lists each part once, got {brief(data)}")
            rest = {name: data[name] for name in ("delta", "otherwise", "neighbours")}
        except InvalidValue:
            raise
        except (KeyError, TypeError, ValueError):
            raise InvalidValue(
                "a guarantee in JSON has 'parts' (pairs of label and ε), 'otherwise', 'delta' and 'neighbours', and "
                f"'unit' if it is for one, got {brief(data)}"
            ) from None
        return cls(parts, unit=data.get("unit"), **rest)

    @classmethod
    def _of(cls, table: Mapping[Part, Cost], otherwise: Cost | None, delta_units: int, *whose: Any) -> Self:
        neighbours, unit = whose
        return cls(
            {part: price.exact_epsilon for part, price in table.items()},
            Fraction(delta_units, DELTA_UNITS),
            otherwise=None if otherwise is None else otherwise.exact_epsilon,
            neighbours=neighbours,
            unit=unit,
        )

    def _key(self) -> tuple[Any, ...]:
        if self._known_key is None:
            rest = None if self._otherwise is None else self._otherwise.epsilon_units
            parts = frozenset((part, cost.epsilon_units) for part, cost in self._table.items())
            key = parts, rest, self._delta, self._neighbours, self._unit
            object.__setattr__(self, "_known_key", key)
        return self._known_key  # type: ignore[return-value]  # just set

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("guarantees do not change: make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("guarantees do not change: make a new one")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Guarantee):
            return NotImplemented
        return (self._known_key or self._key()) == (other._known_key or other._key())

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(self._key()))
        return self._hash  # type: ignore[return-value]  # just set

    def __repr__(self) -> str:
        named = []
        if self._table and self._otherwise is not None:
            named.append(f"otherwise={_epsilon_text(self._otherwise)}")
        if self._delta:
            named.append(f"delta={decimal_text(self._delta, 18)}")
        if self._neighbours is not None:
            named.append(f"neighbours={self._neighbours!r}")
        if self._unit is not None:
            named.append(f"unit={self._unit!r}")
        if not self._table:
            return f"Guarantee.uniform({', '.join([_epsilon_text(self._worst), *named])})"
        shown = list(self._table.items())
        rows = [f"{part!r}: {_epsilon_text(price)}" for part, price in shown[:_SHOWN]]
        if len(shown) > _SHOWN:
            rows.append(f"… {len(shown) - _SHOWN} more")
        return f"Guarantee({', '.join(['{' + ', '.join(rows) + '}', *named])})"


_SHOWN = 8  # parts in a repr


def costliest(blocks: Sequence[Guarantee], parts: Sequence[Part]) -> tuple[int, Part]:
    """The part of a parallel composition, from the part that came out of each block.

    The first of the blocks that cost the most, and its part; a function of published labels only.

    >>> costliest([Guarantee({"hit": 1, "miss": 0})] * 3, ["miss", "hit", "miss"])
    (1, 'hit')

    Proof: lem-parallel
    """
    if len(blocks) != len(parts) or not blocks:
        raise InvalidValue(f"one part per block is needed, got {len(parts)} parts for {len(blocks)} blocks")
    prices = [block.cost_of(part).epsilon_units for block, part in zip(blocks, parts, strict=True)]
    first = prices.index(max(prices))
    return first, parts[first]


def _group_delta(delta: int, epsilon: Fraction, size: int) -> int:
    """δ·(1 + e^ε + … + e^{(size−1)ε}) in units, rounded up; more than one as soon as it is past one."""
    if not delta:
        return 0
    total = Fraction(0)
    for i in range(size):
        if i * epsilon > 42 or total > DELTA_UNITS:  # one unit times e^42 is past one already
            return DELTA_UNITS + 1
        total += delta * bracket.exp(i * epsilon).upper
    return ceil(total)


def as_neighbours(relation: Any) -> Neighbours | None:
    """``relation`` itself, if it names a neighbour relation or is None."""
    if relation is not None and not (isinstance(relation, str) and relation in get_args(Neighbours)):
        meant = {"unbounded": "add-remove", "bounded": "substitute"}.get(relation if isinstance(relation, str) else "")
        hint = f": did you mean {meant!r}?" if meant else ""
        raise InvalidValue(f"neighbours must be 'add-remove' or 'substitute', got {brief(relation)}{hint}")
    return cast("Neighbours | None", relation)


def _epsilon_text(price: Cost) -> str:
    return decimal_text(price.epsilon_units, 12)


# ---- labels of parts


def as_part(label: Any) -> Part:
    """``label`` itself, if it may name a part."""
    if not is_part(label):
        raise InvalidValue(
            f"a part is named by an int, a string or a tuple of such, got {brief(label)}: numbers have at most 1,000 "
            "digits, and tuples are nested at most 32 deep"
        )
    return cast(Part, label)


def is_part(label: object, deepest: int = 32) -> bool:
    """Whether it may name a part."""
    kind = type(label)  # exact types: True would be the same key as 1, and numpy's ints do not go to JSON
    if kind is tuple:
        return deepest > 0 and all(is_part(item, deepest - 1) for item in cast(tuple[object, ...], label))
    return kind is str or (kind is int and abs(cast(int, label)) < _BOUND)


def part_from_json(label: Any) -> Part:
    """A label from JSON, in which tuples are lists."""
    return tuple(part_from_json(item) for item in label) if isinstance(label, list) else as_part(label)


def as_parts(labels: Any) -> Iterable[Part]:
    """One label, or the labels of a set that is not empty."""
    if isinstance(labels, Set):
        if not labels:
            raise InvalidValue("a part must become at least one part; an empty set is not allowed")
        return [as_part(label) for label in labels]
    return [as_part(labels)]
