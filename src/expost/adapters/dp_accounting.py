"""Events of Google's dp-accounting, charged to our ledgers: ``pip install 'expost[accounting]'``.

Other libraries, such as jax-privacy, describe what they did by the same events.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, nextafter
from typing import Any, Literal, NamedTuple, TypeAlias

from expost import bracket
from expost.accounting.composition import compose
from expost.accounting.events import losses_of, response_epsilon
from expost.accounting.losses import Loss
from expost.accounting.planning import plan
from expost.accounting.renyi import laplace_noise, normal_noise, randomized_response, sampled_normal_noise, zcdp
from expost.adapters.events import checked_leaves
from expost.adapters.steps import CountedSteps
from expost.adapters.upper import as_guaranteed, float_below, library
from expost.checks import requested_delta
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours
from expost.ledger import Ledger
from expost.mentions import brief

Accountant: TypeAlias = Literal["best", "pld", "rdp", "expost"]
"""Who composes events: dp-accounting's privacy-loss distributions or Rényi accountant, the better of both, or we."""


def event_guarantee(event: Any, *, delta: Number, neighbours: Neighbours, accountant: Accountant = "best") -> Guarantee:
    """What an event guarantees at a δ: the same ε whatever came out.

    Parameters
    ----------
    event
        A ``DpEvent``. Events that are not understood are refused by name, never guessed.
    delta
        The δ, by its text.
    neighbours
        ``"add-remove"`` or ``"substitute"``, as dp-accounting's ``ADD_OR_REMOVE_ONE`` and ``REPLACE_ONE``.
    accountant
        ``"best"``: the better of dp-accounting's two accountants, ``"pld"`` and ``"rdp"``. The ε of these is never
        below that of our own composition, which is certified, where the event has a privacy-loss distribution: theirs
        are floats; its ``"pld"`` ignores how often a ``RandomizedResponseDpEvent`` is repeated, and its ``"rdp"`` that
        an exchanged record moves a sum twice as far as an added one (corrected here). ``"expost"``: ours alone.

    >>> import dp_accounting as dp
    >>> event_guarantee(dp.LaplaceDpEvent(2.0), delta=1e-6, neighbours="add-remove", accountant="expost")
    Guarantee.uniform(0.499998, delta=1e-6, neighbours='add-remove')

    Proof: lem-domination, lem-dp-to-odp
    """
    _library()
    if accountant not in ("best", "pld", "rdp", "expost"):
        raise InvalidValue(f"an accountant is 'best', 'pld', 'rdp' or 'expost', got {brief(accountant)}")
    asked = requested_delta(delta)
    checked_leaves(event, neighbours)
    return Guarantee.uniform(_epsilon(event, asked, neighbours, accountant), asked, neighbours=neighbours)


@dataclass(frozen=True, kw_only=True, repr=False)
class EventSteps(CountedSteps):
    """An event that is repeated, with stops planned beforehand, and charged for the steps that were begun.

    Parameters
    ----------
    event
        The ``DpEvent`` of one step.
    count
        The number of steps at most; 1 for a single event.
    stops
        The numbers of steps that have an ε of their own, the last of them ``count``. Between two, the next one counts.
    delta
        The δ of the whole. In a ledger with Rényi prices none is taken where the price of a step is known.
    neighbours
        ``"add-remove"`` or ``"substitute"``.
    every_step
        Whether each step is a part of its own: see :class:`~expost.adapters.steps.CountedSteps`.

    ``with ledger.open(EventSteps(…)) as interaction: for number in interaction: …`` counts a step when it
    begins. Losses are composed and stops planned by us, with the least δ that any rule of stopping needs; events that
    only the Rényi accountant knows share δ among their stops.

    Proof: thm-optimal-stopping, lem-sum-delta, lem-renyi-stopping
    """

    event: Any

    def __post_init__(self) -> None:
        _library()
        checked_leaves(self.event, self.neighbours)  # type: ignore[arg-type]  # None is refused there
        object.__setattr__(self, "event", deepcopy(self.event))  # lists in it could grow after it was planned
        super().__post_init__()

    @property
    def _relation(self) -> Neighbours:
        assert self.neighbours is not None
        return self.neighbours

    def _planned(self) -> Guarantee:
        losses = _losses(self.event, self._relation)
        if losses is None:
            return self._shared()
        if not losses:
            return Guarantee(dict.fromkeys(self.stops, 0), self.delta)
        many = len(losses)
        found = plan(losses * self.count, [many * stop for stop in self.stops], self.delta)
        return Guarantee({stop: found.cost_of(many * stop).exact_epsilon for stop in self.stops}, self.delta)

    def _shared(self) -> Guarantee:
        """Fixed numbers of steps, each at its share of δ."""
        dp = _library()
        share = Cost.within(0, exact(self.delta, "δ") / len(self.stops)).exact_delta
        if not share:
            raise InvalidValue(f"δ {self.delta:g} is too small to be shared among {len(self.stops)} stops")
        repeated = {stop: dp.SelfComposedDpEvent(self.event, stop) for stop in self.stops}
        return Guarantee(
            {stop: _epsilon(event, share, self._relation, "rdp") for stop, event in repeated.items()}, self.delta
        )

    def _renyi_price(self, order: Number) -> Fraction | None:
        prices = [
            (_leaf_price(leaf, order, self._relation), count)
            for leaf, count in checked_leaves(self.event, self._relation)
        ]
        known = [price * count for price, count in prices if price is not None]
        return sum(known, Fraction(0)) if len(known) == len(prices) else None

    def _squared_mean(self) -> Fraction | None:
        leaves = checked_leaves(self.event, self._relation)
        if not all(type(leaf).__name__ == "GaussianDpEvent" for leaf, _ in leaves):
            return None
        return sum((count / _noise(leaf, self._relation) ** 2 for leaf, count in leaves), Fraction(0))

    @property
    def fingerprint(self) -> str:
        """From the event as dp-accounting writes it, and the plan."""
        from expost.canonical import canonical, sha256

        plan = [self.count, list(self.stops), str(self.delta), self.neighbours, self.every_step]
        return sha256(canonical(["dp-accounting event", _written(self.event), *plan]))

    def __repr__(self) -> str:
        return f"EventSteps({_short(self.event)}, count={self.count}, stops={self.stops}, delta={self.delta:g})"


class LedgerHistory(NamedTuple):
    """What a ledger's entries cost at worst, as an event, and a δ that comes on top of the accountant's."""

    event: Any
    delta: Fraction


def history_event(ledger: Ledger, *, neighbours: Neighbours) -> LedgerHistory:
    """What was run under a ledger, as an event of dp-accounting: each entry with the worst case that was reserved.

    An (ε, δ) mechanism is an ε one but for a probability of δ, which adds up apart. Under ``"substitute"`` an ε is
    randomised response, which dominates it; under ``"add-remove"``, for which dp-accounting takes none, ε²/2-zCDP.
    Refunds do not carry over: that a part costs less is true of the ledger's sum only. Neither do Rényi prices.

    >>> history_event(Ledger(epsilon=1), neighbours="substitute")
    LedgerHistory(event=ComposedDpEvent(events=[]), delta=Fraction(0, 1))

    Proof: lem-response-dominates
    """
    dp = _library()
    if neighbours not in ("add-remove", "substitute"):
        raise InvalidValue(f"a history is for 'add-remove' or 'substitute' neighbours, got {brief(neighbours)}")
    if ledger.neighbours not in (None, neighbours):
        raise InvalidValue(f"the ledger is for {ledger.neighbours!r} neighbours: say neighbours={ledger.neighbours!r}")
    worst = [entry.guarantee.worst_case for entry in ledger.entries() if entry.state != "voided"]
    events = [_pure(dp, cost.exact_epsilon, neighbours) for cost in worst]
    return LedgerHistory(dp.ComposedDpEvent(events), sum((cost.exact_delta for cost in worst), Fraction(0)))


def _pure(dp: Any, epsilon: Fraction, neighbours: Neighbours) -> Any:
    """An event that is no less than ε."""
    if neighbours == "add-remove":
        rho = float(epsilon**2 / 2)
        return dp.ZCDpEvent(rho if Fraction(rho) >= epsilon**2 / 2 else nextafter(rho, 2 * rho + 1))
    lying = float(2 / (1 + bracket.exp(epsilon).upper))
    return dp.RandomizedResponseDpEvent(nextafter(nextafter(lying, 0.0), 0.0) if epsilon else 1.0, 2)


def _library() -> Any:
    return library("dp_accounting", "dp-accounting", "events", "accounting")


def _epsilon(event: Any, delta: Number, neighbours: Neighbours, accountant: Accountant) -> Fraction:
    """ε at a δ, never below that of our own composition."""
    losses = _losses(event, neighbours)
    floor = Fraction(0) if not losses else Cost(Fraction(compose(losses).epsilon(delta).upper)).exact_epsilon
    if accountant == "expost":
        if losses is None:
            raise InvalidValue(f"{_short(event)} has no privacy-loss distribution: take accountant='rdp'")
        return floor
    names = ("pld", "rdp") if accountant == "best" else (accountant,)
    dp, leaves = _library(), checked_leaves(event, neighbours)
    flat = dp.ComposedDpEvent([dp.SelfComposedDpEvent(leaf, count) for leaf, count in leaves])
    theirs = [found for name in names if (found := _theirs(flat, delta, neighbours, name)) is not None]
    if not theirs:
        raise InvalidValue(
            f"dp-accounting's accountants ({', '.join(names)}) do not support {_short(event)}, under {neighbours!r}: "
            "nothing is guessed"
        )
    return max(min(theirs), floor)


def _theirs(event: Any, delta: Number, neighbours: Neighbours, name: str) -> Fraction | None:
    """ε by one of dp-accounting's accountants; None if it does not support the event."""
    made = _made(name, neighbours)
    meant = _for_exchange(event) if name == "rdp" and neighbours == "substitute" else event
    if not made.supports(meant):
        return None
    try:
        found = made.compose(meant).get_epsilon(float_below(delta))
    except (ArithmeticError, ValueError) as failure:
        raise InvalidValue(f"dp-accounting cannot compose {_short(event)}: {failure}") from None
    return as_guaranteed(float(found), f"the ε of {_short(event)}")


def _made(name: str, neighbours: Neighbours, **settings: Any) -> Any:
    relations = _library().NeighboringRelation
    relation = relations.ADD_OR_REMOVE_ONE if neighbours == "add-remove" else relations.REPLACE_ONE
    kinds = {"pld": ("dp_accounting.pld", "PLDAccountant"), "rdp": ("dp_accounting.rdp", "RdpAccountant")}
    module, kind = kinds[name]
    return getattr(library(module, "dp-accounting", "events", "accounting"), kind)(
        neighboring_relation=relation, **settings
    )


def _for_exchange(event: Any) -> Any:
    """The event for the Rényi accountant, which takes an exchanged record to move a sum as far as an added one.

    By the definition of the events, and by the other accountant, it moves twice as far: half of the noise.
    """
    kind = type(event).__name__
    if kind in ("GaussianDpEvent", "LaplaceDpEvent"):
        return type(event)(event.noise_multiplier / 2)
    if kind == "ComposedDpEvent":
        return type(event)([_for_exchange(part) for part in event.events])
    fields = {name: getattr(event, name) for name in _fields(event)}
    return type(event)(**fields | {"event": _for_exchange(event.event)}) if "event" in fields else event


def _losses(event: Any, neighbours: Neighbours) -> list[Loss] | None:
    """The losses of an event; None if one of them has no law."""
    leaves = checked_leaves(event, neighbours)
    laws = [(_law(leaf, neighbours), count) for leaf, count in leaves]
    if any(law is None for law, _ in laws):
        return None
    return [loss for law, count in laws for loss in (law or []) * count]


def _law(leaf: Any, neighbours: Neighbours) -> list[Loss] | None:
    kind = type(leaf).__name__
    if kind in ("MixtureOfGaussiansDpEvent", "TruncatedSubsampledGaussianDpEvent"):
        return None  # what dp-accounting has is not a law: some of its masses are negative
    native = kind in ("GaussianDpEvent", "LaplaceDpEvent", "RandomizedResponseDpEvent")
    return losses_of(leaf, neighbours) if native or _made("pld", neighbours).supports(leaf) else None


def _leaf_price(leaf: Any, order: Number, neighbours: Neighbours) -> Fraction | None:
    """The Rényi price of an event at an order, rounded up; None if nobody knows it."""
    kind = type(leaf).__name__
    if kind == "GaussianDpEvent":
        return normal_noise(order, _noise(leaf, neighbours))
    if kind == "LaplaceDpEvent":
        return laplace_noise(order, 1 / _noise(leaf, neighbours), None)
    if kind == "RandomizedResponseDpEvent":
        return randomized_response(order, response_epsilon(leaf), max(leaf.num_buckets, 2))
    if kind == "ZCDpEvent":
        return zcdp(order, Fraction(leaf.rho)) + Fraction(leaf.xi)
    if kind == "PoissonSampledDpEvent" and neighbours == "add-remove" and _is_normal(leaf.event):
        return sampled_normal_noise(order, _noise(leaf.event, neighbours), Fraction(leaf.sampling_probability))
    return _their_price(leaf, order, neighbours)


def _their_price(leaf: Any, order: Number, neighbours: Neighbours) -> Fraction | None:
    """By dp-accounting, at the next whole order: prices grow with the order."""
    made = _made("rdp", neighbours, orders=[float(max(ceil(exact(order, "an order")), 2))])
    meant = _for_exchange(leaf) if neighbours == "substitute" else leaf
    if not made.supports(meant):
        return None
    price = float(made.compose(meant)._rdp[0])
    return as_guaranteed(price, f"the Rényi price of {_short(leaf)}")


def _is_normal(event: Any) -> bool:
    return type(event).__name__ == "GaussianDpEvent"


def _noise(leaf: Any, neighbours: Neighbours) -> Fraction:
    """The noise multiplier for a neighbour's distance: a record that is exchanged moves a value by 2."""
    return Fraction(leaf.noise_multiplier) / (1 if neighbours == "add-remove" else 2)


def _short(event: Any) -> str:
    text = str(event)
    return text if len(text) <= 120 else f"{text[:117]}…"


def _written(event: Any) -> Any:
    """An event as plain JSON values: class and fields, floats as they are."""
    if isinstance(event, float | Fraction):
        return str(Fraction(event))
    if isinstance(event, Iterable) and not isinstance(event, str):
        return [_written(item) for item in event]
    if type(event).__module__ != "dp_accounting.dp_event":
        return event
    return [type(event).__name__, *([name, _written(getattr(event, name))] for name in _fields(event))]


def _fields(event: Any) -> list[str]:
    return [field.name for field in type(event).__attrs_attrs__]
