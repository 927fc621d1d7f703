"""Random finite mechanisms for the laws: small tables of exact probabilities."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil

from hypothesis import strategies as st

from expost import Guarantee
from expost.cost import DELTA_UNITS
from expost.guarantee import Part
from expost.verify import FiniteMechanism, least_delta

OUTPUTS = "abcd"


def laws(outputs: str = OUTPUTS, *, positive: bool = False) -> st.SearchStrategy[dict[str, Fraction]]:
    """A law on this number of outputs with small rational probabilities."""
    weights = st.lists(st.integers(int(positive), 5), min_size=len(outputs), max_size=len(outputs)).filter(any)
    return weights.map(lambda ws: {o: Fraction(w, sum(ws)) for o, w in zip(outputs, ws, strict=True)})


@st.composite
def mechanisms(draw: st.DrawFn, databases: int = 2, outputs: str = OUTPUTS) -> FiniteMechanism:
    """A mechanism on a path of databases, each the neighbour of the next, with two parts."""
    names = range(databases)
    cut = draw(st.integers(1, len(outputs) - 1))
    return FiniteMechanism(
        {name: draw(laws(outputs)) for name in names},
        list(pairwise(names)),
        lambda output: "low" if outputs.index(output) < cut else "high",
    )


ratios: st.SearchStrategy[dict[Part, Fraction]] = st.fixed_dictionaries(
    {part: st.fractions(min_value=1, max_value=5, max_denominator=4) for part in ("low", "high")}
)
epsilons: st.SearchStrategy[dict[Part, str]] = st.fixed_dictionaries(
    {part: st.sampled_from(["0", "0.25", "0.5", "1"]) for part in ("low", "high")}
)


def guarantee_of(mechanism: FiniteMechanism, table: dict[Part, str]) -> Guarantee:
    """The guarantee with this E and the least δ, rounded up."""
    least = least_delta(mechanism, Guarantee(table)).upper
    return Guarantee(table, min(Fraction(1), Fraction(ceil(least * DELTA_UNITS), DELTA_UNITS)))
