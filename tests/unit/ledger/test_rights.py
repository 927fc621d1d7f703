"""What a role with the documented grants can do by hand, past the library: spend its own, and nothing else."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest.mock import ANY

import psycopg
import pytest

import expost as xp
from books import ALONE, GUARANTEE, execute, make
from expost import Cost, Guarantee, Ledger
from expost.canonical import canonical, sha256
from expost.guarantee import Part
from expost.ledger import codec
from expost.ledger.codec import guarantee_digest, guarantee_text
from expost.ledger.grants import grants
from servers import Server
from toys import Fixed

READS, SPENDS, GOVERNS = (
    tuple(grants(kind, "someone").replace("someone", "{0}").splitlines()) for kind in ("reader", "spender", "governor")
)


class Party(NamedTuple):
    """A ledger of the tables' owner, and ways to come as somebody else."""

    ledger: Ledger
    url: str
    role: Callable[..., str]

    def spend(self, url: str, *steps: dict[str, Any], owner: str | None = None, before: tuple[str, ...] = ("",)) -> Any:
        """Call the function by hand; the outcomes."""
        told = (owner or secrets.token_hex(8), "{}", secrets.token_hex(8), json.dumps(before), json.dumps(steps))
        with psycopg.connect(url, autocommit=True) as server:
            row = server.execute("SELECT expost_spend(1,%s,%s,%s,%s::text::jsonb,0,%s::text::jsonb)", told).fetchone()
        assert row is not None
        return row[0]["outcomes"]


@pytest.fixture
def party(server: Server) -> Iterator[Party]:
    url = server.new_database(f"rights_{secrets.token_hex(4)}")
    ledger = make(url, settings=ALONE)

    def role(grants: tuple[str, ...] = SPENDS) -> str:
        name = f"role_{secrets.token_hex(4)}"
        execute(url, f"CREATE ROLE {name} LOGIN", *(grant.format(name) for grant in grants))
        return url.replace("expost@", f"{name}@")

    yield Party(ledger, url, role)
    ledger.verify()


def settle(entry: int, part: str = '"small"', **more: Any) -> dict[str, Any]:
    return {"do": "settle", "entry": entry, "part": part, "epsilon": 0, "delta": 10**12, **more}


def reserve(guarantee: Guarantee = GUARANTEE, **more: Any) -> dict[str, Any]:
    return {
        "do": "reserve", "account": "study", "operation": "reserve", "subject": "x", "fingerprint": "", "label": None,
        "guarantee_digest": guarantee_digest(guarantee), "guarantee_text": guarantee_text(guarantee),
        "key": None, "begun": True, "lease": None, **more,
    }  # fmt: skip


@pytest.mark.parametrize("many", [False, True])
def test_the_charge_follows_from_the_guarantee(party: Party, many: bool) -> None:
    """Whatever a caller says that an entry costs."""
    mine = party.role()
    beat = ({"do": "beat"},) * many
    party.spend(mine, reserve(epsilon=0, delta=0), *beat)
    assert party.ledger.reserved == GUARANTEE.worst_case
    party.spend(mine, settle(1, body="nonsense"), *beat)
    assert (party.ledger.reserved, party.ledger.spent) == (Cost(0), GUARANTEE.cost_of("small"))


LABELS: list[Part] = ["é\U0001f600\x00\ud800", "a!s\\u0041", 'quote"\\', -3, ("a", (1, "\n")), "other"]


@pytest.mark.parametrize("part", LABELS)
def test_every_label_has_its_price(party: Party, part: Any) -> None:
    guarantee = Guarantee({label: 0.25 + k / 8 for k, label in enumerate(LABELS[:-1])}, "1e-9", otherwise="1e-7")
    mine = Ledger.load(party.role(), "study")
    mine.reserve(guarantee, label="é\U0001f600\t", key="ключ").settle(part)
    assert mine.spent == guarantee.cost_of(part)


def test_a_guarantee_of_another_relation(party: Party) -> None:
    other = GUARANTEE.uniform(0.5, neighbours="substitute")
    assert party.spend(party.role(), reserve(other)) == [{"refused": True}]


@pytest.mark.parametrize(
    "text",
    [
        '{"delta":"0","neighbours":null,"otherwise":null,"parts":[["a","1"],["a","2"]]}',
        '{"delta":"0","neighbours":null,"otherwise":null,"parts":[["a",1]]}',
        '{"delta":"0","neighbours":null,"otherwise":null,"parts":[["\\u0061","1"]]}',
        '{"delta":"0","neighbours":null,"otherwise":null,"parts":[["a", "1"]]}',
        '{"delta":"0","neighbours":null,"otherwise":null,"parts":[]}',
        '{"delta":"0","neighbours":null,"otherwise":"1e99","parts":[]}',
        '{"delta":"0","neighbours":null,"otherwise":"1.0","parts":[]}',
        '{"delta":"0","neighbours":null,"otherwise":null,"parts":[["b","1"],["a","1"]]}',
        '{"delta":"0","neighbours":null,"otherwise":"1","parts":[["a","-1"]]}',
        f'{{"delta":"0","neighbours":null,"otherwise":"1","parts":[[{"1" * 1001},"1"]]}}',
        f'{{"delta":"0","neighbours":null,"otherwise":"1","parts":[[{"[" * 20_000}{"]" * 20_000},"1"]]}}',
        "nonsense",
    ],
)
def test_a_text_that_is_not_a_guarantee(party: Party, text: str) -> None:
    with pytest.raises(psycopg.Error, match="no guarantee is known"):
        party.spend(party.role(), reserve(guarantee_digest=sha256(text), guarantee_text=text))


def test_a_guarantee_under_another_digest(party: Party) -> None:
    with pytest.raises(psycopg.Error, match="no guarantee is known"):
        party.spend(party.role(), reserve(guarantee_digest="0" * 64))


DEEP: Any = ("",)
for _ in range(32):
    DEEP = (DEEP, "][")
LONG: Part = 10**1000 - 1


@pytest.mark.parametrize("part", [DEEP[0], LONG, (LONG, "1" * 5000)])
def test_the_deepest_and_longest_parts(party: Party, part: Part) -> None:
    mine = Ledger.load(party.role(), "study")
    mine.reserve(Guarantee({part: "0.25", "other": 1})).settle(part)
    mine.reserve(Guarantee.uniform("0.5")).settle(part)
    assert mine.spent == Cost("0.75")


@pytest.mark.parametrize("part", [DEEP, (DEEP,), LONG + 1, -LONG - 1, (LONG + 1,)])
def test_parts_that_are_too_deep_or_too_long(party: Party, part: Any) -> None:
    """Found: PostgreSQL took what Python cannot read, and the ledger could not be verified any more."""
    with pytest.raises(xp.InvalidValue, match="at most 1,000 digits, and tuples are nested at most 32 deep"):
        Guarantee({part: 1})
    mine = party.role()
    party.spend(mine, reserve(Guarantee.uniform("0.5")))
    with pytest.raises(psycopg.Error, match="has no part"):
        party.spend(mine, settle(1, json.dumps(part, separators=(",", ":"))))
    with pytest.raises(psycopg.Error, match="has no part"):
        party.spend(mine, settle(1, "1" * 5000))


@pytest.mark.parametrize("part", ['"medium"', '"sm\\u0061ll"', ' "small"', "small", "null", '"small","large"', None])
def test_a_part_that_is_not_one(party: Party, part: Any) -> None:
    mine = party.role()
    party.spend(mine, reserve())
    with pytest.raises(psycopg.Error):
        party.spend(mine, settle(1, part))


def test_accounts_above_are_charged_too(party: Party) -> None:
    party.ledger.create_account("alice", epsilon=10)
    step = reserve(Guarantee.uniform(6), account="study/alice", levels=["study/alice"])
    assert party.spend(party.role(), step) == [{"refused": True}]


@pytest.mark.parametrize("account", ["", "/", "none", "study/", "study/none", "/study", None])
def test_an_account_that_is_not_there(party: Party, account: str | None) -> None:
    mine = party.role()
    assert party.spend(mine, reserve(account=account)) == [{"refused": True}]
    assert party.spend(mine, reserve(), reserve(account=account)) == [{"entry": 1, "at": ANY}, {"refused": True}]


@pytest.mark.parametrize("first", [{"do": "beat"}, settle(99), reserve(account="none")])
def test_steps_behind_one_that_changes_nothing(party: Party, first: dict[str, Any]) -> None:
    """Found: the amounts of each step were written to the entry of the one before."""
    mine, cheap = party.role(), Guarantee.uniform("0.001")
    assert party.spend(mine, reserve(begun=False))[0]["entry"] == 1
    steps = (
        first,
        reserve(cheap, begun=False),
        reserve(Guarantee.uniform("0.5")),
        {"do": "begin", "entry": 1},
        settle(3),
    )
    outcomes = party.spend(mine, *steps)
    assert [outcome.get("entry") for outcome in outcomes] == [None, 2, 3, None, None]
    assert outcomes[-1] == {"refused": True}  # nobody can know its number yet
    assert [entry.reserved.epsilon_units for entry in party.ledger.entries()][1:] == [10**9, 5 * 10**11]
    assert party.spend(mine, first, settle(1))[1] == {}
    party.ledger.verify()


def test_nobody_is_given_up_by_a_transaction_that_kept_others_waiting(party: Party) -> None:
    spending = party.ledger.reserve(GUARANTEE)
    dead = party.ledger._store._engine.owner(1)  # type: ignore[attr-defined]
    mine = party.role()
    told = (secrets.token_hex(8), "{}", "one", '[""]', '[{"do": "beat"}]')
    call = "SELECT expost_spend(1,%s,%s,%s,%s::text::jsonb,0,%s::text::jsonb)"
    with psycopg.connect(mine) as server:
        server.execute(call, told)
        begun = server.execute("SELECT (extract(epoch FROM now()) * 1000000)::bigint").fetchone()[0]  # type: ignore[index]
        execute(party.url, f"UPDATE expost_owner SET seen = {begun - 59_900_000} WHERE id = '{dead}'")
        server.execute("SELECT pg_sleep(0.2)")  # past the minute by the clock, not when the transaction began
        again = (told[0], "{}", "two", '["one"]', json.dumps([{"do": "recover", "dead": [dead]}]))
        assert server.execute(call, again).fetchone()[0]["outcomes"] == [{"forfeited": 0}]  # type: ignore[index]
    assert spending.entry.state == "reserved"


def test_a_batch_without_steps_is_refused(party: Party) -> None:
    with pytest.raises(psycopg.Error, match="at least one step"):
        party.spend(party.role())


@pytest.mark.parametrize("do", ["raise", "close", "create", "account", "clock", "drop", "nonsense", None])
def test_unknown_steps_are_refused(party: Party, do: str | None) -> None:
    spending = party.ledger.reserve(GUARANTEE)
    step = {"do": do, "entry": 1, "epsilon": 0, "delta": 0, "body": "{}"}
    with pytest.raises(psycopg.Error, match="not a step of expost_spend"):
        party.spend(party.role(), {"do": "beat"}, step)
    assert spending.settle("small").charged == GUARANTEE.cost_of("small")


@pytest.mark.parametrize("do", ["settle", "forfeit", "void", "begin"])
def test_only_the_role_that_reserved_ends_an_entry(party: Party, do: str) -> None:
    spending = party.ledger.reserve(GUARANTEE, begin=False)
    step = {**settle(1), "do": do}
    assert party.spend(party.role(), step) == [{"denied": "expost"}]
    assert party.spend(party.role(), step, {"do": "beat"}) == [{"denied": "expost"}, {}]
    theirs = Ledger.load(party.role(), "study")
    with pytest.raises(xp.errors.LedgerUnavailable, match="was reserved by the database's role 'expost'"):
        theirs.reservation(1).settle("small")
    assert not spending.entry.begun
    assert Ledger.load(party.url, "study").reservation(1).settle("small").charged == GUARANTEE.cost_of("small")


def test_a_lease_may_be_settled_by_others(party: Party) -> None:
    party.ledger.reserve(GUARANTEE, key="job", lease=60)
    assert Ledger.load(party.role(), "study").reservation("job").settle("small").state == "settled"


def test_who_governs_may_forfeit(party: Party) -> None:
    party.ledger.reserve(GUARANTEE)
    party.ledger.reserve(GUARANTEE)
    governor = party.role(GOVERNS)
    assert party.spend(governor, {"do": "forfeit", "entry": 1}, settle(2)) == [{}, {"denied": "expost"}]
    assert party.ledger.spent == GUARANTEE.worst_case


def test_nobody_publishes_in_anothers_name(party: Party) -> None:
    mechanism = Fixed(GUARANTEE, 7, part="small")
    store: Any = party.ledger._store
    store.reserve(party.ledger._request("run", mechanism, mechanism.guarantee, None, "k"), begin=True)
    forged = codec.kept(666)
    step = settle(1, output=forged, digest=sha256(forged))
    assert party.spend(party.role(), step) == [{"denied": "expost"}]


@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"digest": None}, {"digest": '","x":"'}, {"key": None}])
def test_an_output_is_the_one_of_its_digest(party: Party, change: dict[str, Any]) -> None:
    mine, output = party.role(), codec.kept(7)
    party.spend(mine, reserve(operation="run", key=change.pop("key", "k"), fingerprint="f"))
    with pytest.raises(psycopg.Error, match=r"output of entry .* cannot be stored"):
        party.spend(mine, settle(1, **{"output": output, "digest": sha256(output), **change}))


def test_who_lives_is_not_given_up(party: Party) -> None:
    """Of another role's process the database's own clock decides; an owner of the ledger decides at once."""
    spending = party.ledger.reserve(GUARANTEE)
    store: Any = party.ledger._store
    step = {"do": "recover", "dead": [store._engine.owner(1)]}
    mine = party.role()
    assert party.spend(mine, step) == [{"forfeited": 0}]
    execute(party.url, "UPDATE expost_owner SET seen = seen - 30000000 WHERE role = 'expost'")
    assert party.spend(mine, step) == [{"forfeited": 0}]
    execute(party.url, "UPDATE expost_owner SET seen = seen - 31000000 WHERE role = 'expost'")
    assert party.spend(mine, step) == [{"forfeited": 1}]
    assert spending.entry.state == "forfeited"
    second = party.ledger.reserve(GUARANTEE)
    step = {"do": "recover", "dead": [store._engine.owner(1)]}
    assert party.spend(party.role(GOVERNS), step) == [{"forfeited": 1}]
    assert second.entry.state == "forfeited"


NOTE = {"by": "me", "reason": "because"}


def decide(url: str, kind: str, path: str, values: dict[str, Any], ledger: int = 1) -> Any:
    """Call the function by hand."""
    with psycopg.connect(url, autocommit=True) as server:
        told = (ledger, kind, path, json.dumps(values))
        row = server.execute("SELECT expost_govern(%s, %s, %s, %s::text::jsonb)", told).fetchone()
    assert row is not None
    return row[0]


def test_the_line_of_a_decision_says_what_was_done(party: Party) -> None:
    """Found: it recorded whatever the caller sent, such as another limit, or another account."""
    governor = party.role(GOVERNS)
    party.ledger.run(Fixed(GUARANTEE, 7, part="small"), key="k")
    assert decide(governor, "account", 'study/a\u00e9"', {"epsilon": 5, "delta": 0, "reason": "nobody's"})
    assert decide(governor, "drop", 'study/a\u00e9"', {"upto": 9, **NOTE})
    assert decide(governor, "clock", "other", {"limit": [1, 2], **NOTE})
    assert decide(governor, "close", "study", {"reason": "\U0001f600", "by": "me"})
    bodies = [event.body for event in party.ledger.audit_trail()][-4:]
    assert bodies == [
        {"account": 'study/a\u00e9"', "limit": [5, 0]},
        {"upto": 9, **NOTE},
        NOTE,
        {"account": "study", "by": "me", "reason": "\U0001f600"},
    ]


@pytest.mark.parametrize(
    ("kind", "path", "values"),
    [
        ("raise", "study", {"epsilon": 10**13, "delta": 10**15, "seen": [5 * 10**12, 10**15]}),
        ("close", "study", {"by": "", "reason": "because"}),
        ("raise", "study", {"epsilon": 10**13, "seen": [5 * 10**12, 10**15], **NOTE}),
        ("drop", "study", NOTE),
        ("drop", "study", {"upto": 0, **NOTE}),
        ("account", "study//a", {"epsilon": 1, "delta": 0}),
        ("create", "other", {"epsilon": 1, "delta": 0, "neighbours": "add-remove", "unit": "person"}),
        ("settle", "study", NOTE),
    ],
)
def test_decisions_that_are_not_whole_are_refused(party: Party, kind: str, path: str, values: dict[str, Any]) -> None:
    head = party.ledger.verify()
    with pytest.raises(psycopg.Error, match="expost: "):
        decide(party.role(GOVERNS), kind, path, values)
    assert party.ledger.verify() == head


def test_nobody_writes_under_anothers_name(party: Party) -> None:
    spending = party.ledger.reserve(GUARANTEE)
    with psycopg.connect(party.url) as server:
        row = server.execute("SELECT id, batch FROM expost_owner").fetchone()
    assert row is not None
    with pytest.raises(psycopg.Error, match="write under a name of your own"):
        party.spend(party.role(), {"do": "beat"}, owner=row[0], before=(row[1],))
    assert spending.settle("small").state == "settled"


def test_a_schema_that_is_everybodys_is_refused(party: Party) -> None:
    """A function of somebody else's could be called with the rights of the tables' owner."""
    mine = party.role()
    execute(party.url, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    execute(
        mine,
        "CREATE FUNCTION public.cardinality(a bigint[]) RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
        "IF current_user = 'expost' THEN UPDATE expost_account SET limit_epsilon = 999000000000000; END IF; "
        "RETURN pg_catalog.cardinality(a); END $$",
    )
    with pytest.raises(psycopg.Error, match="REVOKE CREATE ON SCHEMA public FROM PUBLIC"):
        party.spend(mine, {"do": "recover", "dead": []})
    with pytest.raises(xp.errors.LedgerUnavailable, match="REVOKE CREATE ON SCHEMA"):
        party.ledger.create_account("alice", epsilon=1)
    assert party.ledger.limit == Cost(5, delta=1e-3)
    execute(party.url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")


def test_new_tables_are_nobody_elses(server: Server) -> None:
    url = server.new_database(f"rights_{secrets.token_hex(4)}")
    execute(url, "GRANT CREATE ON SCHEMA public TO PUBLIC")  # the default up to PostgreSQL 14
    make(url).reserve(GUARANTEE).settle("small")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT has_schema_privilege('public', 'public', 'CREATE')").fetchone() == (False,)


def test_readers_only_read(party: Party) -> None:
    reader = party.role(READS)
    found = Ledger.load(reader, "study", read_only=True)
    assert found.verify() == party.ledger.verify()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        party.spend(reader, {"do": "beat"})


def test_the_line_is_as_the_rules_write_it(party: Party) -> None:
    """A caller's words are quoted, whatever they hold."""
    odd = 'x","label":"y\x7f\u2028\U0010ffff/\\'
    party.spend(party.role(), reserve(label=odd, subject=odd, key=odd))
    *_, event = party.ledger.audit_trail()
    assert event.line == canonical(json.loads(event.line))
    assert (event.body["label"], event.body["key"]) == (odd, odd)


def test_names_that_need_quotes(party: Party) -> None:
    """And no other statements: a role's name is a name."""
    odd = f'Robert"; DROP TABLE expost_entry; -- {secrets.token_hex(4)}'
    quoted = odd.replace('"', '""')
    execute(party.url, f'CREATE ROLE "{quoted}" LOGIN', grants("reader", odd))
    assert party.ledger.verify()
    for wrong in ("", "a\nb", "a\0b", "x" * 64):
        with pytest.raises(xp.InvalidValue, match="a name of at most 63 bytes"):
            grants("reader", wrong)


def test_an_open_transaction_does_not_hold_a_ledger_for_ever(party: Party) -> None:
    with psycopg.connect(party.role(), autocommit=True) as mine:
        assert mine.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)


@pytest.mark.parametrize(
    "step",
    [
        reserve(key="k" * 501),
        reserve(label="l" * 10_001),
        reserve(subject="s" * 1_000_001),
        reserve(fingerprint="f" * 501),
        reserve(lease=10**15 + 1),
        reserve(lease=0),
    ],
)
def test_what_is_stored_has_its_bounds(party: Party, step: dict[str, Any]) -> None:
    """Found: by hand a spender could store a key that nobody can look up, and a lease of centuries."""
    mine = party.role()
    for steps in ((step,), (step, {"do": "beat"})):
        with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.StringDataRightTruncation)):
            party.spend(mine, *steps)
    assert party.spend(mine, reserve(key="k" * 500, lease=10**15))
