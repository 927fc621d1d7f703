"""What notebooks show: frames of ledgers, HTML, plots, a sign of progress; and that none of it shows data."""

import io
import os
import pickle
import signal
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

import expost as xp
from expost.errors import InvalidValue
from expost.frame import NUMBERS

MARK = "zebra-7f3a"


@pytest.fixture(scope="module")
def table() -> xp.PrivateTable:
    frame = pd.DataFrame(
        {"p": range(400), "city": ["Rome", "Oslo", MARK, None] * 100, "x": [float(i % 80) for i in range(400)]}
    )
    return xp.read(frame, unit="row", neighbours="add-remove")


def ledger(**said: Any) -> xp.Ledger:
    return xp.Ledger(epsilon=50, delta=1e-5, noise=xp.SeededNoise(1), **said)


def axes() -> Any:
    return Figure().subplots()


class Cells(HTMLParser):
    """The texts of a page, and whether all that was opened is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts, self.open = list[str](), list[str]()
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("accounting", ["basic", "renyi"])
def test_entries_and_statements_are_frames(table: xp.PrivateTable, accounting: Any, tmp_path: Path) -> None:
    book = ledger(accounting=accounting)
    book.create_account("alice", 2).run(table.where("x > 3").count().mechanism(epsilon=1), label="many")
    book.reserve(xp.Guarantee({"large": 2, "small": 1})).settle("small")
    entries = book.entries()
    assert next(entries).label == "many"
    frame = entries.to_pandas()
    assert frame["charged_epsilon"].tolist() == [1.0, 1.0]
    assert frame["refunded_epsilon"].tolist() == [0.0, 1.0]
    assert frame["part"].tolist()[1] == "small"
    assert ("renyi_price" in frame.columns) == (accounting == "renyi")
    assert [entry.id for entry in entries] == [2]  # one was read above
    assert book.entries(last=1).to_polars()["id"].to_list() == [2]
    assert book.entries().to_arrow().num_rows == 2
    statement = book.statement()
    assert isinstance(statement, str)
    assert statement.splitlines() == list(book.statement_lines())
    assert statement.to_csv(tmp_path / "s.csv") == (tmp_path / "s.csv").read_text()
    assert statement.frame == book.entries().frame
    days = book.statement(by="day").to_pandas()
    assert days["account"].tolist() == ["ledger", "ledger/alice"]
    assert days["reserved_epsilon"].tolist() == [2.0, 1.0]
    assert pickle.loads(pickle.dumps(statement)) == statement
    assert Cells(statement._repr_html_()).texts == [statement]
    assert "many" in Cells(book.entries()._repr_html_()).texts
    with pytest.raises(InvalidValue, match="by 'entry' or by 'day'"):
        book.statement(by="week")  # type: ignore[arg-type]


def test_many_entries_are_not_all_shown() -> None:
    book = ledger()
    for _ in range(30):
        book.reserve(xp.Guarantee.uniform(1)).settle("a")
    assert book.entries()._repr_html_().count("<tr>") == 21
    assert "the first 20" in book.entries()._repr_html_()
    assert "<td>30</td>" in book._repr_html_()


def test_a_statement_and_its_frame_are_of_one_instant() -> None:
    book = ledger()
    book.reserve(xp.Guarantee.uniform(1)).settle("a")
    before = book.statement()
    book.reserve(xp.Guarantee.uniform(1)).settle("b")
    assert len(before.frame) == 1


@pytest.mark.parametrize("accounting", ["basic", "renyi"])
def test_a_ledger_shows_its_balance(accounting: Any) -> None:
    book = xp.Ledger(epsilon=4, delta=1e-5, name="<b>", accounting=accounting)
    assert "spent" in book._repr_html_()
    book.reserve(xp.Guarantee.uniform(1), label="<script>").settle("a")
    reserved = book.reserve(xp.Guarantee.uniform(2))
    page = book._repr_html_()
    assert "<script>" not in page
    assert "<script>" in Cells(page).texts
    for part, share in (("spent", 25), ("reserved", 50)):
        assert f"width:{share:.2f}%" in page[: page.index(f'title="{part}"')].rpartition("<div")[2]
    reserved.settle("b")
    drawn = book.plot(axes())
    assert [text.get_text() for text in drawn.get_yticklabels()] == ["<b>"]
    assert [bar.get_width() for bar in drawn.patches][:2] == [3, 0]
    assert [text.get_text() for text in drawn.texts] == ["spent 3", "remaining 1"]


def test_a_table_shows_names_and_rules_alone(table: xp.PrivateTable) -> None:
    shown = table.where("x > 1").derive(**{"<i>": "x / 2"})
    texts = Cells(shown._repr_html_()).texts
    assert "<i>" in texts
    assert "x / 2" in texts
    assert MARK not in str(texts)
    assert "400" not in str(texts)
    assert MARK not in shown.count()._repr_html_()
    people = xp.read(pd.DataFrame({"p": [1]}), unit=xp.Unit("p", rows=2), neighbours="substitute", size=1)
    assert "neighbours substitute" in Cells(people._repr_html_()).texts


def test_answers_are_plotted_with_their_errors(table: xp.PrivateTable) -> None:
    book = ledger()
    cells = book.run(table.histogram("city", keys=["Rome", "Oslo"]).mechanism(epsilon=5))
    drawn = cells.plot(ax=axes())
    assert [bar.get_height() for bar in drawn.patches] == list(cells.value.values())
    assert [text.get_text() for text in drawn.get_xticklabels()] == ["Rome", "Oslo", "other"]
    assert any(getattr(each, "has_yerr", False) for each in drawn.containers)
    groups = table.by("city", "x > 40", keys={"city": ["Rome", "Oslo"], "x > 40": [True, False]})
    answers = book.run(
        groups.agg(
            total=True, n=groups.count(), m=groups.mean("x", bounds=(0, 80)), median=groups.median("x")
        ).mechanism(epsilon=30)
    )
    means = answers.plot("m", ax=axes())
    assert means.collections[-1].get_offsets()[:, 0].tolist() == [
        each.value for each in answers.value["m"].values()
    ]  # the total is no point
    assert means.get_yticklabels()[1].get_text() == "Rome, False"
    assert means.get_xlabel() == "m"
    assert means.get_title(loc="left") == "M by city and x > 40\nwith intervals at 95 %, of each by itself"
    assert [text.get_text().partition(" ")[0] for text in means.texts] == [
        f"{each:.2f}" for each in answers.value["m"].values()
    ]
    many_cells = xp.Frame(("what", "k", *NUMBERS), tuple(("n", f"number {i}", i, i - 1, i + 1, 1) for i in range(20)))
    lying = many_cells.plot(ax=axes())
    assert [bar.get_width() for bar in lying.patches] == list(range(20))
    assert lying.get_xlabel() == "n"
    middles = answers.plot("median", ax=axes())  # errors in ranks are not drawn as errors of values
    assert middles.get_title(loc="left") == "Median by city and x > 40"
    many = book.run(table.quantile("x", [0.25, 0.5, 0.75], bounds=(0, 80)).mechanism(epsilon=5))
    assert many.frame.names == ("what", "quantile", "value", "low", "high", "error")
    points = many.plot(ax=axes()).collections[-1].get_offsets()
    assert tuple(points[:, 0]) == many.output
    drawn = many.plot(ax=axes())
    assert drawn.get_title(loc="left") == "Quantiles of x"
    assert [text.get_text() for text in drawn.get_yticklabels()] == ["25 %", "median", "75 %"]
    shares = book.run(table.by("city", keys=["Rome", "Oslo"]).share("x > 40"), epsilon=5)
    assert shares.plot(ax=axes()).get_xlabel() == "share of x > 40, %"
    with pytest.raises(InvalidValue, match="no 'city' to plot: there are 'n', 'm', 'median'"):
        answers.plot("city")
    with pytest.raises(InvalidValue, match=r"no 'mean\.png' to plot: .*plot\(\)\.figure\.savefig\('mean\.png'\)"):
        answers.plot("mean.png")
    with pytest.raises(InvalidValue, match="no column of numbers"):
        xp.Frame(("a",), (("x",),)).plot()


@pytest.fixture
def slow() -> xp.PrivateTable:
    frame = pd.DataFrame({"a": range(1000)})
    table = xp.read(frame, unit=xp.Unit("a", rows=5), neighbours="add-remove")
    connection: Any = table.engine._connection  # type: ignore[attr-defined]
    connection.execute("SET threads = 1")  # another one would first finish its part of what never ends
    return table


ENDLESS = "SELECT count(*) FROM range(100000000000) AS a(i) WHERE i * i % 7 = 3"


def test_an_interrupt_cancels_a_query_and_is_charged(slow: xp.PrivateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """One signal, half a second after the query was begun: without it this would never end."""
    book, fetch = ledger(), slow.engine.fetch

    def begun(query: str) -> Any:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        return fetch(ENDLESS)

    monkeypatch.setattr(slow.engine, "fetch", begun)
    with pytest.raises(KeyboardInterrupt):
        book.run(slow.count().mechanism(epsilon=2))
    assert next(book.entries()).state == "forfeited"
    assert book.spent == xp.Cost(2)
    monkeypatch.undo()
    assert book.run(slow.count().mechanism(epsilon=2)).value > 0  # the connection is usable


@pytest.mark.slow
def test_progress_is_time_and_nothing_else(slow: xp.PrivateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    told, quick = io.StringIO(), io.StringIO()
    with xp.progress(quick):
        ledger().run(slow.count().mechanism(epsilon=1))
    assert quick.getvalue() == ""  # shorter than a second

    def ask() -> None:
        with xp.progress(told), pytest.raises(xp.errors.EngineFailed):
            slow.engine.fetch(ENDLESS)

    asking = threading.Thread(target=ask)
    asking.start()
    while " s ·" not in told.getvalue():
        assert asking.is_alive()
        asking.join(0.05)
    slow.engine._connection.interrupt()  # type: ignore[attr-defined]
    asking.join()
    lines = told.getvalue().split("\r")
    assert lines[1].startswith("pandas frame: 1 s · an interrupt cancels")
    assert lines[-1] == ""
    assert lines[-2].strip() == ""


def test_completion_offers_what_people_type() -> None:
    """Before, eleven of thirty names were internal."""
    table = xp.read(pd.DataFrame({"a": [1]}), unit="row", neighbours="add-remove")
    offered = [name for name in dir(table) if not name.startswith("_")]
    assert {"count", "mean", "by", "where", "schema", "unit", "asked"} <= {*offered}
    assert not {"chosen_key", "counted", "fewest", "filtered", "ordered", "quote", "engine"} & {*offered}
    assert table.fewest == 1, "what is not offered is still there"
    groups = [name for name in dir(table.by("a", keys=[1])) if not name.startswith("_")]
    assert {"agg", "mean", "keys"} <= {*groups}
    assert "touched" not in groups
