import copy
import json
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import Cost, Guarantee, InvalidValue, bracket
from expost.errors import NeighbourMismatch, UnknownPart
from expost.guarantee import Part, costliest

pytestmark = pytest.mark.counted
labels: st.SearchStrategy[Part] = st.recursive(
    st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4
)
epsilons = st.integers(0, 10**13).map(lambda units: Fraction(units, 10**12))
guarantees = st.builds(
    Guarantee,
    st.dictionaries(labels, epsilons, min_size=1, max_size=5),
    st.integers(0, 10**18).map(lambda units: Fraction(units, 10**18)),
    otherwise=st.none() | epsilons,
    neighbours=st.sampled_from([None, "add-remove", "substitute"]),
)


def test_reading() -> None:
    guarantee = Guarantee({"large": 0.75, "small": 0.25}, delta=1e-6, otherwise=0.5)
    assert guarantee.epsilon_of("small") == 0.25
    assert guarantee.epsilon_of("anything else") == 0.5
    assert guarantee.cost_of("large") == Cost(0.75, delta=1e-6)
    assert guarantee.worst_case == Cost(0.75, delta=1e-6)
    assert guarantee.best_case == Cost(0.25, delta=1e-6)
    assert guarantee.delta == 1e-6
    assert guarantee.parts == ("large", "small")
    assert "anything" in guarantee
    assert 1.5 not in guarantee


def test_guarantees_round_up() -> None:
    guarantee = Guarantee({"a": "1/3"}, delta="1/3")
    assert guarantee.worst_case.exact_epsilon > Fraction(1, 3)
    assert guarantee.worst_case.exact_delta > Fraction(1, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Guarantee({}), "at least one part"),
        (lambda: Guarantee({"a": float("inf")}), "finite"),
        (lambda: Guarantee({"a": -1}), "negative"),
        (lambda: Guarantee({"a": 1}, delta=2), "at most 1"),
        (lambda: Guarantee({"a": 1}, otherwise=float("inf")), "finite"),
        (lambda: Guarantee({1.5: 1}), "a part is named by"),
        (lambda: Guarantee({True: 1}), "a part is named by"),
        (lambda: Guarantee({("a", None): 1}), "a part is named by"),
        (lambda: Guarantee([("a", 1)]), "mapping"),
        (lambda: Guarantee({"a": 1}, neighbours="swap"), "'add-remove' or 'substitute', got 'swap'"),
        (lambda: Guarantee.from_subsets({}), "at least one part"),
        (lambda: Guarantee.from_subsets({"a": (1, 0.6), "b": (1, 0.6)}), "at most 1"),
        (lambda: Guarantee.parallel([], split="record"), "a list of guarantees"),
        (lambda: Guarantee.parallel([Guarantee({"a": 1})], split="column"), "'record' or 'value'"),
        (lambda: Guarantee({"a": 1}).group(0), "size of a group is a whole number of at least 1"),
        (lambda: Guarantee({"a": 1}).group(True), "size of a group is a whole number of at least 1"),
        (lambda: Guarantee({"a": 5}, delta=0.5).group(2), "above 1"),
        (lambda: Guarantee({"a": 1}).under("substitute"), "has no neighbour relation"),
        (lambda: Guarantee({"a": 1}).post_process({}), r"missing \['a'\]"),
        (lambda: Guarantee({"a": 1}).post_process({"a": "x", "b": "x"}), r"not in the table \['b'\]"),
        (lambda: Guarantee({"a": 1}).post_process({"a": set()}), "at least one part"),
        (lambda: costliest([Guarantee({"a": 1})], []), "one part per block"),
        (lambda: Guarantee.from_json({"parts": 3}), "a guarantee in JSON"),
        (
            lambda: Guarantee.from_json(
                {"parts": [["a", 2], ["a", 0]], "delta": 0, "otherwise": None, "neighbours": None}
            ),
            "each part once",
        ),
        (lambda: Guarantee.from_subsets({"a": 1}), "a mapping from part to"),
        (lambda: Guarantee.from_subsets([("a", (1, 0))]), "a mapping from part to"),
        (lambda: Guarantee.parallel([1], split="record"), "a list of guarantees"),
        (lambda: Guarantee.parallel(Guarantee({"a": 1}), split="record"), "a list of guarantees"),
        (lambda: Guarantee({"a": 1}).post_process([("a", "b")]), "images are a mapping"),
        (lambda: Guarantee({"a": 1}).under(None), "give the relation"),
        (lambda: Guarantee.from_json(None), "a guarantee in JSON"),
    ],
)
def test_bad_guarantees_are_named(make: object, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make()  # type: ignore[operator]


def test_guarantees_read_up_and_budgets_down() -> None:
    guarantee = Guarantee({"a": "1234567.123456789012"}, delta="0.123456789012345678")
    assert Fraction(str(guarantee.delta)) >= Fraction("0.123456789012345678")
    assert Fraction(str(guarantee.epsilon_of("a"))) >= Fraction("1234567.123456789012")
    assert Fraction(str(guarantee.worst_case.delta)) <= Fraction("0.123456789012345678")


def test_large_groups_are_quick() -> None:
    assert Guarantee.uniform(1).group(10**6).worst_case == Cost(10**6)
    with pytest.raises(InvalidValue, match="above 1"):
        Guarantee.uniform(5000, 1e-9).group(10**6)


def test_unknown_parts() -> None:
    guarantee = Guarantee({1: 1})
    for part in ("a", True, 1.0, None, [1]):
        with pytest.raises(UnknownPart, match="is not a part"):
            guarantee.cost_of(part)
        assert part not in guarantee
    open_ended = Guarantee.uniform(1)
    with pytest.raises(UnknownPart):
        open_ended.cost_of(0.5)


def test_subsets_add_their_deltas() -> None:
    guarantee = Guarantee.from_subsets({"a": (1, "1e-6"), "b": (2, "3e-6")}, neighbours="substitute")
    assert guarantee == Guarantee({"a": 1, "b": 2}, delta="4e-6", neighbours="substitute")


def test_post_processing_takes_the_largest() -> None:
    guarantee = Guarantee({0: 0.1, 1: 0.4, 2: 0.9}, delta=0.1)
    coarse = guarantee.post_process({0: "few", 1: {"few", "some"}, 2: "many"})
    assert coarse == Guarantee({"few": 0.4, "some": 0.4, "many": 0.9}, delta=0.1)


def test_post_processing_with_other_labels() -> None:
    guarantee = Guarantee({"a": 0.1}, otherwise=0.5)
    moved = guarantee.post_process({"a": "b"})
    assert moved.epsilon_of("b") == 0.5  # "b" may also be one of the other labels, which keep themselves
    assert moved.epsilon_of("z") == 0.5
    assert guarantee.post_process({"a": "a"}) == guarantee


def test_parallel_blocks() -> None:
    blocks = [Guarantee({"hit": 1, "miss": 0.25}, delta=0.1), Guarantee({"hit": 0.5, "miss": 0}, delta=0.2)]
    both = Guarantee.parallel(blocks, split="record")
    assert both.delta == 0.2
    assert both.cost_of(costliest(blocks, ["miss", "hit"])).epsilon == 0.5
    assert both.cost_of(costliest(blocks, ["hit", "hit"])).epsilon == 1
    assert both.cost_of(costliest(blocks, ["miss", "miss"])).epsilon == 0.25
    assert costliest(blocks[:1] * 2, ["hit", "hit"]) == (0, "hit")


def test_parallel_blocks_of_any_label() -> None:
    blocks = [Guarantee.uniform(1), Guarantee({"a": 2})]
    both = Guarantee.parallel(blocks, split="record")
    assert both.epsilon_of((1, "a")) == 2
    assert both.epsilon_of(costliest(blocks[:1], ["whatever"])) == 2


def test_parallel_by_value_is_about_add_remove() -> None:
    block = Guarantee({"a": 1}, delta="1e-9", neighbours="add-remove")
    both = Guarantee.parallel([block, block], split="value")
    assert both.neighbours == "add-remove"
    exchanged = both.under("substitute")
    assert exchanged.epsilon_of((0, "a")) == 2
    for relation in (None, "substitute"):
        with pytest.raises(InvalidValue, match="add-remove"):
            Guarantee.parallel([Guarantee({"a": 1}, neighbours=relation)], split="value")
    with pytest.raises(NeighbourMismatch):
        Guarantee.parallel([block, Guarantee({"a": 1}, neighbours="substitute")], split="record")


def test_groups_and_substitution() -> None:
    guarantee = Guarantee({"a": 1, "b": 0.5}, delta="1e-6", otherwise=0.75, neighbours="add-remove")
    exchanged = guarantee.under("substitute")
    assert exchanged.neighbours == "substitute"
    assert exchanged.epsilon_of("b") == 1
    assert exchanged.epsilon_of("else") == 1.5
    least = Fraction(1, 10**6) * (1 + bracket.exp(Fraction(1)).upper)
    assert 0 <= exchanged.worst_case.exact_delta - least < Fraction(1, 10**17)
    assert exchanged.under("substitute") is exchanged
    with pytest.raises(NeighbourMismatch, match="'substitute'"):
        exchanged.under("add-remove")
    assert guarantee.group(1) == guarantee
    assert guarantee.group(3).epsilon_of("a") == 3


@given(guarantees)
def test_json_both_ways(guarantee: Guarantee) -> None:
    again = Guarantee.from_json(json.loads(json.dumps(guarantee.to_json())))
    assert again == guarantee
    assert hash(again) == hash(guarantee)
    assert again != guarantee.to_json()


def test_how_guarantees_look() -> None:
    assert repr(Guarantee.uniform(0.5, 1e-6)) == "Guarantee.uniform(0.5, delta=1e-6)"
    assert (
        repr(Guarantee({"a": 1}, otherwise=2, neighbours="substitute"))
        == "Guarantee({'a': 1}, otherwise=2, neighbours='substitute')"
    )
    assert repr(Guarantee({k: k for k in range(10)})).endswith("7: 7, … 2 more})")


def test_guarantees_do_not_change() -> None:
    guarantee = Guarantee({"a": 1, ("b", 2): "0.5"}, 1e-6, otherwise=3, neighbours="substitute")
    for name in ("_delta", "delta", "anything"):
        with pytest.raises(AttributeError, match="do not change"):
            setattr(guarantee, name, 0)
        with pytest.raises(AttributeError, match="do not change"):
            delattr(guarantee, name)
    with pytest.raises(TypeError):
        guarantee._table["a"] = Cost(0)  # type: ignore[index]
    assert copy.deepcopy(guarantee) is copy.copy(guarantee) is guarantee
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
