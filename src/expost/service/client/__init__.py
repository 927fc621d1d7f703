"""The client: tables and a ledger behind a service, with the same Python as with a local ledger."""

from expost.service.client.connection import AsyncConnection, Connection, connect, connect_async

__all__ = ["AsyncConnection", "Connection", "connect", "connect_async"]
