"""The report: one page that needs nothing else, says everything, and opens in a browser without complaint."""

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from browser import program
from expost import InvalidValue, Ledger, __version__
from expost.study import read_record, read_study, record_of, report_html, run_study, write_record
from looks import faults
from studies import COUNT, question, write_study

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
    assert reader.addresses == ["data:,", "#old", "#bands"]
    assert 'id="old"' in text
    assert 'id="bands"' in text
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text
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
        "(4, 10⁻⁵)-differentially private for each visitor",
        "replacing any one visitor by any other",
        "e<sup>4</sup>",
        "(about 54.6), plus 10⁻⁵",
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
    assert "entries 1, 2, 3" in text, "one row, with what all three cost"
    again = report_html(record_of(run_study(read_study(write_study(tmp_path, COUNT)))))
    assert "\u00a0±\u00a0" in again, "no line ends before ±"


def test_the_head_is_that_of_the_trail_and_no_password_is_shown(tmp_path: Path) -> None:
    result = run_study(read_study(write_study(tmp_path, COUNT, "\n# postgresql://me:secret@host/db\n")))
    record = record_of(result)
    head = result.ledger.verify()
    assert record["ledger"]["head"] == f"{head.sequence}:{head.hash}"
    assert "secret" not in report_html(record)
    assert "postgresql://…@host/db" in report_html(record)


SEVERAL = "".join(
    question(f"mean{place}", "mean", column="cost", bounds=[0, 200], epsilon=0.2) for place in range(3)
) + question("typical", "median", column="age", bounds=[0, 100], epsilon=0.2)


def page_of(folder: Path, *questions: str, **options: Any) -> str:
    return report_html(record_of(run_study(read_study(write_study(folder, *questions)), **options)))


def test_what_all_answers_have_in_common_is_said_once(tmp_path: Path) -> None:
    page = page_of(tmp_path, SEVERAL)
    body, end = page.split("What holds for every answer")
    assert "not what clipping to bounds" not in body
    assert end.count("not what clipping to bounds or leaving out rows changes") == 1
    assert end.count("one row") == 1
    assert body.count("0 to 200; values beyond count as the nearest bound") == 3, (
        "what is an answer's own stays with it"
    )


def test_a_median_says_its_ranks_once(tmp_path: Path) -> None:
    page = page_of(tmp_path, SEVERAL)
    assert len(re.findall("Off by at most .* ranks? of at most 6,000\\.", page)) == 1
    assert page.count("of at most 6,000") == 1


def test_numbers_are_read_without_a_manual(tmp_path: Path) -> None:
    """A card said "4 could be asked; 3 had each been charged its worst case", also where nothing came back."""
    page = page_of(tmp_path, SEVERAL)
    assert "Four questions, each charged in full" in page
    assert "worst-case" not in page
    assert "could be asked" not in page
    names = ("limit", "charged", "refunded", "remaining")
    shown = [re.search(rf"<dt>{name}</dt><dd[^>]*>([^<]+)<", page) for name in names]
    assert [found[1] for found in shown if found] == ["4", "0.8", "0", "3.2"]


def test_what_refunds_bought_is_the_headline(tmp_path: Path) -> None:
    asked = [
        question(f"q{place}", "above", column="age", bins=8, bounds=[0, 80], threshold=9000, at_most=4, epsilon=1.9)
        for place in range(4)
    ]
    page = page_of(tmp_path, *asked)
    assert "Four questions; 2 would have fitted at worst-case prices" in page
    assert "At worst-case prices 2 of these 4 would have fitted under the limit; refunds paid for the rest." in page


def test_a_rehearsal_is_framed(tmp_path: Path) -> None:
    page = page_of(tmp_path, COUNT, rehearse=True)
    assert '<p class="notice" role="note">This is a rehearsal.' in page
    assert '<p class="stamp" aria-hidden="true">Rehearsal</p>' in page, "on every printed page"
    assert "A real run would promise the following." in page
    assert "rehearsal" not in page_of(tmp_path, COUNT).lower()


def test_an_account_promises_what_its_ledger_does(tmp_path: Path) -> None:
    """A limit of an account is a promise to its owner. People are promised that of the whole ledger."""
    url = f"sqlite:///{tmp_path}/books.db"
    whole = Ledger.create(url, "people", 9, "1e-5", neighbours="substitute", unit="visitor (one row each)")
    whole.create_account("alice", 2, "1e-6")
    path = write_study(tmp_path, COUNT, epsilon=2)
    text = path.read_text().replace('name = "people"', 'name = "people"\naccount = "alice"')
    path.write_text(text.replace("1e-5", "1e-6"))
    page = report_html(record_of(run_study(read_study(path))))
    assert "ledger “people”" in page
    assert "(9, 10⁻⁵)-differentially private" in page
    assert "The budget of people/alice, in ε; δ is 10⁻⁶" in page
