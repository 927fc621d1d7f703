"""EVIDENCE: exact checks of finite mechanisms, of interactive ones, and of the composition game."""

from expost.verify.draws import law, tabulate
from expost.verify.finite import (
    FiniteMechanism,
    Verdict,
    Witness,
    check,
    hockey_stick,
    least_delta,
    least_delta_at,
    least_ratios,
    log_up,
    tightest,
)
from expost.verify.game import Move, play, worst_delta, worst_delta_at, worst_ratio
from expost.verify.interaction import FiniteInteraction, check_interaction

__all__ = [
    "FiniteInteraction",
    "FiniteMechanism",
    "Move",
    "Verdict",
    "Witness",
    "check",
    "check_interaction",
    "hockey_stick",
    "law",
    "least_delta",
    "least_delta_at",
    "least_ratios",
    "log_up",
    "play",
    "tabulate",
    "tightest",
    "worst_delta",
    "worst_delta_at",
    "worst_ratio",
]
