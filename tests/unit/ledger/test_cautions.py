"""What a ledger says of itself where it guarantees little, or nothing."""

import warnings

import pytest

import expost as xp
from expost.errors import WeakLimitWarning


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"epsilon": 1000}, "a limit of ε 1000 guarantees little: with ε 1000, answers may tell almost surely"),
        ({"epsilon": xp.Cost(21)}, "with ε 21, answers may tell"),
        ({"epsilon": 1, "delta": 1}, "with δ 1, nothing is guaranteed: give one far below one in the number of people"),
        ({"epsilon": 1, "delta": 0.01}, "δ 0.01 is large"),
    ],
)
def test_a_limit_that_guarantees_little_is_warned_of(limit: dict[str, float], why: str) -> None:
    """Before: not a word."""
    with pytest.warns(WeakLimitWarning, match=why) as caught:
        xp.Ledger(**limit)  # type: ignore[arg-type]
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize("limit", [(20, 1e-3), (1, 0), (0, 0)])
def test_other_limits_are_not(limit: tuple[float, float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xp.Ledger(*limit)


def test_a_durable_ledger_too(tmp_path: object) -> None:
    with pytest.warns(WeakLimitWarning) as caught:
        xp.Ledger.create(f"sqlite:///{tmp_path}/x.db", "x", 50, unit="row", neighbours="substitute")
    assert [each.filename for each in caught] == [__file__]


def test_seeded_noise_is_told_wherever_a_ledger_is_shown() -> None:
    """No Python warning, which every tutorial would have: it stands in what is read, printed and kept."""
    seeded, private = xp.Ledger(1, noise=xp.SeededNoise(1)), xp.Ledger(1)
    for ledger, told in ((seeded, True), (private, False)):
        for shown in (repr(ledger), ledger._repr_html_(), str(ledger.statement()), ledger.statement()._repr_html_()):
            assert ("its noise is seeded and can be predicted: for trials, and not private" in shown) == told


def test_entries_show_themselves() -> None:
    """Before: ``<expost.ledger.showing.Entries object at 0x…>``."""
    ledger = xp.Ledger(100)
    assert repr(ledger.entries()) == "<no entries>"
    for _ in range(25):
        ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on=3.0)
    first, *rows, last = repr(ledger.entries()).splitlines()
    assert first.split()[:3] == ["#", "account", "what"]
    assert len(rows) == 20
    assert last == "the first 20 entries"
    entries = ledger.entries()
    assert repr(entries)
    assert len(list(entries)) == 25, "to look at them takes none"
