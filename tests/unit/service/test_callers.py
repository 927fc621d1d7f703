"""Nobody's requests keep others' waiting: a few of an account at once, some wait, and more are refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from threading import Event, Lock

import pytest
from starlette.requests import Request

from expost.service.callers import Callers
from expost.service.dashboard.pages import refusal_page
from expost.service.limits import ProblemReply
from expost.service.problems import Refusal
from serving import Forked, Running


def test_one_account_takes_no_more_than_its_share() -> None:
    callers, go, lock, running = Callers(), Event(), Lock(), []

    def held() -> None:
        with lock:
            running.append(1)
        go.wait(120)

    async def all_of_them() -> None:
        asked = [asyncio.ensure_future(callers.work("a", held)) for _ in range(64)]
        until = time.monotonic() + 60
        while len(running) < 4 and time.monotonic() < until:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert len(running) == 4
        with pytest.raises(Refusal, match="under way") as refused:
            await callers.work("a", held)
        assert refused.value.status == 429
        assert await asyncio.wait_for(callers.work("b", lambda: 7), 60) == 7  # while those of the other are at work
        assert await asyncio.wait_for(callers.briefly(lambda: 8), 60) == 8
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


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service whose next answer time nobody waits for."""
    service = Forked(tmp_path_factory.mktemp("rare"), server="answer_every = 3600")
    yield service.start()
    service.stop()


@pytest.mark.parametrize("account", ["people/nobody", "people/alice/child"])
def test_an_unknown_account_is_refused_at_once(rare: Running, account: str) -> None:
    """Names of accounts are governance, which is not as of answer times."""
    with rare.client("custodian") as client:
        assert client.get("/v1/account", params={"account": account}).status_code == 404


def test_a_new_account_can_be_asked_about_at_once(rare: Running) -> None:
    with rare.client("custodian") as client:
        made = client.post("/v1/admin/accounts", json={"account": "people/young", "epsilon": "2"})
        assert made.status_code == 201
        found = client.get("/v1/account", params={"account": "people/young"})
        assert (found.status_code, found.json()) == (200, made.json())
        assert "people/young" in {each["account"] for each in client.get("/v1/accounts").json()}
