"""A trail whose hashes are right, but whose story is not, is found."""

from __future__ import annotations

from typing import Any

import pytest

import expost as xp
from expost import Cost, Guarantee
from expost.canonical import canonical
from expost.ledger import codec
from expost.ledger.entry import Balance
from expost.ledger.trail import GENESIS, TrailLine, link
from expost.ledger.verify import replay

PRICES = Guarantee({"all": "6e-12", "some": "5e-12"})
RESERVE = {
    "account": "l", "begun": True, "guarantee_digest": codec.guarantee_digest(PRICES), "fingerprint": "",
    "key": None, "label": None, "operation": "run", "subject": "", "worst": [6, 0], "guarantee": PRICES.to_json(),
}  # fmt: skip
CHEAP = Guarantee.uniform("1e-12")
SMALL = RESERVE | {"guarantee_digest": codec.guarantee_digest(CHEAP), "worst": [1, 0], "guarantee": CHEAP.to_json()}
AGAIN = {name: said for name, said in SMALL.items() if name != "guarantee"}
UNKNOWN = {name: said for name, said in RESERVE.items() if name != "guarantee"}
END = {"charged": [6, 0], "output": None, "part": "all"}
NOTE = {"by": "me", "reason": "because"}


def early(body: dict[str, Any]) -> dict[str, Any]:
    """A body as early trails had it: the digest of its guarantee was called a claim."""
    return {"claim" if name == "guarantee_digest" else name: said for name, said in body.items()}


def trail(*events: tuple[str, int | None, dict[str, Any]], levels: list[list[int]] | None = None) -> list[TrailLine]:
    """Linked lines; all but the last as early trails had them, without balances."""
    body = {"limit": [10, 0], "name": "l", "neighbours": None, "unit": None}
    made, head = [], GENESIS
    for number, (kind, entry, said) in enumerate([("create", None, body), *events], 1):
        line = {"at": 0, "body": early(said), "entry": entry, "event": kind, "sequence": number}
        if levels is not None and number == len(events) + 1:
            line |= {"body": said, "levels": levels, "user": "me"}
        head = link(head, canonical(line))
        made.append(TrailLine.read(canonical(line), head))
    return made


def test_what_may_have_happened() -> None:
    events = [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [5, 0], "part": "some"}), ("reserve", 2, SMALL)]
    books, _ = replay(trail(*events))
    assert books.accounts["l",] == Balance(Cost("10e-12"), Cost("5e-12"), Cost("1e-12"), False, 4)
    replay(trail(*events, levels=[[10, 0, 5, 0, 1, 0, 0, 3]]))
    later = (*events[:-1], ("reserve", 2, early(SMALL)))  # with balances, and the older name of its digest
    replay(trail(*later, levels=[[10, 0, 5, 0, 1, 0, 0, 3]]))


@pytest.mark.parametrize(
    "events",
    [
        [("reserve", 1, RESERVE), ("reserve", 2, UNKNOWN)],
        [("close", None, {"account": "l", **NOTE}), ("reserve", 1, RESERVE)],
        [("close", None, {"account": "l"})],
        [("reserve", 1, RESERVE), ("forfeit", 1, END | {"charged": [5, 0]})],
        [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [7, 0]})],
        [("reserve", 1, RESERVE), ("settle", 1, END), ("settle", 1, END)],
        [("reserve", 1, RESERVE), ("void", 1, END | {"charged": [0, 0]})],
        [("reserve", 1, RESERVE), ("begin", 1, {})],
        [("settle", 1, END)],
        [("settle", None, END)],
        [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [5, 0]})],
        [("reserve", 1, RESERVE), ("settle", 1, END | {"part": "none"})],
        [("reserve", 1, UNKNOWN)],
        [("reserve", 1, RESERVE | {"worst": [5, 0]})],
        [("reserve", 1, RESERVE | {"guarantee": CHEAP.to_json()})],
        [("reserve", 2, RESERVE)],
        [("reserve", 1, SMALL), ("reserve", 1, AGAIN)],
        [("reserve", 1, SMALL | {"key": "k"}), ("reserve", 2, AGAIN | {"key": "k"})],
        [("create", None, {"limit": [10, 0], "name": "l", "neighbours": None, "unit": None})],
        [("account", None, {"account": "l", "limit": [10, 0]})],
        [("account", None, {"account": "l/x", "limit": [1, 0]})] * 2,
        [("account", None, {"account": "l/x/y", "limit": [10, 0]})],
        [("raise", None, {"account": "l", "limit": [9, 0], **NOTE})],
        [("account", None, {})],
        [("rob", None, {})],
    ],
)
def test_what_cannot_have_happened(events: list[Any]) -> None:
    with pytest.raises(xp.LedgerCorrupt, match="cannot have happened"):
        replay(trail(*events))


@pytest.mark.parametrize(
    "levels",
    [
        [[10, 0, 4, 0, 1, 0, 0, 3]],
        [[11, 0, 5, 0, 1, 0, 0, 3]],
        [[10, 0, 5, 0, 0, 0, 0, 3]],
        [[10, 0, 5, 0, 1, 0, 1, 3]],
        [[10, 0, 5, 0, 1, 0, 0, 2]],
        [[10, 0, 5, 0, 1, 0, 0, 3]] * 2,
        [],
    ],
)
def test_balances_that_cannot_be(levels: list[list[int]]) -> None:
    events = [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [5, 0], "part": "some"}), ("reserve", 2, SMALL)]
    with pytest.raises(xp.LedgerCorrupt, match="the rules would have written"):
        replay(trail(*events, levels=levels))
