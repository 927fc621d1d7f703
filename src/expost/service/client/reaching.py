"""Why a service cannot be reached: each cause with its remedy, and what may pass told from what cannot."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from expost.errors import ExpostError, InvalidValue, LedgerUnavailable
from expost.service.addresses import is_loopback

_TOKEN = re.compile(r"[!-~]+")


def checked_address(url: str, *, in_the_clear: bool) -> str:
    """An address that a token can be sent to. Raises ``InvalidValue``."""
    parts = urlsplit(url if isinstance(url, str) else "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidValue(f"the address of a service is https://host or https://host:port, got {url!r}")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidValue("the address of a service has neither a user nor a query: who asks is said by the token")
    if parts.scheme == "http" and not is_loopback(parts.hostname) and not in_the_clear:
        raise InvalidValue(
            f"http://{parts.hostname} would send the token across the network, where others can read and use it: say "
            "https://, or connect(…, in_the_clear=True) where nobody else is on the way"
        )
    return url


def checked_token(token: str) -> str:
    """A token that can be sent. Raises ``InvalidValue``, without the token."""
    if isinstance(token, str) and _TOKEN.fullmatch(token):
        return token
    spaces = isinstance(token, str) and _TOKEN.fullmatch(token.strip())
    remedy = ": it has a line break or spaces around it, take token.strip()" if spaces else ""
    raise InvalidValue(f"a token is one word, such as xp_…, as it was shown when it was made{remedy}")


def why_away(error: httpx.TransportError, url: httpx.URL) -> tuple[ExpostError, bool]:
    """What became of a request that got no reply, and whether the address is wrong: then it cannot pass."""
    causes = list(_causes(error))
    where = f"{url.host}:{url.port or (443 if url.scheme == 'https' else 80)}"
    wrong = _wrong_address(causes, url.host, where)
    if wrong is None and isinstance(error, httpx.RemoteProtocolError):
        wrong = f"{where} ended the connection without a reply"
        wrong += ": if it serves TLS, say https://" if url.scheme == "http" else ""
    if wrong is not None:
        return LedgerUnavailable(f"{wrong}. The same key asks again, and is charged once"), True
    return LedgerUnavailable("the service cannot be reached; the same key asks again, and is charged once"), False


def _wrong_address(causes: list[BaseException], host: str, where: str) -> str | None:
    if any(isinstance(each, socket.gaierror) for each in causes):
        return f"there is no host {host!r}, or no network: check the address"
    if any(isinstance(each, ConnectionRefusedError) for each in causes):
        return f"nothing listens at {where}: check the port, and that the service runs there"
    broken = next((each for each in causes if isinstance(each, ssl.SSLError)), None)
    if isinstance(broken, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {where} is not trusted ({broken.verify_message}): let this machine trust whoever "
            "signed it, or name its file in SSL_CERT_FILE"
        )
    return None if broken is None else f"{where} does not speak TLS: if the service has none, say http://"


def not_a_service(reply: httpx.Response) -> ExpostError:
    """Something else answers there."""
    url = reply.request.url
    return LedgerUnavailable(
        f"what answers at {url.scheme}://{url.netloc.decode()} is not this service (status {reply.status_code}): check "
        "host, port and path"
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from, members of groups included."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
