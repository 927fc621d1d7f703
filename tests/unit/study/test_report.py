"""The report: one page that needs nothing else, says everything, and opens in a browser without complaint."""

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from browser import program
from expost import InvalidValue, __version__
from expost.frame import Frame
from expost.study import read_record, read_study, record_of, report_html, run_study, write_record
from expost.study.charts import Axis, number_chart
from looks import faults
from studies import COUNT, write_study

pytestmark = pytest.mark.slow
BANDS = """
[[question]]
name = "bands"
kind = "histogram"
label = "<script>alert('no')</script> & bands"
column = "age"
bins = 4
bounds = [0, 80]
epsilon = 1
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report, in a file."""
    folder = tmp_path_factory.mktemp("report")
    result = run_study(read_study(write_study(folder, COUNT, BANDS)))
    write_record(record_of(result), folder / "record.json")
    path = folder / "report.html"
    path.write_text(report_html(read_record(folder / "record.json")), encoding="utf-8")
    return path


class Page(HTMLParser):
    """Collects tags, and complains about those that are not closed."""

    VOID = ("meta", "link", "rect", "line", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_it_is_whole_and_needs_nothing_else(page: Path) -> None:
    reader = Page()
    text = page.read_text(encoding="utf-8")
    reader.feed(text)
    assert reader.open == []
    assert "script" not in reader.tags
    assert reader.addresses == ["data:,"]
    assert "http" not in text
    assert "url(" not in text
    assert {"h1", "main", "svg", "table", "title"} <= reader.tags
    described = re.findall(r'<svg [^>]*(?:role="img" aria-label="|aria-hidden="true")', text)
    assert text.count("<svg") == len(described), "what is not said in words is described"
    assert "prefers-color-scheme: dark" in text


def test_it_says_everything(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for said in (
        "People",
        "±",
        "reserved",
        "refunded",
        "The guarantee",
        "one visitor replaced",
        "e^4",
        "(about 54.6)",
        "is right at most 35.6 times in 100 with it",
        "clipping to bounds",
        "0 to 19",
        "at 95 %",
        "How to check this",
        "its audit trail ends at",
        f"expost {__version__}",
        "kind = &quot;histogram&quot;",
    ):
        assert said in text, said
    assert "&lt;script&gt;" in text


def test_a_record_that_is_none(tmp_path: Path) -> None:
    for text in ("", "[]", "[" * 100_000, '{"expost record": 99}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(InvalidValue, match="expost run writes it"):
            read_record(tmp_path / "x.json")


def browser() -> str:
    found = program()
    if found is None:
        pytest.skip("not run: there is no chromium or google-chrome on PATH, and make test could not install Debian's")
    return found


BAD = """<!doctype html><body style="background: white"><p style="color: #999">faint</p>
<p style="width: 2000px">wide</p><div style="overflow: hidden; width: 9em"><p style="white-space: nowrap">
much longer than the box that it is in</p></div><script>console.error("said")</script>"""


def test_it_looks_well_in_every_view(page: Path) -> None:
    """Wide and narrow, light and dark; a page with one fault of each kind is the control."""
    control = page.with_name("bad.html")
    control.write_text(BAD)
    found = "\n".join(faults([page, control], browser()))
    for fault in ("wider than the window", "contrast of 2.8: faint", "cut: much longer than", "dark: said"):
        assert fault in found, found
    assert page.name not in found, found


def test_a_browser_opens_it(page: Path) -> None:
    """No error in the console (a script that throws is caught: the control), and something is drawn."""
    control = page.with_name("control.html")
    control.write_text("<!doctype html><title>x</title><script>throw new Error('seen')</script>")
    assert any("seen" in line for line in console(browser(), control))
    assert console(browser(), page) == []
    assert page.with_suffix(".png").stat().st_size > 10_000


def console(program: str, page: Path) -> list[str]:
    """What the browser's console says while it draws a page."""
    drawn = subprocess.run(
        [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
         f"--user-data-dir={page.parent}/profile", "--window-size=1000,2000",
         f"--screenshot={page.with_suffix('.png')}", page.as_uri()],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    return [line for line in drawn.stderr.splitlines() if "CONSOLE" in line or "ERR_" in line]


def test_a_record_that_is_not_complete() -> None:
    with pytest.raises(InvalidValue, match="not complete"):
        report_html({"expost record": 1, "title": "x"})


def test_attempts_are_told_apart(tmp_path: Path) -> None:
    repeated = BANDS.replace("histogram", "above").replace("epsilon = 1", "epsilon = 0.5") + (
        'threshold = 9000\nat_most = 2\nrepeat = { until = "any", floor = 0, at_most = 3 }\n'
    )
    result = run_study(read_study(write_study(tmp_path, repeated)))
    text = report_html(record_of(result))
    assert [text.count(f">{name}</text>") for name in ("bands", "bands (2)", "bands (3)")] == [1, 1, 1]
    assert "&nbsp;±&nbsp;" in report_html(record_of(run_study(read_study(write_study(tmp_path, COUNT)))))


def cells(*rows: tuple[str, float, float]) -> Frame:
    """Rows of one statistic by city: a name, a number and its error."""
    made = tuple(("mean cost", name, value, value - error, value + error, error) for name, value, error in rows)
    return Frame(("what", "city", "value", "low", "high", "error"), made)


def test_means_are_points_with_their_intervals() -> None:
    """They were bars from 0 without whiskers: four equal ones for 3.02, 2.96, 3.02 and 3."""
    chart = number_chart(cells(("a", 3.02, 0.05), ("b", 2.96, 0.07), ("c", 3.02, 0.05)), from_zero=False)
    assert (chart.count('class="dot"'), chart.count('class="bar"')) == (3, 0)
    assert chart.count('class="error"') == 3 * 3
    assert "mean cost, with intervals at 95 %, of each by itself; the axis does not begin at 0" in chart
    assert "3.020&nbsp;±&nbsp;0.050" in chart
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
    assert '<td class="n soft">-20' in chart, "an interval with 0 in it is set in grey"
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


def test_the_head_is_that_of_the_trail_and_no_password_is_shown(tmp_path: Path) -> None:
    result = run_study(read_study(write_study(tmp_path, COUNT, "\n# postgresql://me:secret@host/db\n")))
    record = record_of(result)
    head = result.ledger.verify()
    assert record["ledger"]["head"] == f"{head.sequence}:{head.hash}"
    assert "secret" not in report_html(record)
    assert "postgresql://…@host/db" in report_html(record)
