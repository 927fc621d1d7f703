"""The client: tables and a ledger behind a service, with the same Python as at home."""

from expost.service.client.connection import AsyncConnection, Connection, connect, connect_async

__all__ = ["AsyncConnection", "Connection", "connect", "connect_async"]
