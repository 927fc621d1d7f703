"""Errors as people outside may see them: problem details, without names of other levels, and without data."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from http import HTTPStatus
from math import ceil
from typing import Any

from expost.errors import (
    AlreadyExists,
    AlreadyReserved,
    BudgetExceeded,
    EngineFailed,
    ExpostError,
    InvalidValue,
    KeyConflict,
    LedgerClosed,
    LedgerCorrupt,
    LedgerUnavailable,
    ReservationClosed,
    UnknownEntry,
    UnknownPart,
)
from expost.service.asked import Fault, InvalidRequest
from expost.study.toml import toml_words

LOG = logging.getLogger("expost.service")
TITLES = {
    400: "The request cannot be read",
    401: "No valid token",
    403: "Not for this role",
    404: "Not found",
    405: "No such method",
    409: "Not possible now",
    413: "Too large",
    415: "Not JSON",
    421: "Another name",
    422: "Something in the request breaks a rule",
    429: "Too many",
    500: "Something went wrong",
    503: "The database does not answer",
}
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (BudgetExceeded, 409),
    (LedgerClosed, 409),
    (AlreadyExists, 409),
    (AlreadyReserved, 409),
    (KeyConflict, 409),
    (ReservationClosed, 409),
    (LedgerUnavailable, 503),
    (UnknownEntry, 404),
    (UnknownPart, 422),
    (InvalidValue, 422),
)

KEY_TAKEN = (
    "the key was used before, for another request: repeat that one as it was to get its answer again, or take a new "
    "key, which is charged anew"
)


class Refusal(Exception):
    """Why a request is refused, as problem details."""

    def __init__(
        self, status: int, detail: str, *, faults: Iterable[Fault] = (), retry_after: float = 1, **more: Any
    ) -> None:
        super().__init__(status, detail)
        self.status, self.detail, self.faults, self.more = status, detail, tuple(faults), more
        self._retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        """What programs and browsers are told beside it: how to say who they are, or when to try again."""
        if self.status == HTTPStatus.UNAUTHORIZED:
            return {"www-authenticate": "Bearer"}
        passing = self.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
        return {"retry-after": f"{max(1, ceil(self._retry_after))}"} if passing else {}

    def body(self) -> dict[str, Any]:
        """RFC 9457."""
        found: dict[str, Any] = {
            "type": "about:blank", "title": TITLES[self.status], "status": self.status, "detail": self.detail,
        }  # fmt: skip
        if self.faults:
            found["errors"] = [
                {name: value for name, value in fault._asdict().items() if value is not None} for fault in self.faults
            ]
        return found | self.more


def problem_of(error: Exception) -> Refusal:
    """An error as problem details. What is not meant for callers becomes an incident."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, InvalidRequest):
        return Refusal(422, error.faults[0].detail, faults=error.faults, error="InvalidValue")
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), None)
    if status is None or not isinstance(error, ExpostError):
        return incident(error)
    return Refusal(status, _words(error), error=type(error).__name__, **_more(error))


def incident(error: BaseException) -> Refusal:
    """An error whose words may quote data: a number to ask the custodian about, and a line in the log."""
    number = secrets.token_hex(4)
    LOG.error("incident", extra={"facts": {"incident": number, "class": type(error).__name__}})
    kind = type(error).__name__ if isinstance(error, EngineFailed | LedgerCorrupt) else "ExpostError"
    return Refusal(
        500, f"incident {number}: tell the custodian, who finds it in the log", error=kind, incident=number
    )  # fmt: skip


def _words(error: ExpostError) -> str:
    if isinstance(error, BudgetExceeded):
        return (
            f"asked for {error.requested}, and the largest affordable is {error.affordable}: nothing was charged"
        )  # fmt: skip
    if isinstance(error, LedgerClosed):
        return "nothing more can be spent here: it was closed. Nothing was charged"
    if isinstance(error, LedgerUnavailable):
        return "the database does not answer, and nothing was delivered: try again, under the same key"
    if isinstance(error, KeyConflict):
        return KEY_TAKEN
    if isinstance(error, UnknownEntry):
        return "there is nothing of that name"
    return error.text(toml_words)


def _more(error: Exception) -> dict[str, Any]:
    if isinstance(error, BudgetExceeded):
        return {"requested": error.requested.to_json(), "affordable": error.affordable.to_json()}
    return {}
