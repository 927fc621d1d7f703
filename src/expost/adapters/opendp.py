"""OpenDP measurements and queries as mechanisms: ``pip install 'expost[opendp]'``.

The cost is what ``measurement.map(d_in)`` says, as an exact fraction; the noise is OpenDP's. An exception that a value
causes while it runs is charged like any other, but *that* it happens is outside of every guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, nextafter
from typing import Any, Self

from expost.accounting.renyi import Prices, zcdp
from expost.adapters.opendp_distance import check_distance, protects_nobody, relation_of
from expost.adapters.opendp_identity import constructors_of, digest_of_measurement
from expost.adapters.upper import as_guaranteed, epsilon_of_curve, float_below, library
from expost.checks import requested_delta
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours, Part, as_neighbours
from expost.mechanism import Interaction, Mechanism
from expost.mentions import brief
from expost.noise import NoiseSource

_INTERACTIVE = frozenset(
    ("make_adaptive_composition", "make_alp_queryable", "make_privacy_filter", "make_sequential_composition")
)


@dataclass(frozen=True, kw_only=True, repr=False)
class OpenDPMeasurement(Mechanism[Any, Any]):
    """An OpenDP measurement, charged what its privacy map says.

    Parameters
    ----------
    measurement
        An OpenDP ``Measurement``.
    d_in
        How far apart neighbours are in its input metric: records of one person, or a sensitivity. A distance within
        which nobody is hidden is refused: 0, less than 1 between whole numbers, 1 record if their number is public.
    delta
        For measurements in zCDP, Rényi divergence or a privacy profile: the δ at which they have an ε. In a ledger
        with Rényi prices, zCDP and Rényi divergence are counted as they are and take no δ.
    neighbours
        The relation of the guarantee. By default that of a metric on databases; a sensitivity has none of its own. Two
        records in symmetric distance are one exchanged: say ``"substitute"`` there for an even ``d_in``. Where the
        number of records is public, that is the only relation.
    name
        For keys: what it is, if it holds functions of Python, which OpenDP cannot write down.

    ``ledger.run(…, on=data)`` runs it. ``on`` may be a ``Context`` of OpenDP that has the data: then its own accountant
    is asked, too. A measurement that answers questions (a compositor, a filter) is for ``ledger.open``.

    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib")
    >>> noisy = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0)
    >>> OpenDPMeasurement(measurement=noisy, d_in=1).guarantee
    Guarantee.uniform(0.5)

    Proof: lem-dp-to-odp, lem-renyi-capacity
    """

    measurement: Any
    d_in: Any
    delta: Number | None = None
    neighbours: Neighbours | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        dp = library("opendp.prelude", "opendp", "OpenDP measurements", "opendp")
        if isinstance(self.measurement, dp.Query):
            raise InvalidValue("a query becomes a mechanism by OpenDPMeasurement.of_query(query)")
        if isinstance(self.measurement, dp.Odometer):
            raise InvalidValue("an odometer bounds no loss: limit it with dp.c.make_privacy_filter(…)")
        if not isinstance(self.measurement, dp.Measurement):
            raise InvalidValue(f"an OpenDP Measurement is needed, got a {type(self.measurement).__name__}")
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise InvalidValue(f"a name is a text that is not empty, got {brief(self.name)}")
        check_distance(self.measurement, self.d_in)
        relation = relation_of(self.measurement, self.d_in, as_neighbours(self.neighbours))
        object.__setattr__(self, "neighbours", relation)
        if self.delta is not None:
            object.__setattr__(self, "delta", requested_delta(self.delta))
        _ = self.guarantee

    @classmethod
    def of_query(
        cls, query: Any, *, delta: Number | None = None, neighbours: Neighbours | None = None, name: str | None = None
    ) -> Self:
        """The mechanism of a query of a ``Context``, noise parameters that were left out included.

        ``ledger.run(mechanism, on=context)`` asks the context; ``on=data`` runs it on other data.
        """
        dp = library("opendp.prelude", "opendp", "OpenDP queries", "opendp")
        if not isinstance(query, dp.Query):
            raise InvalidValue(f"a query is what context.query() begins, got a {type(query).__name__}")
        if query._d_in is None:
            raise InvalidValue("this query has no d_in: begin it with context.query(), or give d_in to dp.Query")
        measurement = query.resolve()
        return cls(measurement=measurement, d_in=query._d_in, delta=delta, neighbours=neighbours, name=name)

    @cached_property
    def guarantee(self) -> Guarantee:
        """One part: whatever comes out costs what the map says."""
        cost = self._cost()
        return Guarantee.uniform(cost.exact_epsilon, cost.exact_delta, neighbours=self.neighbours)

    def renyi_prices(self, order: Number) -> Prices:
        """α·ρ for zCDP, the map at the order for Rényi divergence; else what the guarantee implies.

        Proof: lem-renyi-normal, lem-tangent-prices
        """
        if self._measure == "ZeroConcentratedDivergence":
            return Prices.uniform(zcdp(order, as_guaranteed(self._loss, "ρ")))
        if self._measure == "RenyiDivergence":
            return Prices.uniform(as_guaranteed(self._price_at(exact(order, "an order")), "a Rényi price"))
        return super().renyi_prices(order)

    @property
    def fingerprint(self) -> str:
        """From the constructors and arguments of OpenDP; and the name, which stands for functions of Python."""
        return digest_of_measurement(self.measurement, self.d_in, self.name)

    @cached_property
    def _measure(self) -> str:
        return str(self.measurement.output_measure.type)

    @cached_property
    def _loss(self) -> Any:
        """What the privacy map says."""
        try:
            loss = self.measurement.map(self.d_in)
        except Exception as refused:
            reason = str(refused).strip().splitlines()[-1].strip() if str(refused).strip() else "no reason given"
            raise InvalidValue(f"the privacy map does not take d_in {brief(self.d_in)}: {reason}") from None
        if _is_nothing(loss):
            raise protects_nobody(self.d_in, "the privacy map says that nothing is lost there")
        return loss

    def _cost(self) -> Cost:
        kind = self._measure
        if kind == "MaxDivergence":
            return Cost(as_guaranteed(self._loss, "ε"))
        if kind == "Approximate<MaxDivergence>":
            epsilon, delta = self._loss
            return _pair(as_guaranteed(epsilon, "ε"), as_guaranteed(delta, "δ"))
        if kind == "SmoothedMaxDivergence":
            return Cost(as_guaranteed(self._loss.epsilon(float_below(self._asked_delta)), "ε"), self._asked_delta)
        if kind == "ZeroConcentratedDivergence":
            return self._cost_in_zcdp(self._loss, Fraction(0))
        if kind == "Approximate<ZeroConcentratedDivergence>":
            rho, delta = self._loss
            return self._cost_in_zcdp(rho, as_guaranteed(delta, "δ"))
        if kind == "RenyiDivergence":
            return Cost(epsilon_of_curve(self._price_at, self._asked_delta), self._asked_delta)
        raise InvalidValue(
            f"a loss in {kind} has no ε here: take pure, approximate, zero-concentrated or Rényi divergence"
        )

    def _cost_in_zcdp(self, rho: Any, approximate: Fraction) -> Cost:
        """ρ up to a δ of its own, which is part of the δ that was asked for."""
        loss, whole = as_guaranteed(rho, "ρ"), exact(self._asked_delta, "δ")
        if approximate >= whole:
            raise InvalidValue(f"the measurement's own δ is {float(approximate):g}: give a larger delta, got {whole}")
        rest = Cost.within(0, whole - approximate).exact_delta
        return Cost(epsilon_of_curve(lambda order: zcdp(order, loss), rest), whole)

    def _price_at(self, order: Fraction) -> Any:
        """The map at an order. It takes floats, and grows with the order: the next float above is an upper bound."""
        near = float(order)
        return self._loss(near if Fraction(near) >= order else nextafter(near, inf))

    @property
    def _asked_delta(self) -> Number:
        if self.delta is None:
            raise InvalidValue(f"a loss in {self._measure} has an ε only at a δ: give delta=")
        return self.delta

    def part_of(self, output: Any) -> Part:
        """There is one part."""
        return "any"

    def check(self, data: Any) -> None:
        """Data is needed, and one output. Whether it is in the input domain is private: OpenDP looks when it runs."""
        self.check_start(data)
        if not _INTERACTIVE.isdisjoint(constructors_of(self.measurement)):
            raise InvalidValue("this measurement answers questions one at a time: use ledger.open(…)")

    def check_start(self, data: Any) -> None:
        """Data is needed. A context's privacy unit is the distance that is charged."""
        if data is None:
            raise InvalidValue("an OpenDP measurement needs data: give on=, the data or the Context that has it")
        dp = library("opendp.prelude", "opendp", "OpenDP measurements", "opendp")
        if isinstance(data, dp.Context) and data.d_in is not None and data.d_in != self.d_in:
            raise InvalidValue(
                f"the context protects d_in {brief(data.d_in)}, and this mechanism is charged for d_in "
                f"{brief(self.d_in)}: give it the d_in of the context, or use OpenDPMeasurement.of_query(query)"
            )

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """One output, with OpenDP's own noise."""
        output = self._invoke(data)
        if _is_queryable(output):
            raise InvalidValue("this measurement answers questions one at a time: use ledger.open(…)")
        return output

    def start(self, data: Any, noise: NoiseSource) -> QueryableInteraction:
        """An interaction with the queryable that the measurement makes, when it is first asked."""
        return QueryableInteraction(self, data)

    def _invoke(self, data: Any) -> Any:
        dp = library("opendp.prelude", "opendp", "OpenDP measurements", "opendp")
        return data(self.measurement) if isinstance(data, dp.Context) else self.measurement(data)

    def __repr__(self) -> str:
        space = ", ".join(map(str, (*self.measurement.input_space, self.measurement.output_measure)))
        named = "" if self.name is None else f", name={self.name!r}"
        return f"OpenDPMeasurement({space}, d_in={self.d_in!r}{named}: {self.guarantee.worst_case})"


class QueryableInteraction(Interaction):
    """Questions to a queryable of OpenDP. All of them together cost what the measurement's map says."""

    def __init__(self, mechanism: OpenDPMeasurement, data: Any) -> None:
        super().__init__(mechanism)
        self._invoke, self._data = mechanism._invoke, data
        self._queryable: Any = None

    def __call__(self, query: Any) -> Any:
        """The answer to a query, such as a measurement that fits what remains."""
        return self._answer(lambda: self._ask(query))

    def _ask(self, query: Any) -> Any:
        if self._queryable is None:
            made = self._invoke(self._data)
            if not _is_queryable(made):
                raise InvalidValue("this measurement gives one output: use ledger.run(…)")
            self._queryable, self._data = made, None
        answer = self._queryable(query)
        if _is_queryable(answer):
            raise InvalidValue(
                "an answer that takes questions itself would go on answering when this interaction is closed: "
                "open another interaction for it"
            )
        return answer


def _pair(epsilon: Fraction, delta: Fraction) -> Cost:
    if delta >= 1:
        raise InvalidValue("the measurement's δ is 1, which guarantees nothing: take one with a smaller δ")
    return Cost(epsilon, delta)


def _is_queryable(output: Any) -> bool:
    mod = library("opendp.mod", "opendp", "OpenDP measurements", "opendp")
    return isinstance(output, mod.Queryable | mod.OdometerQueryable)


def _is_nothing(loss: Any) -> bool:
    """Whether a loss of OpenDP is none: 0, both of a pair, a profile without δ at ε 0, or a curve of 0."""
    if isinstance(loss, tuple):
        return all(each == 0 for each in loss)
    if hasattr(loss, "delta"):  # a privacy profile
        return bool(loss.delta(0.0) == 0)
    return bool((loss(2.0) if callable(loss) else loss) == 0)
