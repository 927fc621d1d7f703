"""What is published in one go: above, below, or not compared; and nothing that could be taken for another."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import expost as xp
from expost.data import Above
from expost.errors import InvalidValue
from expost.ledger import codec
from expost.mechanisms import AboveMask, Comparison
from expost.study.answers import published
from expost.verify.audit.features import Encoder, output_key
from expost.verify.interaction import History
from svt_model import BELOW, Model

ABOVE, NEVER = Comparison.ABOVE, Comparison.NOT_COMPARED
SIX = np.full(6, 1000)


def sparse(**changes: Any) -> xp.SparseVector:
    return xp.SparseVector(**{"threshold": 500, "at_most": 2, "epsilon": 5, "sensitivity": 1, **changes})


def run(mechanism: xp.Mechanism, on: Any) -> xp.Release:
    return xp.Ledger(epsilon=50).run(mechanism, on=on)


VARIANTS: dict[str, dict[str, Any]] = {
    "one-sided": {},
    "two-sided": {"noise": "two-sided"},
    "gap": {"gap": True},
    "monotone": {"monotone": True, "neighbours": "add-remove"},
    "two-sided and monotone": {"monotone": True, "neighbours": "add-remove", "noise": "two-sided"},
}


# ---- what is said of each value


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_comes_after_the_last_positive_was_not_compared(variant: str) -> None:
    """Before, it was denied: True, True and four times False, of six values that are the same."""
    release = run(sparse(**VARIANTS[variant]), SIX)
    assert list(release.value) == [ABOVE, ABOVE, NEVER, NEVER, NEVER, NEVER]
    assert "2 of at most 2 above 500; stopped after 2 (at_most), 4 not compared" in str(release)


def test_below_is_said_of_what_was_compared_alone() -> None:
    mask = run(sparse(), np.array([0, 1000, 0, 1000, 0, 1000])).value
    assert list(mask) == ["below", "above", "below", "above", "not compared", "not compared"]
    assert mask.above.tolist() == [False, True, False, True, False, False]
    assert mask.below.tolist() == [True, False, True, False, False, False]
    assert mask.not_compared.tolist() == [False] * 4 + [True] * 2
    assert np.all(mask.above.astype(int) + mask.below + mask.not_compared == 1)
    assert [mask[place] for place in (0, 1, 4, -1)] == ["below", "above", "not compared", "not compared"]
    assert f"{mask}" == "<6 values: 2 above (1, 3), 2 below, 2 not compared (from 4 on)>"
    with pytest.raises(IndexError):
        mask[6]


def test_nothing_is_left_out_where_all_were_compared() -> None:
    release = run(sparse(), np.array([0, 1000, 1000]))  # the last positive allowed is the last value
    assert list(release.value) == ["below", "above", "above"]
    assert "not compared" not in f"{release}{release.value}"
    assert not run(sparse(), np.zeros(3)).value.not_compared.any()
    assert len(run(sparse(), np.array([], int)).value) == 0


def test_the_adaptive_one_says_it_too() -> None:
    found = run(
        xp.mechanisms.AdaptiveSparseVector(threshold=500, at_most=1, epsilon=50, sensitivity=1, margin=400), SIX
    )
    assert list(found.value) == ["far above", *["not compared"] * 5]
    assert found.value.far_above.tolist() == found.value.above.tolist() == [True] + [False] * 5
    assert "stopped after 1 (at_most), 5 not compared" in str(found)
    near = run(
        xp.mechanisms.AdaptiveSparseVector(threshold=500, at_most=1, epsilon=50, sensitivity=1, margin=10**6), SIX
    )
    assert list(near.value)[:2] == ["above", "not compared"]
    assert not near.value.far_above.any()


def test_gaps_are_of_what_was_found() -> None:
    mask = run(sparse(gap=True), np.array([0, 1000, 1000, 1000])).value
    assert list(mask) == ["below", "above", "above", "not compared"]
    assert np.isnan(mask.gaps).tolist() == [True, False, False, True]
    assert np.all(np.abs(mask.gaps[mask.above] - 500) < 100)
    assert not mask.far_above.any()
    with pytest.raises(xp.InvalidValue, match="gap=True"):
        _ = run(sparse(), SIX).value.gaps


def test_it_stops_in_any_chunk() -> None:
    data = np.zeros(300_000, np.int64)
    data[[5, 200_000, 200_001]] = 10**6
    mask = run(sparse(threshold=500_000), data).value
    assert np.flatnonzero(mask).tolist() == [5, 200_000]
    assert (mask.not_compared.sum(), len(mask.answers)) == (99_999, 200_001)


# ---- as a mask


def test_arrays_take_it_as_the_mask_of_what_is_above() -> None:
    counts = np.arange(6)
    mask = run(sparse(), np.array([0, 1000, 0, 1000, 0, 1000])).value
    assert counts[mask].tolist() == [1, 3]
    assert np.flatnonzero(mask).tolist() == [1, 3]
    assert np.count_nonzero(mask) == 2
    assert [place for place, above in enumerate(mask) if above] == [1, 3]
    assert np.asarray(mask).dtype == bool


@pytest.mark.parametrize(
    "denies",
    [
        lambda mask: ~mask,
        np.logical_not,
        np.invert,
        lambda mask: mask == False,  # noqa: E712
        lambda mask: mask == np.zeros(6, bool),
        lambda mask: mask & np.ones(6, bool),
        lambda mask: np.ones(6, bool) & mask,
        lambda mask: 1 - mask,
        lambda mask: not mask,
    ],
)
def test_it_has_no_opposite(denies: Callable[[Any], Any]) -> None:
    """What is not above may be below, or not compared: nobody gets one for the other."""
    with pytest.raises((xp.InvalidValue, TypeError)):
        denies(run(sparse(), SIX).value)


def test_a_comparison_is_a_text_and_true_if_above() -> None:
    assert [bool(each) for each in Comparison] == [True, True, False, False]
    assert json.dumps({"Rome": NEVER}) == '{"Rome": "not compared"}'
    assert repr({"Rome": NEVER}) == "{'Rome': NOT_COMPARED}"
    assert AboveMask.of([Comparison.BELOW, ABOVE, NEVER]) == AboveMask(np.array([False, True]), 3)


# ---- what it costs


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 5), st.sampled_from(sorted(VARIANTS)))
def test_the_part_is_that_of_the_answers(answers: list[bool], after: int, variant: str) -> None:
    """As of an interaction with these answers, whatever comes after: a function of what is published."""
    mechanism = sparse(at_most=12, **{**VARIANTS[variant], "gap": False})
    mask = AboveMask(np.array(answers, bool), len(answers) + after)
    assert mechanism.part_of(mask) == mechanism.part_of(tuple(answers)) == mechanism.part(sum(answers), len(answers))
    again = codec.decode(codec.encode(mask))
    assert mechanism.part_of(again) == mechanism.part_of(mask)


@pytest.mark.parametrize("variant", VARIANTS)
def test_in_one_go_costs_what_one_by_one_costs(variant: str) -> None:
    mechanism = sparse(**VARIANTS[variant])
    for data in (SIX, np.array([0, 1000, 1000, 0]), np.array([1000, 0, 0]), np.array([0])):
        with xp.Ledger(epsilon=50).open(mechanism) as ask:
            for value in data.tolist():
                if not ask.closed:
                    ask(value)
        assert run(mechanism, data).part == ask.release.part


def outputs(size: int, at_most: int) -> Iterator[tuple[bool, ...]]:
    """Every list of answers that can be published about so many values."""

    def follow(so_far: tuple[bool, ...]) -> Iterator[tuple[bool, ...]]:
        if len(so_far) == size or sum(so_far) == at_most:
            yield so_far
        else:
            yield from follow((*so_far, False))
            yield from follow((*so_far, True))

    return follow(())


PAIRS = [((0, 1), (1, 0), (0, 1), (1, 0)), ((3, 2), (-3, -2), (0, 1), (0, 1)), ((-2, -1),) * 4]
MONOTONE = [((1, 0), (0, 0), (3, 2), (-2, -3)), ((0, 1),) * 4]


def excess(model: Model, values: Any, price: Callable[[AboveMask], Any]) -> Fraction:
    """By how much the probability of some mask exceeds e^E times that on the other database; they add up to one."""
    found = [Fraction(0)]
    totals = [Fraction(0), Fraction(0)]
    for answers in outputs(len(values), model.at_most):
        mask = AboveMask(np.array(answers, bool), len(values))
        history: History = tuple((value, True if yes else BELOW) for value, yes in zip(values, answers, strict=False))
        chances = [model.probability(side, history) for side in (0, 1)]
        totals = [total + chance for total, chance in zip(totals, chances, strict=True)]
        ratio = model.ratio(price(mask))
        found += [one - ratio * other for one, other in (chances, chances[::-1])]
    assert all(1 - model.slack < total <= 1 for total in totals)
    return max(found)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("monotone", [False, True])
def test_every_mask_of_four_values_costs_enough(monotone: bool, one_sided: bool) -> None:
    model = Model(Fraction(1, 3), Fraction(1, 2), at_most=2, monotone=monotone, one_sided=one_sided)
    for values in MONOTONE if monotone else PAIRS:
        assert excess(model, values, model.mechanism.part_of) <= model.slack


def test_a_price_that_forgets_what_was_found_below_is_caught() -> None:
    """The control: as if only the positives had been compared."""
    model = Model(Fraction(1, 3), Fraction(1, 2), at_most=2)
    forgets = max(excess(model, values, lambda mask: model.mechanism.part((n := int(mask.found.sum())), n))
                  for values in PAIRS)  # fmt: skip
    assert forgets > 100 * model.slack


# ---- kept, told and drawn


MASKS = {
    "truth values": AboveMask(np.array([False, True]), 5),
    "levels": AboveMask(np.array([0, 2, 1], np.int8), 3),
    "gaps": AboveMask(np.array([np.nan, 12.0]), 4),
    "nothing": AboveMask(np.zeros(0, bool), 0),
}


@pytest.mark.parametrize("name", MASKS)
def test_it_comes_back_as_it_was(name: str) -> None:
    mask = MASKS[name]
    for again in (codec.decode(codec.kept(mask)), copy.deepcopy(mask), pickle.loads(pickle.dumps(mask))):
        assert again == mask
        assert hash(again) == hash(mask)
        assert list(again) == list(mask)
    assert len({*MASKS.values()}) == len(MASKS)


def test_stored_answers_say_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = xp.Ledger.create(url, "counts", epsilon=20, neighbours="add-remove", unit="person")
    first = ledger.run(sparse(), on=SIX, key="six")
    again = xp.Ledger.load(url, "counts").run(sparse(), on=SIX, key="six")
    assert again.replayed
    assert (again.value, again.part) == (first.value, first.part)
    (answer,) = published(ledger)
    assert answer.frame is not None
    assert answer.frame["above"] == ["above", "above", *["not compared"] * 4]
    assert answer.frame == first.frame


def test_its_frame() -> None:
    release = run(sparse(), np.array([0, 1000, 1000, 0]))
    assert release.frame.names == ("index", "above")
    assert release.frame["above"] == ["below", "above", "above", "not compared"]
    assert release.to_csv() == "index,above\n0,below\n1,above\n2,above\n3,not compared\n"
    assert release.to_pandas()["above"].tolist() == release.to_polars()["above"].to_list() == release.frame["above"]
    assert release.to_arrow()["above"].to_pylist() == release.frame["above"]
    assert "not compared" in release._repr_html_()
    assert MASKS["gaps"].frame.rows[1] == (1, "above", 12.0)


def test_its_plot_has_a_column_for_what_was_not_compared() -> None:
    axes = run(sparse(), np.array([0, 1000, 1000, 0])).plot(ax=Figure().subplots())
    assert [label.get_text() for label in axes.get_xticklabels()] == ["below", "above", "not compared"]
    drawn = [line.get_ydata().tolist() if hasattr(line.get_ydata(), "tolist") else list(line.get_ydata())
             for line in axes.get_lines()]  # fmt: skip
    assert drawn == [[0], [1, 2], [3]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2", "3"]


def test_audits_see_all_of_it() -> None:
    """Masks that differ only in a gap, or in where it stopped, are not taken for the same."""
    gaps = [AboveMask(np.array(found), 4) for found in ([np.nan, 12.0], [np.nan, 13.0], [np.nan, 12.0, np.nan])]
    for different in (gaps, [*MASKS.values(), AboveMask(np.array([False, True]), 2)]):
        assert len({output_key(mask) for mask in different}) == len(different)
        assert len({row.tobytes() for row in Encoder(different).rows(different)}) == len(different)


def test_a_mask_is_made_of_its_own_entries() -> None:
    far = AboveMask(np.array([2, 0, 1], np.int8), 5)
    assert AboveMask.of(list(far)) == far
    with pytest.raises(InvalidValue, match="comes last"):
        AboveMask.of([Comparison.NOT_COMPARED, Comparison.ABOVE])


def test_cells_are_compared_by_a_sparse_vector_that_prices_what_they_say() -> None:
    table = xp.read(pd.DataFrame({"s": ["a", "b"]}), unit="row", neighbours="add-remove")
    adaptive = xp.mechanisms.AdaptiveSparseVector(
        threshold=1, at_most=2, epsilon=1, sensitivity=1, neighbours="add-remove"
    )
    with pytest.raises(InvalidValue, match="by a SparseVector"):
        Above(question=table.histogram("s", keys=["a", "b"]), noise=adaptive)
