"""Nobody's requests keep others' waiting: a few of an account at once, some wait, and more are refused."""

from __future__ import annotations

import asyncio
import time
from threading import Event, Lock

import pytest
from starlette.requests import Request

from expost.service.callers import Callers
from expost.service.dashboard.pages import refusal_page
from expost.service.limits import ProblemReply
from expost.service.problems import Refusal
from serving import Running


def test_one_account_takes_no_more_than_its_share() -> None:
    callers, go, lock, running = Callers(), Event(), Lock(), []

    def held() -> None:
        with lock:
            running.append(1)
        go.wait(10)

    async def all_of_them() -> None:
        asked = [asyncio.ensure_future(callers.work("a", held)) for _ in range(64)]
        await asyncio.sleep(0.05)
        assert len(running) == 4
        with pytest.raises(Refusal, match="under way") as refused:
            await callers.work("a", held)
        assert refused.value.status == 429
        since = time.monotonic()
        assert await callers.work("b", lambda: 7) == 7
        assert await callers.briefly(lambda: 8) == 8
        assert time.monotonic() - since < 1
        asked.pop().cancel()  # somebody hangs up, and leaves a place
        await asyncio.sleep(0.01)
        asked.append(asyncio.ensure_future(callers.work("a", held)))
        go.set()
        await asyncio.gather(*asked)
        assert not callers.requests._lines

    asyncio.run(all_of_them())


def test_who_is_refused_for_now_is_told_when_to_come_back() -> None:
    """Programs and browsers alike."""
    busy = Refusal(429, "later", retry_after=2.2)
    request = Request({"type": "http", "headers": [], "path": "/"})
    assert ProblemReply(busy).headers["retry-after"] == refusal_page(request, busy).headers["retry-after"] == "3"
    assert ProblemReply(Refusal(503, "away")).headers["retry-after"] == "1"
    assert "retry-after" not in ProblemReply(Refusal(404, "nothing")).headers


@pytest.mark.parametrize("account", ["people/nobody", "people/alice/child"])
def test_an_unknown_account_is_refused_at_once(running: Running, account: str) -> None:
    """Names of accounts are governance, which is not as of answer times."""
    with running.client("custodian") as client:
        since = time.monotonic()
        for _ in range(5):
            assert client.get("/v1/account", params={"account": account}).status_code == 404
        assert time.monotonic() - since < 0.45  # five answer times before


def test_a_new_account_can_be_asked_about_at_once(running: Running) -> None:
    with running.client("custodian") as client:
        made = client.post("/v1/admin/accounts", json={"account": "people/young", "epsilon": "2"})
        assert made.status_code == 201
        found = client.get("/v1/account", params={"account": "people/young"})
        assert (found.status_code, found.json()) == (200, made.json())
        assert "people/young" in {each["account"] for each in client.get("/v1/accounts").json()}
