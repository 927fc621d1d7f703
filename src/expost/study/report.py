"""A record as one HTML page: answers, plots, the receipt, and the guarantee in plain words.

The page loads nothing and runs no script. It is made of released values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from html import escape
from math import ceil, exp
from typing import Any

from expost.errors import InvalidValue
from expost.ledger.readings import CLOSED
from expost.ledger.statement import PRICE_HEADING
from expost.study.charts import chart_of
from expost.study.svg import budget

_COSTS = {"reserved": ROUND_UP, "charged": ROUND_UP, "refunded": ROUND_DOWN}
REHEARSED = (
    "This is a rehearsal. Its rows were made up from the schema and the bounds: no number here is about the data, and "
    "nothing was charged."
)
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #55616d; --paper: #ffffff; --card: #f4f6f8; --line: #d9dfe5;
  --accent: #1f6f8b; --back: #b9dbe6; --error: #8a3b12; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #a3b0bc; --paper: #14191f; --card: #1d242c;
  --line: #333e49; --accent: #59b4d1; --back: #2b4b58; --error: #ffb48a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; } h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1.05rem; margin: 0; } dl + h3 { margin-top: 1.5rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1.5rem 0; }
.facts div, article { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .9rem 1rem; }
.facts strong { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
article { margin: .75rem 0; } article header { display: flex; gap: .75rem; align-items: baseline; flex-wrap: wrap; }
.notice { border: 2px solid var(--error); border-radius: .6rem; padding: .6rem 1rem; font-weight: 600; }
.kind { color: var(--soft); font-size: .85rem; } .answer { font-size: 1.1rem; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .1rem .9rem; margin: .6rem 0 0;
  font-size: .88rem; } dt { color: var(--soft); } dd { margin: 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } tfoot { display: table-row-group; }
tfoot td { font-weight: 600; } pre { white-space: pre-wrap; font-size: .8rem; line-height: 1.4;
  background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .9rem 1rem; }
svg { display: block; margin-top: .5rem; overflow: visible; } svg + svg { margin-top: 0; }
.chart { margin: .6rem 0 0; } .chart figcaption { color: var(--soft); font-size: .88rem; margin-bottom: .2rem; }
.chart th, .chart td { border: 0; padding: .1rem .9rem .1rem 0; font-weight: 400; vertical-align: middle; }
.chart thead th { color: var(--soft); font-size: .88rem; vertical-align: bottom; }
.beside, .chart p { color: var(--soft); font-size: .88rem; }
.chart td.soft { color: var(--soft); } .chart .m { width: 55%; padding-right: 0; } .chart svg { margin: 0; }
svg .grid { stroke: var(--line); } svg .dot { fill: var(--accent); stroke: var(--card); }
svg text { font-size: 14px; fill: var(--ink); } svg .value { fill: var(--soft); text-anchor: end; }
svg .bar { fill: var(--accent); } svg .back { fill: var(--back); } svg .error { stroke: var(--error);
  stroke-width: 1.5; } svg .halo { stroke: var(--card); stroke-width: 4; } svg .axis { stroke: var(--soft); }
@media screen and (max-width: 40rem) { body { padding: 1.25rem .9rem 3rem; } h1 { font-size: 1.5rem; }
  thead { display: none; } tr { display: flex; flex-direction: column; padding: .5rem 0; border-bottom:
  1px solid var(--line); } td { border: 0; padding: .1rem 0; }
  td.n { display: flex; justify-content: space-between; } td.n::before { content: attr(data-name);
  color: var(--soft); } td.w { order: -1; font-weight: 600; } td:empty { display: none; }
  .chart thead { display: block; } .chart tr { display: grid; grid-template-columns: 1fr auto; padding: .2rem 0;
  border: 0; } .chart .m { grid-column: 1 / -1; width: auto; } .chart .n { padding-right: 0; display: block; }
  .chart td.n::before { content: none; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --paper: #fff; --card: #fff; --line: #bbb;
  --accent: #1f6f8b; --back: #b9dbe6; --error: #8a3b12; } body { max-width: none; padding: 0; font-size: 11pt;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; } article, tr, .facts div { break-inside: avoid; }
  .facts strong { font-size: 1.2rem; } h2, h3, h2 + p { break-after: avoid; } svg, p { break-inside: avoid; }
  .receipt { break-before: page; } @page { margin: 18mm 15mm; } }
"""


def report_html(record: Mapping[str, Any]) -> str:
    """The page for a record."""
    try:
        title = escape(record["title"])
        body = "".join(part(record) for part in (_head, _answers, _receipt, _guarantee, _provenance))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError):
        raise InvalidValue("the record of this run is not complete: expost run writes it") from None
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def _head(record: Mapping[str, Any]) -> str:
    ledger, asked = record["ledger"], record["asked"]
    facts = (
        (f"{record['answered']} of {len(record['questions'])}", f"questions answered, {record['withheld']} withheld"),
        (f"{asked}", f"could be asked; without refunds {record['classic']}"),
        (f"ε {_brief(ledger['spent']['epsilon'])}", f"charged, of a limit of {_brief(ledger['limit']['epsilon'])}"),
        (f"ε {_brief(ledger['remaining']['epsilon'])}", "remaining"),
    )
    cards = "".join(f"<div><strong>{escape(big)}</strong>{escape(small)}</div>" for big, small in facts)
    stopped = f"<p><strong>Stopped:</strong> {escape(record['stopped'])}</p>" if record["stopped"] else ""
    rehearsed = f'<p class="notice" role="note">{escape(REHEARSED)}</p>\n' if record.get("rehearsal") else ""
    about = f"{record['data']['path']} · {record['study']} · {record['when']}"
    return (
        f'<header><h1>{escape(record["title"])}</h1><p class="soft">{escape(about)}</p></header>\n<main>\n{rehearsed}'
        f'<section class="facts" aria-label="At a glance">{cards}</section>{stopped}\n'
    )


def _answers(record: Mapping[str, Any]) -> str:
    return "<section><h2>Answers</h2>\n" + "".join(map(_answer, record["questions"])) + "</section>\n"


def _answer(question: Mapping[str, Any]) -> str:
    text = question["text"] if question["text"] else f"{question['state']}: {question['why']}"
    chart = chart_of(question)
    beside = question.get("beside") if chart else None
    said = f'<p class="answer">{escape(text).replace(" ± ", "&nbsp;±&nbsp;")}</p>' if beside is None else ""
    below = f'<p class="beside">{escape(beside[:1].upper() + beside[1:])}.</p>' if beside else ""
    notice = f'<p class="notice">Beware: {escape(question["notice"])}.</p>' if question["notice"] else ""
    return (
        f"<article><header><h3>{escape(question['label'])}</h3>"
        f'<span class="kind">{escape(question["name"])} · {escape(question["kind"])}</span></header>'
        f"{said}{notice}{chart}{below}{_listed(question['how'])}</article>\n"
    )


def _receipt(record: Mapping[str, Any]) -> str:
    rows, drawn, totals = [], [], [Decimal(0)] * len(_COSTS)
    for question in record["questions"]:
        for place, receipt in enumerate(question["receipts"], 1):
            costs = [Decimal(receipt[name]["epsilon"] or 0) for name in _COSTS]
            totals = [total + cost for total, cost in zip(totals, costs, strict=True)]
            price = (
                f'<td class="n" data-name="{PRICE_HEADING}">{_brief(receipt["renyi"])}</td>'
                if "renyi" in receipt
                else ""
            )
            rows.append(
                f'<tr><td class="n" data-name="entry">{receipt["entry"]}</td>'
                f'<td class="w">{escape(receipt["what"])}</td>'
                f"{_used(receipt['used']) if 'used' in receipt else _amounts(costs)}"
                f'<td class="n" data-name="δ">{escape(receipt["charged"]["delta"])}</td>{price}</tr>'
            )
            again = f" ({place})" if place > 1 else ""
            drawn.append((question["name"] + again, float(costs[0]), float(costs[1]), receipt.get("used", "")))
    meters = record["ledger"].get("meters", [])
    priced = [PRICE_HEADING] * (len(meters) > 1)
    total = _total(drawn, totals, 1 + len(priced))
    head = "".join(f'<th scope="col" class="n">{name}</th>' for name in (*_COSTS, "δ", *priced))
    plot = budget(drawn, "What was charged of what was reserved, in ε")
    return (
        '<section class="receipt"><h2>Receipt</h2>'
        "\n<p>Before a question is asked, its worst case is reserved. What its answer cannot "
        "have leaked is refunded. Amounts are in ε, unless they say ρ.</p>\n"
        f'{plot if drawn else ""}<table><thead><tr><th scope="col" class="n">entry</th>'
        f'<th scope="col">what</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        f"{total}"
        f"</table>{_meters(meters) if priced else ''}</section>\n"
    )


def _total(drawn: Iterable[tuple[Any, ...]], totals: Iterable[Decimal], more: int) -> str:
    """What all was charged together, of what has an ε: nothing if none has one."""
    with_epsilon = [not used for *_, used in drawn]
    if with_epsilon and not any(with_epsilon):
        return ""
    what = "total" if all(with_epsilon) else "total of what has an ε"
    under = "<td></td>" * more
    return f'<tfoot><tr><td></td><td class="w">{what}</td>{_amounts(totals)}{under}</tr></tfoot>'


def _meters(meters: Iterable[Mapping[str, Any]]) -> str:
    """What several meters show."""
    used = {
        meter["name"]: "not here, the limit is too small" if meter["capacity"] is None else
        f"{_brief(meter['used'])} of {_brief(meter['capacity'])}{_shut(meter)}"
        for meter in meters
    }  # fmt: skip
    return (
        "<p>This ledger counts on several meters. A question is asked if at least one of them has room for its worst "
        "case, and all are charged. Gaussian noise that takes no δ has no ε, but a ρ and a Rényi price.</p>"
        + _listed(used)
    )


def _shut(meter: Mapping[str, Any]) -> str:
    """Whether nothing more fits on a meter, and why if that is not what it counts."""
    if not meter["full"]:
        return ""
    return ", full" if Decimal(meter["used"]) > Decimal(meter["capacity"]) else f", {CLOSED}"


def _guarantee(record: Mapping[str, Any]) -> str:
    privacy, limit = record["privacy"], record["ledger"]["limit"]
    who = escape(privacy["who"])
    change = f"one {who} replaced by any other" if privacy["neighbours"] == "substitute" else f"one {who} more or less"
    factor = f"e^{_brief(limit['epsilon'])} (about {exp(min(float(limit['epsilon']), 700)):,.3g})"
    slack = "" if limit["delta"] == "0" else f", apart from a chance of {escape(limit['delta'])}"
    when, life = _lasting(record)
    rows = "" if privacy["rows"] is None else f" At most {privacy['rows']} rows of each count."
    begins = "A real run would guarantee the following. " if record.get("rehearsal") else ""
    return (
        f"<section><h2>The guarantee</h2>\n<p>{begins}Take two data sets that differ in {change}. Whatever is "
        f"published from ledger “{escape(record['ledger']['name'])}”, {when}, is at most {factor} times as likely with "
        f"one as with the other{slack}. So whoever would be right about one {who} 1 time in 100 without it is right "
        f"at most {_guess(limit['epsilon'])} times in 100 with it, whatever else they know{slack}.{rows}</p>\n"
        f"<p>This is (ε, δ)-differential privacy with ε {_brief(limit['epsilon'])} and δ "
        f"{escape(limit['delta'])}, {escape(privacy['neighbours'])} neighbours, {life}. Which "
        "question is asked next, and with how much ε, may depend on answers that were published before; the "
        "guarantee holds all the same. Ranges after ± are what noise moved an answer by at most, in 95 of 100 cases; "
        "what clamping to bounds and leaving out rows change is not in them. An answer without ± says why it has "
        "none.</p></section>\n"
    )


def _lasting(record: Mapping[str, Any]) -> tuple[str, str]:
    """When what is published counts, and how long the guarantee holds; a rehearsal's own ledger says neither."""
    if record.get("rehearsal"):
        return "as long as it lasts", "for as long as the ledger lasts"
    if record["ledger"].get("durable", True):
        return "now and later", "for the ledger's whole life"
    return "in this one run", "for this run alone: without a ledger, another adds to it"


def _provenance(record: Mapping[str, Any]) -> str:
    """What is needed to check it, or to hand it to a review board."""
    ledger, privacy = record["ledger"], record["privacy"]
    kept = f"“{ledger['name']}”" if ledger.get("durable", True) else "none: in memory, for a trial"
    number = "private" if privacy["size"] is None else f"{privacy['size']:,}, public"
    check = (
        "The ledger's audit trail has every charge. Its owner can show, with “expost ledger verify”, that the trail "
        "still contains the line below, unchanged."
        if ledger.get("durable", True)
        else "This run kept its ledger in memory. It ended with the run, and nobody can check its charges later."
    )
    if record.get("rehearsal"):
        kept, number = "none: a rehearsal", "not looked at: the rows were made up"
        check = "There is nothing to check: no row was read, and the ledger knows of no rehearsal."
    facts = {
        "data": f"{record['data']['path']}, version {record['data']['version']}",
        "protected": f"one {privacy['who']}; {privacy['neighbours']} neighbours",
        "their number": number,
        "ledger": kept,
        "its audit trail ends at": ledger["head"],
        "made by": f"expost {record['expost']}, {record['when']}",
        "without refunds": f"{record['classic']} of the {record['asked']} questions would have fitted",
    }
    if record.get("rehearsal"):
        del facts["its audit trail ends at"]
    return (
        f"<section><h2>How to check this</h2>\n<p>{check}</p>{_listed(facts)}\n"
        f"<h3>The study</h3>\n<pre>{escape(record['text'])}</pre></section>\n</main>\n"
    )


def _listed(facts: Mapping[str, str]) -> str:
    """Facts by subject."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    return f"<dl>{rows}</dl>" if facts else ""


def _used(text: str) -> str:
    """What noise that has no ε was charged."""
    cells = {"reserved": "", "charged": escape(text), "refunded": ""}
    return "".join(f'<td class="n" data-name="{name}">{cell}</td>' for name, cell in cells.items())


def _amounts(numbers: Iterable[Decimal]) -> str:
    """Amounts to six places: what is reserved or charged rounds up, what is refunded down."""
    rounded = (number.quantize(Decimal("1e-6"), up) for number, up in zip(numbers, _COSTS.values(), strict=True))
    return "".join(
        f'<td class="n" data-name="{name}">{f"{number:f}".rstrip("0").rstrip(".")}</td>'
        for name, number in zip(_COSTS, rounded, strict=True)
    )


def _guess(epsilon: str) -> str:
    """How often in 100 a guess is right at most that was right once in 100, rounded up: ε multiplies its odds."""
    odds = exp(min(float(epsilon), 700)) / 99
    return f"{ceil(1000 * odds / (1 + odds)) / 10:g}"


def _brief(number: str) -> str:
    return f"{float(number):.6g}"
