"""Train until it is good enough, and pay only for the steps taken.

Logistic regression by differentially private gradient steps: each takes a fresh Poisson sample of the patients, clips
every patient's gradient, and releases the sum with rounded Gaussian noise on a grid. After some steps a score on public
data says whether to go on.

Noise, rate, number of stops and what is good enough are chosen by hand. The last table shows what other numbers of
stops would have cost: few stops are cheap, and with many a Rényi filter, for which stopping anywhere is free, is
cheaper at full length. A ledger with Rényi accounting has both: it charges the steps taken, as that filter does, and
takes no δ for the stops.
"""

import sys
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

import expost as xp
from expost.accounting import GaussianNoise, compose, plan, sum_delta

STEPS, EVERY, RATE, NOISE, DELTA = 400, 50, 0.06, 1.8, 1e-5
CLIP, RATE_OF_LEARNING, GOOD = 1.0, 0.35, 0.2


def tables() -> tuple[Any, ...]:
    """Private patients to learn from, and public ones to score on; scaled by public medical ranges."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    means = [30.0, 40, 200, 2500, 0.2, 0.4, 0.5, 0.2, 0.4, 0.1]
    errors = [3.0, 5, 25, 550, 0.03, 0.15, 0.4, 0.06, 0.08, 0.03]
    worst = [40.0, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.22]
    ranges = np.array([*means, *errors, *worst])
    rows = np.hstack([2 * np.clip(data.data / ranges, 0, 1) - 0.6, np.ones((len(order), 1))])[order]
    labels = 2.0 * data.target[order] - 1
    return rows[150:], labels[150:], rows[:150], labels[:150]


def gradient(weights: Any, rows: Any, labels: Any) -> Any:
    """The sum of the clipped gradients: one patient more or less moves it by at most CLIP."""
    each = -(labels / (1 + np.exp(labels * (rows @ weights))))[:, None] * rows
    norms = np.linalg.norm(each, axis=1, keepdims=True)
    return (each * np.minimum(1, CLIP * (1 - 1e-12) / np.maximum(norms, 1e-12))).sum(axis=0)


def score(weights: Any, rows: Any, labels: Any) -> float:
    """The loss on public data."""
    return float(np.log1p(np.exp(-labels * (rows @ weights))).mean())


def progress(done: int, loss: float) -> None:
    """A bar on the terminal."""
    filled = 40 * done // STEPS
    sys.stdout.write(f"\r  [{'█' * filled}{'·' * (40 - filled)}] step {done:3d} of {STEPS}, public loss {loss:.4f}")
    sys.stdout.flush()


def renyi(steps: int) -> float:
    """What a Rényi filter charges after a number of steps, where stopping anywhere is free."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    each = PoissonSampledDpEvent(RATE, GaussianDpEvent(NOISE))
    full = RdpAccountant().compose(SelfComposedDpEvent(each, STEPS))
    _, order = full.get_epsilon_and_optimal_order(DELTA)  # one for all stops, fixed beforehand
    return float(RdpAccountant([order]).compose(SelfComposedDpEvent(each, steps)).get_epsilon(DELTA))


def in_renyi_ledger(training: xp.Iterative, order: int = 8) -> None:
    """Stop at each stop, in a ledger that counts Rényi prices, and compare with the filter's price at its order."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    once = PoissonSampledDpEvent(RATE, GaussianDpEvent(NOISE))
    print(f"In a ledger with accounting='renyi', at order {order}: price by steps taken, and a Rényi filter's")
    for stop in training.stops:
        ledger = xp.Ledger(epsilon=8, delta=1e-4, accounting=xp.accounting.RenyiAccounting(order=order))
        with ledger.open(training) as interaction:
            for step in interaction:
                step.batch(1)
                step(0.0)
                if step.number == stop:
                    break
        charged = ledger.meters[1].spent / 1e12
        filtered = RdpAccountant([order]).compose(SelfComposedDpEvent(once, stop))
        print(f"  {stop:5d} {charged:9.6f} {float(filtered._rdp[0]):9.6f}")
    print()


def main() -> None:
    """Plan, train, stop, and compare the bills."""
    rows, labels, public_rows, public_labels = tables()
    loss, stops = GaussianNoise(NOISE, RATE), tuple(range(EVERY, STEPS + 1, EVERY))
    training = xp.Iterative(steps=(loss,) * STEPS, stops=stops, delta=DELTA, sensitivity=CLIP, neighbours="add-remove")
    ledger = xp.Ledger(epsilon=8, delta=1e-4, name="clinic", neighbours="add-remove", unit="patient")
    weights = np.zeros(rows.shape[1])

    print(f"{len(labels)} patients, {STEPS} steps at most, stops every {EVERY}:")
    with ledger.open(training, label="logistic regression") as interaction:
        for step in interaction:
            sample = step.batch(len(labels))
            noisy = step(gradient(weights, rows[sample], labels[sample]))
            weights = weights - RATE_OF_LEARNING / (RATE * len(labels)) * noisy
            if step.may_stop:
                found = score(weights, public_rows, public_labels)
                progress(step.number, found)
                if found <= GOOD:
                    break
    taken = len(interaction.transcript)
    accuracy = float(((public_rows @ weights) * public_labels > 0).mean())
    print(f"\n  stopped after {taken} steps; {accuracy:.1%} right on public patients\n  {interaction.release}\n")

    lemma = plan((loss,) * STEPS, (STEPS,), DELTA / len(stops)), compose([loss] * taken).epsilon(DELTA / len(stops))
    guaranteed = training.guarantee
    print(f"What {taken} steps are charged at δ = {DELTA:g}, and what {STEPS} would have been:")
    print(f"  fixed length        ε {compose([loss] * STEPS).epsilon(DELTA).upper:.4f}  whether it stops or not")
    print(f"  Lemma 11            ε {lemma[1].upper:.4f}, at full length {lemma[0].epsilon_of(STEPS):.4f}")
    print(f"  Rényi filter        ε {renyi(taken):.4f}, at full length {renyi(STEPS):.4f}")
    charged = guaranteed.epsilon_of(training.part_of(interaction.transcript))
    print(f"  optimal stopping    ε {charged:.4f}, at full length {guaranteed.epsilon_of(STEPS):.4f}")
    each = [guaranteed.epsilon_of(stop) for stop in stops]
    print(
        f"At these E's Lemma 11 would guarantee δ = {sum_delta((loss,) * STEPS, stops, each):.2e} instead of {DELTA:g}."
    )
    print(f"Refunded: {interaction.release.refunded}; remaining in the ledger: {ledger.remaining}.\n")

    in_renyi_ledger(training)
    print(f"How many stops? ε at δ = {DELTA:g}")
    print("  stops    first  half way     full")
    for every in (200, 100, 50, 20, 10):
        other = plan((loss,) * STEPS, range(every, STEPS + 1, every), DELTA)
        print(f"  {STEPS // every:5d} " + "".join(f"{other.epsilon_of(k):9.4f}" for k in (every, STEPS // 2, STEPS)))
    print(f"  Rényi {renyi(EVERY):9.4f}{renyi(STEPS // 2):9.4f}{renyi(STEPS):9.4f}   (first: after {EVERY} steps)")


if __name__ == "__main__":
    main()
