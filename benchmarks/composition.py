"""Composition with default arguments against dp-accounting's default: time, memory, ε and the width of brackets.

The settings are sampled Gaussian steps: 5 noise multipliers × 7 sampling rates × 6 numbers of steps × 4 δ's. Ours runs
on all 840, the peer on every tenth; with EXPOST_ALL=1 on all, which takes an hour on an idle machine. Those are written
to results/composition.jsonl as they come, and a run that was interrupted goes on from there: remove the file to measure
anew. Ours and the peer take turns, each in a process of its own, so that the peak of its memory is known. A peer that
takes over a minute or 6 GB has failed, and our limits alone apply; so they do where its ε is below our lower end, which
is certified. Times are processor seconds.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from report import RESULTS, Row, at_most, report

RATIOS = (0.5, 1.0, 2.0, 5.0, 10.0)
RATES = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.5, 1.0)
STEPS = (1, 10, 100, 1_000, 10_000, 100_000)
DELTAS = (1e-5, 1e-6, 1e-8, 1e-12)
PATIENCE, MEMORY = 60, 6 * 2**30
QUICK = 0.3  # seconds: what is quicker is timed three times, and the best counts

MIXTURES = {
    "200 sampled Gaussian, 200 Laplace, 200 Gaussian": [("sampled", 200), ("laplace", 200), ("normal", 200)],
    "100 sampled Gaussian, 450 Laplace, 50 Gaussian": [("sampled", 100), ("laplace", 450), ("normal", 50)],
    "200 of each of three sampled Gaussians": [("sampled", 200), ("rare", 200), ("often", 200)],
}
KINDS = {"sampled": (1.0, 0.01), "rare": (0.7, 0.001), "often": (4.0, 0.1), "normal": (30.0, 1.0)}
LAPLACE = 20.0

TRAINING = {
    # source: (noise multiplier, expected batch, records, steps, stops, δ); a stop for each epoch where there are few
    "Abadi et al. 2016, section 3.2": (4.0, 600, 60_000, 10_000, 100, 1e-5),
    "TensorFlow Privacy's tutorial 2019, MNIST, 60 epochs": (1.12, 256, 60_000, 60 * 234, 60, 1e-5),
    "TensorFlow Privacy's tutorial 2019, MNIST, 30 epochs": (0.6, 256, 60_000, 30 * 234, 30, 1e-5),
    "Bu et al. 2020, figure 4, MNIST, 20 epochs": (1.3, 256, 60_000, 20 * 234, 20, 1e-5),
    "Bu et al. 2020, figure 4, MNIST, 70 epochs": (0.7, 256, 60_000, 70 * 234, 70, 1e-5),
    "Bu et al. 2020, code, Adult": (0.55, 256, 29_305, 20 * 114, 20, 1e-5),
    "Bu et al. 2020, code, IMDB": (0.56, 512, 25_000, 25 * 48, 25, 1e-5),
    "Bu et al. 2020, code, MovieLens": (0.55, 10_000, 800_167, 25 * 80, 25, 1e-6),
    "De et al. 2022, code, CIFAR-10, ε = 1": (10.0, 4_096, 50_000, 725, 25, 1e-5),
    "De et al. 2022, code, ImageNet, ε = 8": (2.5, 16_384, 1_281_167, 71_589, 51, 8e-7),
}

Setting = tuple[float, float, int, float]


def settings() -> list[Setting]:
    """All, in an order in which every tenth is a fair share of each parameter's values."""
    return [(ratio, rate, steps, delta) for ratio, steps, delta, rate in product(RATIOS, STEPS, DELTAS, RATES)]


# ---- the two processes


def ours(setting: Any) -> list[float]:
    from expost.accounting import GaussianNoise, LaplaceNoise, Loss, compose

    def loss(kind: str) -> Loss:
        return LaplaceNoise(LAPLACE) if kind == "laplace" else GaussianNoise(*KINDS[kind])

    if isinstance(setting, str):
        losses = [loss(kind) for kind, count in MIXTURES[setting] for _ in range(count)]
        found = compose(losses).epsilon(1e-5)
    else:
        ratio, rate, steps, delta = setting
        found = compose([GaussianNoise(ratio, rate)] * steps).epsilon(delta)
    return [found.lower, found.upper]


def theirs(setting: Any) -> list[float]:
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    def event(ratio: float, rate: float) -> Any:
        return dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(ratio))

    if isinstance(setting, str):
        kinds = [
            (dp.LaplaceDpEvent(LAPLACE) if kind == "laplace" else event(*KINDS[kind]), count)
            for kind, count in MIXTURES[setting]
        ]
        whole, delta = dp.ComposedDpEvent([dp.SelfComposedDpEvent(each, count) for each, count in kinds]), 1e-5
    else:
        ratio, rate, steps, delta = setting
        whole = dp.SelfComposedDpEvent(event(ratio, rate), steps)
    found = float(PLDAccountant().compose(whole).get_epsilon(delta))
    return [found, found]


def timed(work: Callable[[], list[float]]) -> tuple[list[float], float]:
    """The result, and processor seconds: the machine may be shared."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def give_up(number: int, frame: Any) -> None:
    raise TimeoutError(f"{PATIENCE} processor seconds are over")


def serve(side: str) -> None:
    """Answer settings, one per line, with ε, seconds and the peak of memory so far in MB."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, give_up)
    work = {"ours": ours, "theirs": theirs}[side]
    work((2.0, 0.2, 2, 1e-5))  # imports
    for line in sys.stdin:
        setting = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            found, seconds = timed(lambda: work(setting))  # noqa: B023
            if seconds < QUICK:
                seconds = min(seconds, *(timed(lambda: work(setting))[1] for _ in range(2)))  # noqa: B023
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(json.dumps({"epsilon": found, "seconds": seconds, "peak": peak}), flush=True)
        except Exception as error:
            print(json.dumps({"error": type(error).__name__}), flush=True)


class Side:
    """A process that answers settings; a new one after it failed to."""

    def __init__(self, side: str) -> None:
        self._side = side
        self._process: subprocess.Popen[str] | None = None

    def ask(self, setting: Any) -> dict[str, Any]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, str(Path(__file__)), self._side]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(setting) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], 60 * PATIENCE)
        answer = self._process.stdout.readline() if ready else ""
        found: dict[str, Any] = json.loads(answer) if answer else {"error": "no answer"}
        if "error" in found:
            self.stop()
        return found

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


# ---- what is compared


def measured(chosen: list[Any], path: Path = Path(os.devnull)) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
    sides = Side("ours"), Side("theirs")
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    done = {json.dumps(setting): answers for setting, *answers in lines}
    with path.open("a") as log:
        for number, setting in enumerate(chosen, 1):
            if json.dumps(setting) not in done:
                answers = done[json.dumps(setting)] = [side.ask(setting) for side in sides]
                log.write(json.dumps([setting, *answers]) + "\n")
                log.flush()
            sys.stderr.write(f"\r{number} of {len(chosen)}")
            yield setting, *done[json.dumps(setting)]
    sys.stderr.write("\n")
    for side in sides:
        side.stop()


def over(ours: float, theirs: float) -> float:
    """Our ε over theirs."""
    return 1.0 if ours == theirs else ours / theirs if theirs else float("inf")


def narrow(lower: float, upper: float) -> bool:
    return upper - lower <= max(0.01 * upper, 1e-4)


def rows_alone(found: list[tuple[Any, dict[str, Any]]]) -> list[Row]:
    """Our own limits."""
    number, failed = len(found), any("error" in a for _, a in found)
    slowest = max((a.get("seconds", float("inf")), s) for s, a in found)
    peak = float("inf") if failed else max(a["peak"] for _, a in found)
    wide = [s for s, a in found if "error" in a or not narrow(*a["epsilon"])]
    share = 1 - len(wide) / number
    (RESULTS / "composition.txt").write_text("".join(f"{each}\n" for each in ["wider than 1 % and 10⁻⁴:", *wide]))
    return [
        at_most(f"the slowest of {number} settings, {slowest[1]}, and 10 s", slowest[0], 10, "s", slowest[0] / 10, 1),
        at_most(f"the peak of memory in {number} settings, and 1 GB", peak, 1024, "MB", peak / 1024, 1),
        Row(
            f"brackets of {number} settings at most 1 % or 10⁻⁴ wide, and 95 %",
            share,
            0.95,
            "share",
            share / 0.95,
            "≥ 1",
            share >= 0.95,
        ),
    ]


def rows_for(found: list[tuple[Any, dict[str, Any], dict[str, Any]]]) -> list[Row]:
    """Against the peer, where it has an answer."""
    both = [(s, a, b) for s, a, b in found if "error" not in a and b.get("seconds", PATIENCE + 1) <= PATIENCE]
    false = [s for s, a, b in both if b["epsilon"][1] < a["epsilon"][0] * (1 - 1e-9)]
    times = sorted(a["seconds"] / b["seconds"] if b["seconds"] else float("inf") for _, a, b in both)
    ratios = [
        (over(a["epsilon"][1], b["epsilon"][1]), s, a["epsilon"][1], b["epsilon"][1])
        for s, a, b in both
        if s not in false
    ]
    worst = max(ratios)
    middle = median(a["seconds"] for _, a, _ in both), median(b["seconds"] for _, _, b in both)
    with (RESULTS / "composition.txt").open("a") as file:
        file.writelines(f"{each}\n" for each in ["the peer's ε is below our lower end:", *false])
    return [
        at_most(f"ε of {len(found)} settings, median of times", *middle, "s", median(times), 1),
        at_most(f"the largest ratio of ε's, of {len(ratios)} that the peer has", *worst[2:], "ε", worst[0], 1.0005),
        Row(
            "settings in which the peer's ε is below our lower end, so too small",
            len(false),
            len(both),
            "",
            len(false),
            "no goal",
            True,
        ),
    ]


def mixture_row() -> Row:
    found = list(measured(list(MIXTURES)))
    slowest = max((a.get("seconds", float("inf")), s, b.get("seconds", float("inf"))) for s, a, b in found)
    return at_most(
        f"600 steps of three kinds, the slowest of three ({slowest[1]}), and 5 s", slowest[0], 5, "s", slowest[0] / 5, 1
    )


def training_row() -> Row:
    """Planning the stops of published training runs, by ``Iterative`` as users do: processor seconds."""
    from expost import Iterative
    from expost.accounting import GaussianNoise

    found = []
    for source, (noise, batch, records, steps, stops, delta) in TRAINING.items():
        start, every = time.process_time(), -(-steps // stops)
        numbers = (*range(every, steps, every), steps)
        loss = GaussianNoise(noise, Fraction(batch, records))
        run = Iterative(steps=(loss,) * steps, stops=numbers, delta=delta, sensitivity=1, neighbours="add-remove")
        seconds, first, full = time.process_time() - start, run.guarantee.epsilon_of(numbers[0]), numbers[-1]
        print(f"{source}: ε {first:.4f} to {run.guarantee.epsilon_of(full):.4f} in {seconds:.2f} s")
        found.append((seconds, source))
    slowest = max(found)
    name = f"planning {len(found)} training runs from the literature, the slowest ({slowest[1]}), and 10 s"
    return at_most(name, slowest[0], 10, "s", slowest[0] / 10, 1)


def alone(chosen: list[Any]) -> list[tuple[Any, dict[str, Any]]]:
    side = Side("ours")
    found = [(setting, side.ask(setting)) for setting in chosen]
    side.stop()
    return found


def main() -> None:
    tenths = [settings()[start::10] for start in range(10)]
    RESULTS.mkdir(parents=True, exist_ok=True)
    if os.environ.get("EXPOST_ALL"):
        found = list(measured([each for tenth in tenths for each in tenth], RESULTS / "composition.jsonl"))
    else:
        found = list(measured(list(tenths[0])))
    ours_alone = rows_alone(alone(settings()))
    report("composition", [*ours_alone, *rows_for(found), mixture_row(), training_row()])


if __name__ == "__main__":
    serve(sys.argv[1]) if len(sys.argv) > 1 else main()
