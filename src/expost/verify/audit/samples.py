"""Samples of a mechanism on two neighbouring databases, reproducible from a seed, on as many processes as one likes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from expost.mechanism import Mechanism
from expost.noise import NoiseSource, SeededNoise

BATCH = 100
"""Outputs that share a seed: the same ones however many processes there are."""
SampleOne = Callable[[Any, NoiseSource], Any]
"""One output for a database."""
SampleMany = Callable[[Any, NoiseSource, int], Sequence[Any]]
"""Several independent outputs for a database at once."""
Progress = Callable[[float], object]
"""Called with the share of the work that is done."""
SampledOutputs = dict[tuple[int, int], list[Any]]
"""The outputs of each side of each pair."""


class Job(NamedTuple):
    """A chunk of outputs: which pair, which side of it, and which one."""

    pair: int
    side: int
    chunk: int


class Sampler:
    """Draws outputs of a mechanism, or of a function of a database and a noise source."""

    def __init__(
        self, run: Mechanism | SampleOne | SampleMany, pairs: Sequence[tuple[Any, Any]], seed: int, many: bool
    ) -> None:
        self._run: Any = run.sample if isinstance(run, Mechanism) else run
        self._pairs, self._seed, self._many = pairs, seed, many

    def chunk(self, job: Job) -> list[Any]:
        """The outputs of a job: always the same."""
        text = f"{self._seed}/{job.pair}/{job.side}/{job.chunk}"
        noise = SeededNoise(int.from_bytes(sha256(text.encode()).digest()[:8], "little"))
        data = self._pairs[job.pair][job.side]
        if self._many:
            return list(self._run(data, noise, BATCH))
        return [self._run(data, noise) for _ in range(BATCH)]

    def more(self, found: SampledOutputs, chunks: int, processes: int, progress: Progress | None) -> SampledOutputs:
        """What was found, with further chunks of each side of each pair, until there are this many, in order."""
        jobs = [
            Job(pair, side, chunk)
            for pair in range(len(self._pairs))
            for side in (0, 1)
            for chunk in range(len(found.get((pair, side), ())) // BATCH, chunks)
        ]
        grown = {side: list(outputs) for side, outputs in found.items()}
        for done, (job, outputs) in enumerate(zip(jobs, self._results(jobs, processes), strict=True), 1):
            grown.setdefault((job.pair, job.side), []).extend(outputs)
            if progress is not None:
                progress(done / len(jobs))
        return grown

    def _results(self, jobs: list[Job], processes: int) -> Iterator[list[Any]]:
        if processes == 1 or "fork" not in multiprocessing.get_all_start_methods():
            yield from map(self.chunk, jobs)
            return
        _SHARED.append(self)
        try:
            with multiprocessing.get_context("fork").Pool(processes) as pool:
                yield from pool.imap(_work, jobs, chunksize=4)
        finally:
            _SHARED.pop()


_SHARED: list[Sampler] = []  # what forked processes inherit: functions of notebooks cannot be pickled


def _work(job: Job) -> list[Any]:
    return _SHARED[-1].chunk(job)
