"""The engine, bit by bit: scripted sources on and beside the boundaries, against rational arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import floor

import numpy as np
import pytest

from expost import bracket
from expost.noise import NoiseSource
from expost.noise.fixed import exp_minus
from expost.noise.inversion import Uniform, invert
from expost.noise.laws import (
    CoinLaw,
    Digit,
    Finite,
    GaussianLaw,
    Geometric,
    HalfGaussian,
    LaplaceLaw,
    Law,
    Lie,
    Powers,
    Rate,
    RatioOfRates,
    RoundedLaplace,
    Sign,
)
from expost.noise.tables import LARGEST, Table, table

DIGITS = 300  # of the reference: 2^−900 and below


class Script(NoiseSource):
    """Bytes chosen by the test; asking for more than was written is an error."""

    private = False

    def __init__(self, written: bytes) -> None:
        self._written = written

    def bytes(self, count: int) -> bytes:
        assert count <= len(self._written), "the sampler asked for more bits than the script has"
        taken, self._written = self._written[:count], self._written[count:]
        return taken

    @property
    def left(self) -> int:
        return len(self._written)


@cache
def e(x: Fraction) -> Fraction:
    """e^x to some 900 bits: a rational that stands for it in comparisons at a few hundred bits."""
    return Fraction(floor(bracket.exp(x, DIGITS).lower * 2**900), 2**900)


def bell(k: int, variance: Fraction) -> Fraction:
    return e(-(k**2) / (2 * variance))


def geometric(rate: Fraction) -> Callable[[int], Fraction]:
    return lambda k: 1 - e(-rate * k) if k > 0 else Fraction(0)


def digit(rate: Fraction, size: int) -> Callable[[int], Fraction]:
    weights = [e(-rate * k) for k in range(size)]
    return lambda k: sum(weights[: max(k, 0)], Fraction(0)) / sum(weights)


def laplace(rate: Fraction, step: int) -> Callable[[int], Fraction]:
    def below(k: int) -> Fraction:
        norm, m = 1 + e(-rate), k * step
        return e(-rate * (1 - m)) / norm if m <= 0 else 1 - e(-rate * m) / norm

    return below


def rounded_laplace(rate: Fraction) -> Callable[[int], Fraction]:
    half = Fraction(1, 2)
    return lambda k: e(-rate * (half - k)) / 2 if k <= 0 else 1 - e(-rate * (k - half)) / 2


def gaussian(variance: Fraction, *, half: bool) -> Callable[[int], Fraction]:
    support = range(0 if half else -90, 90)
    total = sum(bell(k, variance) for k in support)

    @cache
    def below(k: int) -> Fraction:
        return sum((bell(j, variance) for j in support if j < k), Fraction(0)) / total

    return below


def steps(*weights: Fraction) -> Callable[[int], Fraction]:
    return lambda k: sum(weights[: max(k, 0)], Fraction(0)) / sum(weights)


THIRD = Fraction(1, 3)
LAWS: list[tuple[Law, Callable[[int], Fraction], range]] = [
    (Geometric(THIRD), geometric(THIRD), range(1, 30)),
    (Geometric(Fraction(7)), geometric(Fraction(7)), range(1, 5)),
    (Digit(Fraction(1, 10**9), 8), digit(Fraction(1, 10**9), 8), range(1, 8)),
    (Digit(THIRD, 5), digit(THIRD, 5), range(1, 5)),
    (LaplaceLaw(THIRD), laplace(THIRD, 1), range(-20, 20)),
    (LaplaceLaw(Fraction(1, 100), 16), laplace(Fraction(1, 100), 16), range(-20, 20)),
    (RoundedLaplace(Fraction(2, 5)), rounded_laplace(Fraction(2, 5)), range(-20, 20)),
    (
        Sign(Fraction(2, 5)),
        lambda k: Fraction(k > 1) if k not in (0, 1) else rounded_laplace(Fraction(2, 5))(k),
        range(2),
    ),
    (GaussianLaw(Fraction(9, 4)), gaussian(Fraction(9, 4), half=False), range(-8, 9)),
    (GaussianLaw(Fraction(1, 50)), gaussian(Fraction(1, 50), half=False), range(-2, 3)),
    (HalfGaussian(Fraction(9, 4)), gaussian(Fraction(9, 4), half=True), range(1, 9)),
    (CoinLaw(THIRD), steps(1 - e(-THIRD), e(-THIRD)), range(1, 2)),
    (Lie(THIRD, 5), steps(Fraction(1), 4 * e(-THIRD)), range(1, 2)),
    (Finite.of((3, 0, 1, 5)), steps(Fraction(3), Fraction(0), Fraction(1), Fraction(5)), range(1, 4)),
    (
        Powers(RatioOfRates(Fraction(2, 3)), (0, 3, 4), (1, 2, 5)),
        steps(Fraction(1), 2 * Fraction(2, 3) ** 3, 5 * Fraction(2, 3) ** 4),
        range(1, 3),
    ),
    (Powers(Rate(THIRD), (0, 3), (4, 2)), steps(Fraction(4), 2 * e(-THIRD * 3)), range(1, 2)),
]
NAMES = [repr(law) for law, _, _ in LAWS]


def script_of(word: int, words: int) -> Script:
    """What a table reads for one draw, so that its uniform real begins with these words·64 bits."""
    first, *rest = [word >> 64 * i & (2**64 - 1) for i in reversed(range(words))]
    low48 = (first & (2**48 - 1)) << 16
    return Script(b"".join([(first >> 48).to_bytes(2, "little")] + [w.to_bytes(8, "little") for w in [low48, *rest]]))


@pytest.mark.parametrize(("law", "below", "ks"), LAWS, ids=NAMES)
def test_bounds_hold_and_close_in(law: Law, below: Callable[[int], Fraction], ks: range) -> None:
    for bits in (0, 1, 16, 64, 200):
        for k in [ks.start - 1, *ks, ks.stop]:
            low, high = law.below(k, bits)
            truth = below(k) * 2**bits
            assert low - Fraction(1, 2**200) <= truth <= high + Fraction(1, 2**200)
            assert 0 <= low <= high <= 2**bits
            assert high - low <= 4


@pytest.mark.parametrize(("law", "below", "ks"), LAWS, ids=NAMES)
def test_draws_beside_every_boundary(law: Law, below: Callable[[int], Fraction], ks: range) -> None:
    """64 bits beside a boundary, and 192 and 256 bits that follow it to the last place."""
    tested = table(law)
    for k in ks:
        if below(k) == below(k - 1):
            continue
        for words in (1, 3, 4):
            edge = floor(below(k) * 2 ** (64 * words))
            for word in (edge - 2, edge - 1, edge + 1, edge + 2):
                if not 0 <= word < 2 ** (64 * words):
                    continue
                source = script_of(word << 128, words + 2)
                number = int(tested.draw(source, 1)[0])
                # [word, word + 1) lies wholly on one side of the boundary, as word ≠ edge
                low, high = below(number), below(number + 1)
                at = Fraction(word, 2 ** (64 * words))
                assert low <= at < high
                assert (number >= k) == (word > edge)


@pytest.mark.parametrize(("law", "below", "ks"), LAWS, ids=NAMES)
def test_only_undecided_draws_ask_for_more_bits(law: Law, below: Callable[[int], Fraction], ks: range) -> None:
    k = ks[len(ks) // 2]
    if law == Finite.of((3, 0, 1, 5)):
        return  # its boundaries are short: a draw may be decided on the spot
    edge = floor(below(k) * 2**192)
    source = script_of(edge + 1 << 64, 4)
    table(law).draw(source, 1)
    assert source.left <= 8  # 192 of 256 bits were needed, in words of 64
    inside = Script(b"\x00\x80" + bytes(64)) if below(k) != Fraction(1, 2) else None
    if inside is not None:
        table(law).draw(inside, 1)
        assert inside.left >= 56


@pytest.mark.parametrize("law", [LaplaceLaw(THIRD), Geometric(THIRD), GaussianLaw(Fraction(9, 4))])
@pytest.mark.parametrize("word", [2**640 - 6, 2**640 - 10**30, 5, 10**30], ids=["top", "high", "bottom", "low"])
def test_far_tails(law: Law, word: int) -> None:
    """Draws within 2^−600 of 0 or 1, where a table knows nothing: the number is far out, and exact."""
    number = int(table(law).draw(script_of(word << 256, 14), 1)[0])
    low, high = law.below(number, 800)[1], law.below(number + 1, 800)[0]
    assert low <= word << 160
    assert word << 160 < high
    if isinstance(law, LaplaceLaw):
        assert abs(number) > 1000


def test_inversion_without_a_table_reads_the_same_number_from_the_same_real() -> None:
    law = LaplaceLaw(Fraction(1, 7))
    rng = np.random.default_rng(5)
    for _ in range(100):
        word = int.from_bytes(rng.bytes(24), "little")
        direct = invert(law, Uniform(Script(b""), word, 192))
        assert direct == int(table(law).draw(script_of(word, 3), 1)[0])


def test_numbers_past_the_range_keep_their_sign() -> None:
    """A law so wide that int64 cannot hold it: clamped, as lem-saturation allows."""
    wide = LaplaceLaw(Fraction(1, 2**70))
    assert invert(wide, Uniform(Script(bytes(64)), 2**64 - 2, 64)) > LARGEST
    narrow = Table(LaplaceLaw(THIRD))
    narrow.law = wide  # the table's cells are kept, only what it cannot decide goes to the wide law
    up, down = script_of((2**64 - 1) << 256, 5), script_of(1 << 256, 5)
    assert narrow.draw(up, 1)[0] == LARGEST
    assert narrow.draw(down, 1)[0] == -LARGEST


@pytest.mark.parametrize("bits", [16, 64])
def test_every_16_bit_prefix_is_answered_only_if_certain(bits: int) -> None:
    law = LaplaceLaw(Fraction(1, 5))
    guide = table(law)._guide
    undecided = np.iinfo(np.int64).min
    for prefix in range(0, 2**16, 37 if bits == 16 else 101):
        if guide[prefix] != undecided:
            k = int(guide[prefix])
            assert law.below(k, 128)[1] <= prefix << 112
            assert (prefix + 1) << 112 <= law.below(k + 1, 128)[0]


def test_exponentials_past_the_last_bit() -> None:
    assert exp_minus(Fraction(10**30), 64) == (0, 1)
    assert exp_minus(Fraction(0), 64) == (2**64, 2**64)
