"""Which tests are slow, and which count branches.

Files say so of themselves: ``pytestmark = pytest.mark.slow``, or ``counted``, or a list of both. The same line in a
``conftest.py`` is about all files of its folder.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import coverage
import pytest

import printed

collect_ignore = [
    # need what only `make docs` installs
    *("docs/conf.py", "docs/gallery.py", "docs/mathml.py", "docs/check_mathml.py"),
    *("tests/elsewhere", "src/expost/adapters/diffprivlib.py"),  # `tests/unit/adapters/test_elsewhere.py` runs these
    # `tests/unit/cli/test_printed.py` runs these, with the seeds that they do not show
    *map(str, printed.pages()),
]
"""They need libraries that are in environments of their own, or are no doctests as they stand."""

Items: TypeAlias = list[pytest.Item]
_MARKS = re.compile(r"^pytestmark = (\[\n(?:.*\n)*?\]|.*)$", re.MULTILINE)


@cache
def stated(path: Path) -> frozenset[str]:
    """The marks that a file states for all its tests. It is read, not imported: that may take long."""
    found = _MARKS.search(path.read_text()) if path.is_file() else None
    return frozenset() if found is None else frozenset(re.findall(r"pytest\.mark\.(\w+)", found[1]))


def marked(path: Path, root: Path, mark: str) -> bool:
    """Whether a file has a mark, or one of the folders that it is in."""
    folders = [folder / "conftest.py" for folder in path.parents if folder.is_relative_to(root)]
    return any(mark in stated(each) for each in (path, *folders) if each.suffix == ".py")


def is_counted(item: pytest.Item) -> bool:
    """Whether a test counts branches."""
    return marked(item.path, item.config.rootpath, "counted") and item.get_closest_marker("uncounted") is None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``make quick`` does not even import what is slow."""
    if config.option.markexpr != "not slow":
        return None
    within = collection_path / "conftest.py" if collection_path.is_dir() else collection_path
    return marked(within, config.rootpath, "slow") or None


def needs_server(item: pytest.Item) -> bool:
    """Whether a test asks for a PostgreSQL server, or is the case of one that does."""
    return "server" in getattr(item, "fixturenames", ()) or "postgres" in item.nodeid


def pytest_collection_modifyitems(config: pytest.Config, items: Items) -> None:
    """Mark what is slow: what says so, and all that needs a PostgreSQL server. Begin with it."""
    spark, slow, quick = Items(), Items(), Items()
    for item in items:
        if marked(item.path, config.rootpath, "slow") or needs_server(item):
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
    if not is_counted(item):
        return (yield)
    counting.start()
    try:
        return (yield)
    finally:
        counting.stop()
