"""A trail whose hashes are right, but whose story is not, is found."""

from __future__ import annotations

from typing import Any

import pytest

import expost as xp
from expost import Cost, Guarantee
from expost.accounting.amounts import Amounts
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


class Believer:
    """Books that believe every line, to write the balances that go with it."""

    def __init__(self) -> None:
        self.accounts: dict[str, list[Any]] = {}
        self.open: dict[int | None, tuple[str, list[int]]] = {}

    def levels(self, number: int, kind: str, entry: int | None, said: dict[str, Any]) -> list[list[Any]]:
        """The balances after a line, as it has them: each with the line that changed it before."""
        path, worst = self.open.get(entry, ("l", [0, 0]))
        path = said.get("account", path)
        if kind in ("create", "account") and "limit" in said:
            self.accounts[path] = [said["limit"], [0, 0], [0, 0], 0, 0]
        above = [path[:end] for end, sign in enumerate(path + "/") if sign == "/"]
        changed = [self.accounts[each] for each in above if each in self.accounts]
        if kind == "raise":
            changed[-1][0] = said["limit"]
        if kind == "close":
            changed[-1][3] = 1
        if kind == "reserve":
            self.open[entry] = path, said["worst"]
            self._add(changed, 2, said["worst"])
        if kind in ("settle", "forfeit", "void"):
            self._add(changed, 2, [-units for units in worst])
            self._add(changed, 1, said["charged"])
        shown = [list(level) for level in changed]
        for level in changed:
            level[4] = number
        return shown

    def _add(self, changed: list[list[Any]], place: int, cost: list[int]) -> None:
        for level in changed:
            level[place] = [before + more for before, more in zip(level[place], cost, strict=True)]


def trail(*events: tuple[str, int | None, dict[str, Any]], levels: list[list[Any]] | None = None) -> list[TrailLine]:
    """Linked lines, each with the balances that it implies; the last with these, if they are given."""
    body = {"limit": [10, 0], "name": "l", "neighbours": None, "unit": None}
    made, head, books = [], GENESIS, Believer()
    for number, (kind, entry, said) in enumerate([("create", None, body), *events], 1):
        found = books.levels(number, kind, entry, said)
        if levels is not None and number == len(events) + 1:
            found = levels
        line = {"at": 0, "body": said, "entry": entry, "event": kind, "levels": found, "sequence": number, "user": "me"}
        head = link(head, canonical(line))
        made.append(TrailLine.read(canonical(line), head))
    return made


def balance(limit: str, charged: int, reserved: int, **more: Any) -> Balance:
    return Balance.basic(Cost(limit))._replace(charged=Amounts(charged), reserved=Amounts(reserved), **more)


def test_what_may_have_happened() -> None:
    events = [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [5, 0], "part": "some"}), ("reserve", 2, SMALL)]
    books, _ = replay(trail(*events))
    assert books.accounts["l",] == balance("10e-12", 5, 1, line=4)
    replay(trail(*events, levels=[[[10, 0], [5, 0], [1, 0], 0, 3]]))
    governed = [
        ("account", None, {"account": "l/x", "limit": [1, 0]}), ("reserve", 1, SMALL | {"account": "l/x"}),
        ("forfeit", 1, END | {"charged": [1, 0], "part": None}),
        ("raise", None, {"account": "l", "limit": [11, 0], **NOTE}), ("close", None, {"account": "l", **NOTE}),
    ]  # fmt: skip
    books, _ = replay(trail(*governed))
    assert books.accounts["l",] == balance("11e-12", 1, 0, closed=True, line=6)


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
    replay(trail(*events[:-1]))  # all but the last may
    with pytest.raises(xp.errors.LedgerCorrupt, match="cannot have happened"):
        replay(trail(*events))


@pytest.mark.parametrize(
    "levels",
    [
        [[[10, 0], [4, 0], [1, 0], 0, 3]],
        [[[11, 0], [5, 0], [1, 0], 0, 3]],
        [[[10, 0], [5, 0], [0, 0], 0, 3]],
        [[[10, 0], [5, 0], [1, 0], 1, 3]],
        [[[10, 0], [5, 0], [1, 0], 0, 2]],
        [[[10, 0], [5, 0], [1, 0], 0, 3]] * 2,
        [],
    ],
)
def test_balances_that_cannot_be(levels: list[list[Any]]) -> None:
    events = [("reserve", 1, RESERVE), ("settle", 1, END | {"charged": [5, 0], "part": "some"}), ("reserve", 2, SMALL)]
    with pytest.raises(xp.errors.LedgerCorrupt, match="the rules would have written"):
        replay(trail(*events, levels=levels))


@pytest.mark.parametrize("lacks", ["levels", "user", "body", "at"])
def test_a_line_that_lacks_what_every_line_has_is_not_read(lacks: str) -> None:
    line = {"at": 0, "body": {}, "entry": None, "event": "close", "levels": [], "sequence": 2, "user": None}
    TrailLine.read(canonical(line), GENESIS)
    del line[lacks]
    with pytest.raises(xp.errors.LedgerCorrupt, match="a line of the audit trail cannot be read"):
        TrailLine.read(canonical(line), GENESIS)
