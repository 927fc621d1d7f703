"""What a custodian does: TLS, tokens on the command line, and what is off unless it is switched on."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import Result

import expost as xp
from commands import CliRunner
from expost import Ledger
from expost.cli.main import app
from expost.errors import InvalidStudy
from expost.service.config import read_config
from serving import COUNT, METERED, UNIT, Running, answer, submit

NORMAL = {"name": "n", "kind": "count", "where": "age >= 60", "noise": "gaussian", "epsilon": 0.1}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a certificate of its own making, and nothing switched on."""
    folder = tmp_path_factory.mktemp("secured")
    certify(folder, "server")
    served = 'tls = { certificate = "server.pem", key = "server.key" }\nhosts = ["answers.example"]'
    service = Running(folder, server=served, more=METERED)
    ledger = Ledger.create(service.url, "metered", 1, 1e-6, neighbours="substitute", unit=UNIT, accounting="renyi")
    ledger.create_account("carol", 1, 1e-6)
    ledger.create_account("dave", 1)
    ledger.create_account("erin", 1, 1e-6)
    service.add_tokens(*((name, "analyst", f"metered/{name}") for name in ("carol", "dave", "erin")))
    yield service.start()
    service.stop()


def certify(folder: Path, name: str) -> None:
    """A certificate for 127.0.0.1, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl, which makes the certificate of these tests: apt install openssl")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=a test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / f"{name}.key",
         "-out", folder / f"{name}.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


def trusting(service: Running) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=service.folder / "server.pem")


def https(service: Running, who: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {service.secrets[who]}"}
    return httpx.Client(base_url=service.address, headers=headers, verify=trusting(service), timeout=60)


# ---- TLS


def test_tls_is_served_and_nothing_else(secured: Running) -> None:
    assert secured.address.startswith("https://127.0.0.1:")
    with https(secured, "alice") as client:
        reply = client.get("/v1/account")
        assert reply.json()["account"] == "people/alice"
        assert reply.headers["strict-transport-security"] == "max-age=31536000"
    with pytest.raises(httpx.ConnectError, match="self-signed certificate"), httpx.Client() as stranger:
        stranger.get(f"{secured.address}/health")
    with pytest.raises(httpx.TransportError), httpx.Client() as plain:
        plain.get(f"{secured.address.replace('https', 'http')}/health")


def test_the_client_asks_over_tls(secured: Running) -> None:
    transport = httpx.HTTPTransport(verify=trusting(secured))
    with xp.connect(secured.address, secured.secrets["alice"], transport=transport) as there:
        release = there.ledger.run(there.data["people"].where("age >= 60").count().mechanism(epsilon=0.01))
        assert release.charged == xp.Cost(0.01)


def test_the_client_says_what_is_wrong_with_tls(secured: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: it is not tried again."""

    def paused(seconds: float) -> None:
        raise AssertionError("it was tried again")

    monkeypatch.setattr(time, "sleep", paused)
    token = secured.secrets["alice"]
    with pytest.raises(xp.errors.LedgerUnavailable, match="if it serves TLS, say https://"):
        xp.connect(secured.address.replace("https:", "http:"), token)
    with pytest.raises(
        xp.errors.LedgerUnavailable, match=r"the certificate of 127.0.0.1:\d+ is not trusted \(self-signed"
    ):
        xp.connect(secured.address, token)


def test_a_browser_signs_in_over_tls(secured: Running) -> None:
    with httpx.Client(base_url=secured.address, verify=trusting(secured)) as client:
        reply = client.post(
            "/sign-in", data={"token": secured.secrets["alice"]}, headers={"origin": "https://answers.example"}
        )
        assert reply.status_code == 303
        assert "Secure" in reply.headers["set-cookie"]
        assert client.get("/").status_code == 200  # the cookie is sent back


def test_forms_come_from_pages_of_the_stated_names(secured: Running) -> None:
    token = {"token": secured.secrets["alice"]}
    with httpx.Client(base_url=secured.address, verify=trusting(secured)) as client:
        evil = {"origin": "https://evil.example"}
        assert client.post("/sign-in", data=token, headers=evil | {"host": "evil.example"}).status_code == 421
        assert client.post("/sign-in", data=token, headers=evil).status_code == 403
        assert client.post("/sign-in", data=token, headers={"origin": "null"}).status_code == 403
        known = {"origin": "https://answers.example"}  # what a proxy in front of it is called
        assert client.post("/sign-in", data=token, headers=known).status_code == 303


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("server.pem", "other.key", "tls: the key in 'other.key' is not that of the certificate in 'server.pem'"),
        ("people.csv", "server.key", "tls: 'people.csv' is not a certificate and 'server.key' is not its key"),
        ("gone.pem", "server.key", "tls: there is no file 'gone.pem' for 'certificate'"),
        ("server.pem", "locked.key", "tls: the key in 'locked.key' is protected by a password"),
    ],
)
def test_certificates_are_checked_before_the_port_is_opened(
    secured: Running, certificate: str, key: str, said: str
) -> None:
    folder = secured.folder
    certify(folder, "other")
    subprocess.run(
        ["openssl", "pkey", "-in", folder / "server.key", "-aes256", "-passout", "pass:word", "-out",
         folder / "locked.key"], check=True, capture_output=True,
    )  # fmt: skip
    text = secured.file.read_text().replace("server.pem", certificate).replace("server.key", key)
    file = folder / "wrong.toml"
    file.write_text(text.replace("127.0.0.1:0", "0.0.0.0:0"))
    with pytest.raises(InvalidStudy) as caught:
        read_config(file)
    assert f"wrong.toml:5: [server] {said}" in str(caught.value)
    file.write_text(secured.file.read_text().replace("127.0.0.1:0", "0.0.0.0:0"))
    assert read_config(file).host == "0.0.0.0"  # with TLS others may reach it


# ---- tokens on the command line


def token(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["token", *map(str, arguments)], env={"COLUMNS": "200", "TERM": "dumb"})


def test_tokens_are_added_listed_and_revoked(secured: Running) -> None:
    made = token("add", secured.file, "--role", "analyst", "--account", "people/bob", "--name", "Bob's second")
    assert made.exit_code == 0, made.output
    secured.secrets["second"] = secret = made.output.strip()
    found = re.fullmatch(r"xp_([0-9a-f]{16})_[\w-]{43}", secret)
    assert found
    with https(secured, "second") as client:
        assert client.get("/v1/account").json()["account"] == "people/bob"
        listed = token("list", secured.file)
        (line,) = (line for line in listed.output.splitlines() if found[1] in line)
        assert line.split()[1:4] == ["analyst", "people/bob", "Bob's"]
        assert "ended" not in line
        assert secret[20:] not in listed.output + token("list", secured.file, "--json").output
        assert token("revoke", secured.file, found[1]).output == f"revoked {found[1]}\n"
        until = time.monotonic() + 60  # within a second, on an idle machine
        while client.get("/v1/account").status_code != 401 and time.monotonic() < until:
            time.sleep(0.05)
        assert client.get("/v1/account").status_code == 401
    (line,) = (line for line in token("list", secured.file).output.splitlines() if found[1] in line)
    assert line.split()[-1] == "ended"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "--role", "analyst", "--account", "people/eve", "--name", "x"), "no account 'eve'"),
        (
            ("add", "--role", "analyst", "--account", "others", "--name", "x"),
            "no data set is charged to ledger",
        ),
        (("add", "--role", "analyst", "--account", "people", "--name", ""), "a token's name says whose it is"),
        (("add", "--role", "analyst", "--account", "people", "--name", "x", "--days", "0"), "lives for more than 0"),
        (("revoke", "0123456789abcdef"), "there is no token '0123456789abcdef'"),
    ],
)
def test_what_is_wrong_with_a_token(secured: Running, arguments: tuple[str, ...], said: str) -> None:
    before = token("list", secured.file, "--json").output
    done = token(arguments[0], secured.file, *arguments[1:])
    assert done.exit_code != 0
    assert said in done.output
    assert token("list", secured.file, "--json").output == before


# ---- what is off


def test_external_engines_are_off_unless_they_are_switched_on(secured: Running) -> None:
    wanted = {"key": "k", "label": "x", "parts": {"a": "0.01"}, "lease": 60}
    before = list(secured.ledger().entries())
    for who in ("engine", "custodian", "alice"):
        with https(secured, who) as client:
            for path, body in (("", wanted), ("/k/settlement", {"part": "a"}), ("/k/forfeiture", None)):
                reply = client.post(f"/v1/engine/reservations{path}", json=body)
                assert (reply.status_code, reply.json()["detail"]) == (404, "external engines are off here")
    with https(secured, "engine") as client:
        assert submit(client, "k", COUNT).status_code == 403
    assert list(secured.ledger().entries()) == before


# ---- Rényi accounting


def test_normal_noise_needs_no_delta_under_renyi_accounting(secured: Running) -> None:
    with https(secured, "carol") as client:
        plan = client.post("/v1/data/metered/plan", json={"questions": [NORMAL]}).json()
        assert plan["fits"]
        before = client.get("/v1/account").json()["remaining"]
        done = answer(client, submit(client, "normal", NORMAL, data="metered").json()["id"])
        (question,) = done["result"]["questions"]
        assert question["state"] == "answered"
        assert "Gaussian" in str(question["how"])
        assert client.get("/v1/account").json()["remaining"] != before
        rehearsed = client.post("/v1/data/metered/rehearsal", json={"questions": [NORMAL]}).json()
        assert rehearsed["questions"][0]["state"] == "answered"
    entry = list(Ledger.load(secured.url, "metered", recover=False).entries())[-1]
    assert (entry.account, entry.state) == ("metered/carol", "settled")
    assert entry.amounts is not None
    assert entry.amounts.renyi > 0


@pytest.mark.parametrize("many", [1, 120, 2000])
def test_the_client_quotes_what_the_meters_say(secured: Running, many: int) -> None:
    """A hundred and twenty times 0.01 are more than the limit of 1, and fit on another meter."""
    transport = httpx.HTTPTransport(verify=trusting(secured))
    with xp.connect(secured.address, secured.secrets["erin"], transport=transport) as there:
        question = there.data["metered"].where("age >= 60").count().mechanism(epsilon=0.01)
        quote = there.ledger.quote([question] * many)
        assert there.ledger.quote([question.guarantee]).fits
    assert quote == Ledger.load(secured.url, "metered", recover=False).account("erin").quote([question] * many)
    assert quote.fits == (many < 2000)
    assert (quote.worst <= quote.remaining) == (many == 1)


def test_the_client_asks_for_gaussian_noise_at_the_price_on_the_meters(secured: Running) -> None:
    transport = httpx.HTTPTransport(verify=trusting(secured))
    with xp.connect(secured.address, secured.secrets["erin"], transport=transport) as there:
        question = there.data["metered"].where("age >= 60").count()
        quote = there.ledger.quote(question, epsilon=0.01, noise="gaussian")
        assert (quote.worst, quote.fits) == (xp.Cost(0), True)
        book = Ledger.load(secured.url, "metered", recover=False).account("erin")
        assert quote.worst_amounts == book.quote(question, epsilon=0.01, noise="gaussian").worst_amounts


@pytest.mark.parametrize(("who", "data"), [("alice", "people"), ("dave", "metered")])
def test_normal_noise_needs_a_delta_where_the_basic_sum_is_all_there_is(secured: Running, who: str, data: str) -> None:
    with https(secured, who) as client:
        reply = submit(client, "normal", NORMAL, data=data)
        assert reply.status_code == 422
        assert "'delta' is missing" in reply.json()["detail"]
