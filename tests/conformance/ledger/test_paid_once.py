"""What was published once is answered from the books, in every store, and costs nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from books import OWNER, NewLedger
from expost import Cost, Ledger
from expost.errors import AlreadyReserved, InvalidValue, PaidAgainWarning, UnitMismatch
from expost.ledger.paid import is_derived

FRAME = pd.DataFrame(
    {"person": [i // 4 for i in range(400)], "cost": [float(i % 40) for i in range(400)], "ward": ["A", "B"] * 200}
)
BOUNDS: dict[str, Any] = {"bounds": (0, 40)}


def read(**options: Any) -> xp.PrivateTable:
    given = {"unit": xp.Unit("person", rows=4), "neighbours": "add-remove", "name": "visits", "version": "1"} | options
    return xp.read(FRAME, **given)


def balances(ledger: Ledger) -> tuple[Any, ...]:
    return ledger.spent, ledger.reserved, ledger.remaining, len(list(ledger.entries())), ledger.head


def test_what_was_published_is_free(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    first = ledger.run(read().count(), epsilon="0.5")
    before = balances(ledger)
    for asked in ("0.5", "0.25", 0.5):
        again = ledger.run(read().count(), epsilon=asked, label="a label of its own")
        assert again.replayed
        assert again.known
        assert again.charged == again.reserved == again.refunded == Cost(0)
        assert again.entry.charged == Cost("0.5")
        assert again == first
        assert hash(again) == hash(first)
        apart: Any = again.value - first.value
        assert (float(apart), apart.error) == (0, 0)  # one draw of noise
        assert again.error == first.error
        assert "replayed from entry 1, nothing was charged" in str(again)
        assert "replayed from entry 1" in again._repr_html_()
    assert balances(ledger) == before


def test_it_is_free_when_nothing_is_left(new_ledger: NewLedger) -> None:
    """Also when the ledger was closed."""
    ledger = new_ledger(epsilon=1)
    ledger.run(read().count(), epsilon=1)
    ledger.close(**OWNER)
    assert ledger.run(read().count(), epsilon=1).replayed
    with pytest.raises(xp.errors.LedgerClosed):
        ledger.run(read().count(), epsilon=1, again=True)


def test_more_accuracy_is_bought_and_less_is_free_then(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    bought = [ledger.run(read().count(), epsilon=each) for each in ("0.25", "0.5", "0.75")]
    assert not any(each.replayed for each in bought)
    assert ledger.spent == Cost("1.5")
    assert ledger.run(read().count(), epsilon="0.25") == bought[2]
    assert ledger.run(read().count(), within=10**6) == bought[2]
    closer = ledger.run(read().count(), within=2)
    assert not closer.replayed
    assert ledger.run(read().count(), within=2) == closer
    assert ledger.run(read().count(), epsilon="0.8") == closer  # it took more ε than that


def test_fresh_noise_is_bought_if_it_is_wanted(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    bought = [ledger.run(read().count(), epsilon="0.5", again=again) for again in (False, True, True)]
    assert [each.entry.id for each in bought] == [1, 2, 3]
    assert ledger.spent == Cost("1.5")
    assert ledger.run(read().count(), epsilon="0.5").entry.id == 3  # the last one
    with pytest.raises(InvalidValue, match="a key never samples twice"):
        ledger.run(read().count(), epsilon="0.5", again=True, key="k")
    assert ledger.spent == Cost("1.5")


def test_another_question_is_another_question(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    table = read()
    asked = [
        table.count(),
        table.count(of="units"),
        table.where("cost > 1").count(),
        table.where("cost > 2").count(),
        table.derive(y="cost * 2").where("y > 4").count(),
        table.derive(y="cost * 3").where("y > 4").count(),
        read(version="2").count(),
        read(name="wards").count(),
        read(unit=xp.Unit("person", rows=3)).count(),
        read(key=1).count(),
        read(key=2).count(),
    ]
    releases = [ledger.run(each, epsilon="0.5") for each in asked]
    assert not any(each.replayed for each in releases)
    assert [ledger.run(each, epsilon="0.5").entry.id for each in asked] == [each.entry.id for each in releases]


def test_an_account_has_its_own(new_ledger: NewLedger) -> None:
    """Whether another account's answers are shown is for whoever owns the ledger to say."""
    ledger = new_ledger(epsilon=10)
    alice, bob = ledger.create_account("alice", epsilon=5), ledger.create_account("bob", epsilon=5)
    first = alice.run(read().count(), epsilon=1)
    for other in (ledger, bob, alice.create_account("below", epsilon=1)):
        assert other.quote(read().count(), epsilon=1).known == ()
        assert not other.run(read().count(), epsilon=1).replayed
    assert ledger.account("alice").run(read().count(), epsilon=1) == first


def test_a_key_wins_and_knows_nothing_of_it(new_ledger: NewLedger) -> None:
    ledger, count = new_ledger(epsilon=10), read().count()
    plain = ledger.run(count, epsilon=1)
    keyed = ledger.run(count, epsilon=1, key="monday")
    assert not keyed.replayed
    repeated = ledger.run(count, epsilon=1, key="monday")
    assert repeated == keyed
    assert (repeated.replayed, repeated.known) == (True, False)
    assert repeated.charged == keyed.charged == Cost(1)  # the receipt of that request, by which plans go on
    assert ledger.run(count, epsilon=1) == plain


def test_somebody_elses_use_of_such_a_key_changes_nothing(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    first = ledger.run(read().count(), epsilon=1)
    key = first.entry.key
    assert key is not None
    assert is_derived(key)
    assert ledger.output(key) == first.output
    ledger.reserve(xp.Guarantee.uniform(1), key=key[:-1] + "2").forfeit()
    assert ledger.run(read().count(), epsilon=1) == first
    more = ledger.run(read().count(), epsilon=2)
    assert more.entry.key == key[:-1] + "3"
    assert ledger.run(read().count(), epsilon=2) == more


def test_a_mechanism_and_an_array_are_as_before(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert not ledger.run(read().count().mechanism(epsilon=1)).replayed
            assert not ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on=3).replayed
            assert not ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on=3, again=True).replayed
    assert ledger.spent == Cost(6)


def test_a_ledger_of_others_says_so_first(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    ledger.run(read().count(), epsilon=1)
    with pytest.raises(UnitMismatch):
        ledger.run(read(unit="row").count(), epsilon=1)


def test_a_quote_says_what_is_known(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    count, total = read().count(), read().sum("cost", **BOUNDS)
    assert ledger.quote(count, epsilon=1).known == ()
    ledger.run(count, epsilon=1)
    before = balances(ledger)
    quote = ledger.quote(count, epsilon=1)
    assert (quote.worst, quote.best, quote.known, quote.fits) == (Cost(0), Cost(0), (1,), True)
    both = ledger.quote([total, count, xp.Guarantee.uniform(2)], epsilon=1)
    assert (both.worst, both.known) == (Cost(3), (1,))
    assert ledger.quote(count, epsilon=1, again=True).worst == Cost(1)
    assert ledger.quote(count, epsilon=2).worst == Cost(2)
    assert balances(ledger) == before


def test_of_two_who_ask_at_once_one_pays(new_ledger: NewLedger) -> None:
    """The other gets the same answer, or is told that it is on its way."""
    ledger, threads = new_ledger(epsilon=100), 8
    ready = Barrier(threads)

    def ask(_: int) -> Any:
        table = read()
        ready.wait()
        try:
            return ledger.run(table.count(), epsilon=1)
        except AlreadyReserved as under_way:
            return under_way.entry

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(ask, range(threads)))
    assert ledger.spent == Cost(1)
    assert len(list(ledger.entries())) == 1
    assert {getattr(each, "entry", each).id for each in found} == {1}
    assert ledger.run(read().count(), epsilon=1).replayed


def test_all_who_want_fresh_noise_get_it(new_ledger: NewLedger) -> None:
    ledger, threads = new_ledger(epsilon=100), 8
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda _: ledger.run(read().count(), epsilon=1, again=True), range(threads)))
    assert sorted(each.entry.id for each in found) == list(range(1, threads + 1))
    assert ledger.spent == Cost(threads)
    keys = {str(each.entry.key).rpartition("#")[2] for each in found}
    assert keys == {str(number) for number in range(1, threads + 1)}  # without gaps


def test_what_broke_while_it_was_sampled_is_asked_again(new_ledger: NewLedger, monkeypatch: Any) -> None:
    ledger, table = new_ledger(epsilon=10), read()
    broken = read()
    monkeypatch.setattr(broken.engine, "fetch", _breaks)
    with pytest.raises(RuntimeError):
        ledger.run(broken.count(), epsilon=1)
    assert [each.state for each in ledger.entries()] == ["forfeited"]
    assert ledger.quote(table.count(), epsilon=1).worst == Cost(1)
    answer = ledger.run(table.count(), epsilon=1)
    assert not answer.replayed
    assert ledger.spent == Cost(2)
    assert ledger.run(table.count(), epsilon=1) == answer


def _breaks(query: str) -> Any:
    raise RuntimeError("no")


def test_a_withheld_answer_is_the_answer_to_that_request(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    few = xp.read(FRAME[:4], unit=xp.Unit("person", rows=4), neighbours="add-remove", name="few", version="1").median(
        "cost"
    )
    first = ledger.run(few, epsilon="0.25")
    assert first.withheld
    again = ledger.run(few, epsilon="0.25")
    assert again.withheld
    assert again.replayed
    assert again == first
    assert not ledger.run(few, epsilon="0.125").replayed  # nothing says that it would be withheld, too


def test_arrays_and_groups_are_read_back_the_same(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=50, delta=1e-3)
    table = read()
    groups = table.by("ward", keys=["A", "B"])
    for question, terms in (
        (groups.agg(n=groups.count(), m=groups.mean("cost", **BOUNDS)), {}),
        (groups.ask(lambda rows: rows.count()), {}),
        (table.histogram("ward", keys=["A", "B"]), {}),
        (table.histogram("ward", keys=["A", "B"]).above(10, at_most=1), {}),
        (table.discover("ward"), {"delta": 1e-6}),
        (table.quantile("cost", [0.25, 0.5], **BOUNDS), {}),
        (table.mean("cost", **BOUNDS), {}),
        (table.sum("cost", **BOUNDS), {"noise": "gaussian", "delta": 1e-6}),
    ):
        first, more = (ledger.run(question, epsilon="0.5", **terms) for _ in range(2))
        less = ledger.run(question, epsilon="0.25", **terms)
        assert more.replayed
        assert less.replayed
        assert first == more == less
        assert first.frame == more.frame == less.frame


def test_a_share_is_reached_by_a_smaller_one(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=50)
    first = ledger.run(read().count(), within="10 %", epsilon=2)
    assert first.output.met
    for within, epsilon in (("10 %", 1), ("20 %", 1), ("20 %", 5)):
        assert ledger.run(read().count(), within=within, epsilon=epsilon) == first
    spent = ledger.spent
    assert not ledger.run(read().count(), within="5 %", epsilon=2).replayed
    assert ledger.spent > spent


def test_other_noise_is_bought_if_it_is_wanted(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=50, delta=1e-3)
    assert not ledger.run(read().count(), epsilon=1).replayed
    assert not ledger.run(read().count(), epsilon="0.5", delta=1e-6, noise="gaussian").replayed
    assert ledger.run(read().count(), epsilon="0.5", delta=1e-6, noise="gaussian").replayed
    assert ledger.run(read().count(), epsilon="0.5", noise="laplace").replayed


def test_noise_that_takes_no_delta_is_known_too(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=3, delta=1e-6, accounting="renyi")
    first = ledger.run(read().count(), epsilon="0.125", noise="gaussian")
    before = balances(ledger)
    for epsilon in ("0.125", "0.0625"):
        again = ledger.run(read().count(), epsilon=epsilon, noise="gaussian")
        assert again == first
        assert again.charged == Cost(0)
    quote = ledger.quote(read().count(), epsilon="0.125", noise="gaussian")
    assert quote.known == (1,)
    assert quote.fits
    assert {*(quote.worst_amounts or (1,))} == {0}
    assert balances(ledger) == before
    assert not ledger.run(read().count(), epsilon="0.25", noise="gaussian").replayed


ASKED = st.tuples(
    st.sampled_from(["count", "units", "sum", "groups"]),
    st.sampled_from(["0.25", "0.5", "1"]),
    st.booleans(),
    st.sampled_from([None, "alice"]),
)


@given(asked=st.lists(ASKED, max_size=12))
@settings(max_examples=15)
def test_a_replay_changes_nothing_at_all(asked: list[Any]) -> None:
    """No balance, no entry, no line; and a quote foretells it."""
    table, ledger = read(), Ledger(epsilon=100)
    ledger.create_account("alice", epsilon=100)
    questions: dict[str, Any] = {
        "count": table.count(),
        "units": table.count(of="units"),
        "sum": table.sum("cost", **BOUNDS),
        "groups": table.by("ward", keys=["A", "B"]).count(),
    }
    best: dict[Any, str] = {}
    for name, epsilon, again, account in asked:
        book = ledger if account is None else ledger.account(account)
        before, quote = balances(ledger), book.quote(questions[name], epsilon=epsilon, again=again)
        release = book.run(questions[name], epsilon=epsilon, again=again)
        known = not again and float(best.get((name, account), "0")) >= float(epsilon)
        assert release.replayed == known == bool(quote.known)
        assert (balances(ledger) == before) == known
        assert release.charged == quote.worst == (Cost(0) if known else Cost(epsilon))
        if not known:
            best[name, account] = max(best.get((name, account), "0"), epsilon, key=float)
    ledger.verify()


# ---- in other processes


PROGRAM = """
import os, sys
import pandas as pd
import expost as xp
url, what = sys.argv[1:]
frame = pd.DataFrame({"person": [i // 4 for i in range(400)]})
table = xp.read(frame, unit=xp.Unit("person", rows=4), neighbours="add-remove", name="visits", version="1")
ledger = xp.Ledger.load(url, "ledger")
if what == "killed":
    table.engine.fetch = lambda query: os._exit(9)
release = ledger.run(table.count(), epsilon=1)
print(release.replayed, release.entry.id, release.output)
"""


def _run(url: str, what: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, url, what], capture_output=True, text=True, env=dict(os.environ)
    )


@pytest.mark.slow
def test_every_process_finds_it(new_url: Callable[[], str]) -> None:
    url = new_url()
    Ledger.create(url, "ledger", epsilon=10, neighbours="add-remove", unit="person")
    told = [_run(url, "asks").stdout.split() for _ in range(2)]
    assert [each[:2] for each in told] == [["False", "1"], ["True", "1"]]
    assert told[0][2] == told[1][2]
    ledger = Ledger.load(url, "ledger")
    assert not ledger.run(read().count(), epsilon=1).replayed  # it has the same name, but other columns
    ledger.verify()


@pytest.mark.slow
def test_what_a_killed_process_was_sampling_is_asked_again(new_url: Callable[[], str]) -> None:
    url = new_url()
    Ledger.create(url, "ledger", epsilon=10, neighbours="add-remove", unit="person")
    assert _run(url, "killed").returncode == 9
    told = [_run(url, "asks").stdout.split() for _ in range(2)]
    assert [each[:2] for each in told] == [["False", "2"], ["True", "2"]]
    ledger = Ledger.load(url, "ledger")
    assert [each.state for each in ledger.entries()] == ["forfeited", "settled"]
    assert ledger.spent == Cost(2)
    ledger.verify()


def test_who_only_reads_has_the_answers_too(new_url: Callable[[], str]) -> None:
    url = new_url()
    first = Ledger.create(url, "ledger", epsilon=10, neighbours="add-remove", unit="person").run(
        read().count(), epsilon=1
    )
    reader = Ledger.load(url, "ledger", read_only=True)
    assert reader.run(read().count(), epsilon="0.5").output == first.output


def test_answers_that_were_dropped_are_bought_anew(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger = Ledger.create(url, "ledger", epsilon=10, neighbours="add-remove", unit="person")
    ledger.run(read().count(), epsilon=1)
    from expost.ledger.entry import Note

    ledger._store.drop_outputs(1, Note("me", "because"))  # type: ignore[attr-defined]
    assert ledger.quote(read().count(), epsilon=1).worst == Cost(1)
    assert ledger.run(read().count(), epsilon=1).entry.id == 2
    assert ledger.run(read().count(), epsilon=1).entry.id == 2
    ledger.verify()


# ---- what has no identity


def test_a_cell_that_is_run_twice_is_told_once(new_ledger: NewLedger) -> None:
    ledger, table = new_ledger(epsilon=50), read(name=None, version=None)
    ledger.run(table.count(), epsilon=1)
    with pytest.warns(PaidAgainWarning, match="read the table with name= and version=") as told:
        assert not ledger.run(table.count(), epsilon=1).replayed
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ledger.run(table.count(), epsilon=1)
        ledger.run(table.count(), epsilon=2)  # other terms
        ledger.run(table.count(of="units"), epsilon=1)
        ledger.run(read(name=None, version=None).count(), epsilon=1)  # perhaps another frame
        other = read(name=None, version=None)
        for _ in range(2):
            ledger.run(other.count(), epsilon=3, again=True)
        for key in ("a", "b"):
            ledger.run(other.count(), epsilon=3, key=key)
        ledger.create_account("other", epsilon=9).run(table.count(), epsilon=1)
        Ledger(epsilon=9).run(table.count(), epsilon=1)
    assert ledger.spent == Cost(1 * 5 + 2 + 1 + 12)


def test_a_file_is_told_by_its_path(new_ledger: NewLedger, tmp_path: Any) -> None:
    """Also if the cell reads it anew; and another file is not the same."""
    ledger = new_ledger(epsilon=50)

    def ask(path: Any) -> None:
        table = xp.read(path, unit=xp.Unit("person", rows=4), neighbours="add-remove")
        ledger.run(table.count(), epsilon=1)

    for name in ("a", "b"):
        FRAME.to_parquet(tmp_path / f"{name}.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(tmp_path / "a.parquet")
        ask(tmp_path / "b.parquet")
    with pytest.warns(PaidAgainWarning, match="read the table with version="):
        ask(tmp_path / "a.parquet")
