"""Interactions and whole ledgers as functions of data and noise, so that they can be audited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from expost.cost import Cost
from expost.ledger import Ledger
from expost.mechanism import AnInteraction, Interactive
from expost.noise import NoiseSource
from expost.verify.audit.samples import SampleOne


def asked(mechanism: Interactive[AnInteraction], script: Callable[[AnInteraction], object]) -> SampleOne:
    """An interaction in which a script does the asking; its output is the transcript.

    The script sees answers and nothing else. Audit it with the mechanism's own ``guarantee`` and ``part_of``.
    """

    def run(data: Any, noise: NoiseSource) -> Any:
        interaction: Any = mechanism.start(data, noise)
        script(interaction)
        interaction.close()
        return interaction.output

    return run


def played(limit: Cost, script: Callable[[Ledger, Any], Any], **accounting: Any) -> SampleOne:
    """The composition game: an adversary spends from a new ledger as it likes, and its output is what it saw.

    ``script(ledger, data)`` hands the data to the ledger's mechanisms only, and returns its view. Audit it with
    ``Guarantee.uniform`` of the limit. ``accounting`` is what else the ledger is made with.
    """

    def run(data: Any, noise: NoiseSource) -> Any:
        return script(Ledger(limit, noise=noise, **accounting), data)

    return run
