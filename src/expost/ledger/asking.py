"""What a ledger is asked to run: a mechanism, which has its own ε, or a question, which it makes into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expost.cost import Cost, Number
from expost.errors import InvalidValue
from expost.guarantee import Guarantee
from expost.mechanism import Mechanism, PrivateData
from expost.question import NoiseName, OpenQuestion, Question

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters


def as_mechanism(
    what: Any,
    on: Any,
    meters: LedgerMeters | None,
    *,
    epsilon: Number | Cost | None,
    within: Number | str | None,
    delta: Number,
    noise: NoiseName | None,
) -> Any:
    """The mechanism to run. Raises ``InvalidValue`` for what is neither, and for what was said and does not belong."""
    if isinstance(what, Question):
        if on is not None:
            raise InvalidValue(
                "a question runs on its own table, and on= was given: run it without on=…, and say epsilon= before an ε"
            )
        return what.mechanism(epsilon=epsilon, within=within, delta=delta, noise=noise, meters=meters)
    if not isinstance(what, Mechanism):
        raise InvalidValue(neither(what))
    said = {"epsilon": epsilon, "within": within, "delta": delta or None, "noise": noise}
    given = next((name for name, each in said.items() if each is not None), None)
    if isinstance(on, PrivateData):
        on.check_as_data()
    if given is not None:
        raise InvalidValue(
            f"{type(what).__name__} is a mechanism, which has its own ε: leave {given}= out, or make it anew with what "
            "it is to have"
        )
    return what


def refuse_both(key: str | None, again: bool) -> None:
    """Raise if a key is given for what is to be sampled again."""
    if again and key is not None:
        raise InvalidValue("a key never samples twice: leave key out to buy an answer again, or leave again=True out")


def neither(what: Any) -> str:
    """Why something can be neither run nor quoted."""
    kind = type(what).__name__
    if isinstance(what, OpenQuestion):
        return f"of what is the {kind} asked? Ask a table, as in table.asked({what!r}), to know what it would cost"
    if isinstance(what, PrivateData):
        return f"a {kind} is data, not a question about it: ask it one, as in ledger.run(table.count(), epsilon=0.1)"
    if isinstance(what, type):
        return f"{what.__name__} is a class: give it its parameters first, as in {what.__name__}(…)"
    if isinstance(what, Guarantee):
        return "run takes a question or a mechanism; a guarantee is reserved: ledger.reserve(guarantee)"
    return (
        f"run takes a question or a mechanism, got a {kind}: ask a table or its groups, as in table.count() or "
        "groups.mean(…), or pass a mechanism such as xp.Laplace(…)"
    )


def as_plans(
    planned: Any,
    meters: LedgerMeters | None,
    *,
    epsilon: Number | Cost | None,
    within: Number | str | None,
    delta: Number,
    noise: NoiseName | None,
) -> list[Any]:
    """The mechanisms and guarantees of a plan: one or several; each question in it is made into its mechanism."""
    asked = each_planned(planned)
    said: dict[str, Any] = {"epsilon": epsilon, "within": within, "delta": delta, "noise": noise}
    if not any(isinstance(each, Question) for each in asked) and {*said.values()} != {None, 0}:
        raise InvalidValue(
            "mechanisms and guarantees have their own ε: epsilon=, within=, delta= and noise= are for questions"
        )
    return [each.mechanism(**said, meters=meters) if isinstance(each, Question) else each for each in asked]


def each_planned(planned: Any) -> list[Any]:
    """What is planned: one, or several."""
    return [planned] if isinstance(planned, Mechanism | Guarantee | Question) else list(_several(planned))


def _several(planned: Any) -> Any:
    try:
        return iter(planned)
    except TypeError:
        raise InvalidValue(
            f"quote takes a question, a mechanism or a guarantee, or a list of them; got a {type(planned).__name__}"
        ) from None
