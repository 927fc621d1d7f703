"""The report of a ledger: in memory and durable, of what it knows and of what it does not."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expost as xp
from browser import program
from expost import Guarantee, Ledger, SeededNoise
from expost.errors import InvalidValue
from expost.ledger.shelf import Shelf
from expost.mechanisms import Laplace, SparseVector
from expost.reporting import Report
from looks import faults

SUM: Any = Laplace(epsilon="0.25", sensitivity=1)


def durable(folder: Path, **options: Any) -> Ledger:
    asked = {"epsilon": 4, "neighbours": "add-remove", "unit": "patient"} | options
    return Ledger.create(f"sqlite:///{folder}/books.db", "books", **asked)


def article(report: Report, entry: int) -> str:
    """An answer, on the page."""
    return report.html.partition(f'<article id="entry-{entry}">')[2].partition("</article>")[0]


def test_a_ledger_in_memory_shows_its_answers_although_none_has_a_key(tmp_path: Path) -> None:
    ledger = Ledger(epsilon=4)
    release = ledger.run(SUM, on=1000, label="How <many>")
    ledger.run(SUM, on=np.arange(3))
    path = xp.report(ledger, tmp_path / "out.html", title="Mine")
    assert path == tmp_path / "out.html"
    report = ledger.report(title="Mine")
    assert report.items[0].frame == release.frame
    assert "How &lt;many&gt;" in article(report, 1)
    assert report.items[1].frame is not None
    assert len(report.items[1].frame) == 3
    page = path.read_text(encoding="utf-8")
    assert "<title>Mine</title>" in page
    assert "Two questions, each charged in full" in page
    assert "4-differentially private for each unit" in page
    assert "as its mechanisms' sensitivities say" in page, "nobody said yet what is compared"


def test_a_durable_ledger_shows_what_it_stores_and_says_what_it_does_not(tmp_path: Path) -> None:
    """The same from every process."""
    ledger = durable(tmp_path)
    kept = ledger.run(SUM, on=1000, key="kept")
    ledger.run(SUM, on=1000)
    with ledger.reserve(Guarantee({"a": 0.5, "b": 0.25}), label="by hand") as spending:
        spending.settle("b")
    ledger.reserve(Guarantee.uniform(0.5), label="lost").forfeit()
    ledger.reserve(Guarantee.uniform(0.5), begin=False).void()
    waiting = ledger.reserve(Guarantee.uniform(0.5), label="waiting", begin=False)
    for report in (ledger.report(), Ledger.load(f"sqlite:///{tmp_path}/books.db", "books", recover=False).report()):
        assert [item.state for item in report.items] == ["answered", "not kept", "not kept", "forfeited", "open"]
        assert report.items[0].frame == kept.frame
        assert "it was run without a key" in article(report, 2)
        assert "reserved by hand" in article(report, 3)
        assert "worst case was charged" in article(report, 4)
        assert "not yet charged" in article(report, 6)
        assert "Voided entries: 1." in report.html
        assert "for each patient</b>: adding or removing all rows of any one patient" in report.html
        assert str(ledger.head.hash) in report.html
    waiting.void()


def test_interactions_are_shown_when_they_ended() -> None:
    ledger = Ledger(epsilon=4)
    with ledger.open(SparseVector(threshold=100, at_most=1, epsilon=1, sensitivity=1)):
        assert "not yet charged" in article(ledger.report(), 1)
    assert ledger.report().items == (), "nothing was asked: it is void"


def test_an_account_shows_its_own_budget_and_the_promise_of_its_ledger(tmp_path: Path) -> None:
    ledger = durable(tmp_path)
    alice = ledger.create_account("alice", epsilon=1)
    alice.run(SUM, on=1, key="a")
    ledger.run(SUM, on=1, key="b")
    assert len(ledger.report().items) == 2
    report = alice.report()
    assert len(report.items) == 1
    assert "<b>4-differentially private for each patient</b>" in report.html
    assert "The budget of books/alice" in report.html
    assert report.budget.limit == xp.Cost(1)


def test_noise_without_an_epsilon_and_several_meters() -> None:
    ledger = Ledger(epsilon=2, delta="1e-6", accounting="renyi")
    ledger.run(SUM, on=1)
    visits = xp.read(xp.example("visits"), unit="row", neighbours="add-remove")
    ledger.run(visits.count(), epsilon="0.1", noise="gaussian")
    page = ledger.report().html
    assert "<b>ρ 0." in page
    assert "This ledger counts on several meters" in page
    assert "Together, of what has an ε" in page


def test_one_meter_has_no_other_prices() -> None:
    ledger = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1))
    ledger.run(xp.Laplace(epsilon=0.5, sensitivity=1), on=10)
    assert "Rényi" not in ledger.report().html.partition("What holds for every answer")[0]


def test_the_last_entries_alone() -> None:
    ledger = Ledger(epsilon=4)
    for place in range(5):
        ledger.run(SUM, on=1, label=f"number {place}")
    report = ledger.report(last=2)
    assert [item.title for item in report.items] == ["number 3", "number 4"]
    assert "These are the last 2 of 5 entries." in report.html
    assert "grey: charged to other questions, 0.75" in report.html
    for wrong in (0, "2", True):
        with pytest.raises(InvalidValue, match="last"):
            ledger.report(last=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="title"):
        ledger.report(title="")


def test_what_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="cannot be written"):
        xp.report(Ledger(epsilon=1), tmp_path / "no" / "out.html")


def test_what_is_no_ledger_says_so(tmp_path: Path) -> None:
    visits = xp.read(xp.example("visits"), unit="row", neighbours="add-remove")
    for wrong in (visits, "out.html", None):
        with pytest.raises(InvalidValue, match="a report is of a ledger"):
            xp.report(wrong, tmp_path / "out.html")  # type: ignore[arg-type]


def test_a_ledger_with_one_meter_has_no_renyi_prices() -> None:
    visits = xp.read(xp.example("visits"), unit="row", neighbours="add-remove")
    for accounting in ("basic", "renyi"):
        ledger = Ledger(epsilon=2, delta="1e-6", accounting=accounting)
        ledger.run(visits.median("cost"), epsilon="0.5")
        ledger.run(visits.count(), epsilon="0.5", delta="1e-7")
        assert (">Rényi price<" in ledger.report().html) == (accounting == "renyi")


def test_coefficients_are_no_range_and_a_model_has_its_name() -> None:
    ledger = Ledger(epsilon=4, noise=SeededNoise(1))
    visits = xp.read(xp.example("visits"), unit="row", neighbours="substitute")
    ledger.run(visits.regression(["days"], "cost", bounds=[(0, 30)], target_bounds=(0, 2000)), epsilon=1)
    line = xp.mechanisms.RegressionOfRecords(epsilon=1, bounds=[(0, 1)], target_bounds=(0, 1))
    ledger.run(line, on=np.linspace(0, 1, 40).reshape(20, 2))
    report = ledger.report()
    assert [item.title for item in report.items] == ["Regression of cost", "RegressionOfRecords"]
    assert report.html.count('<td class="wide">2 rows</td>') == 2


def test_an_empty_ledger_has_a_report() -> None:
    page = Ledger(epsilon=1).report().html
    assert "Nothing was charged" in page
    assert "Nothing was asked yet." in page


def test_seeded_noise_is_a_trial() -> None:
    assert "This is a trial" in Ledger(epsilon=1, noise=xp.SeededNoise(1)).report().html
    assert "This is a trial" not in Ledger(epsilon=1).report().html


def test_refunds_are_the_headline() -> None:
    ledger = Ledger(epsilon=1)
    for _ in range(3):
        with ledger.reserve(Guarantee({"a": 0.5, "b": 0.25})) as spending:
            spending.settle("b")
    assert "Three questions; 2 would have fitted at worst-case prices" in ledger.report().html


def test_notebooks_show_it_and_its_style_touches_nothing_else() -> None:
    ledger = Ledger(epsilon=1)
    ledger.run(SUM, on=5)
    shown = ledger.report()._repr_html_()
    assert shown.startswith("<style>")
    assert '<div class="expost part">' in shown
    assert 'href="#expost-ledger-entry-1"' in shown
    assert 'id="expost-ledger-entry-1"' in shown
    style = shown[len("<style>") : shown.index("</style>")].partition("*/")[2]
    depth, rules = 0, ""
    for letter in style:
        rules += letter if depth == 0 or (depth == 1 and "@media" in rules.rpartition("\n")[2]) else ""
        depth += (letter == "{") - (letter == "}")
        rules += "\n" if depth == 0 and letter == "}" else ""
    assert rules.count(".expost {") == sum(bool(line.strip()) for line in rules.splitlines()), rules


def test_what_is_remembered_holds_no_table_and_has_an_end() -> None:
    """A report needs rows; the data of whoever asked is not kept alive for it."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"city": ["Rome"] * 50})
    table = xp.read(frame, unit="row", neighbours="add-remove")
    ledger = Ledger(epsilon=1000)
    ledger.run(table.count(), epsilon=1)
    gone = weakref.ref(table)
    del table, frame
    gc.collect()
    assert gone() is None
    assert ledger.report().items[0].frame is not None


def test_what_is_remembered_has_an_end() -> None:
    ledger = Ledger(epsilon=1000)
    shelf = Shelf(most=5)
    for size in (2, 3, 2, 6):
        shelf.put(ledger.run(SUM, on=np.zeros(size)))
    assert [shelf.frame(place) is None for place in (1, 2, 3, 4)] == [True, False, False, True]
    ledger.run(SUM, on=np.zeros(20_001))
    assert "is not remembered" in article(ledger.report(), 5)


def test_it_looks_well_in_every_view(tmp_path: Path) -> None:
    found = program()
    if found is None:
        pytest.skip("not run: there is no chromium or google-chrome on PATH, and make test could not install Debian's")
    visits = xp.read(xp.example("visits"), unit=xp.Unit("patient", rows=5), neighbours="add-remove")
    ledger = Ledger(epsilon=9, delta=1e-6)
    wards = visits.by("ward", keys=["A", "B", "C", "ICU"])
    ledger.run(wards.agg(n=xp.Count(), stay=xp.Mean("days", bounds=(0, 30))), epsilon=1)
    ledger.run(visits.quantile("cost", [0.1, 0.5, 0.9], bounds=(0, 5000)), epsilon=1)
    ledger.run(visits.discover("diagnosis").top(9), epsilon=1, delta=1e-7)
    ledger.run(visits.histogram("age", bins=[0, 18, 65, 120]).above(9000, at_most=1), epsilon=1)
    ledger.run(SUM, on=3, label="a label that is long " * 9)
    part = tmp_path / "part.html"
    part.write_text(f"<!doctype html><html><body>{ledger.report()._repr_html_()}</body></html>", encoding="utf-8")
    assert list(faults([xp.report(ledger, tmp_path / "whole.html"), part], found)) == []
