"""The client: tables and a ledger behind a service, with the same Python as with a local ledger."""

from expost.errors import MissingDependency

try:
    import httpx as _  # noqa: F401
except ModuleNotFoundError as missing:  # pragma: no cover - the development environment has it
    raise MissingDependency("clients", str(missing.name), "client") from None

from expost.service.client.connection import AsyncConnection, Connection, connect, connect_async

__all__ = ["AsyncConnection", "Connection", "connect", "connect_async"]
