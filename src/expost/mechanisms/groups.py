"""The same question about every group of people, for the price of one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from expost.errors import InvalidValue
from expost.estimates import Estimates, frames_together
from expost.frame import Frame
from expost.guarantee import Guarantee, Part, costliest
from expost.mechanism import Mechanism, Withheld, read_by, rows_by
from expost.mentions import brief
from expost.noise import NoiseSource


@dataclass(frozen=True, kw_only=True)
class ByGroup(Mechanism[Mapping[Any, Any], Any]):
    """A mechanism for each of several disjoint groups, in one charge: that of the costliest (parallel composition).

    The data is a mapping from every group to its data, an empty array for a group without records. The output is
    a mapping from group to answer. The part is the costliest group's place and part.

    Parameters
    ----------
    mechanism
        What is asked about each group.
    groups
        The names of all groups, text or whole numbers. They are public: list them, do not take them from the data.
    split
        ``"record"``: who a person is decides on the group, and neighbours have everybody in the same group.
        ``"value"``: what the record says decides. Then the mechanism is one for add-remove neighbours, because a record
        that is exchanged may leave one group and enter another.

    >>> from expost.mechanisms import MedianOfRecords
    >>> median = MedianOfRecords(epsilon=1, bounds=(0, 120), neighbours="add-remove")
    >>> ByGroup(mechanism=median, groups=("north", "south"), split="value").guarantee.worst_case
    Cost(1)

    Proof: lem-parallel
    """

    mechanism: Mechanism
    groups: Any
    split: Literal["record", "value"]

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidValue(f"mechanism is what is asked about each group, got {brief(self.mechanism)}")
        if not isinstance(self.groups, tuple | list) or not self.groups:
            raise InvalidValue(f"groups are a list of names, at least one, got {brief(self.groups)}")
        if any(type(group) not in (int, str) for group in self.groups) or len(set(self.groups)) < len(self.groups):
            raise InvalidValue(f"groups have different names, text or whole numbers, got {brief(self.groups)}")
        object.__setattr__(self, "groups", tuple(self.groups))
        _ = self.guarantee

    @property
    def _blocks(self) -> list[Guarantee]:
        return [self.mechanism.guarantee] * len(self.groups)

    @property
    def guarantee(self) -> Guarantee:
        """Parallel composition: the parts are (place of the group, part)."""
        return Guarantee.parallel(self._blocks, split=self.split)

    def part_of(self, output: dict[Any, Any]) -> Part:
        """The first of the groups that cost the most, and its part."""
        return costliest(self._blocks, [self.mechanism.part_of(output[group]) for group in self.groups])

    def check(self, data: Any) -> None:
        """Data for each of the groups, and none else."""
        if not isinstance(data, Mapping) or set(data) != set(self.groups):
            given = sorted(data, key=str) if isinstance(data, Mapping) else type(data).__name__
            raise InvalidValue(f"the data is a mapping from each of {self.groups} to its data, got {brief(given)}")
        for group in self.groups:
            self.mechanism.check(data[group])

    def sample(self, data: Any, noise: NoiseSource) -> dict[Any, Any]:
        """An answer for each group, with noise of its own."""
        return {group: self.mechanism.sample(data[group], noise) for group in self.groups}

    @property
    def what(self) -> str:
        """What the numbers of each group are."""
        return self.mechanism.what

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """Numbers by their group; a dictionary of what is more than a number."""
        read = {group: read_by(self.mechanism, output[group], (origin, group)) for group in self.groups}
        if not all(isinstance(each, int | float | Withheld) for each in read.values()):
            return read
        return Estimates.by_key(("group",), self.groups, self.what, list(read.values()).__getitem__)

    def frame_of(self, answer: Any) -> Frame:
        """The rows of each group."""
        if isinstance(answer, Estimates):
            return answer.frame
        return frames_together("group", {group: rows_by(self.mechanism, answer[group]) for group in self.groups})

    def describe(self, output: Any) -> str:
        """The answer of each group."""
        return "; ".join(f"{group}: {self.mechanism.describe(output[group])}" for group in self.groups)
