"""Wrong mechanisms with a guarantee that somebody might state for them, and right ones of the same kinds.

Each draws many outputs at once. Six are sparse vectors that Lyu, Su and Li (2017) warn of, or relatives of those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from expost import Guarantee
from expost.accounting.renyi import Prices, laplace_noise
from expost.noise import NoiseSource


@dataclass(frozen=True)
class Animal:
    """A mechanism, neighbouring databases, and what is to be guaranteed."""

    name: str
    draw: Callable[[Any, np.random.Generator, int], Any]
    pair: tuple[Any, Any]
    epsilon: float
    delta: float = 0
    rest: dict[str, Any] = field(default_factory=dict)
    """What else an audit is told."""

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.uniform(self.epsilon, self.delta)

    def __call__(self, data: Any, noise: NoiseSource, count: int) -> Sequence[Any]:
        drawn = self.draw(data, np.random.default_rng(list(noise.bytes(16))), count)
        return drawn.tolist() if isinstance(drawn, np.ndarray) else list(drawn)


# ---- sparse vectors

HALF_UP = (0.0, 0.0, 0.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
ALL_UP = (0.0,) * 5, (1.0,) * 5
FAR_BELOW = (-30.0,) * 20, (-29.0,) * 20
LONG = (*(0.0,) * 8, *(1.0,) * 8), (*(1.0,) * 8, *(0.0,) * 8)


def sparse(
    answers: Any, rng: np.random.Generator, count: int, *, threshold: float, question: float, most: int | None,
    values: bool = False, gaps: bool = False,
) -> Any:  # fmt: skip
    """Sparse vectors with noise of these scales; ``most=None`` never stops."""
    size = count, len(answers)
    lines = rng.laplace(scale=threshold, size=(count, 1))
    noisy = np.asarray(answers) + rng.laplace(scale=question, size=size)
    above = noisy >= lines
    told = np.round(noisy, 1).astype(object) if values else above.astype(object)
    if gaps:
        told[above] = np.round((noisy - lines)[above], 1)
    if most is not None:
        told[np.cumsum(above, axis=1) - above >= most] = None
    return map(tuple, told)


# ---- numbers and choices

ONE_FALLS = (1, *(0,) * 8), (0, *(1,) * 8)
"""Scores of nine candidates: one falls, all others rise."""


def laplace(data: Any, rng: np.random.Generator, count: int, *, scale: float) -> Any:
    """Laplace noise on whole numbers, rounded."""
    return np.round(data + rng.laplace(scale=scale, size=count)).astype(int)


def floating(data: Any, rng: np.random.Generator, count: int) -> Any:
    """Laplace noise as people write it: the lowest bits of the sum say what was added."""
    return data + rng.laplace(size=count)


def normal(data: Any, rng: np.random.Generator, count: int, *, scale: float) -> Any:
    """Gaussian noise, rounded."""
    return (data + rng.normal(scale=scale, size=count)).round(2)


def response(data: Any, rng: np.random.Generator, count: int, *, lie: float) -> Any:
    """Randomized response."""
    return np.where(rng.random(count) < lie, 1 - data, data)


def exponential(scores: Any, rng: np.random.Generator, count: int, *, rate: float) -> Any:
    """A candidate with probability proportional to e^{rate·score}."""
    weights = np.exp(rate * np.asarray(scores))
    return rng.choice(len(scores), size=count, p=weights / weights.sum())


def noisy_max(scores: Any, rng: np.random.Generator, count: int, *, scale: float, value: bool = False) -> Any:
    """The best candidate after noise, and perhaps how good it seemed."""
    noisy = np.asarray(scores) + rng.laplace(scale=scale, size=(count, len(scores)))
    best = noisy.argmax(axis=1)
    return zip(best.tolist(), noisy.max(axis=1).round(1).tolist(), strict=True) if value else best


# ---- tests before releases, and accountants


def cascade(value: int, rng: np.random.Generator, count: int, *, delta: float) -> Any:
    """Two tests in a row, each of which passes by mistake with probability δ; then the value is published."""
    passed: Any = (rng.random((count, 2)) < delta).any(axis=1)
    return [value if one else "withheld" for one in passed]


def top(votes: int, rng: np.random.Generator, count: int, *, tries: int) -> Any:
    """A label against ⊥, by Gumbel noise; after ⊥ it is tried again. In which try the label came out."""
    wins = votes + rng.gumbel(size=(count, tries)) > 1 + rng.gumbel(size=(count, tries))
    return np.where(wins.any(axis=1), wins.argmax(axis=1), -1)


def named(person: str, rng: np.random.Generator, count: int, *, rounds: int) -> Any:
    """Name a person with probability 0.01, else say nothing; in as many rounds as the accountant admits."""
    hits: Any = (rng.random((count, rounds)) < 0.01).any(axis=1)
    return [person if hit else "" for hit in hits]


def renyi(share: float) -> dict[str, Any]:
    """A share of the price of Laplace noise at order 8."""
    return {"order": 8, "prices": Prices(otherwise=int(share * float(laplace_noise(8, 1, None)) * 10**12) + 1)}


def _sparse(name: str, pair: tuple[Any, Any], epsilon: float, **noise: Any) -> Animal:
    return Animal(f"sparse vector{name}", partial(sparse, **noise), pair, epsilon)


WRONG = (
    _sparse(" without noise on answers", HALF_UP, 1, threshold=2, question=1e-9, most=1),
    _sparse(" without noise on the threshold", ALL_UP, 2.5, threshold=1e-9, question=1, most=1),
    _sparse(" that never stops", HALF_UP, 1, threshold=2, question=2, most=None),
    _sparse(" whose noise forgets how many positives", LONG, 2, threshold=1, question=2, most=8),
    _sparse(" that publishes the answers it compared", FAR_BELOW, 1, threshold=2, question=4, most=1, values=True),
    _sparse(" with half the noise on answers", HALF_UP, 1, threshold=2, question=1.5, most=1),
    Animal("Laplace noise of half the scale", partial(laplace, scale=0.5), (0, 1), 1),
    Animal("Laplace noise in floating point", floating, (0.0, 1.0), 1),
    Animal("Gaussian noise of half the scale", partial(normal, scale=1.0), (0, 1), 1, 0.01),
    Animal("randomized response that lies too seldom", partial(response, lie=0.2), (0, 1), 1),
    Animal("exponential mechanism without the factor two", partial(exponential, rate=1.0), ONE_FALLS, 1),
    Animal("noisy maximum with half the noise", partial(noisy_max, scale=1.0), ONE_FALLS, 1),
    Animal("noisy maximum with its value", partial(noisy_max, scale=2.0, value=True), ((0, 0, 0), (1, 1, 1)), 0.3),
    Animal("propose-test-release with undoubled δ", partial(cascade, delta=0.05), (3, 4), 1, 0.05),
    Animal("top k with free retries", partial(top, tries=5), (1, 0), 1),
    Animal("an accountant that refunds δ", partial(named, rounds=50), ("x", "y"), 0, 0.02),
    Animal("Rényi prices cut to a third", partial(laplace, scale=1.0), (0, 1), 1, rest=renyi(1 / 3)),
)
RIGHT = (
    _sparse("", HALF_UP, 1, threshold=2, question=4, most=1),
    _sparse(" with several positives", HALF_UP, 4, threshold=0.5, question=3, most=3),
    _sparse(" with gaps", HALF_UP, 1, threshold=2, question=4, most=1, gaps=True),
    Animal("Laplace noise", partial(laplace, scale=1.0), (0, 1), 1),
    Animal("Gaussian noise", partial(normal, scale=2.0), (0, 1), 1, 0.02),
    Animal("randomized response", partial(response, lie=1 / (1 + np.e)), (0, 1), 1),
    Animal("exponential mechanism", partial(exponential, rate=0.5), ONE_FALLS, 1),
    Animal("noisy maximum", partial(noisy_max, scale=2.0), ONE_FALLS, 1),
    Animal("propose-test-release", partial(cascade, delta=0.025), (3, 4), 1, 0.05),
    Animal("top k", partial(top, tries=1), (1, 0), 1),
    Animal("an accountant that keeps δ", partial(named, rounds=2), ("x", "y"), 0, 0.02),
    Animal("Rényi prices", partial(laplace, scale=1.0), (0, 1), 1, rest=renyi(1)),
)
