"""What an audit found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from expost.guarantee import Guarantee, Part


@dataclass(frozen=True)
class PartShown:
    """What the samples show of one part: its ε is at least ``shown``, and at most ``guaranteed`` by the guarantee."""

    part: Part
    guaranteed: float
    shown: float
    pair: int
    """The pair of databases, by number, …"""
    order: Literal["first", "second"]
    """… and which of the two the part's event is likelier on."""
    hits: tuple[int, int]

    @property
    def refuted(self) -> bool:
        """Whether the guarantee is false."""
        return self.shown > self.guaranteed

    def __str__(self) -> str:
        mark = "  REFUTED" if self.refuted else ""
        hits = f"{self.hits[0]} against {self.hits[1]} hits"
        return f"part {self.part!r}: guaranteed ε {self.guaranteed:.4g}, shown {_text(self.shown)} ({hits}){mark}"


@dataclass(frozen=True)
class EventShown:
    """An event that may cover several parts: with the guaranteed ε's it needs a δ of at least ``shown``."""

    guaranteed: float
    shown: float
    pair: int
    order: Literal["first", "second"]
    hits: tuple[int, int]
    outputs: tuple[str, ...]
    """Some of its outputs, the most frequent first."""

    @property
    def refuted(self) -> bool:
        """Whether the guarantee is false."""
        return self.shown > self.guaranteed

    def __str__(self) -> str:
        return (
            f"δ of at least {self.shown:.3g} where {self.guaranteed:.3g} is guaranteed: outputs such as "
            f"{', '.join(self.outputs)} ({self.hits[0]} against {self.hits[1]} hits)"
        )


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit: refuted, or not refuted up to the ε's shown. It never proves a guarantee."""

    subject: str
    guarantee: Guarantee
    parts: tuple[PartShown, ...]
    events: tuple[EventShown, ...]
    samples: int
    """Of each database of each pair."""
    confidence: float
    seed: int
    moment: float | None = None
    """The moment of Rényi prices that was shown; above 1 they are refuted."""

    @property
    def refuted(self) -> bool:
        """Whether the guarantee is false, with the stated confidence."""
        found = any(row.refuted for row in self.parts) or any(row.refuted for row in self.events)
        return found or (self.moment or 0.0) > 1

    @property
    def shown(self) -> float:
        """The largest ε that the samples show of any part."""
        return max((row.shown for row in self.parts), default=-inf)

    def __str__(self) -> str:
        verdict = "REFUTED" if self.refuted else f"not refuted; shown is ε ≥ {_text(self.shown)}"
        lines = [f"{self.subject}: {verdict} ({self.samples} samples a side, confidence {self.confidence:g})"]
        lines += [f"  {row}" for row in self.parts]
        lines += [f"  {event}" for event in self.events if event.refuted]
        if self.moment is not None:
            mark = "  REFUTED" if self.moment > 1 else ""
            lines.append(f"  Rényi prices: moment {self.moment:.4g} shown, at most 1 is guaranteed{mark}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "subject": self.subject,
            "refuted": self.refuted,
            "samples": self.samples,
            "confidence": self.confidence,
            "seed": self.seed,
            "delta": self.guarantee.delta,
            "parts": [_facts(row) for row in self.parts],
            "events": [_facts(row) for row in self.events],
            "moment": self.moment,
        }


def _facts(row: PartShown | EventShown) -> dict[str, Any]:
    """A row for JSON, where nothing is infinite and parts are lists, numbers or texts."""
    facts = {**vars(row), "shown": None if row.shown == -inf else row.shown, "refuted": row.refuted}
    found: dict[str, Any] = json.loads(json.dumps(facts, default=repr))
    return found


def _text(epsilon: float) -> str:
    return "nothing" if epsilon <= 0 else f"{epsilon:.4g}"
