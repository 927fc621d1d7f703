"""A report as HTML: the promise, the bill, the answers, and what holds for all of them.

The page loads nothing and runs no script. What comes from data or callers is text, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from html import escape
from importlib.resources import files
from math import ceil, exp

from expost.frame import is_share
from expost.reporting.bill import bill_html, charge_bar, delta_of, epsilon_of, figures_html, heading, widest_of
from expost.reporting.charts import (
    can_be_drawn,
    is_compared,
    lists_html,
    notes_html,
    number_charts,
    number_html,
    table_html,
    text_html,
)
from expost.reporting.numbers import decimal_shown, epsilon_down, epsilon_up, factor, percent, power_of_ten
from expost.reporting.record import ANSWERED, NO_NUMBER, NOT_KEPT, EntryCost, Item, Promise, Report
from expost.reporting.rows import is_number

_COVERS, _NO_BAR = "± covers", "no error bar"
_SHARED = (_COVERS, "of each", "empty values", "rows")
"""What is said once for all answers with the same words, by how the subject begins."""
_LASTING = {"always": "now and later", "process": "as long as its process lasts", "rehearsal": "as long as it lasts"}
_LIFE = {
    "always": "for the ledger's whole life",
    "process": "for this process; what another publishes comes on top",
    "rehearsal": "for as long as the ledger lasts",
}


def page_html(report: Report) -> str:
    """The whole page."""
    return (
        '<!doctype html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{text_html(report.title)}</title>\n<style>{_style()}\nbody {{ margin: 0; }}\n"
        "@page { margin: 16mm; }</style>\n</head>\n"
        f'<body class="expost">\n<main>\n{_body(report, "")}</main>\n</body>\n</html>\n'
    )


def part_html(report: Report) -> str:
    """The same for notebooks: its style touches nothing else."""
    link = f"expost-{report.promise.ledger}-".replace(" ", "-")
    return f'<style>{_style()}</style><div class="expost part">{_body(report, escape(link, quote=True))}</div>'


def _style() -> str:
    return files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def _body(report: Report, link: str) -> str:
    shared = _shared(report.items)
    return (
        _head(report)
        + _promise(report)
        + _bill(report, link)
        + _answers(report, link, shared)
        + _caveats(report, shared)
        + _check(report)
    )


def _head(report: Report) -> str:
    about = " · ".join(map(text_html, report.about))
    stamp = f'<p class="stamp" aria-hidden="true">{text_html(report.stamp)}</p>' if report.stamp else ""
    framed = f'<p class="notice" role="note">{text_html(report.notice)}</p>' if report.notice else ""
    return f'{stamp}<header><p class="eye">{about}</p>\n<h1>{text_html(report.title)}</h1>{framed}</header>\n'


# ---- the promise


def _promise(report: Report) -> str:
    promise = report.promise
    begins = "A real run would promise the following. " if promise.lasting == "rehearsal" else ""
    return (
        '<section class="guard" aria-label="At a glance"><div><p class="eye">The guarantee</p>'
        f'<p class="lead">{begins}{_sentence(promise)}</p><p class="plainly">{_plainly(promise)}</p></div>'
        f"<div>{figures_html(report)}</div></section>\n"
    )


def _sentence(promise: Promise) -> str:
    """The one exact sentence."""
    epsilon, delta = epsilon_of(promise.limit), delta_of(promise.limit)
    slack = f", plus {power_of_ten(delta)}" if delta else ""
    name = f"({decimal_shown(epsilon)}, {power_of_ten(delta)})" if delta else f"{decimal_shown(epsilon)}"
    return (
        f"Everything that is published from ledger “{text_html(promise.ledger)}”, {_LASTING[promise.lasting]}, taken "
        f"together, is <b>{name}-differentially private for each {text_html(_who(promise))}</b>: {_change(promise)} "
        f'changes the probability of any set of outcomes by a factor of at most e<sup>{decimal_shown(epsilon)}</sup> '
        f"(about {factor(epsilon)}){slack}."
    )  # fmt: skip


def _who(promise: Promise) -> str:
    return promise.who or "unit"


def _change(promise: Promise) -> str:
    """What is compared."""
    who = text_html(_who(promise))
    whole = f"any one {who}" if promise.by_row else f"all rows of any one {who}"
    if promise.neighbours == "substitute":
        return f"replacing {whole} by any other" if promise.by_row else f"replacing {whole} by any others"
    if promise.neighbours == "add-remove":
        return f"adding or removing {whole}"
    return f"changing {whole} (added, removed or replaced, as its mechanisms' sensitivities say)"


def _plainly(promise: Promise) -> str:
    """What that means for one guess, and what else belongs to it."""
    who, delta = text_html(_who(promise)), delta_of(promise.limit)
    slack = f", apart from a chance of {power_of_ten(delta)}" if delta else ""
    rows = f" At most {promise.rows} rows of each count." if promise.rows else ""
    public = f" The number of {who}s is public." if promise.neighbours == "substitute" else ""
    return (
        f"Whoever would be right about one {who} 1 time in 100 without it is right at most "
        f"{_guess(promise)} times in 100 with it, whatever else they know{slack}.{rows}{public} Later questions may "
        f"depend on earlier answers: it holds all the same, {_LIFE[promise.lasting]}."
    )


def _guess(promise: Promise) -> str:
    """How often in 100 a guess is right at most that was right once in 100, rounded up: ε multiplies its odds."""
    odds = exp(min(promise.limit.epsilon, 700)) / 99
    return f"{ceil(1000 * odds / (1 + odds)) / 10:g}"


# ---- the bill


def _bill(report: Report, link: str) -> str:
    stopped = f'<p class="note stop"><b>Stopped:</b> {text_html(report.stopped)}</p>' if report.stopped else ""
    said = [
        "Each question reserves its worst case before it is asked. What its published answer cannot have leaked comes "
        "back.",
        *_deltas(report),
        *report.remarks,
    ]
    meters = _meters(report.budget.meters)
    table = bill_html(report, link) if report.items else "<p>Nothing was asked yet.</p>"
    return (
        f'<section class="receipt"><h2>{text_html(heading(report))}</h2>{stopped}'
        f'<p class="say">{" ".join(map(text_html, said))} Amounts are in ε, unless they say ρ.</p>{table}{meters}'
        "</section>\n"
    )


def _deltas(report: Report) -> Iterable[str]:
    deltas = [delta_of(charge.charged) for item in report.items for charge in item.charges if charge.charged]
    if any(deltas):
        yield f"Together they took a δ of {power_of_ten(sum(deltas, Decimal(0)))}, which never comes back."


def _meters(meters: Mapping[str, str]) -> str:
    """What several meters show."""
    if not meters:
        return ""
    return (
        '<p class="say">This ledger counts on several meters. A question is asked if at least one of them has room for '
        "its worst case, and all are charged. Gaussian noise that takes no δ has no ε, but a ρ and a Rényi price.</p>"
        + _listed(meters)
    )


# ---- the answers


def _answers(report: Report, link: str, shared: Mapping[str, str]) -> str:
    if not report.items:
        return ""
    widest = widest_of(report.items)
    answers = "".join(_answer(item, link, shared, charge_bar(item, widest, 10)) for item in report.items)
    said = (
        "± is half of an interval at 95 %, and covers noise. Where one end is farther, both stand in brackets. What ± "
        "does not cover stands at the end."
    )
    return f'<section class="answers"><h2>Answers</h2><p class="say">{said}</p>\n{answers}</section>\n'


def _answer(item: Item, link: str, shared: Mapping[str, str], bar: str) -> str:
    about = f'<p class="say">{text_html(item.about)}</p>' if item.about else ""
    notices = "".join(
        f'<p class="note warn" role="note"><b>!</b> Beware: {text_html(each)}.</p>' for each in item.notices
    )
    return (
        f'<article id="{link}{item.anchor}"><div><h3>{text_html(item.title)}</h3>{about}{_shown(item)}{notices}'
        f"{_how(item, shared)}</div><aside>{_paid(item, bar)}</aside></article>\n"
    )


def _shown(item: Item) -> str:
    """The answer itself, or why there is none."""
    if item.state == NO_NUMBER:
        why = _capital((item.why or item.words).removeprefix("withheld").removeprefix(": "))
        return f'<p class="note stop"><b>× Withheld.</b> {text_html(why)}</p>'
    if item.state != ANSWERED:
        mark = "" if item.state == NOT_KEPT else f"<b>{text_html(item.state.capitalize())}.</b> "
        return f'<p class="note">{mark}{text_html(item.why)}</p>'
    return _answered(item) + _beside(item)


def _answered(item: Item) -> str:
    frame = item.frame
    if frame is None or not frame.rows:
        return f'<p class="words">{text_html(item.words or "none")}</p>'
    if is_compared(frame):
        return lists_html(frame, item.labels)
    if _is_one(item):
        (row,) = frame.rows
        numbers, unit = row[-4:], ""
        if is_share(str(row[0])):
            numbers, unit = tuple(x if x is None else percent(x) for x in numbers), "\u00a0<small>%</small>"
        return f'<p class="num">{number_html(*numbers)}{unit}</p>'
    if item.words:
        return f'<p class="words">{text_html(item.words)}</p>'
    if can_be_drawn(frame):
        return number_charts(
            frame, from_zero=item.from_zero, labels=item.labels, notes=not item.beside, under=item.title
        )
    return table_html(frame) + (notes_html(frame) if not item.beside else "")


def _is_one(item: Item) -> bool:
    """Whether the answer is one number, set large."""
    frame = item.frame
    return (
        frame is not None and frame.is_numbers and len(frame) == 1 and is_number(frame.rows[0][-4]) and not item.words
    )


def _beside(item: Item) -> str:
    said = item.beside
    if not said and _is_one(item) and item.frame is not None and item.frame.rows[0][-1] is None:
        return notes_html(item.frame)
    if not said and item.words and "±" not in item.words:
        said = item.how.get(_NO_BAR, "")
        said = said and f"no error: {said}"
    return f'<p class="beside">{text_html(_capital(said))}.</p>' if said else ""


def _paid(item: Item, bar: str) -> str:
    """The price, in the margin of what it bought."""
    if not item.charges:
        return "<p><b>ε 0</b> charged</p>"
    entries = [charge.entry for charge in item.charges]
    name = f"entry {entries[0]}" if len(entries) == 1 else f"entries {', '.join(map(str, entries))}"
    if item.used and not item.reserved:
        return f"<p><b>{text_html(item.used)}</b> charged</p><p>no ε: Gaussian noise has a ρ</p><p>{name}</p>"
    back = f"{epsilon_down(item.refunded)} refunded of {epsilon_up(item.reserved)}" if item.refunded else "as reserved"
    open_still = any(charge.charged is None for charge in item.charges)
    took, back = ("reserved", "not yet charged") if open_still else ("charged", back)
    delta = sum((delta_of(charge.charged or charge.reserved) for charge in item.charges), Decimal(0))
    slack = f"<p>δ {power_of_ten(delta)}</p>" if delta else ""
    return f"<p><b>ε {epsilon_up(item.charged)}</b> {took}</p>{bar}<p>{back}</p>{slack}<p>{name}</p>"


def _how(item: Item, shared: Mapping[str, str]) -> str:
    facts = {name: text for name, text in item.how.items() if shared.get(name) != text and name != _NO_BAR}
    if facts.get("charged") == f"ε {epsilon_up(item.charged)}":  # as beside it
        del facts["charged"]
    facts |= _exact(item)
    return f"<details><summary>How this was made</summary>{_listed(facts)}</details>" if facts else ""


def _exact(item: Item) -> dict[str, str]:
    """What is rounded in rows, in full."""
    each = [f"entry {charge.entry}: {_exactly(charge)}" for charge in item.charges]
    alike = len(each) == 1 and item.charges[0].charged is not None and not item.used and not item.refunded
    if alike and decimal_shown(item.charged) == epsilon_up(item.charged):
        return {}
    return {"exactly": "; ".join(each)} if each and "charged" not in item.how else {}


def _exactly(charge: EntryCost) -> str:
    if charge.charged is None:
        return f"{charge.reserved} reserved"
    return charge.used or (f"{charge.charged} of {charge.reserved}" if charge.refunded else f"{charge.charged}")


def _listed(facts: Mapping[str, str]) -> str:
    """Facts by subject."""
    rows = "".join(f"<dt>{text_html(name)}</dt><dd>{text_html(text)}</dd>" for name, text in facts.items())
    return f"<dl>{rows}</dl>" if facts else ""


# ---- what holds for all of them


def _shared(items: Iterable[Item]) -> dict[str, str]:
    """What most answers say in the same words, by subject: said once, at the end, unless an answer says otherwise."""
    said: dict[str, Counter[str]] = {}
    for item in items:
        for name, text in item.how.items():
            if name.startswith(_SHARED):
                said.setdefault(name, Counter())[text] += 1
    most = {name: texts.most_common(1)[0] for name, texts in said.items()}
    return {name: text for name, (text, times) in most.items() if times > 1 or name == _COVERS}


def _caveats(report: Report, shared: Mapping[str, str]) -> str:
    covers = shared.get(_COVERS, "noise, in 95 of 100 cases; not what clipping to bounds or leaving out rows changes")
    said = [
        ("± covers noise alone.", f"It covers {covers}. Nor does it cover sampling, or mistakes in the data."),
        *((f"{_capital(name)}:", f"{text}.") for name, text in shared.items() if name != _COVERS),
        *_one_by_one(report.items),
        ("Bounds, keys and thresholds are settings.", "If they were chosen by looking at the data, the guarantee does "
         "not cover that look."),
        ("The guarantee is about what was published,", "whatever anybody knows already. It does not say that nothing "
         "can be learnt about groups of people."),
    ]  # fmt: skip
    listed = "".join(f"<li><b>{text_html(bold)}</b> {text_html(text)}</li>" for bold, text in said)
    otherwise = ", unless it says otherwise" if len(shared) > 1 else ""
    return f'<section><h2>What holds for every answer{otherwise}</h2><ol class="caveats">{listed}</ol></section>\n'


def _one_by_one(items: Iterable[Item]) -> Iterable[tuple[str, str]]:
    """How many intervals of those on the page will miss, by chance alone."""
    frames = [item.frame for item in items if item.frame is not None and item.frame.is_numbers]
    number = sum(row[-1] is not None for frame in frames for row in frame.rows)
    if number >= 20:
        yield "Intervals hold one by one.", f"Of the {number} on this page, expect {round(number / 20)} to miss."
    elif number > 1:
        yield "Intervals hold one by one.", "Of twenty, expect one to miss."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _check(report: Report) -> str:
    source = f"\n<h3>The study</h3>\n<pre>{escape(report.source)}</pre>" if report.source else ""
    said = f"<p>{text_html(report.check)}</p>{_listed(report.facts)}{source}"
    return f"<section><h2>How to check this</h2>\n{said}</section>\n"
