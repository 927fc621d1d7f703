"""The report of a study, made from the record of its run: published values and public settings only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from expost.cost import Cost
from expost.errors import ExpostError, InvalidValue
from expost.frame import Frame, number_text, with_error
from expost.ledger.readings import CLOSED
from expost.reporting import Budget, EntryCost, Item, Promise, Report
from expost.reporting.charts import can_be_drawn, is_compared
from expost.reporting.record import ANSWERED, Lasting
from expost.reporting.rows import is_number

REHEARSED = (
    "This is a rehearsal. Its rows were made up from the schema and the bounds: no number here is about the data, and "
    "nothing was charged."
)
WORST_CASE = (
    "At worst-case prices {fits} of these {asked} would have fitted under the limit; refunds paid for the rest."
)
"""What refunds bought, where they bought something."""


def report_html(record: Mapping[str, Any]) -> str:
    """The page for a record."""
    return study_report(record).html


def study_report(record: Mapping[str, Any]) -> Report:
    """What a record says. Raises ``InvalidValue`` if it is not complete."""
    try:
        return _report(record)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, ExpostError):
        raise InvalidValue("the record of this run is not complete: expost run writes it") from None


def _report(record: Mapping[str, Any]) -> Report:
    ledger, rehearsal = record["ledger"], bool(record.get("rehearsal"))
    data = record["data"]
    return Report(
        title=record["title"],
        about=(
            "Rehearsal of a study, not its answers" if rehearsal else "Report of a study",
            f"{data['path']}, version {data['version']}",
            record["study"],
            record["when"],
        ),
        promise=_promise(record),
        budget=Budget(
            name=ledger["name"],
            limit=Cost.from_json(ledger["limit"]),
            spent=Cost.from_json(ledger["spent"]),
            remaining=Cost.from_json(ledger["remaining"]),
            meters=_meters(ledger.get("meters", [])),
            fits=record["classic"],
        ),
        items=tuple(map(_item, record["questions"])),
        remarks=tuple(_remarks(record)),
        check=_check(record),
        facts=_facts(record),
        source=record["text"],
        notice=REHEARSED if rehearsal else "",
        stamp="Rehearsal" if rehearsal else "",
        stopped=record["stopped"] or "",
    )


def _promise(record: Mapping[str, Any]) -> Promise:
    """That of the whole ledger, also where an account of it paid."""
    privacy, ledger = record["privacy"], record["ledger"]
    whole = ledger.get("whole", ledger)
    durable: Lasting = "always" if ledger.get("durable", True) else "process"
    return Promise(
        ledger=whole["name"],
        limit=Cost.from_json(whole["limit"]),
        who=privacy["who"],
        by_row=privacy["unit"] == "row",
        neighbours=privacy["neighbours"],
        rows=privacy["rows"],
        lasting="rehearsal" if record.get("rehearsal") else durable,
    )


def _meters(meters: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What several meters show; nothing if the basic sum is the only one."""
    if len(meters) < 2:
        return {}
    return {
        meter["name"]: "not here, the limit is too small" if meter["capacity"] is None else
        f"{_brief(meter['used'])} of {_brief(meter['capacity'])}{_shut(meter)}"
        for meter in meters
    }  # fmt: skip


def _shut(meter: Mapping[str, Any]) -> str:
    """Whether nothing more fits on a meter, and why if that is not what it counts."""
    if not meter["full"]:
        return ""
    return ", full" if Decimal(meter["used"]) > Decimal(meter["capacity"]) else f", {CLOSED}"


def _brief(number: str) -> str:
    return f"{float(number):.6g}"


def _remarks(record: Mapping[str, Any]) -> list[str]:
    """What refunds bought, where they bought something, and what was not asked."""
    asked, fits, listed = record["asked"], record["classic"], len(record["questions"])
    left = listed - asked
    said = [] if not left else [f"Of {listed} questions {left} {_SAYS[left == 1]}."]
    return [*said, WORST_CASE.format(fits=fits, asked=asked)] if fits < asked else said


_SAYS = {True: "has no answer, and says why", False: "have no answer, and say why"}


def _item(question: Mapping[str, Any]) -> Item:
    frame = None if question["frame"] is None else Frame.from_json(question["frame"])
    words, beside = _said(question, frame)
    told = question.get("beside") is None and question["state"] == ANSWERED
    drawn = frame is not None and not words and told and (can_be_drawn(frame) or is_compared(frame))
    return Item(
        anchor=question["name"],
        title=question["label"],
        about=f"{question['name']} · {question['kind']}",
        state=question["state"],
        why=question["why"] or question["text"],
        words=words,
        frame=frame,
        labels=_labels(question, frame),
        from_zero=bool(question.get("from_zero")),
        beside=beside,
        notices=(question["notice"],) if question["notice"] else (),
        how={**question["how"], **({"in words": question["text"]} if drawn else {})},
        charges=tuple(map(_charge, question["receipts"])),
    )


def _said(question: Mapping[str, Any], frame: Frame | None) -> tuple[str, str]:
    """The answer in words, if these say more than its rows; and what is said beside its numbers."""
    text, value = question["text"], question["value"]
    if frame is None:
        return text, ""
    if is_number(value):
        return ("", _after_number(text, value, question["error"])) if len(frame) == 1 else (text, "")
    if question.get("beside") is not None:
        said = question["beside"].replace("all ±", "all at once ±", 1).split("; ")
        return "", "; ".join(each for each in said if not each.startswith("each ±"))  # its table says that
    known = frame.is_numbers and any(row[-1] is not None for row in frame.rows)
    return ("", "") if known or is_compared(frame) else (text, "")


def _after_number(text: str, value: float, error: float | None) -> str:
    """What stands behind the number in a text, such as how many values there are."""
    for number in (with_error(value, error), number_text(value)):
        if text.startswith(number):
            rest = text.removeprefix(number).strip(" ,;")
            return rest[1:-1] if rest.startswith("(") and rest.endswith(")") else rest
    return text


def _labels(question: Mapping[str, Any], frame: Frame | None) -> tuple[str, ...]:
    """What rows are called: bins of whole numbers have names that read better than their keys."""
    if frame is not None and is_compared(frame) and isinstance(question["value"], dict):
        return tuple(question["value"])
    return tuple(question.get("labels") or ())


def _charge(receipt: Mapping[str, Any]) -> EntryCost:
    """What noise that has no ε costs is said in words; here it is 0."""
    reserved, charged = (
        Cost.from_json({**receipt[name], "epsilon": receipt[name]["epsilon"] or "0"})
        for name in ("reserved", "charged")
    )
    used, price = receipt.get("used", ""), receipt.get("renyi", "")
    return EntryCost(entry=receipt["entry"], reserved=reserved, charged=charged, used=used, price=price)


def _check(record: Mapping[str, Any]) -> str:
    if record.get("rehearsal"):
        return "There is nothing to check: no row was read, and the ledger knows of no rehearsal."
    if record["ledger"].get("durable", True):
        return (
            "Charges are functions of published answers, and the ledger's audit trail has every one of them. Its owner "
            "can show, with “expost ledger verify”, that the trail still contains the line below, unchanged."
        )
    return "This run kept its ledger in memory. It ended with the run, and nobody can check its charges later."


def _facts(record: Mapping[str, Any]) -> dict[str, str]:
    """What is needed to check it, or to hand it to a review board."""
    ledger, privacy, rehearsal = record["ledger"], record["privacy"], record.get("rehearsal")
    kept = f"“{ledger['name']}”" if ledger.get("durable", True) else "none: in memory, for a trial"
    number = "private" if privacy["size"] is None else f"{privacy['size']:,}, public"
    facts = {
        "data": f"{record['data']['path']}, version {record['data']['version']}",
        "protected": f"one {privacy['who']}; {privacy['neighbours']} neighbours",
        "their number": "not looked at: the rows were made up" if rehearsal else number,
        "ledger": "none: a rehearsal" if rehearsal else kept,
        "its audit trail ends at": "" if rehearsal else ledger["head"],
        "made by": f"expost {record['expost']}, {record['when']}",
    }
    return {name: text for name, text in facts.items() if text}
