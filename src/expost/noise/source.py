"""Where randomness comes from: the operating system, or, for tests that say so, a seed."""

from __future__ import annotations

import os
import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from expost.errors import InvalidValue

if TYPE_CHECKING:  # numpy itself is imported when arrays are drawn
    import numpy as np
    from numpy.typing import NDArray


class NoiseSource(ABC):
    """A stream of independent, uniform random bytes. Samplers draw from it and from nothing else."""

    private: bool
    """Whether it is unpredictable. A durable ledger takes no other."""

    @abstractmethod
    def bytes(self, count: int) -> bytes:
        """The next ``count`` bytes."""

    def below(self, bound: int) -> int:
        """A uniform integer among 0, …, bound − 1.

        Proof: lem-uniform
        """
        if bound < 1:
            raise InvalidValue(f"a uniform draw needs at least one possible value, got bound {bound}")
        bits = (bound - 1).bit_length()
        while True:
            draw = int.from_bytes(self.bytes((bits + 7) // 8), "little") & ((1 << bits) - 1)
            if draw < bound:
                return draw

    def chance(self, numerator: int, denominator: int) -> bool:
        """True with probability exactly numerator/denominator.

        Proof: lem-uniform
        """
        return self.below(denominator) < numerator

    def words(self, count: int, bits: int = 64) -> NDArray[np.unsignedinteger[Any]]:
        """``count`` uniform unsigned integers of ``bits`` bits (8, 16, 32 or 64). The array is read-only."""
        import numpy as np

        return np.frombuffer(self.bytes(count * (bits // 8)), dtype=f"<u{bits // 8}")


class SystemNoise(NoiseSource):
    """The operating system's cryptographic generator.

    Arrays are drawn in one call. Small draws go to the system one by one: half a microsecond each, which
    is less than the lock, the process check and the wiping of a buffer in Python would cost. So nothing
    is kept: threads and forked processes have no bytes to share, and a used byte is nowhere.
    """

    private = True

    def bytes(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        return os.urandom(count)

    def __repr__(self) -> str:
        return "SystemNoise()"


class SeededNoise(NoiseSource):
    """Reproducible randomness for tests. **Not private**: whoever knows the seed can remove the noise.

    Parameters
    ----------
    seed
        The same seed gives the same bytes.
    """

    private = False

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(seed)

    def bytes(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        return self._random.randbytes(count)

    def __repr__(self) -> str:
        return f"SeededNoise({self._seed}) [NOT PRIVATE: for tests]"
