"""``server.toml``: what the custodian serves. Everything that is wrong is reported at once, with file and line."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expost.errors import InvalidStudy
from expost.service.addresses import is_loopback
from expost.study.grammar import SECTIONS, Key
from expost.study.kinds import KINDS
from expost.study.lines import Place
from expost.study.model import SQLITE, Study
from expost.study.parse import StudyReader, file_text, toml_of

_SERVER = (
    Key("listen", "text", "where to listen, such as 127.0.0.1:8765; port 0 takes any that is free", required=True),
    Key("name", "text", "this process's own name, if several serve one database; by default its host and port",
        longest=200),
    Key("hosts", "texts", "the names under which it is reached, such as answers.example.org: requests under others, "
        "and forms from their pages, are refused; by default this machine's own if only that can reach it, else any"),
    Key("behind_proxy", "switch", "whether a proxy in front of it has TLS; else listening beyond loopback needs 'tls'"),
    Key("tls", "table", "the certificate and its key, as files: { certificate = …, key = … }"),
    Key("answer_every", "number", "seconds between two answer times, from 0.05 to a day; 1 by default"),
    Key("margin", "number", "seconds that a job has: it is answered at the first answer time after them, whenever it "
        "is done; 3 by default"),
    Key("late", "text", "what becomes of a job that is not done at its answer time: it is lost, and its worst case "
        "charged, so that nothing tells how long it took (\"lose\", the default), or it is answered at a later one "
        "(\"wait\"), from which whoever asked learns that", choices=("lose", "wait")),
    Key("job_timeout", "number", "with late = \"wait\": seconds after its answer time when a job that is not done is "
        "lost all the same; 600 by default"),
    Key("pace", "number", "seconds that a question may take while others wait: choose it above the slowest question, "
        "for one that takes longer is given up then, and lost; 0.5 by default"),
    Key("jobs_at_once", "times", "how many data sets are asked at a time, each one question at a time; 2 by default"),
    Key("queue", "positive", "the most jobs of one account that are not answered yet; 50 by default"),
    Key("reviews", "positive", "the most jobs of one account that wait for a review; as many as 'queue' by default"),
    Key("questions", "positive", "the most questions in jobs of one account that are not answered yet; 500 by default"),
    Key("largest_request", "positive", "bytes, at most a million; 65536 by default"),
    Key("largest_answer", "positive", "the most numbers that the answers of one job may have together, at most a "
        "million; 50000 by default"),
    Key("keep_results", "number", "days after which results of answered jobs, and tokens that have ended, are removed; "
        "a job's line stays. Without it everything is kept"),
    Key("connections", "positive", "the most connections at a time; 1000 by default, and never more than there are "
        "file descriptors for"),
    Key("listeners", "positive", "the most live listeners, and requests that wait for an answer, of one token; 100 by "
        "default, and never more than a quarter of the connections"),
    Key("accounts", "positive", "the most accounts that custodians may make with their tokens directly below a ledger, "
        "and below each of those; 1000 by default"),
    Key("external_engines", "switch", "whether tokens of role 'engine' may reserve and settle; false by default"),
)  # fmt: skip
_TLS = (
    Key("certificate", "text", "a PEM file", required=True),
    Key("key", "text", "a PEM file", required=True),
)
_LEDGER = (Key("url", "text", "the database of all ledgers, and of tokens, jobs and reviews", required=True),)
_DATA = (
    *SECTIONS["data"],
    Key("title", "text", "what it is called, for people"),
    Key("ledger", "text", "the ledger that is charged, by its name", required=True, longest=200),
    Key("privacy", "table", "whose privacy is protected, as in a study", required=True),
    Key("bounds", "table", "bounds of columns that are known without the data: age = [0, 120]"),
    Key("derive", "words", "columns computed from others: name = expression"),
    Key("kinds", "texts", "the kinds of questions that may be asked; all by default"),
    Key("review", "switch", "whether a custodian accepts each job; false by default"),
    Key("synthetic", "switch", "whether questions may be rehearsed on made-up rows; false by default"),
)
_TOP = (
    Key("server", "table", "where to listen, and how much at once"),
    Key("ledger", "table", "where ledgers, tokens and jobs are"),
    Key("data", "table", "what is served: one [data.NAME] for each data set"),
)
_ANYTHING = {"name": "anything", "kind": "count", "epsilon": 1}
_DAY = 86_400
_MILLION = 1_000_000
_LONGEST_KEPT = 36_500


@dataclass(frozen=True)
class DataSet:
    """One data set: where it is, whose privacy it needs, who pays, and what may be asked."""

    name: str
    title: str
    study: Study
    """Data, privacy, ledger and derived columns as a study has them; its question is none."""
    sections: Mapping[str, Any]
    """The same as they are written, for studies with callers' questions."""
    bounds: Mapping[str, tuple[float, float]]
    kinds: tuple[str, ...]
    review: bool
    synthetic: bool
    largest_answer: int = 50_000
    """The most numbers that the answers of one job may have together."""

    @property
    def ledger(self) -> str:
        """The ledger's name."""
        return self.study.ledger.name

    @property
    def definition(self) -> str:
        """A hash of all that answers depend on."""
        return hashlib.sha256(json.dumps(self.sections, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class ServerConfig:
    """What ``server.toml`` says."""

    file: Path
    host: str
    port: int
    name: str
    certificate: Path | None
    certificate_key: Path | None
    behind_proxy: bool
    hosts: tuple[str, ...]
    """Names under which browsers reach it, with ports where they show them; none if any will do."""
    answer_every: float
    margin: float
    late: str
    pace: float
    job_timeout: float
    jobs_at_once: int
    queue: int
    questions: int
    reviews: int
    largest_request: int
    keep_results: float | None
    """Days after which results are removed."""
    connections: int
    listeners: int
    accounts: int
    """That custodians may make below a ledger, and below each of those."""
    external_engines: bool
    url: str
    data: Mapping[str, DataSet]

    @property
    def ledgers(self) -> tuple[str, ...]:
        """The ledgers that are charged."""
        return tuple(dict.fromkeys(each.ledger for each in self.data.values()))


def read_config(file: str | Path) -> ServerConfig:
    """The configuration in a file, or ``InvalidStudy`` with everything that is wrong with it."""
    path = Path(file)
    text = file_text(path)
    return _ConfigReader(text, path).config(toml_of(text, path))


class _ConfigReader(StudyReader):
    """Collects problems of a ``server.toml``."""

    def config(self, given: Mapping[str, Any]) -> ServerConfig:
        self.unknown(given, _TOP, (), "")
        server, ledger = self.section(given, "server", _SERVER), self.section(given, "ledger", _LEDGER)
        self.ledger({"url": ledger.get("url", "memory:")}, {})
        if ledger.get("url") == "memory:":
            self.problem(("ledger", "url"), "[ledger] a service needs a durable ledger: sqlite:///… or postgresql://…")
        host, port = self._address(server)
        self._guarded(server, host)
        seconds = self._seconds(server)
        self._sizes(server)
        data = self._data(given, str(ledger.get("url", "")), server.get("largest_answer", 50_000))
        self.refuse()
        folder, tls = self.path.parent, server.get("tls")
        return ServerConfig(
            file=self.path,
            host=host,
            port=port,
            name=server.get("name", f"{socket.gethostname()}:{port}"),
            certificate=folder / tls["certificate"] if tls else None,
            certificate_key=folder / tls["key"] if tls else None,
            behind_proxy=server.get("behind_proxy", False),
            hosts=tuple(server.get("hosts", ())),
            answer_every=seconds,
            margin=float(server.get("margin", 3)),
            late=server.get("late", "lose"),
            pace=float(server.get("pace", 0.5)),
            job_timeout=float(server.get("job_timeout", 600)),
            jobs_at_once=server.get("jobs_at_once", 2),
            queue=server.get("queue", 50),
            questions=server.get("questions", 500),
            reviews=server.get("reviews", server.get("queue", 50)),
            largest_request=server.get("largest_request", 65_536),
            keep_results=server.get("keep_results"),
            connections=server.get("connections", 1000),
            listeners=server.get("listeners", 100),
            accounts=server.get("accounts", 1000),
            external_engines=server.get("external_engines", False),
            url=self._url(ledger["url"]),
            data=data,
        )

    def _url(self, url: str) -> str:
        return SQLITE + str((self.path.parent / url.removeprefix(SQLITE)).resolve()) if url.startswith(SQLITE) else url

    # ---- the server

    def _address(self, server: Mapping[str, Any]) -> tuple[str, int]:
        listen = server.get("listen", "127.0.0.1:0")
        host, colon, port = str(listen).rpartition(":")
        if not host or not colon or not port.isdecimal() or int(port) > 65535:
            self.problem(
                ("server", "listen"), f"[server] 'listen' is host:port, such as 127.0.0.1:8765, got {listen!r}"
            )
            return "127.0.0.1", 0
        return host.strip("[]"), int(port)

    def _guarded(self, server: Mapping[str, Any], host: str) -> None:
        """Tokens and answers do not cross a network in the clear."""
        tls = server.get("tls")
        if tls is not None and self.table(tls, _TLS, ("server", "tls"), "[server] tls: "):
            gone = [(name, file) for name, file in tls.items() if not (self.path.parent / file).is_file()]
            wrong = [f"there is no file {file!r} for {name!r}" for name, file in gone]
            for what in wrong or _unusable(self.path.parent, tls["certificate"], tls["key"]):
                self.problem(("server", "tls"), f"[server] tls: {what}")
        if not is_loopback(host) and tls is None and not server.get("behind_proxy"):
            self.problem(
                ("server", "listen"),
                f"[server] {host} can be reached by others, and tokens would cross the network in the clear: state "
                "'tls', or behind_proxy = true if a proxy in front of it has TLS, or listen on 127.0.0.1",
            )

    def _seconds(self, server: Mapping[str, Any]) -> float:
        every, margin = server.get("answer_every", 1.0), server.get("margin", 0)
        if not 0.05 <= every <= _DAY:
            self.problem(
                ("server", "answer_every"), f"[server] 'answer_every' is from 0.05 to {_DAY} seconds, got {every}"
            )
        others = {name: server.get(name, 0) for name in ("pace", "job_timeout")}
        for name, given in {"margin": margin, **others}.items():
            if not 0 <= given <= _DAY:
                self.problem(("server", name), f"[server] {name!r} is from 0 to {_DAY} seconds, got {given}")
        return float(every)

    # ---- data sets

    def _sizes(self, server: Mapping[str, Any]) -> None:
        for name in ("largest_request", "largest_answer"):
            if server.get(name, 1) > _MILLION:
                self.problem(("server", name), f"[server] {name!r} is at most a million, got {server[name]}")
        days = server.get("keep_results", 1)
        if not 1 <= days <= _LONGEST_KEPT:
            self.problem(
                ("server", "keep_results"), f"[server] 'keep_results' is from 1 to {_LONGEST_KEPT} days, got {days}"
            )

    def _data(self, given: Mapping[str, Any], url: str, largest: int) -> dict[str, DataSet]:
        sets = given.get("data", {})
        if not isinstance(sets, dict) or not sets:
            self.problem(("data",), "there is no [data.NAME]: a service has at least one data set")
            return {}
        found = {}
        for name, each in sets.items():
            place: Place = ("data", name)
            if not re.fullmatch(r"[\w-]{1,100}", name):
                self.problem(place, f"[data.{name}] a name has letters, digits, '_' and '-' only")
            elif self.table(each, _DATA, place, f"[data.{name}] ") and self._kinds(each, name):
                bounds = self._bounds(each.get("bounds", {}), name)
                made = self._set(name, each, url)
                if made is not None:
                    study, sections = made
                    found[name] = DataSet(
                        name, each.get("title", name), study, sections, bounds, tuple(each.get("kinds", KINDS)),
                        each.get("review", False), each.get("synthetic", False), largest,
                    )  # fmt: skip
        return found

    def _kinds(self, given: Mapping[str, Any], name: str) -> bool:
        unknown = [kind for kind in given.get("kinds", ()) if kind not in KINDS]
        for kind in unknown:
            self.problem(
                ("data", name, "kinds"), f"[data.{name}] unknown kind {kind!r}: known are {', '.join(sorted(KINDS))}"
            )
        return not unknown

    def _bounds(self, given: Mapping[str, Any], name: str) -> dict[str, tuple[float, float]]:
        pair, found = Key("bounds", "pair", ""), {}
        for column, bounds in given.items():
            if pair.wrong(bounds) or not bounds[0] < bounds[1]:
                rule = f"the bounds of {column!r} are two numbers, the lower first, such as [0, 120]"
                self.problem(("data", name, "bounds", column), f"[data.{name}.bounds] {rule}")
            else:
                found[column] = (bounds[0], bounds[1])
        return found

    def _set(self, name: str, given: Mapping[str, Any], url: str) -> tuple[Study, dict[str, Any]] | None:
        """A data set as a study sees it: problems with it are found by the study's own reader."""
        own = {key.name for key in SECTIONS["data"]}
        sections = {
            "data": {key: value for key, value in given.items() if key in own},
            "privacy": given["privacy"],
            "limit": {"epsilon": 1},
            "ledger": {"url": url if url and url != "memory:" else "sqlite:///unknown.db", "name": given["ledger"]},
            "derive": given.get("derive", {}),
        }
        reader = StudyReader(self.text, self.path, _moved(self.index, name))
        try:
            return reader.study({**sections, "question": [_ANYTHING]}), sections
        except InvalidStudy as error:
            self.problems += [(line, f"[data.{name}] {what}") for line, what in error.problems]
            return None


def _unusable(folder: Path, certificate: str, key: str) -> Iterator[str]:
    """What is wrong with a certificate and its key, if anything is."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / certificate, folder / key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            yield f"the key in {key!r} is not that of the certificate in {certificate!r}"
        elif "ENCRYPTED" in (folder / key).read_text(errors="replace"):
            yield f"the key in {key!r} is protected by a password, which nobody is there to type: store it without one"
        else:
            yield f"{certificate!r} is not a certificate and {key!r} is not its key, as PEM files"
    except OSError:
        yield f"{certificate!r} or {key!r} cannot be read"


def _moved(index: Mapping[Place, int], name: str) -> dict[Place, int]:
    """Where the sections of a data set are, by their names in a study."""
    moved: dict[Place, int] = {}
    for place, line in index.items():
        if place[:2] != ("data", name):
            continue
        rest = place[2:]
        if rest[:1] in (("privacy",), ("derive",)):
            moved[rest] = line
        elif rest == ("ledger",):
            moved["ledger", "name"] = moved["ledger",] = line
        else:
            moved["data", *rest] = line
    return moved
