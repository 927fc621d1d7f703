"""How many samples an audit needs to refute wrong mechanisms, beside a plain histogram test on the same samples.

Also how often it refutes right ones, and what it says of a peer's mechanism with a known bug.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from expost import Guarantee
from expost.noise import NoiseSource
from expost.verify.audit import audit
from expost.verify.audit.bounds import at_least as lower
from expost.verify.audit.bounds import at_most as upper
from expost.verify.audit.features import output_key
from expost.verify.audit.samples import BATCH, Sampler
from report import ROOT, Row, at_most, peer, report

sys.path.insert(0, str(ROOT / "tests"))
from zoo import RIGHT, WRONG, Animal

LADDER = (400, 600, 800, 1_200, 1_600, 2_400, 3_200, 4_800, 6_400, 9_600, 12_800, 25_600, 51_200, 102_400)
SEEDS, ENOUGH, RUNS, BINS = 20, 10, 1_000, 40


def ours(animal: Animal, samples: int, seed: int) -> bool:
    return audit(
        animal, [animal.pair], guarantee=animal.guarantee, samples=samples, seed=seed, many=True, **animal.rest
    ).refuted  # fmt: skip


def histogram(animal: Animal, samples: int, seed: int) -> bool:
    """Half of the samples choose the bins where p > e^ε·q, the other half tests them."""
    drawn = Sampler(animal, [animal.pair], seed, True).more({}, samples // BATCH, 1, None)
    cell = _cells([*drawn[0, 0][: samples // 2], *drawn[0, 1][: samples // 2]])
    keys = {side: [cell(output) for output in drawn[0, side]] for side in (0, 1)}
    ratio, delta = np.exp(animal.epsilon), animal.delta
    for first in (0, 1):
        learn, test = keys[first][: samples // 2], keys[first][samples // 2 :]
        other, against = keys[1 - first][: samples // 2], keys[1 - first][samples // 2 :]
        chosen = (
            {key for key in set(learn) if learn.count(key) > ratio * other.count(key)}
            if len(set(learn)) < 200
            else (_likelier(learn, other, ratio))
        )
        a, b = sum(key in chosen for key in test), sum(key in chosen for key in against)
        if lower(a, len(test), 0.0025) - ratio * upper(b, len(test), 0.0025) > delta:
            return True
    return False


def _likelier(first: list[Hashable], second: list[Hashable], ratio: float) -> set[Hashable]:
    p, q = Counter(first), Counter(second)
    return {key for key in p if p[key] > ratio * q[key]}


def _cells(outputs: list[Any]) -> Callable[[Any], Hashable]:
    """Bins of equal frequency for numbers, and the outputs themselves for everything else."""
    if not all(isinstance(output, int | float) for output in outputs[:100]):
        return output_key
    cuts = np.unique(np.quantile(outputs, np.linspace(0, 1, BINS + 1)))
    return lambda output: int(np.searchsorted(cuts, output))


def needed(test: Callable[[Animal, int, int], bool], animal: Animal) -> int:
    """The fewest samples, of those tried, with which half of twenty audits refute it."""
    for samples in LADDER:
        if sum(test(animal, samples, seed) for seed in range(SEEDS)) >= ENOUGH:
            return samples
    return 2 * LADDER[-1]


def wrongly() -> Row:
    """The share of audits that refute a right mechanism."""
    refuted = 0
    for run in range(RUNS):
        animal = RIGHT[run % len(RIGHT)]
        refuted += ours(animal, 2_000, run)
    return at_most(f"share of {RUNS} audits that refute a right mechanism", refuted / RUNS, 1, "", refuted / RUNS, 0.01)


def threshold() -> Row:
    """A peer's thresholded counts: one person with a label of its own, or nobody."""
    epsilon, delta, released = peer("opendp", "opendp_threshold.py", 200_000)
    left = list(released)

    def drawn(person: bool, noise: NoiseSource, count: int) -> list[Any]:
        return [left.pop() if person else None for _ in range(count)]

    found = audit(
        drawn, [(True, False)], guarantee=Guarantee.uniform(epsilon, str(delta)), samples=len(released), many=True
    )  # fmt: skip
    shown = max(event.shown for event in found.events)
    return at_most("OpenDP 0.16 laplace_threshold: δ reported (ours: shown)", shown, delta, "", delta / shown, 1)


def main() -> None:
    rows = [wrongly(), threshold()]
    for animal in WRONG:
        mine, theirs = needed(ours, animal), needed(histogram, animal)
        print(animal.name, mine, theirs, flush=True)
        rows.append(at_most(f"samples to refute: {animal.name} (peer: histogram)", mine, theirs, "", mine / theirs, 1))
    report("audit", rows)


if __name__ == "__main__":
    main()
