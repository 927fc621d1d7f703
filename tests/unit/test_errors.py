import ast
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import expost as xp
from expost import errors
from expost.ledger import Entry, Request
from expost.mentions import GivenValue, brief

pytestmark = pytest.mark.counted


def entry(state: str = "settled") -> Entry:
    guarantee = xp.Guarantee({"a": 1})
    request = Request("reserve", ("ledger",), guarantee, guarantee, None, "k")
    return Entry(1, request, state, True, "a", xp.Cost(1), 0.0)


EXAMPLES = [
    xp.InvalidValue("ε must be a number"),
    xp.errors.NeighbourMismatch("add-remove", "substitute", "ledger 'l'"),
    xp.errors.NeighbourMismatch("substitute", "add-remove", "ledger 'l'"),
    xp.errors.UnitMismatch("row", "patient (column pid)", "ledger 'l'"),
    xp.errors.UnitMismatch("household", "patient", "ledger 'l'"),
    xp.errors.UnitMismatch("row", "visit (one row each)", "ledger 'l'"),
    xp.errors.UnitMismatch("patient", "row", "ledger 'l'"),
    xp.errors.UnknownPart("b", xp.Guarantee({"a": 1})),
    xp.errors.UnknownEntry("no entry 7"),
    xp.BudgetExceeded(xp.Cost(2, delta=0.1), xp.Cost(1), "ledger"),
    xp.BudgetExceeded(xp.Cost(2, delta=0.1), xp.Cost(1), "ledger/alice", xp.Cost(0.5)),
    xp.errors.AlreadyReserved(entry()),
    xp.errors.AlreadyReserved(entry("reserved")),
    xp.errors.KeyConflict("k", "label", entry()),
    xp.errors.KeyConflict("k", "account"),
    xp.errors.ReservationClosed(entry(), "void"),
    xp.errors.ReservationClosed(entry("reserved"), "void"),
    xp.errors.InteractionClosed("closed"),
    xp.errors.EngineFailed("IOException"),
    xp.errors.UnderWay("visits per day"),
    xp.errors.NoLedgers("no ledgers"),
    xp.errors.RequestRejected("rejected"),
    xp.errors.SnapshotLost("lost"),
    xp.errors.BalanceChanged("changed"),
    xp.errors.NotStorable("not storable"),
    xp.errors.NotCopyable("not copyable"),
    xp.errors.AlreadyExists("ledger", "study"),
    xp.errors.AlreadyExists("account", "study/alice"),
    xp.errors.MissingDependency("estimators", "scikit-learn", "learn"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: xp.ExpostError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_what_an_error_mentions_is_kept_as_text_if_it_cannot_be_pickled() -> None:
    """Found: an error about a generator arrived from another process as a TypeError."""
    for given in ((x for x in (1, 2)), {1: 2}.keys(), lambda: 0, [object()]):
        error = errors.InvalidValue("got ", GivenValue(given))
        assert str(pickle.loads(pickle.dumps(error))) == str(error) == f"got {brief(given)}"


def test_every_error_is_drawn_in_the_tree() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) >= 10
    for kind in kinds:
        assert kind.__name__ in (errors.__doc__ or "")
        assert hasattr(xp.errors, kind.__name__)


PLAIN = ("Exception", "KeyError", "RuntimeError", "TypeError", "ValueError")


def test_errors_that_callers_can_meet_are_in_one_module() -> None:
    roots = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    package = Path(errors.__file__).parent
    elsewhere, plain = set(), set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and roots & {ast.unparse(base).rpartition(".")[2] for base in node.bases}:
                elsewhere.add(path.relative_to(package).as_posix())
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) in PLAIN:
                plain.add(path.relative_to(package).as_posix())
    assert elsewhere == {"errors.py"}
    caught_there = {"estimates.py", "ledger/rows.py", "service/limits.py"}
    assert plain == caught_there, "what others can catch has a class of its own"


def test_an_over_ask_says_what_is_short() -> None:
    error = xp.BudgetExceeded(xp.Cost(2, delta=0.1), xp.Cost(1), "study/alice")
    assert error.short == ("epsilon", "delta")
    assert error.affordable_epsilon == 1
    assert str(error) == (
        "asked for ε 2, δ 0.1, but 'study/alice' has ε 1 remaining (short of ε and δ): "
        "the largest affordable ε is 1; nothing was charged"
    )
    assert xp.BudgetExceeded(xp.Cost(1, delta=0.1), xp.Cost(1), "l").short == ("delta",)


def test_a_mismatch_names_the_conversion() -> None:
    assert "guarantee.under('substitute')" in str(EXAMPLES[1])
    assert "under(" not in str(EXAMPLES[2])


def test_what_is_missing_is_an_import_error_with_a_remedy() -> None:
    error = xp.errors.MissingDependency("estimators", "scikit-learn", "learn")
    assert isinstance(error, ImportError)
    assert str(error) == "estimators need scikit-learn: pip install 'expost[learn]'"


@pytest.mark.parametrize(
    ("absent", "use", "extra"),
    [
        ("sklearn", "import expost.learn; expost.learn.PrivateLinearSVC", "learn"),
        ("duckdb", "expost.read('t.csv', unit='row', neighbours='substitute')", "data"),
        ("psycopg", "expost.ledgers('postgresql://localhost/none')", "postgres"),
        ("dp_accounting", "import expost.accounting.events as e; e.losses_of(None)", "accounting"),
    ],
)
def test_optional_packages_are_named_when_they_are_needed(absent: str, use: str, extra: str) -> None:
    program = "\n".join(
        (f"import sys; sys.modules[{absent!r}] = None", "import expost", "try:", f"    {use}",
         "except expost.errors.MissingDependency as error:", "    print(error.extra)")
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == f"{extra}\n", done.stderr


def test_what_exists_already_names_the_way_to_it() -> None:
    said = "another has a limit of its own, which adds to this one's for the same people"
    assert str(xp.errors.AlreadyExists("ledger", "study")) == (
        f"ledger 'study' exists already: Ledger.load(url, 'study') finds it; {said}"
    )
    assert (
        str(xp.errors.AlreadyExists("account", "study/alice"))
        == "account 'study/alice' exists already: account('alice') finds it"
    )


def test_a_key_that_is_taken_says_by_what_it_differs() -> None:
    for differs, said in (
        ("output", "key 'k' was used before, for a request with another output: repeat that request as it was"),
        ("account", "key 'k' is taken by another account: take a new key"),
    ):
        assert str(xp.errors.KeyConflict("k", differs)).startswith(said)


def test_messages_show_no_records_that_were_passed_by_mistake() -> None:
    """Found: ``table.where(frame.ward == "A")`` printed the first rows of the series."""
    pandas, arrow, duckdb = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "duckdb"))
    series = pandas.Series([86_543, 86_544])
    query = duckdb.sql("SELECT 86543 AS age")
    for given in (series, series.to_frame(), series.to_numpy(), series.index, arrow.array([86_543]), query):
        assert brief(given) == f"a value of type {type(given).__name__}"
    assert brief(np.float64(0.5)) == "np.float64(0.5)"
