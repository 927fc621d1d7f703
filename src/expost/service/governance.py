"""Who governs what: a custodian governs what is below its account, never the account itself, and gives no more than
it has.

API, pages and the command line act through this module. Every act is a line of the audit trail, signed with the id of
the token beside its name: names are chosen by whoever makes a token, and two tokens may have the same one.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from expost.cost import Cost
from expost.errors import InvalidValue, UnknownEntry
from expost.service.jobs import SILENCE, ServiceJob
from expost.service.lines import RULE, is_line
from expost.service.problems import Refusal
from expost.service.results import ended, result_text
from expost.service.tokens import (
    AccessToken,
    list_tokens,
    makers_of,
    new_token,
    revoke_token,
    store_token,
)

if TYPE_CHECKING:
    from expost.ledger import Ledger
    from expost.service.core import Service
    from expost.service.database import ServiceTables
    from expost.service.jobs import Jobs

MACHINE = "the command line"
"""Who signs what is done at the machine; the user's name is in the line anyway."""


def governed(token: AccessToken, account: str) -> None:
    """Refuse unless an account is below the token's own. Others do not exist."""
    if not token.covers(account):
        raise Refusal(404, "there is no such account")
    if account == token.account:
        raise Refusal(403, f"{account!r} is the token's own account, which is governed from above: {_above(account)}")


def _above(account: str) -> str:
    if "/" in account:
        return "ask a custodian of an account above it"
    return "a whole ledger is governed at the machine, by `expost ledger` and `expost token`"


# ---- accounts


def open_account(here: Service, token: AccessToken, account: str, epsilon: str, delta: str) -> Ledger:
    """An account below one's own, with no more than the one above it has."""
    governed(token, account)
    above, _, name = account.rpartition("/")
    parent = here.ledger(above)
    _within(parent, Cost(epsilon, delta))
    if not here.window.has_room(account, here.config.accounts):
        raise Refusal(
            409, f"there are {here.config.accounts} accounts there already: more are made at the machine, by "
            "`expost ledger create-account`, or once 'accounts' in server.toml is larger", error="TooManyAccounts",
        )  # fmt: skip
    return parent.create_account(name, epsilon, delta, by=token.signature, reason="created by a custodian")


def allow_more(
    here: Service, token: AccessToken, account: str, epsilon: str | None, delta: str | None, reason: str
) -> Ledger:
    """Allow an account below one's own more, within what the account above it has."""
    governed(token, account)
    found, now = here.ledger(account), here.ledger(account).limit
    wanted = Cost(now.exact_epsilon if epsilon is None else epsilon, now.exact_delta if delta is None else delta)
    _within(here.ledger(account.rpartition("/")[0]), wanted)
    found.raise_limit(epsilon, delta, by=token.signature, reason=reason)
    return found


def _within(above: Ledger, wanted: Cost) -> None:
    """A limit above the one above it would be said, and never be had."""
    if not wanted <= above.limit:
        raise Refusal(
            422, f"{above.name!r} has a limit of {above.limit}, and an account below it cannot have {wanted}: ask for "
            "less, or let the limit above be raised first", error="InvalidValue",
        )  # fmt: skip


def end_account(here: Service, token: AccessToken, account: str, reason: str) -> Ledger:
    """Allow nothing more in an account below one's own, and decline what waits for a review there."""
    governed(token, account)
    found = here.ledger(account)
    found.close(by=token.signature, reason=reason)
    for job in to_review(here, token):
        if job.account == account or job.account.startswith(f"{account}/"):
            with suppress(Refusal):  # somebody decided meanwhile
                give_verdict(here, token, job.id, accept=False, reason=f"the account was closed: {reason}")
    return found


# ---- tokens


def delegate(
    here: Service, maker: AccessToken, role: str, account: str, *, name: str, days: float | None
) -> tuple[AccessToken, str]:
    """A token for an account below the maker's own, which ends with the maker's at the latest."""
    governed(maker, account)
    if role == "engine" and len(maker.path) > 1:
        raise Refusal(
            403, "an engine is trusted with what the whole ledger is charged: custodians of the ledger make its token"
        )
    return _given(here.database, here.ledger(account), maker, role, account, name, days)


def issue_token(
    database: ServiceTables, ledger: Ledger, role: str, account: str, *, name: str, days: float | None
) -> tuple[AccessToken, str]:
    """A token that is made at the machine, for any account: ``ledger`` is that account."""
    return _given(database, ledger, None, role, account, name, days)


def _given(
    database: ServiceTables, account: Ledger, maker: AccessToken | None, role: str, path: str, name: str,
    days: float | None,
) -> tuple[AccessToken, str]:  # fmt: skip
    token, secret = new_token(role, path, name=name, days=days, maker=maker)
    until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(token.expires_at))
    by = MACHINE if maker is None else maker.signature
    account.remark(by=by, reason=f"made {token.signature}: {role} until {until}")  # first: no token without its line
    store_token(database, token, secret)
    return token, secret


def withdraw_token(here: Service, by: AccessToken, token: str) -> None:
    """Revoke a token below one's own account, or one's own; and all that were made with it."""
    found = next((each for each in list_tokens(here.database, [by.account]) if each.id == token), None)
    if found is None:
        raise UnknownEntry(f"there is no token {token!r}")
    if found.id != by.id:
        governed(by, found.account)
    revoke_all(here.database, token, by.signature, here.ledger)


def revoke_all(database: ServiceTables, token: str, by: str, ledger: Any) -> list[AccessToken]:
    """End a token and all that were made with it; ``ledger`` gives an account by its path, for the lines."""
    gone = revoke_token(database, token)
    for each in gone:
        made = f", which was made with token {each.maker}" if each.id != token else ""
        with suppress(UnknownEntry):  # a ledger that is no longer there: the token has ended all the same
            ledger(each.account).remark(by=by, reason=f"revoked {each.signature}{made}")
    return gone


# ---- jobs


def call_off(jobs: Jobs, ledger: Any, name: str, reason: str) -> ServiceJob:
    """Cancel somebody's job at the machine, as its owner could: until it starts. The reason is shown to whoever asked.

    ``ledger`` gives an account by its path, for the line.
    """
    if not is_line(reason):
        raise InvalidValue(f"a reason is {RULE}. Whoever asked reads it, and the audit trail has it")
    job = jobs.find(name)
    if job is None:
        raise UnknownEntry(f"there is no job {name!r}: `expost job list` shows them")
    told = result_text(ended("cancelled", f"it was cancelled by the custodian, and nothing was charged: {reason}"))
    cancelled = jobs.cancel(job.id, told, int(time.time() * 1e6))
    if cancelled is None:
        raise InvalidValue(
            f"job {name} has started, or is over, and may have been sampled: jobs can be cancelled until they start. "
            "One that has started ends at its answer time, at its worst case if it is not done by then"
        )
    with suppress(UnknownEntry):
        ledger(job.account).remark(by=MACHINE, reason=f"cancelled job {job.id}: {reason}")
    return cancelled


# ---- reviews


def to_review(here: Service, token: AccessToken) -> list[ServiceJob]:
    """What waits for a custodian of an account above, the oldest first."""
    found = here.jobs.in_review([token.path[0]])
    return [job for job in found if token.covers(job.account) and job.account != token.account]


def to_decide(here: Service, token: AccessToken, limit: int, after: str | None) -> list[ServiceJob]:
    """What a custodian has to decide, the oldest first: the first jobs, or those after one."""
    last = None if after is None else here.jobs.find(after)
    if after is not None and (last is None or not token.covers(last.account)):
        raise Refusal(404, "there is no such job")
    return here.jobs.undecided(token.account, limit, 0 if last is None else last.number)


def give_verdict(here: Service, token: AccessToken, name: str, *, accept: bool, reason: str) -> None:
    """Accept or decline a job that waits, of an account below one's own.

    The verdict is the first that the table takes; only then it is a line in the trail, and only then the job goes on.
    """
    job = here.jobs.find(name)
    if job is None or not token.covers(job.account):
        raise Refusal(404, "there is no such job")
    governed(token, job.account)
    if accept:
        _may_accept(here, token, job)
    if job.state == "review" and job.decision is not None and _is_left(job):
        finish(here, job, again=True)
    verdict = "accepted" if accept else "declined"
    decision = {"verdict": verdict, "by": token.name, "token": token.id, "reason": reason}
    decision |= {"at": f"{time.time():.0f}", "after": str(here.ledger(token.path[0]).head.sequence)}
    decided = here.jobs.decide(job.id, json.dumps(decision, ensure_ascii=False))
    if decided is None:
        raise Refusal(409, "this job does not wait for a review: it was decided")
    finish(here, decided)


def _may_accept(here: Service, token: AccessToken, job: ServiceJob) -> None:
    """Nobody accepts what is their own: who gave somebody a token leaves it to others what is asked with it.

    A token that one has made oneself is no other: where both come from one token, it asks and accepts, whoever holds
    them. The ledger's own custodians are above everybody, and what they have made is not taken for theirs.
    """
    if here.ledger(job.account).closed:
        raise Refusal(409, "nothing more can be spent there: it was closed. It can be declined", error="LedgerClosed")
    both = makers_of(here.database, job.token) & makers_of(here.database, token.id)
    if any(len(each.path) > 1 for each in both):
        raise Refusal(
            403, "this job was asked with a token that was made with yours, or with one that yours comes from: "
            "somebody else accepts it",
        )  # fmt: skip


def finish(here: Service, job: ServiceJob, *, again: bool = False) -> None:
    """Record a verdict, and let the job go on; ``again`` if a process died, or lost the database, in between."""
    decision = json.loads(job.decision or "{}")
    verdict, reason = decision["verdict"], decision["reason"]
    ledger, said = here.ledger(job.account), f"review of job {job.id}: {verdict}: "
    if not (again and _is_recorded(ledger, int(decision["after"]), said)):
        by = f"token {decision['token']} ({decision['by']})"
        ledger.remark(by=by, reason=f"{said}{reason}")
    accept = verdict == "accepted"
    result = None if accept else result_text(ended("declined", f"declined by a custodian: {reason}"))
    here.go_on(job, result)


def finish_left(here: Service) -> None:
    """Finish what this process, or one that has ended, had decided and not finished."""
    for job in here.jobs.in_review(here.config.ledgers):
        if job.decision is not None and (job.owner == here.jobs.owner or here.database.engine.local or _is_left(job)):
            finish(here, job, again=True)


def _is_left(job: ServiceJob) -> bool:
    return time.time() - float(json.loads(job.decision or "{}")["at"]) > SILENCE


def _is_recorded(ledger: Ledger, after: int, said: str) -> bool:
    lines = ledger.audit_trail(after)
    return any(line.kind == "remark" and line.body["reason"].startswith(said) for line in lines)
