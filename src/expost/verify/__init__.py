"""EVIDENCE: exact checks of finite mechanisms, of interactive ones, and of the composition game."""

from expost.verify.conversation import Conversation, check_conversation
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

__all__ = [
    "Conversation",
    "FiniteMechanism",
    "Move",
    "Verdict",
    "Witness",
    "check",
    "check_conversation",
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
