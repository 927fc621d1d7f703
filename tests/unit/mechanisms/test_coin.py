import pytest

import expost as xp
from expost import Cost
from expost.mechanisms import Coin


def test_it_contains_no_data_and_compares() -> None:
    assert Coin(epsilon=1, sensitivity=2) == Coin(epsilon=1, sensitivity=2)
    assert hash(Coin(epsilon=1, sensitivity=2)) == hash(Coin(epsilon=1, sensitivity=2))
    assert repr(Coin(epsilon=0.5, sensitivity=1, heads="1/3")) == (
        "Coin(epsilon=0.5, sensitivity=1, heads='1/3', neighbours=None)"
    )


def test_epsilon_rounds_down_and_the_guarantee_is_what_is_kept() -> None:
    assert Coin(epsilon=1 / 3, sensitivity=1).guarantee.worst_case == Cost("0.333333333333")
    assert Coin(epsilon=1, sensitivity=1, neighbours="substitute").guarantee.neighbours == "substitute"


def test_heads_and_tails() -> None:
    noise = xp.SeededNoise(1)
    assert Coin(epsilon=1, sensitivity=1, heads=0).sample(7, noise) is xp.WITHHELD
    answers = [Coin(epsilon=50, sensitivity=1, heads=1).sample(7, noise) for _ in range(20)]
    assert answers == [7] * 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0, "sensitivity": 1}, "ε must be at least 1e-12"),
        ({"epsilon": "1e-13", "sensitivity": 1}, "ε must be at least 1e-12"),
        ({"epsilon": -1, "sensitivity": 1}, "negative"),
        ({"epsilon": 1, "sensitivity": 0}, "sensitivity is a whole number"),
        ({"epsilon": 1, "sensitivity": 1.5}, "sensitivity is a whole number"),
        ({"epsilon": 1, "sensitivity": True}, "sensitivity is a whole number"),
        ({"epsilon": 1, "sensitivity": 1, "heads": 2}, "heads lies between 0 and 1"),
        ({"epsilon": 1, "sensitivity": 1, "neighbours": "any"}, "neighbours must be"),
    ],
)
def test_bad_parameters(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(xp.InvalidValue, match=message):
        Coin(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [1.5, "7", None, True, [7]])
def test_bad_data(data: object) -> None:
    with pytest.raises(xp.InvalidValue, match=f"got data of type {type(data).__name__}"):
        Coin(epsilon=1, sensitivity=1).check(data)
