"""Whose privacy a ledger protects, in every store: a question about another unit is refused, and nothing is charged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expost as xp
from books import NewLedger, disarm, execute
from every_question import EVERY
from expost import Cost, Guarantee, Ledger
from expost.adapters import private
from expost.errors import LedgerCorrupt

FRAME = pd.DataFrame(
    {"person": [1, 1, 2, 3], "pid": [1, 1, 2, 3], "city": list("aaab"), "n": [1, 2, 3, 4], "x": [0.5, 1.0, 1.5, 2.0]}
)


def table(unit: Any = "row", neighbours: Any = "add-remove") -> xp.PrivateTable:
    return xp.read(FRAME, unit=unit, neighbours=neighbours)


def people(column: str = "person", **more: Any) -> xp.PrivateTable:
    return table(xp.Unit(column, rows=2, **more))


@pytest.mark.parametrize("asked", EVERY)
def test_no_question_about_rows_is_paid_by_a_ledger_of_people(asked: str, new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, delta=1e-6, unit="person")
    with pytest.raises(xp.errors.UnitMismatch) as refused:
        ledger.run(EVERY[asked](table()))
    assert (refused.value.guaranteed, refused.value.expected, refused.value.where) == (
        "row",
        "person",
        "ledger 'ledger'",
    )
    assert (ledger.spent, ledger.reserved, list(ledger.entries())) == (Cost(0), Cost(0), [])
    assert ledger.run(EVERY[asked](people())).entry.unit == "person"


def test_every_way_of_spending_compares_units(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, unit="person").create_account("alice", epsilon=2)
    mechanism = table().count().mechanism(epsilon=1)
    scan = xp.SparseVector(threshold=1, at_most=1, epsilon=1, sensitivity=1)
    columns = table(neighbours="substitute").column("n")
    for spend in (
        lambda: ledger.run(mechanism),
        lambda: ledger.run(mechanism, key="k", label="visits"),
        lambda: ledger.reserve(mechanism.guarantee),
        lambda: ledger.reserve(mechanism.guarantee, begin=False, lease=60),
        lambda: ledger.quote([xp.mechanisms.Coin(epsilon=1, sensitivity=1), mechanism]),
        lambda: ledger.quote([mechanism.guarantee]),
        lambda: ledger.open(xp.Iterative(steps=[mechanism], stops=[1], delta=1e-6, neighbours="add-remove")),
    ):
        with pytest.raises(xp.errors.UnitMismatch, match="ledger 'ledger' protects the unit 'person'"):
            spend()
    with pytest.raises((xp.errors.UnitMismatch, xp.errors.NeighbourMismatch)):
        ledger.open(scan, on=columns)
    assert (ledger.spent, ledger.reserved, list(ledger.entries())) == (Cost(0), Cost(0), [])


@pytest.mark.parametrize("wrapped", [lambda column: column, lambda column: [column], lambda column: {"a": (column,)}])
def test_columns_say_whose_they_are(wrapped: Callable[[Any], Any], new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, neighbours="substitute", unit="person")
    anything = private(Guarantee.uniform(1))(lambda data, noise: 0)
    rows = table(neighbours="substitute")
    with pytest.raises(xp.errors.UnitMismatch):
        ledger.run(anything, on=wrapped(rows.column("n")))
    assert list(ledger.entries()) == []
    owned = table(xp.Unit("person", rows=1), neighbours="substitute")
    assert ledger.run(anything, on=wrapped(owned.column("n"))).entry.unit == "person"


def test_a_median_and_a_scan_of_a_column_are_compared(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, neighbours="substitute", unit="person")
    column: Any = table(neighbours="substitute").column("n")
    with pytest.raises(xp.errors.UnitMismatch):
        ledger.run(xp.mechanisms.MedianOfRecords(epsilon=1, bounds=(0, 9), neighbours="substitute"), on=column)
    with pytest.raises(xp.errors.UnitMismatch):
        ledger.open(xp.SparseVector(threshold=1, at_most=1, epsilon=1, sensitivity=1), on=column)
    assert list(ledger.entries()) == []


def test_a_column_of_a_public_number_of_units_is_no_data_for_the_other_relation(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, neighbours="add-remove", unit="row")
    column: Any = table(neighbours="substitute").column("n")
    median = xp.mechanisms.MedianOfRecords(epsilon=1, bounds=(0, 9), neighbours="add-remove")
    mechanisms: list[xp.Mechanism] = [median, xp.Laplace(epsilon=1, sensitivity=1)]
    for mechanism in mechanisms:
        with pytest.raises(xp.errors.NeighbourMismatch):
            ledger.run(mechanism, on=column)
    assert list(ledger.entries()) == []


def test_what_says_nothing_of_its_unit_is_the_callers_word(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, unit="person")
    assert ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on=3).entry.unit is None
    assert ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on=np.array([1.0, 2.0])).entry.unit is None


@pytest.mark.parametrize(
    ("unit", "given"),
    [
        ("person", "person"), ("person", "pid"), ("pid", "pid"),
        ("person (column pid)", "pid"), ("row", None), ("visit (one row each)", None),
    ],
)  # fmt: skip
def test_one_name_for_the_unit_in_all_entries(unit: str, given: str | None, new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=3, unit=unit)
    name = unit if "(" not in unit and unit != given else "person"
    asked = people(given, name=name) if given else table("visit (one row each)")
    ledger.run(asked.count().mechanism(epsilon=1), key="a")
    assert ledger.run(asked.count().mechanism(epsilon=1), key="a").replayed
    ledger.run(asked.by("city", keys=["a"]).ask(lambda rows: rows.count()).mechanism(epsilon=1))
    assert [entry.unit for entry in ledger.entries()] == [unit, unit]
    assert ledger.entries().to_pandas()["unit"].to_list() == [unit, unit]
    assert {event.body["guarantee"]["unit"] for event in ledger.audit_trail() if "guarantee" in event.body} == {unit}
    ledger.verify()


def test_the_first_question_of_a_table_fixes_the_unit() -> None:
    ledger = Ledger(epsilon=10)
    ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on=1)
    assert ledger.unit is None
    with pytest.raises(xp.BudgetExceeded):
        ledger.run(people().count().mechanism(epsilon=100))
    ledger.quote([people().count().mechanism(epsilon=1)])
    assert ledger.unit is None  # a refusal and a quote change nothing
    ledger.run(people().count().mechanism(epsilon=1))
    assert ledger.unit == "person"
    for other in (table(), table(xp.Unit("city", rows=2))):
        with pytest.raises(xp.errors.UnitMismatch):
            ledger.run(other.count().mechanism(epsilon=1))
    ledger.run(people("pid", name="persons").count().mechanism(epsilon=1))
    assert [entry.unit for entry in ledger.entries()] == [None, "person", "person"]
    assert ledger.spent == Cost(3)
    ledger.verify()


def test_two_threads_may_fix_the_unit_by_two_names_for_it() -> None:
    ledger, start = Ledger(epsilon=100), Barrier(2)
    asked = [people(), people("pid", name="person")]
    wrong = list[BaseException]()

    def work(one: xp.PrivateTable) -> None:
        mechanism = one.count().mechanism(epsilon=1)
        start.wait(60)
        try:
            ledger.run(mechanism)
        except BaseException as error:
            wrong.append(error)

    threads = [Thread(target=work, args=(one,)) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert len({entry.unit for entry in ledger.entries()}) == 1
    stale = ledger._request(
        "run", people("pid", name="person").count().mechanism(epsilon=1), Guarantee.uniform(1), None, None
    )
    fresh = Ledger(epsilon=9)
    fresh.run(people().count().mechanism(epsilon=1))
    late = stale._replace(guarantee=Guarantee.uniform(1, unit="person (column pid)"), account=("ledger",))
    assert fresh._store.reserve(late, begin=True).unit == "person"


def test_recorded_units_are_verified(new_url: Callable[[], str], tmp_path: Path) -> None:
    url = new_url()
    ledger = Ledger.create(url, "study", 5, neighbours="add-remove", unit="person")
    ledger.run(people().count().mechanism(epsilon=1))
    head = ledger.verify()
    ledger.export(tmp_path / "trail.jsonl")
    assert '"unit":"person"' in (tmp_path / "trail.jsonl").read_text().splitlines()[1]
    for name in ("expost_ledger",):
        disarm(url, name)
    execute(url, "UPDATE expost_ledger SET unit = 'row'")
    with pytest.raises(LedgerCorrupt, match="unit"):
        Ledger.load(url, "study", read_only=True).verify(head)


def test_a_line_about_another_unit_cannot_have_happened() -> None:
    from expost.ledger.trail import GENESIS, TrailLine, link
    from expost.ledger.verify.lines import replay

    ledger = Ledger(epsilon=5)
    for _ in range(2):
        with ledger.reserve(Guarantee.uniform(1, unit="person")) as spending:
            spending.settle("any")
    with ledger.reserve(Guarantee.uniform(1, neighbours="add-remove", unit="person")) as spending:
        spending.settle("any")
    lines = [event.line for event in ledger.audit_trail()]
    others = Ledger(epsilon=5)
    with others.reserve(Guarantee.uniform(1, neighbours="add-remove", unit="row")) as spending:
        theirs = next(event.body for event in others.audit_trail() if event.kind == "reserve")
        spending.settle("any")
    mine = next(event.body for event in ledger.audit_trail() if event.entry == 3)
    changed = [
        line.replace('"unit":"person"', '"unit":"row"').replace(mine["guarantee_digest"], theirs["guarantee_digest"])
        .replace(mine["subject"].replace("\"", "\\\""), theirs["subject"])
        if number == len(lines) - 2 else line
        for number, line in enumerate(lines)
    ]  # fmt: skip

    def chained(some: list[str]) -> list[TrailLine]:
        head, found = GENESIS, []
        for line in some:
            head = link(head, line)
            found.append(TrailLine.read(line, head))
        return found

    replay(chained(lines))
    assert changed != lines
    with pytest.raises(LedgerCorrupt, match="protects the unit 'person', the guarantee 'row'"):
        replay(chained(changed))


def test_postgresql_compares_units_by_itself(postgres_url: Callable[[], str]) -> None:
    """Whoever calls its function by hand is refused, too."""
    url = postgres_url()
    ledger = Ledger.create(url, "study", 5, neighbours="add-remove", unit="person")
    request = ledger._request("reserve", Guarantee.uniform(1), Guarantee.uniform(1), None, None)
    store: Any = ledger._store
    forged = request._replace(guarantee=Guarantee.uniform(1, unit="row"))
    with pytest.raises(xp.errors.UnitMismatch):
        store._do(store_step(forged))
    assert list(ledger.entries()) == []
    store._do(store_step(request._replace(guarantee=Guarantee.uniform(1, unit="person"))))
    assert [entry.unit for entry in ledger.entries()] == ["person"]


def store_step(request: Any) -> Any:
    from expost.ledger.operations import Reserve

    return Reserve(request, begun=False)
