"""The exact law of code that draws: every draw it could make is made.

A function of a noise source is run once for each sequence of draws, most likely first, with the exact
probability of each. That turns the very code that runs in production into a
:class:`~expost.verify.finite.FiniteMechanism`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

from expost.errors import InvalidValue
from expost.mechanism import Mechanism
from expost.noise import NoiseSource
from expost.verify.finite import FiniteMechanism

Output = TypeVar("Output", bound=Hashable)


_WIDEST = 10_000  # branches of one draw


class _Branch(BaseException):
    """The code asked for a draw beyond the script. Carries the probability of each value it could have."""

    def __init__(self, choices: list[Fraction]) -> None:
        self.choices = choices


class _Script(NoiseSource):
    """Answers draws from a script; asks for a branch when the script ends."""

    private = False

    def __init__(self, draws: tuple[int, ...]) -> None:
        self._draws = iter(draws)

    def bytes(self, count: int) -> bytes:
        """Whole bytes are more than can be enumerated."""
        raise InvalidValue("only code that draws by below(…) can be enumerated, as the scalar samplers do")

    def below(self, bound: int) -> int:
        """The next draw of the script, among equally likely ones."""
        if bound > _WIDEST:
            raise InvalidValue(f"a draw among {bound} values has too many branches to make them all")
        return self._next([Fraction(1, bound)] * bound)

    def chance(self, numerator: int, denominator: int) -> bool:
        """The next draw of the script, among two."""
        heads = Fraction(numerator, denominator)
        return bool(self._next([1 - heads, heads]))

    def _next(self, choices: list[Fraction]) -> int:
        if 1 in choices:
            return choices.index(Fraction(1))
        for draw in self._draws:
            return draw
        raise _Branch(choices)


def law(run: Callable[[NoiseSource], Output], *, missing: Fraction = Fraction(1, 10**6)) -> dict[Output, Fraction]:
    """The exact probability of each output of ``run``, up to at most ``missing`` mass left out.

    >>> law(lambda source: source.below(3) + source.below(2))
    {0: Fraction(1, 6), 1: Fraction(1, 3), 2: Fraction(1, 3), 3: Fraction(1, 6)}

    Proof: lem-draws
    """
    found: dict[Output, Fraction] = {}
    order = count()
    paths: list[tuple[Fraction, int, tuple[int, ...]]] = [(Fraction(-1), next(order), ())]
    left = Fraction(1)
    while paths and left > missing:
        minus, _, draws = heappop(paths)
        try:
            output = run(_Script(draws))
        except _Branch as branch:
            for draw, probability in enumerate(branch.choices):
                heappush(paths, (minus * probability, next(order), (*draws, draw)))
        else:
            found[output] = found.get(output, Fraction(0)) - minus
            left += minus
    return dict(sorted(found.items(), key=_sort_key))


def tabulate(
    mechanism: Mechanism,
    databases: Mapping[Hashable, Any],
    neighbours: Collection[tuple[Hashable, Hashable]],
    *,
    missing: Fraction = Fraction(1, 10**6),
) -> FiniteMechanism:
    """The law of a mechanism's own ``sample`` on each of some databases, given by name."""

    def sampled(data: Any) -> dict[Any, Fraction]:
        return law(lambda source: mechanism.sample(data, source), missing=missing)

    laws = {name: sampled(data) for name, data in databases.items()}
    return FiniteMechanism(laws, neighbours, mechanism.part_of)


def _sort_key(item: tuple[Any, Fraction]) -> tuple[str, Any]:
    output = item[0]
    return (type(output).__name__, output if isinstance(output, int | str) else repr(output))
