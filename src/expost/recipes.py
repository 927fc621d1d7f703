"""Recipes: several mechanisms and a ledger together.

* :func:`release_large`: find the large entries of a vector, then release them with everything that remains.
* :func:`location_and_spread`: an inter-quartile range, then the median with everything that remains.
* :func:`refine_until`: an answer with less and less noise, until a private test of the data says that it is enough.
* :func:`top_until`: the most frequent labels, asked for again while there are fewer than wanted and ε remains.
* :func:`try_until_one_passes`: one model after another behind a private test, until one passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any, Generic, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_positive, as_share, as_whole, whole_sensitivity
from expost.cost import Cost, Number, exact
from expost.errors import BudgetExceeded, InvalidValue
from expost.estimates import Estimates, frame_of
from expost.frame import AsFrame, Frame
from expost.guarantee import Neighbours
from expost.ledger import Ledger
from expost.mechanism import WITHHELD, Mechanism, Out, Published, Release, Withheld
from expost.mechanisms import (
    GaussianReduction,
    Laplace,
    NoiseReduction,
    SparseVector,
    StableInterquartileRange,
    StableMedian,
    StableNoisyInterquartileRange,
    TopK,
)
from expost.mechanisms.numbers import owned, shape_of
from expost.mechanisms.sparse_vector.comparisons import NoiseKind
from expost.mechanisms.sparse_vector.mask import stopped_text
from expost.mechanisms.stability.order import check_records
from expost.mechanisms.stability.quantile_range import Bin
from expost.mentions import printable
from expost.noise.grid import FARTHEST

Rest = Literal["rest"]
__all__ = [
    "LocationAndSpread",
    "RecipeResult",
    "location_and_spread",
    "refine_until",
    "release_large",
    "top_until",
    "try_until_one_passes",
]


@dataclass(frozen=True)
class RecipeResult(AsFrame, Generic[Published]):
    """What a recipe published, and the releases that it is made of.

    Attributes
    ----------
    value
        What the recipe is for.
    releases
        The releases, in the order in which they were run.
    summary
        The value in a few words.
    exhausted
        Whether the recipe ended early because the ledger could not reserve for the next step.
    """

    value: Published
    releases: tuple[Release, ...]
    summary: str
    exhausted: bool = False

    @property
    def charged(self) -> Cost:
        """What all releases cost."""
        return sum((release.charged for release in self.releases), Cost(0))

    @property
    def refunded(self) -> Cost:
        """What was refunded of all reservations."""
        return sum((release.refunded for release in self.releases), Cost(0))

    @property
    def withheld(self) -> bool:
        """Whether nothing was published."""
        return self.value is WITHHELD

    @property
    def frame(self) -> Frame:
        """What the recipe is for as rows: numbers have one schema."""
        return frame_of(self.value, self.releases[-1].mechanism if self.releases else None)

    def __str__(self) -> str:
        return f"{printable(self.summary)} · charged {self.charged}"


def release_large(
    ledger: Ledger,
    on: NDArray[Any] | Mapping[Any, int | float],
    *,
    threshold: Any,
    at_most: int,
    sensitivity: Number,
    epsilon: Number | Rest,
    selection_share: Number = "1/2",
    l1: Number | None = None,
    monotone: bool = False,
    noise: NoiseKind = "one-sided",
    neighbours: Neighbours | None = None,
    label: str | None = None,
) -> RecipeResult[Mapping[Any, int | float]]:
    """Release the entries of a vector, or of a histogram {name: count}, that are large; and only those.

    A sparse vector with ``selection_share`` of ε finds entries whose absolute value is above
    ``threshold``, at most ``at_most``. Everything that then remains of ε goes to the signed values of
    those that were found: fewer found means less noise, and so does what the sparse vector refunded. Entries after the
    last one allowed are not compared: ``releases[0].value.not_compared`` says which, in the order of the entries.

    ``epsilon`` is the whole budget, or "rest" for all that remains. ``sensitivity`` bounds how far one entry
    moves between neighbours, ``l1`` how far all of them move together (by default, ``sensitivity`` times the
    entries found). ``monotone`` is for counts: all entries grow, or all shrink, when a record is added (negative
    ones are then never large). NaN and None count as 0. Names must be public: a name that is there because
    of one person reveals them; and so must be whether a name has whole numbers or floats.

    >>> ledger = Ledger(epsilon=1)
    >>> counts = np.zeros(100, int)
    >>> counts[[3, 14, 15]] = 100_000
    >>> large = release_large(ledger, counts, threshold=50_000, at_most=20, sensitivity=1, epsilon="rest")
    >>> list(large.value), ledger.remaining
    ([3, 14, 15], Cost(0))

    Proof: thm-release-large
    """
    share = as_share(selection_share, "selection_share")
    names, entries = _named(on)
    total = _total(ledger, epsilon)
    if not Cost.of_units(total.epsilon_units) <= ledger.remaining or not total.epsilon_units:
        raise BudgetExceeded(Cost(max(total.exact_epsilon, Fraction(1, 10**12))), ledger.remaining, ledger.name)
    together = None if l1 is None else as_positive(l1, "l1")
    if entries.dtype.kind != "f":
        whole_sensitivity(sensitivity)
    finder = SparseVector(
        threshold=threshold,
        at_most=at_most,
        epsilon=total.exact_epsilon * share,
        sensitivity=sensitivity,
        monotone=monotone,
        noise=noise,
        neighbours=neighbours,
    )
    sizes = np.maximum(entries, 0) if monotone else _magnitudes(entries)
    found = ledger.run(finder, on=owned(sizes, on), label=label and f"{label}: find")
    chosen = np.flatnonzero(found.value.above)
    if not len(chosen):
        return RecipeResult(_by_name((), ()), (found,), "no large entries")
    separately = exact(sensitivity, "sensitivity") * len(chosen)
    remaining = total.exact_epsilon - found.charged.exact_epsilon
    moves = separately if together is None else min(separately, together)
    noise_of = Laplace(epsilon=remaining, sensitivity=_plain(moves), neighbours=neighbours)
    noisy = ledger.run(noise_of, on=owned(entries[chosen], on), label=label and f"{label}: values")
    values = _by_name([names[i] for i in chosen.tolist()], noisy.value)
    listed = ", ".join(f"{name}: {value:g}" for name, value in list(values.items())[:8])
    more = ", …" if len(values) > 8 else ""
    summary = f"{len(values)} large entries ({listed}{more}){stopped_text(found.output)}"
    return RecipeResult(values, (found, noisy), summary)


def _by_name(names: Sequence[Any], numbers: Any) -> Estimates:
    return Estimates.by_key(("entry",), names, "value", numbers.__getitem__)


def _total(ledger: Ledger, epsilon: Number | Rest, delta: Number | Rest = 0) -> Cost:
    """The whole budget of a recipe: what was stated, or what remains."""
    remaining = ledger.remaining
    return Cost.within(
        remaining.exact_epsilon if epsilon == "rest" else epsilon, remaining.exact_delta if delta == "rest" else delta
    )


def _named(values: Any) -> tuple[Any, NDArray[Any]]:
    """Names and entries. Floats if any entry is of a float type, whole numbers otherwise: values decide nothing."""
    if isinstance(values, Mapping):
        entries = list(values.values())
        if not all(entry is None or isinstance(entry, Real) for entry in entries):
            raise InvalidValue("a histogram maps names to ints, or to floats; some value is not a number")
        if any(isinstance(entry, float | np.floating) for entry in entries):
            return list(values), np.array([np.nan if entry is None else float(entry) for entry in entries])
        whole = [max(-FARTHEST, min(FARTHEST, int(entry or 0))) for entry in entries]
        return list(values), np.array(whole, np.int64)
    shape = shape_of(values)
    if shape.dimensions is None or len(shape.dimensions) != 1:
        raise InvalidValue(f"entries are those of a one-dimensional array, or of a mapping, got {shape.dimensions}")
    return range(shape.size), np.asarray(values)


def _plain(number: Fraction) -> int | Fraction:
    """An int if it is one, which reads better in a ledger."""
    return number.numerator if number.denominator == 1 else number


def _magnitudes(entries: NDArray[Any]) -> NDArray[Any]:
    """Absolute values; the most negative integer, which has none, becomes the largest."""
    if entries.dtype.kind == "i":
        entries = np.maximum(entries, -np.iinfo(entries.dtype).max)
    magnitudes: NDArray[Any] = np.abs(entries) if entries.dtype.kind in "if" else entries
    return magnitudes


class LocationAndSpread(NamedTuple):
    """The median and the inter-quartile range. Either may be ``WITHHELD``.

    Attributes
    ----------
    location
        The median.
    spread
        The inter-quartile range, or the bin that it is in.
    """

    location: float | Withheld
    spread: Bin | float | Withheld

    @property
    def frame(self) -> Frame:
        """A row for the median, and one for the range, or for each edge of its bin."""
        spread = {"range": self.spread}
        if isinstance(self.spread, Bin):
            spread = {"lower edge": self.spread.lower, "upper edge": self.spread.upper}
        return Estimates.named({"median": self.location, **spread}).frame


def location_and_spread(
    ledger: Ledger,
    on: Any,
    *,
    epsilon: Number | Rest,
    delta: Number | Rest,
    fallback: Number,
    spread_share: Number = "1/2",
    spread: StableInterquartileRange | StableNoisyInterquartileRange | None = None,
    slack: Number = 4,
    label: str | None = None,
) -> RecipeResult[LocationAndSpread]:
    """The inter-quartile range, and then the median with all of ``epsilon`` and ``delta`` that the range did not cost.

    ``epsilon`` and ``delta`` are the whole budget, or "rest" for all that remains in the ledger.

    The median's proposed sensitivity is scaled by the range that came out; if that was withheld, or is 0, by
    ``fallback``, a public guess. What the range did not cost, the median gets: with the default half of what was
    reserved if the first scale answered; with a :class:`~expost.mechanisms.StableNoisyInterquartileRange`, the paper's
    analysis, a third if it was withheld. ``spread`` is by default a
    :class:`~expost.mechanisms.StableInterquartileRange` with ``spread_share`` of the budget.

    Proof: thm-location-and-spread
    """
    size = check_records(on, "location and spread")
    guess = as_positive(fallback, "fallback (a public guess of the range)")
    if not Fraction(1, 10**6) <= exact(slack, "slack") <= 10**6:
        raise InvalidValue(f"slack multiplies the proposed sensitivity; it lies between 1e-6 and 1e6, got {slack!r}")
    total = _total(ledger, epsilon, delta)
    if not total <= ledger.remaining:
        raise BudgetExceeded(total, ledger.remaining, ledger.name)
    if spread is None:
        share = as_share(spread_share, "spread_share")
        part = total.split([1 - share, share])[1]
        spread = StableInterquartileRange(epsilon=part.epsilon, delta=part.delta)
    worst = spread.guarantee.worst_case
    if not worst <= total:
        raise BudgetExceeded(worst, total, ledger.name)
    _median(total - worst, guess, size, slack)
    mechanism: Mechanism = spread
    found = ledger.run(mechanism, on=on, label=label and f"{label}: spread")
    median = _median(total - found.charged, _scale(found) or guess, size, slack)
    middle = ledger.run(median, on=on, label=label and f"{label}: location")
    described = f"median {median.describe(middle.output)}, range {mechanism.describe(found.output)}"
    return RecipeResult(LocationAndSpread(middle.value, found.value), (found, middle), described)


def _scale(found: Release) -> Fraction | None:
    """The published range, if there is one and it is of a size that a grid can have."""
    if found.withheld:
        return None
    scale = exact(found.output.upper if isinstance(found.output, Bin) else found.output, "scale")
    return scale if Fraction(1, 2**800) < scale < 2**800 else None


def _median(remaining: Cost, scale: Fraction, size: int, slack: Number) -> StableMedian:
    return StableMedian.scaled(scale, size=size, epsilon=remaining.epsilon, delta=remaining.delta, slack=slack)


def refine_until(
    ledger: Ledger,
    reduction: NoiseReduction | GaussianReduction,
    test: SparseVector,
    on: Any,
    *,
    score: Callable[[Any, Any], Any],
    label: str | None = None,
) -> RecipeResult[Any]:
    """Refine an answer until a sparse vector finds that its score is above the threshold; both are charged.

    A rule of :class:`~expost.NoiseReduction` reads what was released. ``score(data, answer)`` reads the data, so it
    goes through a private test. ``test`` has the threshold and the ``sensitivity`` of the score for every fixed answer;
    one positive is enough (``at_most=1``). It ends when the test is passed, or at the last level.

    >>> reduction = NoiseReduction(epsilon=1, sensitivity=1, levels=8, ratio=2)
    >>> test = SparseVector(threshold=-50, at_most=1, epsilon=1, sensitivity=1)
    >>> found = refine_until(
    ...     Ledger(epsilon=2), reduction, test, 5_000, score=lambda data, answer: -abs(data - answer)
    ... )
    >>> abs(found.value - 5_000) < 100
    True

    Proof: thm-refine-until
    """
    answers, asked = label and f"{label}: answers", label and f"{label}: test"
    with ledger.open(test, on=on, label=asked) as ask, ledger.open(reduction, on=on, label=answers) as refining:
        passed, answer = False, None
        while not (passed or refining.closed or ask.closed):
            answer = refining.refine()
            passed = bool(ask(partial(_scored, score, answer)))
    end = "passed its test" if passed else "did not pass its test"
    published = refining.release.value[-1] if refining.level else None
    return RecipeResult(published, (refining.release, ask.release), f"step {refining.level}, which {end}")


def _scored(score: Callable[[Any, Any], Any], answer: Any, data: Any) -> Any:
    return score(data, answer)


def top_until(
    ledger: Ledger,
    on: Any,
    *,
    k: int,
    epsilon: Number | Rest,
    delta: Number,
    groups: int = 1,
    candidates: int | None = None,
    label: str | None = None,
) -> RecipeResult[tuple[Any, ...]]:
    """The k most frequent labels, asked for again until there are k, or all shares of ε are used, or δ is.

    ``epsilon`` is the whole budget, or "rest" for all that remains: k shares, of which each label costs one, and so
    does each answer that there is no further label. ``delta`` is charged every time that it is asked. What was found is
    left out of the data for the next time. ``on``, ``groups`` and ``candidates`` are as for
    :class:`~expost.mechanisms.TopK`; or ``on`` is ``table.discover(…)``, whose table says what a unit is.

    >>> counts = {"Paris": 2140, "Lyon": 520, "Nice": 340, "Metz": 3}
    >>> ledger = Ledger(epsilon=8, delta=1e-5)
    >>> print(top_until(ledger, counts, k=8, epsilon=8, delta=1e-6))
    3 of 8 labels in 5 calls · charged ε 8, δ 5e-6

    Proof: thm-top-until
    """
    total, wanted = _total(ledger, epsilon, delta), as_whole(k, "k", most=10_000)
    asker = _of_table if hasattr(on, "top") else _of_counts
    ask = asker(on, wanted, total.exact_epsilon, delta, groups, candidates)
    found: list[Any] = []
    releases: list[Release[tuple[Any, ...]]] = []
    shares, exhausted = wanted, False
    while shares and len(found) < wanted:
        most = min(shares, wanted - len(found))
        mechanism, data = ask(most, found)
        try:
            release = ledger.run(mechanism, on=data, label=label and f"{label}: {len(releases) + 1}")
        except BudgetExceeded:
            if not releases:
                raise
            exhausted = True
            break
        releases.append(release)
        found += release.output
        shares -= min(len(release.output) + 1, most)
    summary = f"{len(found)} of {wanted} labels in {len(releases)} call{'s' * (len(releases) != 1)}"
    return RecipeResult(tuple(found), tuple(releases), summary, exhausted)


_AskTop = Callable[[int, list[Any]], tuple[Mechanism[Any, tuple[Any, ...]], Any]]
"""The mechanism that looks for this number of labels beside those that were found, and its data."""


def _of_counts(
    on: Any, k: int, epsilon: Fraction, delta: Number, groups: int, candidates: int | None
) -> _AskTop:  # fmt: skip
    first = TopK(k=k, epsilon=epsilon, delta=delta, groups=groups, candidates=candidates)

    def ask(most: int, found: list[Any]) -> tuple[TopK, Any]:
        again = replace(first, k=most, epsilon=most * first.rate, candidates=candidates or 10 * k)
        return again, _without(on, found)

    return ask


def _of_table(
    on: Any, k: int, epsilon: Fraction, delta: Number, groups: int, candidates: int | None
) -> _AskTop:  # fmt: skip
    if groups != 1 or candidates is not None:
        raise InvalidValue("the unit of the table says how many labels a person has: leave out groups= and candidates=")
    share = Cost.within(epsilon / k).exact_epsilon
    return lambda most, found: (
        on.top(most, without=tuple(found)).mechanism(epsilon=most * share, delta=delta),
        None,
    )


def _without(on: Any, found: list[Any]) -> Any:
    """Labels and counts without those that were published."""
    if not found or not isinstance(on, Mapping | tuple | list):
        return on
    if isinstance(on, Mapping):
        known = frozenset(found)
        return {name: count for name, count in on.items() if name not in known}
    labels, counts = on
    others = ~np.isin(labels, np.array(found, labels.dtype))
    return labels[others], counts[others]


def try_until_one_passes(
    ledger: Ledger, candidates: Iterable[Mechanism[Any, Out]], on: Any, *, label: str | None = None
) -> RecipeResult[Out | Withheld]:
    """Run candidates that may withhold in order, until one answers; each that does not costs only its refusal.

    Candidates are mechanisms such as :class:`~expost.mechanisms.TestedLogisticRegression` with different regularisers
    or features. A list, or an iterator that makes each one when the one before has failed. Stops before the first
    that the ledger cannot reserve for.

    >>> from expost.mechanisms import TestedLogisticRegression
    >>> import numpy as np
    >>> candidates = [
    ...     TestedLogisticRegression(epsilon=1, test_share=0.1, threshold=0.2, norm=1, regularizer=r)
    ...     for r in (1, 0.1)
    ... ]
    >>> nothing_to_learn = np.random.default_rng(0).integers(0, 2, (5000, 4)).astype(float)
    >>> print(try_until_one_passes(Ledger(epsilon=2), candidates, on=nothing_to_learn))
    2 tried, none passed · charged ε 0.2

    Proof: thm-attempts
    """
    releases: list[Release[Out]] = []
    exhausted = False
    for number, candidate in enumerate(candidates, 1):
        if not isinstance(candidate, Mechanism):
            raise InvalidValue(f"candidates are mechanisms, got {type(candidate).__name__}")
        try:
            releases.append(ledger.run(candidate, on=on, label=label and f"{label}: {number}"))
        except BudgetExceeded:
            exhausted = True
            break
        if not releases[-1].withheld:
            return RecipeResult(releases[-1].value, tuple(releases), f"{len(releases)} tried, one passed")
    end = "the budget ended it" if exhausted else "none passed"
    return RecipeResult(WITHHELD, tuple(releases), f"{len(releases)} tried, {end}", exhausted)
