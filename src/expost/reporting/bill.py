"""The bill: four numbers, and one table of what was asked, what came out and what it cost. A receipt with links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from typing import Any

from expost.cost import Cost
from expost.frame import Frame, is_share
from expost.reporting.charts import COEFFICIENTS, is_compared, text_html
from expost.reporting.numbers import (
    decimal_shown,
    epsilon_down,
    epsilon_up,
    percent,
    power_of_ten,
    to_its_error,
    with_bar,
)
from expost.reporting.record import ANSWERED, NO_NUMBER, Item, Report
from expost.reporting.rows import is_number

_HEADS = {"Question": "", "Answer": "wide", "ε": "bars", "reserved": "n wide", "charged": "n", "refunded": "n"}
"""The columns, and how each is set."""
_FEW_NAMES = 40
"""Characters: longer lists of names are counted here, and stand below in full."""
_FEW_WORDS = 60
"""Characters: longer texts stand below."""


def epsilon_of(cost: Cost) -> Decimal:
    """Its ε, exactly."""
    return Decimal(cost.epsilon_units).scaleb(-12)


def delta_of(cost: Cost) -> Decimal:
    """Its δ, exactly."""
    return Decimal(cost.delta_units).scaleb(-18)


def figures_html(report: Report) -> str:
    """The limit, what was charged, what came back, and what remains; and the same as a bar."""
    budget = report.budget
    totals = _Totals.of(report)
    limit, remaining = epsilon_of(budget.limit), epsilon_of(budget.remaining)
    paid = epsilon_of(budget.spent) if budget.meters else totals.charged  # several meters prove less than the sum
    parts = (
        ("limit", decimal_shown(limit), ""),
        ("charged", epsilon_up(paid), "data"),
        ("refunded", epsilon_down(totals.refunded), "back"),
        ("remaining", epsilon_down(remaining), ""),
    )
    shown = "".join(f'<div><dt>{name}</dt><dd class="{kind}">{number}</dd></div>' for name, number, kind in parts)
    delta = f"; δ is {power_of_ten(delta_of(budget.limit))}" if budget.limit.delta_units else ""
    account = f" of {text_html(budget.name)}" if budget.name != report.promise.ledger else ""
    bar = "" if budget.meters or totals.without_epsilon else _budget_bar(limit, totals)
    return f'<p class="eye">The budget{account}, in ε{delta}</p><dl class="figures">{shown}</dl>{bar}'


@dataclass(frozen=True)
class _Totals:
    """What all items together reserved and were charged, and what others were."""

    reserved: Decimal
    charged: Decimal
    elsewhere: Decimal
    without_epsilon: bool
    """Whether some of their noise has no ε."""

    @classmethod
    def of(cls, report: Report) -> _Totals:
        reserved = sum((item.reserved for item in report.items), Decimal(0))
        paid = sum((item.charged for item in report.items), Decimal(0))
        elsewhere = max(epsilon_of(report.budget.spent) - paid, Decimal(0))
        return cls(reserved, paid, elsewhere, any(item.used for item in report.items))

    @property
    def refunded(self) -> Decimal:
        return self.reserved - self.charged


def _budget_bar(limit: Decimal, totals: _Totals) -> str:
    """What is charged of the limit, after what others were, and where worst cases would have ended."""
    worst = totals.elsewhere + totals.reserved
    whole = max(limit, worst) or Decimal(1)
    others, own, end = _share(totals.elsewhere, whole), _share(totals.charged, whole), _share(limit, whole)
    drawn = _rect("others", 0, others, 8, 14) + _rect("data", others, own, 8, 14)
    drawn += _rect("room", others + own, max(end - others - own, 0), 8, 14)
    drawn += f'<line class="limit" x1="{end:.2f}%" x2="{end:.2f}%" y1="2" y2="28"/>'
    below = []
    if totals.refunded:
        at = _share(worst, whole)
        drawn += f'<line class="worst" x1="{others:.2f}%" x2="{at:.2f}%" y1="34" y2="34"/>'
        drawn += f'<line class="worst" x1="{at:.2f}%" x2="{at:.2f}%" y1="29" y2="39"/>'
        below.append(f"worst cases, added up: {epsilon_up(totals.reserved)}")
    if totals.elsewhere:
        below.append(f"grey: charged to other questions, {epsilon_up(totals.elsewhere)}")
    words = "; ".join([f"Charged {epsilon_up(totals.charged)} of a limit of {decimal_shown(limit)}", *below])
    lines = "".join(f'<text x="0" y="{52 + 17 * place}">{line}</text>' for place, line in enumerate(below))
    height = 30 if not below else 42 + 17 * len(below)
    return f'<svg width="100%" height="{height}" role="img" aria-label="{text_html(words)}">{drawn}{lines}</svg>'


def _share(part: Decimal, whole: Decimal) -> float:
    return float(100 * part / whole)


def _rect(kind: str, x: float, width: float, y: int, height: int) -> str:
    if width <= 0:
        return ""
    return f'<rect class="{kind}" x="{x:.2f}%" y="{y}" width="{max(width, 0.3):.2f}%" height="{height}"/>'


def charge_bar(item: Item, widest: Decimal, height: int) -> str:
    """As long as the reserve: what was charged of it is solid, what came back is hatched."""
    if not widest or not item.reserved:
        return ""
    paid, back = _share(item.charged, widest), _share(item.refunded, widest)
    drawn = _rect("data", 0, paid, 1, height - 2)
    if back > 0:
        middle, thick = height / 2, height - 4
        drawn += _rect("frame", paid, back, 1, height - 2)
        drawn += f'<line class="hatch" x1="{paid:.2f}%" x2="{paid + back:.2f}%" y1="{middle:g}" y2="{middle:g}" '
        drawn += f'stroke-width="{thick}"/>'
    return f'<svg width="100%" height="{height}" aria-hidden="true">{drawn}</svg>'


def widest_of(items: Iterable[Item]) -> Decimal:
    """The largest reserve, to which all bars are drawn."""
    return max((item.reserved for item in items), default=Decimal(0))


def heading(report: Report) -> str:
    """What the bill shows, as a finding."""
    totals, asked = _Totals.of(report), [item for item in report.items if item.charges]
    number = _counted(len(asked), "question")
    fits = report.budget.fits
    if not asked:
        return "Nothing was charged"
    if fits is not None and fits < len(asked) and totals.refunded:
        return f"{number}; {fits} would have fitted at worst-case prices"
    if totals.refunded:
        return f"{number}; ε {epsilon_down(totals.refunded)} came back of {epsilon_up(totals.reserved)} reserved"
    return f"{number}, charged in full" if len(asked) == 1 else f"{number}, each charged in full"


def _counted(number: int, what: str) -> str:
    words = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"]
    return f"{words[number] if number < len(words) else number} {what}{'s' * (number != 1)}"


def bill_html(report: Report, link: str) -> str:
    """The table. ``link`` is what the addresses of answers begin with."""
    priced = any(charge.price for item in report.items for charge in item.charges)
    widest, totals = widest_of(report.items), _Totals.of(report)
    rows = "".join(_row(item, widest, link, priced=priced) for item in report.items)
    heads = _HEADS | ({"Rényi price": "n wide"} if priced else {})
    head = "".join(f'<th scope="col" class="{kind}">{name}</th>' for name, kind in heads.items())
    total = "" if len(report.items) < 2 or all(item.used for item in report.items) else _total(totals, priced)
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}{total}</tbody>"
    return f'<div class="rows"><table class="bill">{body}</table></div>'


def _row(item: Item, widest: Decimal, link: str, *, priced: bool) -> str:
    price = f'<td class="n wide">{_prices(item)}</td>' if priced else ""
    return (
        f'<tr><th scope="row"><a href="#{link}{item.anchor}">{text_html(item.title)}</a>{_tag(item)}</th>'
        f'<td class="wide">{answer_in_brief(item)}</td><td class="bars">{charge_bar(item, widest, 16)}</td>'
        f"{_amounts(item)}{price}</tr>"
    )


def _prices(item: Item) -> str:
    return epsilon_up(sum((Decimal(charge.price) for charge in item.charges if charge.price), Decimal(0)))


def _amounts(item: Item) -> str:
    if not item.charges:
        return '<td class="n wide soft">0</td><td class="n soft">0</td><td class="n soft">0</td>'
    if item.used and not item.reserved:
        return f'<td class="n wide"></td><td class="n">{text_html(item.used)}</td><td class="n soft">0</td>'
    back = f'<td class="n back">{epsilon_down(item.refunded)}</td>' if item.refunded else '<td class="n soft">0</td>'
    return f'<td class="n wide">{epsilon_up(item.reserved)}</td><td class="n">{epsilon_up(item.charged)}</td>{back}'


def _total(totals: _Totals, priced: bool) -> str:
    what = "Together, of what has an ε" if totals.without_epsilon else "Together"
    back = epsilon_down(totals.refunded) if totals.refunded else "0"
    return (
        f'<tr class="total"><th scope="row">{what}</th><td class="wide"></td><td class="bars"></td>'
        f'<td class="n wide">{epsilon_up(totals.reserved)}</td><td class="n">{epsilon_up(totals.charged)}</td>'
        f'<td class="n back">{back}</td>{"<td class=wide></td>" * priced}</tr>'
    )


def _tag(item: Item) -> str:
    if item.state == ANSWERED:
        return ' <span class="tag warn">! see notice</span>' if item.notices else ""
    kind = "stop" if item.state in (NO_NUMBER, "lost", "not possible") else "held"
    return f' <span class="tag {kind}">{text_html(item.state)}</span>'


def answer_in_brief(item: Item) -> str:
    """An answer in a few words; whatever is longer stands below in full."""
    if item.state != ANSWERED:
        return "–"
    if item.words or item.frame is None:
        return text_html(item.words) if len(item.words) <= _FEW_WORDS else "in words, below"
    return _of_frame(item.frame) or f"{len(item.frame)} rows"


def _of_frame(frame: Frame) -> str:
    if is_compared(frame):
        found: dict[str, int] = {}
        for row in frame.rows:
            found[str(row[-1])] = found.get(str(row[-1]), 0) + 1
        return ", ".join(f"{number} {word}" for word, number in found.items())
    if not frame.is_numbers or not frame.rows:
        return "none" if not frame.rows else ""
    rows = frame.rows[: len(frame) - frame.total] or frame.rows
    values = [row[-4] for row in rows]
    if all(isinstance(value, str) for value in values):
        names = ", ".join(values)
        return text_html(names) if len(names) <= _FEW_NAMES else f"{len(values)} names"
    several = len(rows) > 1 and (len({row[0] for row in rows}) > 1 or not COEFFICIENTS.isdisjoint(frame.names[1:-4]))
    if several or not all(is_number(value) for value in values):
        return ""
    return _of_numbers(str(rows[0][0]), [row[-4:] for row in rows])


def _of_numbers(what: str, found: list[Sequence[Any]]) -> str:
    """In brief; of each number its value, low, high and error."""
    unit = ""
    if is_share(what):
        unit = "\u00a0%"
        found = [[each if each is None else percent(each) for each in row] for row in found]
    least, most = (end(found, key=itemgetter(0)) for end in (min, max))
    if len(found) == 1:
        return with_bar(*most) + unit
    if least[0] == most[0]:
        return f"{with_bar(*most)}{unit} each"
    last = with_bar(*most) if least[-1] == most[-1] else to_its_error(most[0], most[-1])[0]
    return f"{to_its_error(least[0], least[-1])[0]} to {last}{unit}"
