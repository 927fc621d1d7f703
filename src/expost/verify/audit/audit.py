"""Try to refute a privacy guarantee by samples.

Samples on two neighbouring databases are split: on some a classifier learns which outputs speak for one of them, on
others the most telling events are chosen, and the rest tests those. What the test shows is true with the stated
confidence, however the events were found. It can refute a guarantee, never prove one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from expost.accounting.renyi import Prices
from expost.checks import as_whole
from expost.cost import EPSILON_UNITS, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism
from expost.text import text_of
from expost.verify.audit.bets import best_bet, delta_won, hits_of
from expost.verify.audit.events import Distinguisher, Side, best_anywhere, best_for_part, delta_shown, epsilon_shown
from expost.verify.audit.renyi import best_cells, moment_shown
from expost.verify.audit.result import AuditResult, EventShown, PartShown
from expost.verify.audit.samples import BATCH, Progress, SampledOutputs, SampleMany, SampleOne, Sampler
from expost.verify.audit.scores import Classifier, Frequencies, LikelihoodScore
from expost.verify.audit.timed import within

_EVENTS = (0.7, 0.1, 0.1, 0.1)  # shares of the error for events of any parts, the largest excess first
_PARTS, _MOMENT = 0.2, 0.25  # of the whole error, for the parts one by one, and for Rényi prices
_LEARN, _CHOOSE = 0.25, 0.25  # shares of the samples


def audit(
    mechanism: Mechanism | SampleOne | SampleMany,
    pairs: Sequence[tuple[Any, Any]],
    *,
    guarantee: Guarantee | None = None,
    part_of: Any = None,
    samples: int = 20_000,
    seconds: float | None = None,
    confidence: float = 0.99,
    seed: int = 0,
    order: Number | None = None,
    prices: Prices | None = None,
    many: bool = False,
    processes: int = 1,
    progress: Progress | None = None,
) -> AuditResult:
    """Try to refute a guarantee on pairs of neighbouring databases.

    Parameters
    ----------
    mechanism
        A mechanism, or a function of a database and a noise source that gives one output. With ``many=True`` the
        function takes a number, too, and gives as many independent outputs.
    pairs
        Neighbouring databases.
    guarantee, part_of
        What is to be refuted. By default the mechanism's own. A function without ``part_of`` has one part.
    samples, seconds
        Outputs of each database of each pair; or how long it may take, by the clock on the wall: drawing and testing
        together, with processes that draw at once. At least 2,000 outputs are drawn, however long they take.
    confidence
        A true guarantee is refuted with a probability of at most one less this.
    seed
        The same seed and number of samples, the same result.
    order, prices
        An order α, to test the mechanism's Rényi prices at it, or the prices given, as well.
    processes
        Processes that draw samples.
    progress
        Called with the share of the samples that were drawn.

    >>> from expost.mechanisms import RandomizedResponse
    >>> response = RandomizedResponse(epsilon=1, choices=2)
    >>> audit(response, [(0, 1)], samples=4_000).refuted
    False
    >>> audit(response, [(0, 1)], guarantee=Guarantee.uniform(0.5), samples=4_000).refuted
    True

    Proof: lem-audit, lem-audit-bet
    """
    guaranteed, labelled = _guarantee_and_parts(mechanism, guarantee, part_of)
    chosen_prices = _prices(mechanism, order, prices)
    if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise InvalidValue("an audit needs pairs of neighbouring databases: give for instance [(data, without_one)]")
    if not 0 < confidence < 1:
        raise InvalidValue(f"confidence is between 0 and 1, got {confidence!r}")
    as_whole(processes, "processes", 1)
    sampler = Sampler(mechanism, pairs, seed, many)
    subject = text_of(mechanism) if isinstance(mechanism, Mechanism) else getattr(mechanism, "__name__", "a function")

    def tested(outputs: SampledOutputs) -> AuditResult:
        test = _Test(guaranteed, labelled, outputs, len(pairs), 1 - confidence, order, chosen_prices)
        rows, events, moment = test.run()
        return AuditResult(subject, guaranteed, rows, events, len(outputs[0, 0]), confidence, seed, moment)

    if seconds is not None:
        return within(
            seconds, lambda found, chunks, told: sampler.more(found, chunks, processes, told), tested, progress
        )
    chunks = -(-as_whole(samples, "samples", 4 * BATCH) // BATCH)
    return tested(sampler.more({}, chunks, processes, progress))


def _guarantee_and_parts(mechanism: Any, guarantee: Guarantee | None, part_of: Any) -> tuple[Guarantee, Any]:
    if isinstance(mechanism, Mechanism):
        return guarantee or mechanism.guarantee, part_of or (mechanism.part_of if guarantee is None else _whole)
    if not callable(mechanism) or guarantee is None:
        raise InvalidValue("an audit takes a mechanism, or a function of (data, noise) and guarantee=")
    return guarantee, part_of or _whole


def _whole(output: Any) -> Part:
    return "any"


def _prices(mechanism: Any, order: Number | None, prices: Prices | None) -> Prices | None:
    if order is None:
        if prices is not None:
            raise InvalidValue("Rényi prices are for an order: give order=")
        return None
    if exact(order, "an order") <= 1:
        raise InvalidValue(f"an order is above 1, got {order!r}")
    if prices is None and not isinstance(mechanism, Mechanism):
        raise InvalidValue("a function has no Rényi prices of its own: give prices=")
    found = prices or mechanism.renyi_prices(order)
    if found.delta:
        raise InvalidValue("prices that hold up to a δ cannot be refuted by a moment: audit the guarantee instead")
    return found


class _Test:
    """Learn, choose and test, for every ordered pair."""

    def __init__(
        self, guarantee: Guarantee, part_of: Any, outputs: SampledOutputs, pairs: int, error: float,
        order: Number | None, prices: Prices | None,
    ) -> None:  # fmt: skip
        self._outputs, self._pairs, self._error = outputs, pairs, error
        self._order = None if order is None else float(exact(order, "an order"))
        labels = {side: [part_of(output) for output in found] for side, found in outputs.items()}
        chosen = [label for found in labels.values() for label in found[: _shares(len(found))[1]]]
        self._labels: list[Part] = list(dict.fromkeys(chosen))
        """Parts that occurred before the test; it is about these, and no others."""
        everything = [*self._labels, *(label for found in labels.values() for label in found)]
        numbers = {label: number for number, label in enumerate(dict.fromkeys(everything))}
        self._parts = {side: np.array([numbers[label] for label in found]) for side, found in labels.items()}
        self._epsilons = np.array([guarantee.epsilon_of(label) for label in numbers])
        self._known = np.arange(len(numbers)) < len(self._labels)
        self._delta = guarantee.delta
        self._prices = None if prices is None else np.array([prices.of(label) / EPSILON_UNITS for label in numbers])

    def run(self) -> tuple[tuple[PartShown, ...], tuple[EventShown, ...], float | None]:
        """What the samples show."""
        both = []
        for pair in range(self._pairs):
            sides = (pair, 0), (pair, 1)
            learnt = _Learnt([self._outputs[side] for side in sides], [self._parts[side] for side in sides])
            both += [_Ordered(pair, first, learnt) for first in (0, 1)]
        moment = None if self._prices is None else self._moment(both, _MOMENT * self._error)
        rest = 1 - _PARTS - (0 if moment is None else _MOMENT)
        return self._rows(both, _PARTS * self._error), self._events(both, rest * self._error), moment

    def _rows(self, both: list[_Ordered], error: float) -> tuple[PartShown, ...]:
        """For each part, the cheapest first, the event of any ordered pair that showed the most."""
        each = error / (len(both) * len(self._labels))
        found: dict[int, PartShown] = {}
        for sides in both:
            for part in range(len(self._labels)):
                event = sides.best_for_part(part, len(self._known), self._delta)
                shown = epsilon_shown(event, *sides.tested, self._epsilons, self._delta, each)
                before = found.get(part)
                if before is None or shown > before.shown:
                    guaranteed = float(self._epsilons[part])
                    hits = sides.hits(event, self._epsilons)
                    found[part] = PartShown(self._labels[part], guaranteed, shown, sides.pair, sides.order, hits)
        return tuple(sorted(found.values(), key=lambda row: row.guaranteed))

    def _events(self, both: list[_Ordered], error: float) -> tuple[EventShown, ...]:
        """The few events that seemed to violate the guarantee most when they were chosen."""
        single = [np.arange(len(self._known)) == part for part in range(len(self._labels))]
        masks = [self._known, *(single[: 4 * len(_EVENTS)] if len(single) > 1 else [])]
        found = [(sides.best_anywhere(self._epsilons, self._delta, mask), sides) for sides in both for mask in masks]
        found.sort(key=lambda row: -row[0].excess)
        shares = zip(found, _EVENTS, strict=False)
        return tuple(self._event(event, sides, error * share) for (event, sides), share in shares)

    def _event(self, event: Distinguisher, sides: _Ordered, error: float) -> EventShown:
        shown = sides.shown(event, self._epsilons, self._delta, error)
        return EventShown(
            self._delta, shown, sides.pair, sides.order, sides.hits(event, self._epsilons),
            sides.examples(event, self._epsilons),
        )  # fmt: skip

    def _moment(self, both: list[_Ordered], error: float) -> float:
        assert self._prices is not None
        assert self._order is not None
        each = error / len(both)
        shown = []
        for sides in both:
            cells = best_cells(*sides.chosen, self._order, self._prices, each)
            shown.append(moment_shown(cells, *sides.tested, self._order, self._prices, each))
        return max(shown)


def _shares(size: int) -> tuple[int, int]:
    """How many samples there are to learn from; and these and those to choose by."""
    return int(_LEARN * size), int((_LEARN + _CHOOSE) * size)


class _Learnt:
    """A pair of databases: samples to choose by, scored by others; and samples to test, scored by both of those."""

    def __init__(self, outputs: list[list[Any]], parts: list[Any]) -> None:
        size = len(outputs[0])
        learn, choose = _shares(size)
        self.kept = [side[choose:] for side in outputs]
        self.chosen = _scored([side[:choose] for side in outputs], parts, learn)
        self.tested = _scored(outputs, parts, choose)


def _scored(outputs: list[list[Any]], parts: list[Any], learn: int) -> list[Side]:
    """Scores of all other samples, learnt from the first ``learn`` of each side."""
    first, second = (side[:learn] for side in outputs)
    scores: tuple[LikelihoodScore, ...] = (Classifier(first, second), Frequencies(first, second))
    return [
        Side(tuple(score(side[learn:]) for score in scores), of[learn : len(side)])
        for side, of in zip(outputs, parts, strict=True)
    ]


class _Ordered:
    """An ordered pair: samples to choose events by, and samples to test them."""

    def __init__(self, pair: int, first: int, learnt: _Learnt) -> None:
        self.pair = pair
        self.order: Literal["first", "second"] = "second" if first else "first"
        self._kept = learnt.kept[first]
        self.chosen = _turned(learnt.chosen, first)
        self.tested = _turned(learnt.tested, first)

    def best_for_part(self, part: int, parts: int, delta: float) -> Distinguisher:
        """The event within a part that seems to show the largest ε."""
        return best_for_part(*self.chosen, part, parts, delta, self.tested[0].size / self.chosen[0].size)

    def best_anywhere(self, epsilons: Any, delta: float, within: Any) -> Distinguisher:
        """The event in these parts that seems to violate the guarantee most."""
        return best_anywhere(*self.chosen, epsilons, delta, within)

    def shown(self, event: Distinguisher, epsilons: Any, delta: float, error: float) -> float:
        """The δ that the event shows: by a bet or by two bounds, whichever shows more on the samples it was chosen
        by."""
        before = hits_of(event, *self.chosen, epsilons)
        bet = best_bet(before, delta)
        times = max(round(self.tested[0].size / self.chosen[0].size), 1)
        expected = delta_won(bet, before.repeated(times), error)
        first, second = (side.repeated(times) for side in self.chosen)
        if expected > delta_shown(event, first, second, epsilons, error):
            return delta_won(bet, hits_of(event, *self.tested, epsilons), error)
        return delta_shown(event, *self.tested, epsilons, error)

    def hits(self, event: Distinguisher, epsilons: Any) -> tuple[int, int]:
        """Samples of either law in an event."""
        first, second = (int(event.members(side, epsilons).sum()) for side in self.tested)
        return first, second

    def examples(self, event: Distinguisher, epsilons: Any) -> tuple[str, ...]:
        """The most frequent outputs in an event."""
        inside = np.flatnonzero(event.members(self.tested[0], epsilons))[:2000]
        counts = Counter(repr(self._kept[place])[:60] for place in inside)
        return tuple(text for text, _ in counts.most_common(3))


def _turned(sides: list[Side], first: int) -> tuple[Side, Side]:
    """Both sides, with scores that speak for the first."""
    if first == 0:
        return sides[0], sides[1]
    other, own = (Side(tuple(-score for score in side.scores), side.parts) for side in sides)
    return own, other
