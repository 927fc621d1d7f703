"""Who may call a route: every route names its roles, and each is checked before anything else is looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from expost.service.api.models import ProblemModel
from expost.service.core import Service
from expost.service.problems import TITLES, Refusal
from expost.service.tokens import AccessToken, Role

_BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="A token, as Authorization: Bearer xp_…")
_PROBLEM = {"model": ProblemModel, "content": {"application/problem+json": {}}}


def service_of(request: Request) -> Service:
    """The service behind a request."""
    found: Service = request.app.state.service
    return found


async def _here(request: Request) -> Service:
    """The same, for routes: one that is not async would take a thread per request."""
    return service_of(request)


Here = Annotated[Service, Depends(_here)]


def allow(*roles: Role) -> Any:
    """A dependency: the token, if it is valid (else 401) and has one of these roles (else 403)."""

    async def check(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)] = None
    ) -> AccessToken:
        token = None if given is None else await service_of(request).door.token_of(given.credentials)
        if token is None:
            raise Refusal(401, "send a valid token: Authorization: Bearer xp_…")
        if token.role not in roles:
            raise Refusal(403, f"a token of role {token.role!r} may not do this")
        request.state.account = token.account
        return token

    checked: Callable[..., Awaitable[AccessToken]] = check
    return Depends(checked)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for the OpenAPI document."""
    everywhere = (400, 401, 403, 404, 413, 415, 422, 429, 500, 503)
    return {status: {"description": TITLES[status], **_PROBLEM} for status in sorted({*everywhere, *statuses})}


Analyst = Annotated[AccessToken, allow("analyst")]
Custodian = Annotated[AccessToken, allow("custodian")]
AnyReader = Annotated[AccessToken, allow("analyst", "custodian", "auditor")]
Auditor = Annotated[AccessToken, allow("auditor", "custodian")]
External = Annotated[AccessToken, allow("engine")]
