"""The application, and the process that serves it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from expost._version import __version__
from expost.errors import ExpostError
from expost.service.addresses import OwnNames
from expost.service.api import asking, engines, governing, operating, reading
from expost.service.asked import Fault, InvalidRequest, first_faults
from expost.service.config import ServerConfig, read_config
from expost.service.connections import BACKLOG, GuardedConnection, room_for
from expost.service.core import Service
from expost.service.dashboard import pages
from expost.service.limits import JsonReply, Limits, ProblemReply
from expost.service.logs import set_up_logs
from expost.service.problems import TITLES, Refusal, problem_of

_STOP_WITHIN = 30
_SWITCH = 0.0005
"""Seconds after which a thread that computes lets the event loop go on: a tenth of Python's own choice."""


def create_app(service: Service) -> FastAPI:
    """The application of a service."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="expost",
        version=__version__,
        description="Private answers that are charged only for what they leaked.",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    for group in (asking, reading, governing, engines, operating, pages):
        app.include_router(group.router)
    app.mount("/static", pages.STATIC)

    @app.get("/v1/openapi.json", include_in_schema=False)
    async def description() -> Response:
        """What the API is. It is made once, and takes longer than others should wait for."""
        return await service.callers.briefly(lambda: JsonReply(app.openapi()))

    app.add_exception_handler(pages.SignInNeeded, _sign_in)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _unknown)
    for kind in (Refusal, InvalidRequest, ExpostError, Exception):  # what is not known becomes an incident
        app.add_exception_handler(kind, _refused)
    return app


def behind_limits(app: FastAPI, config: ServerConfig) -> Limits:
    """The application behind what every request goes through."""
    names = OwnNames(config.hosts, config.host, behind_proxy=config.behind_proxy)
    secure = config.behind_proxy or config.certificate is not None
    return Limits(app, config.largest_request, names, secure=secure)


async def _refused(request: Request, error: Exception) -> Response:
    return _shown(request, problem_of(error))


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code if error.status_code in TITLES else 400
    return _shown(request, Refusal(status, TITLES[status]))


async def _sign_in(request: Request, error: Exception) -> Response:
    return RedirectResponse("/sign-in", 303)


def _shown(request: Request, refusal: Refusal) -> Response:
    """Browsers get a page, programs problem details."""
    for_browsers = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
    return pages.refusal_page(request, refusal) if for_browsers else ProblemReply(refusal)


async def _invalid(request: Request, error: Exception) -> ProblemReply:
    """Faults in words of their own: what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    faults = first_faults(error.errors(), lambda each: Fault(_pointer(each["loc"]), each["msg"]))
    return ProblemReply(Refusal(422, faults[0].detail, faults=faults, error="InvalidValue"))


def _pointer(place: Any) -> str:
    """The body's own places are pointers into it; others begin with the part of the request."""
    parts = list(place[1:]) if place[0] == "body" else list(place)
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def run_server(file: str | Path) -> None:
    """Check everything, then open the port, and serve until a signal comes."""
    config = read_config(file)
    service = Service(config)
    set_up_logs()
    sys.setswitchinterval(_SWITCH)
    GuardedConnection.most = service.door.connections = room_for(config.connections)
    settings = uvicorn.Config(
        behind_limits(create_app(service), config),
        host=config.host,
        port=config.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=config.behind_proxy,
        ssl_certfile=config.certificate,
        ssl_keyfile=config.certificate_key,
        timeout_graceful_shutdown=_STOP_WITHIN,
        timeout_keep_alive=30,
        backlog=BACKLOG,
        http=GuardedConnection,
        ws="none",
        h11_max_incomplete_event_size=65_536,
    )
    _Server(settings, service).run()


class _Server(uvicorn.Server):
    """Says where it listens, once it does; and lets listeners go as soon as a signal comes."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: Any = None) -> None:
        """Open the port."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            scheme = "https" if self.config.is_ssl else "http"
            shown = f"[{host}]" if ":" in host else host
            print(f"serving {scheme}://{shown}:{port}", file=sys.stdout, flush=True)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """The first signal ends it gracefully."""
        self._service.stopping = True
        super().handle_exit(sig, frame)
