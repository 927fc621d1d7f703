"""Exact checks of finite mechanisms: tables of rational probabilities, one law per database.

An output guarantee holds when, for every ordered pair of neighbours with laws P and Q,

    Σ_o (P(o) − e^{E(part of o)}·Q(o))₊  ≤  δ

(thm-odp-hockey-stick). Probabilities are of type ``Fraction``, and e^E is bracketed to as many digits as the
decision takes; it always falls (prop-decidable).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import ceil
from typing import Any, TypeAlias

from expost import bracket
from expost.bracket import Bracket
from expost.cost import EPSILON_UNITS, Cost, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours, Part

OutputLaw: TypeAlias = Mapping[Any, Fraction]
"""The probability of each output."""

Database: TypeAlias = Any
"""A database's name: anything hashable."""


@dataclass(frozen=True)
class FiniteMechanism:
    """The exact law of a mechanism's outputs on each of finitely many databases.

    A law that sums to less than one is a truncation: the missing mass may lie anywhere, and results become brackets.

    Parameters
    ----------
    laws
        For each database the probability of each output: Fractions, or other exact numbers such as 1, "1/3" and "0.25".
    neighbours
        The pairs of neighbouring databases. Each counts in both orders.
    part_of
        The part of an output. By default each output is a part of its own.

    >>> response = FiniteMechanism({0: {"no": "3/4", "yes": "1/4"}, 1: {"no": "1/4", "yes": "3/4"}}, [(0, 1)])
    >>> least_ratios(response)
    {'no': Fraction(3, 1), 'yes': Fraction(3, 1)}
    """

    laws: Mapping[Database, Mapping[Any, Any]]
    neighbours: Collection[tuple[Database, Database]]
    part_of: Callable[[Any], Part] = lambda output: output

    def __post_init__(self) -> None:
        laws = {
            database: {output: exact(p, "a probability") for output, p in law.items()}
            for database, law in self.laws.items()
        }
        object.__setattr__(self, "laws", laws)
        object.__setattr__(self, "neighbours", tuple(self.neighbours))
        for database, law in laws.items():
            if min(law.values(), default=Fraction(0)) < 0 or sum(law.values()) > 1:
                raise InvalidValue(f"the law on database {database!r} is not a law: probabilities are ≥ 0 and sum to 1")
        for pair in self.neighbours:
            if not isinstance(pair, tuple | list) or len(pair) != 2 or any(database not in laws for database in pair):
                raise InvalidValue(f"neighbours are pairs of databases that have a law, got {pair!r}")

    def missing(self, database: Database) -> Fraction:
        """The mass that the law on this database leaves out."""
        return 1 - sum(self.laws[database].values(), Fraction(0))

    def require_complete(self) -> None:
        """Refuse a truncated law where the missing mass would be forgotten."""
        if any(self.missing(database) for database in self.laws):
            raise InvalidValue("this needs laws that sum to one; of truncated ones least_delta gives brackets")

    def ordered_pairs(self) -> Iterator[tuple[Database, Database]]:
        """Every pair of neighbours, in both orders."""
        return both_orders(self.neighbours)

    def outputs(self, *databases: Database) -> Iterable[Any]:
        """Every output that has a probability on one of these databases."""
        return dict.fromkeys(chain.from_iterable(self.laws[database] for database in databases))


@dataclass(frozen=True)
class Witness:
    """Where a guarantee fails most: two neighbours and the event that distinguishes them too well.

    Attributes
    ----------
    databases
        The two neighbours.
    event
        The outputs that the event consists of.
    probability
        The probability of the event on the first database.
    allowed
        What the guarantee allows it to be, given the second database (rounded up).
    """

    databases: tuple[Any, Any]
    event: frozenset[Any]
    probability: Fraction
    allowed: Fraction

    def __str__(self) -> str:
        x, y = self.databases
        event = ", ".join(map(repr, self.event))
        return f"Pr[{{{event}}} on {x!r}] = {float(self.probability):.6g} > {float(self.allowed):.6g} allowed by {y!r}"


@dataclass(frozen=True)
class Verdict:
    """Whether a guarantee holds. It is true where ``holds`` is.

    Attributes
    ----------
    holds
        Whether it does; None where missing mass leaves it open.
    delta
        Bounds on the least δ for its E.
    witness
        Where it fails most, if it fails and one was looked for.
    """

    holds: bool | None
    delta: Bracket[Fraction]
    witness: Witness | None = None

    def __bool__(self) -> bool:
        return self.holds is True


def hockey_stick(p: OutputLaw, q: OutputLaw, ratio: Callable[[Any], Fraction]) -> tuple[Fraction, frozenset[Any]]:
    """Σ (P − ratio·Q)₊ over the outputs, and the event that attains it."""
    gaps = {output: mass - ratio(output) * q.get(output, Fraction(0)) for output, mass in p.items()}
    event = frozenset(output for output, gap in gaps.items() if gap > 0)
    return sum((gaps[output] for output in event), Fraction(0)), event


def least_delta_at(mechanism: FiniteMechanism, ratios: Mapping[Part, Any]) -> Fraction:
    """The least δ for given rational e^E, exactly: ``ratios`` has the likelihood ratio allowed on each part.

    >>> response = FiniteMechanism({0: {"no": "3/4", "yes": "1/4"}, 1: {"no": "1/4", "yes": "3/4"}}, [(0, 1)])
    >>> least_delta_at(response, {"no": 2, "yes": 2})
    Fraction(1, 4)
    """
    mechanism.require_complete()
    allowed = {part: exact(ratio, "a ratio") for part, ratio in ratios.items()}

    def ratio(output: Any) -> Fraction:
        return allowed[mechanism.part_of(output)]

    laws = mechanism.laws
    return max((hockey_stick(laws[x], laws[y], ratio)[0] for x, y in mechanism.ordered_pairs()), default=Fraction(0))


def least_delta(mechanism: FiniteMechanism, guarantee: Guarantee, digits: int = 40) -> Bracket[Fraction]:
    """The least δ at which the mechanism keeps the guarantee's E, bracketed to about ``digits`` digits.

    Proof: thm-odp-hockey-stick
    """
    brackets = [_pair_delta(mechanism, guarantee, pair, digits)[0] for pair in mechanism.ordered_pairs()]
    return _largest(brackets)


def check(mechanism: FiniteMechanism, guarantee: Guarantee) -> Verdict:
    """Whether the mechanism keeps the guarantee. If not, the worst event is the witness.

    >>> response = FiniteMechanism({0: {"no": "3/4", "yes": "1/4"}, 1: {"no": "1/4", "yes": "3/4"}}, [(0, 1)])
    >>> print(check(response, Guarantee.uniform(1)).witness)
    Pr[{'no'} on 0] = 0.75 > 0.67957 allowed by 1

    Proof: prop-decidable
    """
    delta = guarantee.worst_case.exact_delta
    complete = not any(mechanism.missing(database) for database in mechanism.laws)
    verdict, digits = judge(lambda digits: least_delta(mechanism, guarantee, digits), delta, complete)
    if verdict.holds is not False:
        return verdict
    found = [(_pair_delta(mechanism, guarantee, pair, digits), pair) for pair in mechanism.ordered_pairs()]
    (_, event), pair = max(found, key=lambda row: row[0][0].lower)
    return replace(verdict, witness=_witness(mechanism, guarantee, pair, event, digits))


def judge(least: Callable[[int], Bracket[Fraction]], delta: Fraction, complete: bool = True) -> tuple[Verdict, int]:
    """Bracket the least δ with more and more digits until it is on one side of the guarantee's.

    Without complete laws the bracket need not shrink; then the first one must do.

    Proof: prop-decidable
    """
    digits = 40
    while True:
        bounds = least(digits)
        if bounds.upper <= delta or bounds.lower > delta:
            return Verdict(bounds.upper <= delta, bounds), digits
        if not complete:
            return Verdict(None, bounds), digits
        digits *= 2


def both_orders(pairs: Iterable[tuple[Database, Database]]) -> Iterator[tuple[Database, Database]]:
    """Every pair, and every pair the other way round."""
    return chain.from_iterable(((x, y), (y, x)) for x, y in pairs)


def least_ratios(mechanism: FiniteMechanism) -> dict[Part, Fraction | None]:
    """The least e^E of each part at δ = 0, exactly: the largest ratio of probabilities. None: no finite one."""
    mechanism.require_complete()
    least: dict[Part, Fraction | None] = {}
    for x, y in mechanism.ordered_pairs():
        p, q = mechanism.laws[x], mechanism.laws[y]
        for output in mechanism.outputs(x, y):
            part, mass, other = mechanism.part_of(output), p.get(output, Fraction(0)), q.get(output, Fraction(0))
            before = least.setdefault(part, Fraction(1))
            if mass and not other:
                least[part] = None
            elif before is not None and mass:
                least[part] = max(before, mass / other)
    return least


def tightest(mechanism: FiniteMechanism, *, neighbours: Neighbours | None = None) -> Guarantee:
    """The best guarantee at δ = 0: each part's least ε, rounded up.

    Raises where some output is possible on one database and impossible on its neighbour.
    """
    table: dict[Part, Fraction] = {}
    for part, ratio in least_ratios(mechanism).items():
        if ratio is None:
            raise InvalidValue(f"part {part!r} has no finite ε at δ = 0: an output is impossible on a neighbour")
        table[part] = log_up(ratio).exact_epsilon
    return Guarantee(table, neighbours=neighbours)


def log_up(ratio: Fraction) -> Cost:
    """The least cost ε with e^ε ≥ ratio, to the unit (certainly enough; at most one unit too much)."""
    return Cost.of_units(max(0, ceil(bracket.log(ratio).upper * EPSILON_UNITS)))


def _pair_delta(
    mechanism: FiniteMechanism, guarantee: Guarantee, pair: tuple[Database, Database], digits: int
) -> tuple[Bracket[Fraction], frozenset[Any]]:
    x, y = pair
    p, q = mechanism.laws[x], mechanism.laws[y]
    ratios = {output: _ratio(guarantee, mechanism.part_of(output), digits) for output in p}
    lower, event = hockey_stick(p, q, lambda output: ratios[output].upper)
    upper, _ = hockey_stick(p, q, lambda output: ratios[output].lower)
    # Mass that a truncation leaves out can only add to P what is missing there, and to Q likewise (lem-truncation).
    worst = bracket.exp(guarantee.worst_case.exact_epsilon, digits).upper
    lower = max(Fraction(0), lower - worst * mechanism.missing(y))
    return Bracket(lower, upper + mechanism.missing(x)), event


def _ratio(guarantee: Guarantee, part: Part, digits: int) -> Bracket[Fraction]:
    return bracket.exp(guarantee.cost_of(part).exact_epsilon, digits)


def _largest(brackets: Iterable[Bracket[Fraction]]) -> Bracket[Fraction]:
    rows = [Bracket(Fraction(0), Fraction(0)), *brackets]
    return Bracket(max(row.lower for row in rows), max(row.upper for row in rows))


def _witness(
    mechanism: FiniteMechanism,
    guarantee: Guarantee,
    pair: tuple[Database, Database],
    event: frozenset[Any],
    digits: int,
) -> Witness:
    p, q = mechanism.laws[pair[0]], mechanism.laws[pair[1]]
    hidden = bracket.exp(guarantee.worst_case.exact_epsilon, digits).upper * mechanism.missing(pair[1])
    allowed = guarantee.worst_case.exact_delta + hidden
    for output in event:
        allowed += _ratio(guarantee, mechanism.part_of(output), digits).upper * q.get(output, Fraction(0))
    return Witness(pair, event, sum((p[output] for output in event), Fraction(0)), allowed)
