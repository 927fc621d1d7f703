"""``server.toml``: what is wrong is said with file and line, all of it, before a port is opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from expost import Ledger
from expost.errors import Busy, ExpostError, InvalidStudy
from expost.service.config import read_config
from expost.service.core import Service
from serving import SERVER, UNIT, Running
from studies import write_people

GOOD = SERVER.format(server="answer_every = 0.5", url="sqlite:///books.db", data="")


def write(folder: Path, text: str) -> Path:
    file = folder / "server.toml"
    file.write_text(text)
    return file


def test_a_good_file_is_read(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, GOOD))
    assert (config.host, config.port, config.answer_every, config.margin) == ("127.0.0.1", 0, 0.5, 3)
    assert config.url == f"sqlite:///{tmp_path}/books.db"
    people = config.data["people"]
    assert (people.ledger, people.review, people.synthetic, people.bounds) == ("people", False, True, {"age": (0, 100)})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"127.0.0.1:0"', '"0.0.0.0:80"', "server.toml:2: [server] 0.0.0.0 can be reached by others"),
        ('"127.0.0.1:0"', '"localhost"', "server.toml:2: [server] 'listen' is host:port"),
        ("answer_every = 0.5", "answer_every = 0", "server.toml:3: [server] 'answer_every' is from 0.05"),
        ("answer_every = 0.5", "margin = -1", "server.toml:3: [server] 'margin' is from 0"),
        (
            "answer_every = 0.5",
            "keep_results = 0",
            "server.toml:3: [server] 'keep_results' is from 1 to 36500 days, got 0",
        ),
        ("answer_every = 0.5", 'keep_results = "90 days"', "server.toml:3: [server] 'keep_results' is a number"),
        ("answer_every", "answer_evry", "server.toml:3: [server] unknown key 'answer_evry': did you mean"),
        ("answer_every = 0.5", 'tls = { certificate = "x" }', "server.toml:3: [server] tls: state 'key'"),
        ("sqlite:///books.db", "memory:", "server.toml:6: [ledger] a service needs a durable ledger"),
        ("sqlite:///books.db", "mysql://u:secret@h/d", "server.toml:6: [ledger] 'url' is an address"),
        ("[ledger]", "[ledgers]", "section [ledger] is missing"),
        ('ledger = "people"', 'ledger = "a/b"', "server.toml:10: [data.people] [ledger] 'name' has no '/'"),
        ("synthetic = true", "synthetic = 1", "server.toml:11: [data.people] 'synthetic' is true or false"),
        ("synthetic = true", 'kinds = ["cuont"]', "server.toml:11: [data.people] unknown kind 'cuont'"),
        ("synthetic = true", "password = 1", "server.toml:11: [data.people] unknown key 'password'"),
        ('unit = "row"', 'unit = "person"', "server.toml:22: [data.people] [privacy] 'rows' is missing"),
        ('neighbours = "substitute"', 'neighbours = "x"', "server.toml:24: [data.people] [privacy] 'neighbours'"),
        ("age = [0, 100]", "age = [5, 1]", "server.toml:27: [data.people.bounds] the bounds of 'age' are two numbers"),
        ('age = "integer"', 'age = "whole thing"', "server.toml:16: [data] column"),
        ("[data.people]", "[data]", "server.toml:11: [data.synthetic] this is a table of keys"),
        ("[data.people.schema]", "[[[", "this is not TOML"),
    ],
)
def test_mistakes_have_a_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    write_people(tmp_path)
    Ledger.create(f"sqlite:///{tmp_path}/books.db", "people", 1, neighbours="substitute", unit=UNIT)
    assert old in GOOD
    with pytest.raises(InvalidStudy) as caught:
        Service(read_config(write(tmp_path, GOOD.replace(old, new, 1))))
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_files_are_read_before_anybody_asks(tmp_path: Path) -> None:
    """Or whoever asks first is late, and pays for it."""
    write_people(tmp_path)
    Ledger.create(f"sqlite:///{tmp_path}/books.db", "people", 1, neighbours="add-remove", unit=UNIT)
    service = Service(read_config(write(tmp_path, GOOD.replace('"substitute"', '"add-remove"'))))
    engine: Any = service.served["people"].table.engine
    assert engine._awaited is None
    service.database.close()
    service._let_go()


def test_everything_is_said_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("answer_every = 0.5", "answer_every = 0\nfoo = 1").replace('"row"', '"person"')
    with pytest.raises(InvalidStudy) as caught:
        read_config(write(tmp_path, text))
    assert len(caught.value.problems) == 3


def test_beyond_loopback_a_proxy_or_tls_is_needed(tmp_path: Path) -> None:
    text = GOOD.replace("127.0.0.1", "0.0.0.0")
    config = read_config(write(tmp_path, text.replace("answer_every", "behind_proxy = true\nanswer_every")))
    assert config.behind_proxy


def test_data_and_ledgers_are_checked_before_the_port_is_opened(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    with pytest.raises(ExpostError, match="no ledger file"):
        Service(read_config(file))
    url = f"sqlite:///{tmp_path}/books.db"
    Ledger.create(url, "other", 1, neighbours="substitute", unit=UNIT)
    with pytest.raises(InvalidStudy, match=r"server.toml:9: \[data\]"):
        Service(read_config(file))
    write_people(tmp_path)
    with pytest.raises(InvalidStudy, match=r"server.toml:10: \[ledger\] there is no ledger 'people'"):
        Service(read_config(file))
    Ledger.create(url, "people", 1, neighbours="add-remove", unit=UNIT)
    with pytest.raises(InvalidStudy, match=r"server.toml:10: \[ledger\] neighbours: ledger 'people' says"):
        Service(read_config(file))


@pytest.mark.parametrize("unit", ["visitor", "person", "visit (one row each)", "visitor (column person)"])
def test_a_data_set_of_rows_is_not_served_from_a_ledger_of_people(tmp_path: Path, unit: str) -> None:
    write_people(tmp_path)
    Ledger.create(f"sqlite:///{tmp_path}/books.db", "people", 1, neighbours="substitute", unit=unit)
    with pytest.raises(InvalidStudy, match=r"server.toml:10: \[ledger\] unit: ledger 'people'"):
        Service(read_config(write(tmp_path, GOOD)))


def test_one_process_per_file(running: Running) -> None:
    with pytest.raises(Busy, match="another process serves this file"):
        Service(read_config(running.file))


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD.replace("127.0.0.1", "0.0.0.0"))
    done = subprocess.run(
        [sys.executable, "-m", "expost", "serve", str(file)], capture_output=True, text=True, timeout=600,
        env={**os.environ, "COLUMNS": "500"}, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"error: {file}:2: [server] 0.0.0.0 can be reached by others" in done.stderr
