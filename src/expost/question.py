"""The contract between questions and ledgers: a `Question` has no ε; with `Terms` it is a mechanism.

Which mechanism that is, is a public rule: see :meth:`Question.mechanism`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, Literal, final

from expost.checks import share_of
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.fingerprint import public_identity
from expost.guarantee import Neighbours
from expost.mechanism import WITHHELD, Mechanism, Out
from expost.mentions import brief

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters

NoiseName = Literal["laplace", "gaussian"]
WITHIN_CONFIDENCE = "0.95"
"""How sure an accuracy is: that of ``within=``, and that by which two kinds of noise are compared."""
_STORED = frozenset({type(None), str, int, float, Decimal, Fraction})
"""The types of terms that are kept as they are; other numbers are kept by their value."""
_NO_PRICE = (
    "a question has no ε of its own: say what it may cost or how accurate it must be: epsilon=… or within=…, as in "
    "ledger.run(table.count(), epsilon=0.1)"
)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What an answer may cost, or how accurate it must be.

    Attributes
    ----------
    epsilon
        Its ε; beside an accuracy, the most that may be reserved for it.
    within
        How far off noise may put the answer, with 95 % confidence.
    share
        The same, as a share of the true answer.
    delta
        The δ that may be spent; 0 if none may.
    noise
        ``"laplace"`` or ``"gaussian"`` if it must be that.
    meters
        Those of a ledger with several: by their prices Gaussian noise needs no δ.
    """

    epsilon: Number | None = None
    within: Number | None = None
    share: Fraction | None = None
    delta: Number = 0
    noise: NoiseName | None = None
    meters: LedgerMeters | None = None

    @classmethod
    def of(
        cls,
        epsilon: Number | Cost | None,
        within: Number | str | None,
        delta: Number,
        noise: NoiseName | None,
        meters: LedgerMeters | None,
    ) -> Terms:
        """Checks the arguments."""
        if epsilon is None and within is None:
            raise InvalidValue(_NO_PRICE)
        if noise not in (None, "laplace", "gaussian"):
            raise InvalidValue(f"noise is 'laplace' or 'gaussian', or left out for the usual one; got {brief(noise)}")
        if exact(delta, "δ") and noise == "laplace":
            raise InvalidValue("Laplace noise takes no δ: leave delta out, or noise='laplace'")
        share = _as_share(within)
        if share is not None and epsilon is None:
            raise InvalidValue(
                f"within={within!r} is a share of an answer that is not known before: pass epsilon=, too, the most "
                "that may be reserved; what the answer did not take is refunded"
            )
        amount = epsilon.epsilon if isinstance(epsilon, Cost) else epsilon
        distance = None if share is not None or within is None else exact(within, "within")
        if distance is not None and distance < 0:
            raise InvalidValue(f"within is how far off the answer may be, 0 or more; got {brief(within)}")
        return cls(epsilon=amount, within=distance, share=share, delta=delta, noise=noise, meters=meters)

    @property
    def said(self) -> dict[str, Any]:
        """What was said, in values that every store takes, to be kept beside an answer; the meters are the ledger's."""
        said = {name: getattr(self, name) for name in ("epsilon", "within", "share", "delta", "noise")}
        return {name: each if type(each) in _STORED else exact(each, name) for name, each in said.items()}

    @classmethod
    def as_said(cls, said: Mapping[str, Any], meters: LedgerMeters | None) -> Terms:
        """The terms that were kept."""
        return cls(**said, meters=meters)

    @property
    def price(self) -> Number:
        """The ε. Raises where only an accuracy was given."""
        if self.epsilon is None:
            raise InvalidValue(_NO_PRICE)
        return self.epsilon

    @property
    def accurate(self) -> bool:
        """Whether an accuracy is wanted."""
        return self.within is not None or self.share is not None

    def needed_delta(self, title: str, instead: str = "") -> Number:
        """The δ of a question that cannot be answered without; ``instead`` is what could be asked."""
        if not exact(self.delta, "δ"):
            raise InvalidValue(f"{title} needs a δ: pass delta=, such as 1e-6{instead and f'; or {instead}'}")
        return self.delta

    def only_epsilon(self, title: str, *made_with: NoiseName) -> Number:
        """The ε of a question that has one mechanism, and takes no δ. Raises for any other terms."""
        if exact(self.delta, "δ"):
            raise InvalidValue(f"{title} takes no δ: leave delta out")
        return self.epsilon_alone(title, *made_with)

    def epsilon_alone(self, title: str, *made_with: NoiseName) -> Number:
        """The ε of a question that has one mechanism, made with this noise if with any. Raises for any other terms."""
        if self.accurate:
            raise InvalidValue(f"{title} has no accuracy that is known before it is asked: pass epsilon=, not within=")
        if self.noise is not None and self.noise not in made_with:
            raise InvalidValue(f"{title} is not made with {self.noise.capitalize()} noise: leave noise out")
        return self.price


class OpenQuestion(ABC):
    """What is asked of data that is given beside it: ``ledger.run(xp.Mean(bounds=(0, 100)), on=ages, epsilon=0.1)``."""

    @abstractmethod
    def about(self, data: Any, neighbours: Neighbours | None, unit: str | None) -> Question[Any]:
        """The question about that data. Where the data does not say whose it is, it is as the ledger says."""


class Question(ABC, Generic[Out]):
    """What is asked, without an ε: a frozen record that ledgers make a mechanism of.

    ``ledger.run(question, epsilon=0.1)`` runs it. To a ledger it is :meth:`mechanism`, and :attr:`identity`, by which
    an answer is found that was published before.
    """

    @property
    def identity(self) -> str | None:
        """What is asked of which data, as a digest: the same in every process, and never made from contents.

        It has all settings of the question; the table's unit, neighbours, columns, filters, derived columns and public
        tables; and where the data is or what it is called, with its stated version. None if the data has no version:
        then nothing says that the same words mean the same data, and no answer is ever used again. Nor is there one if
        the question holds a function or an object of another package, whose code may change.
        """
        found = public_identity(self)
        return found.digest if found is not None and found.named else None

    @final
    def mechanism(
        self,
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        meters: LedgerMeters | None = None,
    ) -> Any:
        """The mechanism that answers it: for quotes, audits and tuning, and what ``ledger.run`` runs.

        To type checkers it may be any, because its class follows from the terms.

        Parameters
        ----------
        epsilon
            Its ε; or a :class:`~expost.Cost`, of which the ε is taken and no δ. With ``within``, the most that it may
            take.
        within
            How accurate the answer must be: a number, for the least ε that keeps all its numbers within it with 95 %
            confidence; or a share such as ``"2 %"``: noise is then reduced until that is reached, and what is left of
            ``epsilon`` is refunded.
        delta
            The δ that it may spend.
        noise
            ``"laplace"`` or ``"gaussian"``, to force it.
        meters
            The meters of a ledger that has several. Ledgers pass it.

        The rule: noise is Laplace, or the most accurate mechanism for this question that takes no δ. With ``delta``,
        counts, sums and histograms take Gaussian noise for (ε, δ) if its error bound at 95 %, for all numbers at once,
        is smaller. ``noise="gaussian"`` without ``delta`` needs a ledger with Rényi prices: the noise costs there at
        most what an answer with that ε would, and δ is not spent.
        """
        return self._mechanism(Terms.of(epsilon, within, delta, noise, meters))

    @abstractmethod
    def _mechanism(self, terms: Terms) -> Mechanism[None, Out]:
        """The mechanism on these terms. Raises ``InvalidValue`` for terms that it does not take."""


def is_as_accurate(then: Terms, made: Mechanism, output: Any, now: Terms, wanted: Mechanism) -> bool:
    """Whether an answer that was published is at least as accurate as what the same question asks for on other terms.

    ``made`` is the mechanism of ``then`` and ``wanted`` that of ``now``. All of it is public. An answer that was
    withheld is one on its own terms only.

    A share of the answer (``within="2 %"``) is reached by what reached that share or a smaller one, or had as much ε to
    reach it. A distance is reached by any noise that stays within it. For an ε, noise of the same kind is compared by
    its error bound, and, where none is known before, by ε and δ.
    """
    if output is WITHHELD:
        return False
    if now.share is not None:
        reached = getattr(output, "met", None) is True
        return then.share is not None and then.share <= now.share and (reached or _most(then) >= _most(now))
    if then.share is not None:
        return False
    bound = _bound(made)
    if now.within is not None:
        return bound is not None and bound <= exact(now.within, "within")
    if _kind(made) != _kind(wanted):
        return False
    least = _bound(wanted)
    if bound is not None and least is not None:
        return bound <= least
    if then.accurate or then.noise != now.noise:
        return False
    spent, allowed = exact(then.delta, "δ"), exact(now.delta, "δ")
    return _most(then) >= _most(now) and spent >= allowed and bool(spent) == bool(allowed)


def _most(terms: Terms) -> Fraction:
    """The most ε that was allowed."""
    return exact(terms.price, "ε")


def _kind(mechanism: Mechanism) -> tuple[type, type, str | None]:
    """What kind of mechanism it is, with what kind of noise.

    Of several statistics one may be more accurate with Gaussian noise, and another one with Laplace noise.
    """
    return type(mechanism), type(getattr(mechanism, "noise", None)), getattr(mechanism, "made_with", None)


def _bound(mechanism: Any) -> Fraction | None:
    """How far off all its numbers are at most; None if that is not known before it is run."""
    if not hasattr(mechanism, "error_bound"):
        return None
    try:
        return Fraction(mechanism.error_bound(WITHIN_CONFIDENCE))
    except (TypeError, ValueError, OverflowError):  # it takes an output, or a number of values; or is not finite
        return None


def _as_share(within: Any) -> Fraction | None:
    """The share that a text such as "2 %" is; None if it is not a text."""
    if not isinstance(within, str):
        return None
    share = share_of(within)
    if share is None:
        raise InvalidValue(
            "within is how far off the answer may be: a number, or a text such as '2 %' for a share of it, above 0 and "
            f"below 100 % with at most six decimals; got {brief(within)}"
        )
    return share
