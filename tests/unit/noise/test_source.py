"""Sources: bytes that nobody shares."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from expost.errors import InvalidValue
from expost.noise import NoiseSource, SeededNoise, SystemNoise, vector


def draws_in_child(source: NoiseSource) -> bytes:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        os.write(writer, source.bytes(64) + vector.uniform(source, 2**62, 32).tobytes())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        drawn = pipe.read()
    os.waitpid(child, 0)
    return drawn


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_processes_never_share_draws() -> None:
    source = SystemNoise()
    source.bytes(8)  # whatever a source may keep, it has it now
    children = [draws_in_child(source) for _ in range(3)]
    parent = source.bytes(64) + vector.uniform(source, 2**62, 32).tobytes()
    chunks = [drawn[i : i + 8] for drawn in [*children, parent] for i in range(0, len(drawn), 8)]
    assert len(chunks) == 4 * 40
    assert len(set(chunks)) == len(chunks)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_the_fork_test_can_fail() -> None:
    source = SeededNoise(1)
    assert draws_in_child(source) == draws_in_child(source)


def test_threads_never_share_draws() -> None:
    source = SystemNoise()
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: [source.bytes(12) for _ in range(500)], range(8)))
    assert max(Counter(chunk for chunks in drawn for chunk in chunks).values()) == 1


def test_seeded_noise_repeats_itself_and_says_so() -> None:
    one, two = (vector.discrete_laplace(SeededNoise(7), Fraction(1, 3), 1000) for _ in range(2))
    assert (one == two).all()
    assert (one != vector.discrete_laplace(SeededNoise(8), Fraction(1, 3), 1000)).any()
    assert "NOT PRIVATE" in repr(SeededNoise(7))
    assert not SeededNoise(7).private
    assert SystemNoise().private
    assert repr(SystemNoise()) == "SystemNoise()"


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_words_are_the_bytes_in_order(bits: int) -> None:
    words = SeededNoise(3).words(100, bits)
    assert words.dtype == np.dtype(f"u{bits // 8}")
    assert words.astype(f"<u{bits // 8}").tobytes() == SeededNoise(3).bytes(100 * bits // 8)


def test_below_needs_a_possible_value() -> None:
    with pytest.raises(InvalidValue, match="at least one possible value"):
        SystemNoise().below(0)
    assert SystemNoise().below(1) == 0
