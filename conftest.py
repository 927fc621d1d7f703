"""Which tests are slow, and which count branches: lists in pyproject.toml."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import coverage
import pytest

collect_ignore = [
    # need what only `make docs` installs
    *("docs/conf.py", "docs/gallery.py", "docs/mathml.py", "docs/check_mathml.py"),
    *("tests/elsewhere", "src/expost/adapters/diffprivlib.py"),  # `tests/unit/adapters/test_elsewhere.py` runs these
]
"""They need libraries that are in environments of their own."""

Items: TypeAlias = list[pytest.Item]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Lists of paths, from the root, in pyproject.toml."""
    parser.addini("slow", "tests in these folders and files are slow", type="linelist")
    parser.addini("covered", "tests in these folders and files count branches, which takes time", type="linelist")


@cache
def among(path: Path, config: pytest.Config, paths: str) -> bool:
    """Whether a file is one of these, or in one of these folders."""
    at = path.relative_to(config.rootpath)
    return any(place.match(pattern) for place in (at, *at.parents) for pattern in config.getini(paths))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``make quick`` does not even import what is slow."""
    return (config.option.markexpr == "not slow" and among(collection_path, config, "slow")) or None


def needs_server(item: pytest.Item) -> bool:
    """Whether a test asks for a PostgreSQL server, or is the case of one that does."""
    return "server" in getattr(item, "fixturenames", ()) or "postgres" in item.nodeid


def pytest_collection_modifyitems(config: pytest.Config, items: Items) -> None:
    """Mark what is slow: the listed folders and files, and all that needs a PostgreSQL server. Begin with it."""
    spark, slow, quick = Items(), Items(), Items()
    for item in items:
        if among(item.path, config, "slow") or needs_server(item):
            item.add_marker(pytest.mark.slow)
        kind = quick if item.get_closest_marker("slow") is None else spark if "spark" in item.nodeid else slow
        kind.append(item)
    items[:] = in_order(spark, slow, quick, getattr(config, "workerinput", {}).get("workercount", 1))


def in_order(spark: Items, slow: Items, quick: Items, workers: int) -> Items:
    """Each worker gets one of as many equal parts, and takes over from the end of another's when its own is done.

    So one worker alone starts Spark, and all end with what is quick: none waits long for the others.
    """

    def part(some: Items, worker: int) -> Items:
        return some[len(some) * worker // workers : len(some) * (worker + 1) // workers]

    return [*spark, *(item for worker in range(workers) for some in (slow, quick) for item in part(some, worker))]


class Counting:
    """Counts branches where it is worth the time: a worker of pytest-xdist has two counters, one inside the other."""

    def __init__(self) -> None:
        self.stopped: list[coverage.Coverage] = []

    def stop(self) -> None:
        """Stop all counters, the inner one first."""
        while (counter := coverage.Coverage.current()) is not None:
            counter.stop()
            self.stopped.append(counter)

    def start(self) -> None:
        """Start what was stopped."""
        while self.stopped:
            self.stopped.pop().start()


counting = Counting()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Count no branches while modules are imported. They stay: no collection of garbage looks at them, now or later."""
    counting.stop()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop() -> Iterator[None]:
    """Let the counters end as they began: those who own them save what they counted."""
    try:
        return (yield)
    finally:
        counting.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count branches only in tests whose packages have a floor: all others would take twice as long for nothing."""
    if not among(item.path, item.config, "covered") or item.get_closest_marker("uncounted") is not None:
        return (yield)
    counting.start()
    try:
        return (yield)
    finally:
        counting.stop()
