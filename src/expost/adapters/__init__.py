"""Other libraries' mechanisms, charged to our ledgers: one module per library, which is imported when it is used.

A ledger takes what a mechanism guarantees on the word of whoever states it. Here that is the other library: its noise,
its arithmetic and its proofs are its own. What is ours is the charge, which is never below what it states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from expost.adapters.diffprivlib import LedgerAccountant as LedgerAccountant
    from expost.adapters.dp_accounting import EventSteps as EventSteps
    from expost.adapters.dp_accounting import event_guarantee as event_guarantee
    from expost.adapters.dp_accounting import history_event as history_event
    from expost.adapters.opacus import Training as Training
    from expost.adapters.opendp import OpenDPMeasurement as OpenDPMeasurement
    from expost.adapters.own import OwnMechanism as OwnMechanism
    from expost.adapters.own import charged as charged
    from expost.adapters.own import private as private
    from expost.adapters.steps import NoisySteps as NoisySteps
else:
    from importlib import import_module

    _MODULES = {
        "expost.adapters.diffprivlib": ("LedgerAccountant",),
        "expost.adapters.dp_accounting": ("EventSteps", "event_guarantee", "history_event"),
        "expost.adapters.opacus": ("Training",),
        "expost.adapters.opendp": ("OpenDPMeasurement",),
        "expost.adapters.own": ("OwnMechanism", "charged", "private"),
        "expost.adapters.steps": ("NoisySteps",),
    }
    _HOME = {name: module for module, names in _MODULES.items() for name in names}
    __all__ = list(_HOME)

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'expost.adapters' has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)
