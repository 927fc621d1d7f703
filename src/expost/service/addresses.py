"""Hosts: which of them only this machine can reach, and under which names a service answers."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class OwnNames:
    """The names under which a service answers: those that it was given, its own address, and this machine's.

    A service that only this machine can reach answers under no other name, even if it was given none: a page from
    elsewhere could let its own name lead here, and read what browsers are sent. One that others can reach answers under
    every name, unless it was given some.
    """

    def __init__(self, names: tuple[str, ...], listens: str, *, behind_proxy: bool) -> None:
        self._names = {name.lower() for name in names}
        self._listens = listens
        self._any = not names and (behind_proxy or not is_loopback(listens))

    def has(self, host: str) -> bool:
        """Whether the Host of a request, with or without a port, is one of them."""
        if self._any:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return is_loopback(name) or name == self._listens or not self._names.isdisjoint((name, host.lower()))
