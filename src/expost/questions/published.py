"""What is made of the noisy numbers of statistics: estimates, by statistic and group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from expost.data.answers import WHY_CUT_OFF, Reached, may_be_cut_off
from expost.data.discovery import reached_by
from expost.data.quantiles import Ranks
from expost.estimate import Drawn, Estimate
from expost.estimates import Estimates
from expost.frame import Frame
from expost.mechanism import WITHHELD
from expost.noise.sums import Term
from expost.questions.noised import Noised
from expost.questions.regression import NamedFit
from expost.questions.statistic import Reading

if TYPE_CHECKING:
    from expost.data.group_keys import GroupKey
    from expost.questions.statistics import NoisyStatistics

_MOST_ADDED = 256
"""Up to so many groups a total is the sum of their noises; for more, the law of such a sum is known too roughly."""


class _Rows(NamedTuple):
    """Numbers of one statistic: those of the groups, and of all together if they add up."""

    what: str
    at: Sequence[Any]
    total: Any = None


@dataclass(frozen=True)
class PublishedStatistics:
    """Statistics as estimates, made of the frame that was published.

    Parameters
    ----------
    mechanism
        What was asked, and with which noise.
    output
        The frame: a row for each group.
    origin
        Which output it is.
    """

    mechanism: NoisyStatistics
    output: Frame
    origin: Hashable

    @property
    def answer(self) -> Any:
        """One answer about the whole table; several by their names; those of groups by name and key."""
        if self._is_one:
            ((_, answer),), _ = self.by_key(self._names[0])
            return answer
        listed = [one for name in self._names for one in self._statistic(name)]
        if self.mechanism.question.is_whole:
            return Estimates.named({one.what: one.at[0] for one in listed})
        return self._of_groups(listed)

    @property
    def text(self) -> str:
        """The answer about a whole table, in words."""
        if not self._is_one:
            return "; ".join(f"{name} {number!r}" for name, number in self.answer.items())
        found = self.answer
        if isinstance(found, NamedFit):
            return "; ".join(f"{name} {number!r}" for name, number in found.terms.items())
        error = "" if found.error is None else f" ± {found.error:.6g} at 95 %"
        about = f", of about {found.how.values} values" if error and hasattr(found.how, "values") else ""
        return f"{found.value:.6g}{error}{about}"

    @property
    def _is_one(self) -> bool:
        return self.mechanism.question.alone is not None

    def by_key(self, name: str) -> tuple[list[tuple[GroupKey, Any]], Any]:
        """The answer of each group by a statistic that is computed from sums, and that of all together if asked for."""
        each = dict(self.mechanism.question.added)[name]
        answers, total = self._added(name, each, self._starts[name])
        return list(zip(self._keys, answers, strict=True)), total

    def _of_groups(self, listed: list[_Rows]) -> Estimates:
        """Statistic by statistic, the groups in their order; the totals last."""
        names, keys = tuple(value.name for value in self.mechanism.question.values), self._keys
        totals = [(one.what, one.total) for one in listed if one.total is not None]
        return Estimates(
            names,
            (*(key for _ in listed for key in keys), *((None,) * len(names) for _ in totals)),
            (*(one.what for one in listed for _ in keys), *(what for what, _ in totals)),
            [*(number for one in listed for number in one.at), *(number for _, number in totals)].__getitem__,
            len(totals),
        )

    @property
    def _found(self) -> list[str]:
        """What the column with numbers of units is called, if keys were discovered."""
        from expost.questions.statistics import FOUND_UNITS

        return [] if self.mechanism.question.keys else [FOUND_UNITS]

    @property
    def _names(self) -> list[str]:
        return [*self._found, *self.mechanism.question.names]

    @cached_property
    def _keys(self) -> list[GroupKey]:
        width = len(self.mechanism.question.values)
        return [tuple(row[:width]) for row in self.output.rows]

    @cached_property
    def _starts(self) -> dict[str, int]:
        """Where the numbers of each statistic begin: those that are added up come before quantiles."""
        asked, start = self.mechanism.question, len(self.mechanism.question.values) + len(self._found)
        found = dict[str, int]()
        for name, sums in asked.sums.items():
            found[name], start = start, start + sum(len(each.sql) for each in sums)
        for name, _ in asked.ranks:
            found[name], start = start, start + 1
        return found

    def _statistic(self, name: str) -> list[_Rows]:
        """The numbers of a statistic; of several quantiles, or of a regression, those of each."""
        asked = self.mechanism.question
        if name not in asked.names:
            numbers = [row[len(asked.values)] for row in self.output.rows]
            reached = reached_by(numbers, self.mechanism.threshold)
            at = Reached(numbers, self.mechanism.found_noise[1], reached)
            return [_Rows(name, [at(place) for place in range(len(numbers))])]
        each, start = asked.readings[asked.names.index(name)], self._starts[name]
        if isinstance(each, Ranks):
            return self._ranks(name, each, [row[start] for row in self.output.rows])
        return _by_term(name, *self._added(name, each, start))

    def _added(self, name: str, each: Reading, start: int) -> tuple[list[Any], Any]:
        """The answers of groups, and of all together if that is asked."""
        laws = self.mechanism.laws[name]
        numbers = [tuple(row[start : start + len(laws)]) for row in self.output.rows]
        of_groups = [Noised(own, laws, (self.origin, name, key)) for own, key in zip(numbers, self._keys, strict=True)]
        total = None
        if self.mechanism.question.total and each.adds_up and numbers:
            summed = tuple(map(sum, zip(*numbers, strict=True)))
            whole = Noised(summed, laws, (self.origin, name, None), len(numbers))
            total = _known(self._total(each, whole, of_groups), *numbers)
        answers = [self.of_numbers(each, one) for one in of_groups]
        return [_known(answer, own) for answer, own in zip(answers, numbers, strict=True)], total

    def _total(self, each: Reading, whole: Noised, groups: Sequence[Noised]) -> Any:
        """All groups together: of few groups a number remembers the noise of each."""
        if each.step is not None and len(groups) <= _MOST_ADDED:
            return Estimate.total(each.present(whole.numbers[0]), [_draw(one, each.step) for one in groups])
        return self.of_numbers(each, whole)

    @staticmethod
    def of_numbers(each: Reading, noised: Noised) -> Any:
        """What is made of noisy numbers."""
        if each.step is None:
            return each.answer(noised)
        if noised.laws[0] is None:
            return Estimate.exactly(each.present(noised.numbers[0]))
        return Estimate.of(each.present(noised.numbers[0]), _draw(noised, each.step))

    def _ranks(self, name: str, ranks: Ranks, numbers: Sequence[Any]) -> list[_Rows]:
        """Quantiles of groups, whose errors are known in ranks; those of small groups may be withheld."""
        why = ranks.why_unknown(self.mechanism.ranks_off(name, ranks))
        if not ranks.terms:
            return [_Rows(name, [_chosen(number, why) for number in numbers])]
        several = [(None,) * len(ranks.terms) if number is None else number for number in numbers]
        return [
            _Rows(f"{name} {level}", [_chosen(number[place], why) for number in several])
            for place, level in enumerate(ranks.terms)
        ]


def _known(answer: Any, *numbers: Sequence[int]) -> Any:
    """The answer; without an error, if any of the sums that it is made of may have been cut off."""
    if isinstance(answer, NamedFit) and any(map(may_be_cut_off, numbers)):
        return answer.without_errors(WHY_CUT_OFF)
    if isinstance(answer, Estimate) and any(map(may_be_cut_off, numbers)):
        return Estimate.unknown(answer.value, WHY_CUT_OFF, answer.how)
    return answer


def _by_term(name: str, answers: list[Any], total: Any) -> list[_Rows]:
    """A number for each group; or, of models, those of each term."""
    if not answers or not isinstance(answers[0], NamedFit):
        return [_Rows(name, answers, total)]
    terms = list(answers[0].terms)
    return [
        _Rows(f"{name} {term}", [fit.terms[term] for fit in answers], None if total is None else total.terms[term])
        for term in terms
    ]


def _draw(noised: Noised, step: Fraction) -> Drawn:
    """The noise of a number: its law, or of very many groups together a bound."""
    if noised.groups == 1:
        return Drawn(noised.origin, law=partial(_same, noised.term(0, step)))
    return Drawn(noised.origin, partial(_reach, noised, float(step)))


def _same(term: Term) -> Term:
    return term


def _reach(noised: Noised, step: float, miss: Fraction) -> float:
    return noised.noise.reach((1.0,), miss, 0) * step * (1 + 2**-40)


def _chosen(number: Any, why: str) -> Any:
    return WITHHELD if number is None else Estimate.unknown(number, why)
