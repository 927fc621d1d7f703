"""One's own functions: a decorator, a block, an audit."""

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import expost as xp
from expost.adapters import OwnMechanism, charged, private

SIZES = xp.Guarantee({"small": 0.25, "large": 0.75})


@private(xp.Guarantee.uniform(1.5))
def answered(data: int, noise: xp.noise.NoiseSource) -> int:
    """Randomised response: the truth with 3/4, which is ln 3-private."""
    return data if noise.below(4) else 1 - data


@private(xp.Guarantee.uniform(0.5))
def overstated(data: int, noise: xp.noise.NoiseSource) -> int:
    return data if noise.below(4) else 1 - data


def size_of(answer: int) -> str:
    return "small" if answer < 9 else "large"


def test_a_decorated_function_is_a_mechanism() -> None:
    ledger = xp.Ledger(epsilon=3)
    first = ledger.run(answered, on=1, key="k")
    assert first.value in (0, 1)
    assert first.charged == xp.Cost(1.5)
    assert ledger.run(answered, on=1, key="k").replayed
    assert answered.name is not None
    assert answered.name.endswith(":answered")
    with pytest.raises(xp.errors.KeyConflict):
        ledger.run(overstated, on=1, key="k")


def test_parts_of_a_decorated_function() -> None:
    sized = private(SIZES, part_of=size_of, name="sized")(lambda data, noise: data)
    ledger = xp.Ledger(epsilon=3)
    assert ledger.run(sized, on=7).charged == xp.Cost(0.25)
    assert ledger.run(sized, on=10).charged == xp.Cost(0.75)


def test_lambdas_and_local_functions_need_a_name_for_keys() -> None:
    nameless = private(xp.Guarantee.uniform(1))(lambda data, noise: data)
    assert nameless.name is None
    with pytest.raises(xp.InvalidValue, match="give the mechanism name="):
        xp.Ledger(epsilon=3).run(nameless, on=1, key="k")


def test_an_audit_of_what_was_stated() -> None:
    assert not answered.audit([(0, 1)], samples=4_000).refuted
    assert overstated.audit([(0, 1)], samples=4_000).refuted


def test_a_block_charges_what_is_published() -> None:
    ledger = xp.Ledger(epsilon=3)
    with charged(ledger, SIZES, part_of=size_of, label="sizes") as charge:
        assert charge.publish(7) == 7
        with pytest.raises(xp.errors.ReservationClosed):
            charge.publish(8)
    assert ledger.spent == xp.Cost(0.25)
    assert charge.reservation.entry.label == "sizes"


def fails(_: Any) -> str:
    raise ZeroDivisionError


def unknown(_: Any) -> str:
    return "enormous"


@pytest.mark.parametrize(
    ("part_of", "error"),
    [(fails, ZeroDivisionError), (unknown, xp.errors.UnknownPart), (lambda _: 1.5, xp.errors.UnknownPart)],
)
def test_a_part_that_cannot_be_told_costs_the_worst_case(part_of: Callable[[Any], Any], error: type[Exception]) -> None:
    ledger = xp.Ledger(epsilon=3)
    with pytest.raises(error), charged(ledger, SIZES, part_of=part_of) as charge:
        charge.publish(7)
    assert ledger.spent == SIZES.worst_case


def test_leaving_a_block_costs_the_worst_case() -> None:
    ledger = xp.Ledger(epsilon=3)
    with pytest.raises(ZeroDivisionError), charged(ledger, SIZES, part_of=size_of):
        raise ZeroDivisionError
    with pytest.warns(xp.errors.UnsettledWarning), charged(ledger, SIZES, part_of=size_of):
        pass
    assert ledger.spent == xp.Cost(1.5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: private(1), "a guarantee is needed"),
        (lambda: private(SIZES), "say by part_of="),
        (lambda: private(SIZES, part_of="small"), "a function of an output"),
        (lambda: OwnMechanism(function=3, stated=xp.Guarantee.uniform(1)), "a function of the data"),
        (lambda: charged(xp.Ledger(epsilon=1), 0.5).__enter__(), "a guarantee is needed"),
    ],
)
def test_public_mistakes(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(xp.InvalidValue, match=said):
        make()


LIBRARIES = ("opendp", "dp_accounting", "opacus", "torch", "diffprivlib", "sklearn")


def test_importing_expost_loads_no_other_library() -> None:
    program = f"import sys, expost, expost.adapters; print([m for m in {LIBRARIES} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        ("opendp", "OpenDPMeasurement(measurement=1, d_in=1)", "OpenDP measurements need opendp: .*expost.opendp"),
        ("opendp", "OpenDPMeasurement.of_query(1)", "OpenDP queries need opendp"),
        ("dp_accounting", "event_guarantee(1, delta=1, neighbours='substitute')", "need dp-accounting: .*accounting"),
        ("dp_accounting", "history_event(1, neighbours='substitute')", "events need dp-accounting"),
        ("opacus", "Training(1, 2, 3, 4, noise_multiplier=1, max_grad_norm=1, epochs=1, delta=1)", "expost.opacus"),
        ("diffprivlib", "LedgerAccountant", "accountants of diffprivlib need diffprivlib: .*expost.diffprivlib"),
    ],
)
def test_a_library_that_is_missing_is_named(module: str, code: str, said: str) -> None:
    program = (
        f"import sys; sys.modules[{module!r}] = None; from expost.errors import MissingDependency\n"
        f"import expost.adapters as adapters\n"
        f"try: adapters.{code}\nexcept MissingDependency as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert re.search(said, done.stdout), done.stdout
