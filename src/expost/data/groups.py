"""The same question about every group of rows, in one charge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from expost.checks import as_whole, equal_share, requested_epsilon
from expost.cost import Cost, Number, said
from expost.data.questions import Planned, PureMechanism, TableMechanism
from expost.errors import InvalidValue
from expost.noise import NoiseSource

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

_MOST_GROUPS = 1000


@dataclass(frozen=True, repr=False)
class Groups(Planned):
    """Groups of rows by a value, which are stated. Rows with another value, or none, are in no group.

    Proof: thm-table-groups
    """

    table: PrivateTable
    text: str
    keys: tuple[Any, ...]

    @classmethod
    def of(cls, table: PrivateTable, value: str, keys: Any) -> Groups:
        """Checks what was given."""
        if not isinstance(keys, tuple | list) or any(type(key) not in (str, int) for key in keys):
            raise InvalidValue(f"keys are a list of texts or whole numbers, got {said(keys)}")
        as_whole(len(keys), "the number of keys", most=_MOST_GROUPS)
        if len(set(keys)) < len(keys):
            raise InvalidValue(f"keys are different, got {said(keys)}")
        groups = cls(table, value, tuple(keys))
        for key in groups.keys:
            groups.rows(key)
        return groups

    def rows(self, key: Any) -> PrivateTable:
        """The rows of one group."""
        literal = "'" + key.replace("'", "''") + "'" if isinstance(key, str) else f"{key}"
        return self.table.where(f"({self.text}) = {literal}")

    @property
    def title(self) -> str:
        """What tells groups apart."""
        return f"{len(self.keys)} groups by {self.text}"

    @cached_property
    def plan(self) -> str:
        """Nothing is asked but what is asked about each group."""
        return ""

    @property
    def touched(self) -> int:
        """In how many groups one unit can be, the one that it is exchanged for included.

        Proof: thm-table-groups
        """
        if self.table.unit.column is not None:
            return len(self.keys)
        return min(1 if self.table.neighbours == "add-remove" else 2, len(self.keys))

    def ask(self, question: Callable[[PrivateTable, float], TableMechanism[Any]], *, epsilon: Number) -> Grouped:
        """A question about each group, made of its rows and of its ε: all of ε over the groups that a unit can be in.

        ``visits.by("city", ["Rome", "Oslo"]).ask(lambda rows, e: rows.mean("cost", bounds=(0, 9)).laplace(epsilon=e),
        epsilon=1)``
        """
        share = Cost(equal_share(epsilon, self.touched)).epsilon
        made = tuple(question(self.rows(key), share) for key in self.keys)
        return Grouped(self, made, requested_epsilon(epsilon))


@dataclass(frozen=True, repr=False)
class Grouped(PureMechanism[dict[Any, Any]]):
    """{key: answer} for each of several groups of rows.

    Parameters
    ----------
    question
        The groups.
    mechanisms
        What is asked about each of them, in the order of its keys: each costs a share of ε at most.
    epsilon
        The whole budget.

    Proof: thm-table-groups
    """

    question: Groups
    mechanisms: tuple[TableMechanism[Any], ...]
    epsilon: Number

    def __post_init__(self) -> None:
        share = Cost(equal_share(self.epsilon, self.question.touched))
        if len(self.mechanisms) != len(self.question.keys):
            raise InvalidValue(f"there is a question for each of {len(self.question.keys)} groups")
        for key, mechanism in zip(self.question.keys, self.mechanisms, strict=True):
            own = self.question.rows(key).steps
            if not isinstance(mechanism, TableMechanism) or mechanism.question.table.steps[: len(own)] != own:
                raise InvalidValue(f"the question about group {said(key)} asks its rows: make it of the rows given")
            if not mechanism.guarantee.worst_case <= share:
                raise InvalidValue(f"a question about one group costs at most {share}: pass on the ε given, without δ")

    def check(self, data: Any) -> None:
        """All questions can be asked."""
        super().check(data)
        for mechanism in self.mechanisms:
            mechanism.check(data)

    def sample(self, data: Any, noise: NoiseSource) -> dict[Any, Any]:
        """An answer for each group, with noise of its own."""
        answers = (mechanism.sample(data, noise) for mechanism in self.mechanisms)
        return dict(zip(self.question.keys, answers, strict=True))

    def describe(self, output: Any) -> str:
        """The answer of each group."""
        said_of = zip(self.question.keys, self.mechanisms, strict=True)
        return "; ".join(f"{key}: {mechanism.describe(output[key])}" for key, mechanism in said_of)
