"""Tables that are their own plots: nothing left out, nothing said twice, and an axis that says where it begins."""

import re

import pytest

from expost.data.lost import SHARES
from expost.frame import Frame, are_counts, is_share
from expost.reporting.charts import Axis, lists_html, number_chart, number_charts, row_names, table_html

NUMBERS = ("value", "low", "high", "error")


def cells(*rows: tuple[str, float, float]) -> Frame:
    """Rows of one statistic by city: a name, a number and its error."""
    made = tuple(("mean cost", name, value, value - error, value + error, error) for name, value, error in rows)
    return Frame(("what", "city", "value", "low", "high", "error"), made)


def test_means_are_points_with_their_intervals() -> None:
    """They were bars from 0 without whiskers: four equal ones for 3.02, 2.96, 3.02 and 3."""
    chart = number_chart(cells(("a", 3.02, 0.05), ("b", 2.96, 0.07), ("c", 3.02, 0.05)), from_zero=False)
    assert (chart.count('class="dot"'), chart.count('class="bar"')) == (3, 0)
    assert chart.count('class="error"') == 3 * 3
    assert "<b>Mean cost by city</b>, with intervals at 95 %, of each by itself; the axis does not begin at 0" in chart
    assert '3.020<span class="pm">\u00a0±\u00a00.050</span>' in chart
    places = [float(x) for x in re.findall(r'cx="([\d.]+)%"', chart)]
    assert places[0] - places[1] > 10, "what differs is seen to differ"


def test_counts_are_bars_from_zero_with_their_intervals() -> None:
    chart = number_chart(cells(("a", 1000, 30), ("b", 500, 30), ("c", -20, 30)), from_zero=True)
    bars = [
        (float(x), float(width)) for x, width in re.findall(r'<rect [^>]*x="([\d.]+)%"[^>]*width="([\d.]+)%"', chart)
    ]
    assert bars[0][1] == pytest.approx(2 * bars[1][1], abs=0.02)
    assert bars[0][0] == bars[1][0] > bars[2][0], "what is below 0 grows to the left"
    assert chart.count('class="error"') == 9
    assert '<td class="n soft">−20' in chart, "an interval with 0 in it is set in grey"
    assert "does not begin" not in chart


def test_letters_keep_their_size_on_every_screen() -> None:
    """Lengths are shares of the width, nothing is scaled, and no name is cut."""
    chart = number_chart(cells(("x" * 90, 1.0, 0.5), ("b", -2.0, 0.5)), from_zero=True)
    assert "viewBox" not in chart
    assert 'width="100%"' in chart
    assert all(0 <= float(x) <= 100 for x in re.findall(r'x[12]?="(-?[\d.]+)%"', chart))
    assert "x" * 90 in chart


def test_nothing_is_left_out_of_a_long_answer() -> None:
    """Of the ten most frequent pages a report had eight, and of a hundred bars the first thirty."""
    many = number_chart(cells(*((f"page {i}", float(i), 1.0) for i in range(100))), from_zero=True)
    assert all(f">page {i}<" in many for i in range(100))


@pytest.mark.parametrize("numbers", [(0.0, 0.0), (1e-12, 2e-12), (1e15, 2e15), (-5.0, -5.0), (3, 3)])
def test_any_numbers_have_an_axis(numbers: tuple[float, float]) -> None:
    for from_zero in (True, False):
        axis = Axis.of(numbers, from_zero=from_zero)
        assert 2 <= len(axis.ticks) <= 5
        assert all(0 <= axis.x(number) <= 100 for number in numbers)


def test_what_has_no_error_says_why() -> None:
    frame = Frame(
        ("what", "city", "value", "low", "high", "error"), (("v", "a", 1, None, None, None),) * 2, notes=("so",)
    )
    chart = number_chart(frame, from_zero=False)
    assert "No error: so." in chart
    assert "95 %" not in chart
    assert 'class="error"' not in chart


def test_each_statistic_has_a_chart_of_its_own() -> None:
    """Counts and means on one axis would be a row of dots at its left end."""
    rows = [("n", city, 100, 90, 110, 10) for city in "ab"] + [("stay", city, 2.5, 2.0, 3.0, 0.5) for city in "ab"]
    chart = number_charts(Frame(("what", "city", *NUMBERS), tuple(rows)))
    assert re.findall(r"<b>([^<]+)</b>", chart) == ["N by city", "Stay by city"]
    assert (chart.count('class="bar"'), chart.count('class="dot"')) == (2, 2)


def test_quantiles_are_points_that_go_by_their_share() -> None:
    rows = tuple(("quantile of age", level, value, None, None, None) for level, value in ((0.1, 3), (0.5, 5), (0.9, 8)))
    frame = Frame(("what", "quantile", *NUMBERS), rows, notes=("all within 3 ranks",))
    assert row_names(frame) == ["10 %", "median", "90 %"]
    chart = number_charts(frame)
    assert "<b>Quantiles of age</b>; the axis does not begin at 0" in chart
    assert (chart.count('class="dot"'), chart.count('class="bar"'), chart.count("ranks")) == (3, 0, 1)
    assert "Quantiles of age" not in number_charts(frame, under="Quantiles of age"), "a title is not said twice"


def test_a_total_is_told_and_makes_no_bar_short() -> None:
    rows = (("rows", "a", 10, 8, 12, 2), ("rows", "b", 20, 18, 22, 2), ("rows", None, 1000, 998, 1002, 2))
    chart = number_charts(Frame(("what", "city", *NUMBERS), rows, total=1))
    assert "all together" in chart
    assert chart.count('class="bar"') == 2
    assert "1\u202f000" in chart


def test_shares_are_in_per_cent_and_whole_numbers_that_are_no_counts_are_points() -> None:
    rows = (("share of x", "a", 0.5, 0.4, 0.6, 0.1), ("share of x", "b", 0.25, 0.2, 0.3, 0.05))
    assert "50<span" in number_charts(Frame(("what", "city", *NUMBERS), rows))
    assert all(map(is_share, SHARES)), "the words are those of what is lost"
    assert are_counts("rows", [1, 2], [3, 3])
    assert not are_counts("median of age", [1, 2], [3, 3])
    assert not are_counts("rows", [1, 2], [None, 3])


def test_what_was_not_compared_is_a_list_of_its_own() -> None:
    frame = Frame(("city", "above"), (("a", "above"), ("b", "below"), ("<c>", "not compared")))
    lists = lists_html(frame)
    assert re.findall(r"</svg>([A-Z][a-z ]+?) <span", lists) == ["Above", "Below", "Not compared"]
    assert "Nothing is known about them." in lists
    assert "&lt;c&gt;" in lists


def test_other_rows_are_a_table_with_all_of_them() -> None:
    rows = tuple(("most frequent page", place, f"/{place}", None, None, None) for place in range(50))
    table = table_html(Frame(("what", "place", *NUMBERS), rows))
    assert all(f"<td>/{place}</td>" in table for place in range(50))
    assert "<td>1</td><td>/0</td>" in table
