"""Mechanisms whose parameters come from earlier answers: the books say which class it is, and not with what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expost.canonical import sha256
from expost.fingerprint import identify
from expost.ledger.codec import Described
from expost.mechanism import Mechanism, Release
from expost.names import class_name

if TYPE_CHECKING:
    from expost.ledger.ledger import Ledger


def run_following(ledger: Ledger, mechanism: Mechanism, on: Any, *, key: str, label: str) -> Release:
    """Run a mechanism whose parameters are made from earlier answers, under a key that says from which.

    Whoever reads the audit trail is not given answers. A parameter that is one, or its fingerprint, with which guesses
    could be checked, would give it away; the key names the questions, and with their stored answers determines it all.

    Proof: lem-following
    """
    what = following(mechanism)
    return ledger._run(mechanism, on, ledger._request("run", mechanism, mechanism.guarantee, label, key, on, what=what))


def following(mechanism: Mechanism) -> Described:
    """A mechanism as books describe it where its parameters are not theirs to know: by its class alone."""
    kind = type(mechanism)
    said = f"{kind.__qualname__}, with parameters from earlier answers"
    return Described(said, sha256(f"{class_name(kind)} {said}"), identify(mechanism).data)
