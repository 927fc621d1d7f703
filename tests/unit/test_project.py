"""What the project holds itself to."""

import ast
import importlib
import inspect
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import expost as xp
import expost.mechanisms
from exports import exported, importable
from patches import patched

pytestmark = pytest.mark.counted
ROOT = Path(__file__).resolve().parents[2]
THEORY = "\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("theory*.md")))
PUBLIC: list[str] = vars(xp)["__all__"]
LABELS = re.findall(r"^:label: (\S+)$", THEORY, re.MULTILINE)


def test_every_proof_that_is_cited_exists() -> None:
    cited = {
        label: path.name
        for path in (ROOT / "src").rglob("*.py")
        for label in re.findall(r"Proof: ([\w-]+)", path.read_text())
    }
    assert len(cited) >= 15
    assert {label: name for label, name in cited.items() if label not in LABELS} == {}


def test_labels_are_unique_and_references_lead_somewhere() -> None:
    assert len(set(LABELS)) == len(LABELS)
    assert set(re.findall(r"\{prf:ref\}`([\w-]+)`", THEORY)) <= set(LABELS)


def test_every_mechanism_cites_its_proof() -> None:
    mechanisms = [
        kind for _, kind in inspect.getmembers(expost.mechanisms, inspect.isclass) if issubclass(kind, xp.Mechanism)
    ]
    assert mechanisms
    for kind in mechanisms:
        last = (inspect.getdoc(kind) or "").splitlines()[-1]
        assert re.fullmatch(r"Proof: [\w-]+", last), f"{kind.__name__} ends with {last!r}"
        assert kind.__name__ in exported(expost.mechanisms)


def test_every_statement_has_its_proof() -> None:
    for page in (ROOT / "docs").glob("theory*.md"):
        blocks = re.findall(r"^```\{prf:(\w+)\}", page.read_text(), re.MULTILINE)
        for block, following in zip(blocks, [*blocks[1:], "end"], strict=True):
            if block in ("theorem", "lemma", "proposition", "corollary"):
                assert following == "proof", f"a {block} in {page.name} is followed by {following}"


def test_public_names_are_there_and_lazy() -> None:
    for name in PUBLIC:
        assert getattr(xp, name) is not None
        assert name in dir(xp)
    assert len(PUBLIC) <= 50, "the first page has what one types first"
    assert {*dir(xp)} == {*PUBLIC, *vars(xp)["_PAGES"]}
    with pytest.raises(AttributeError, match=r"it is xp\.mechanisms\.StableMedian"):
        _ = xp.StableMedian  # type: ignore[attr-defined]
    assert not hasattr(xp, "Nothing")
    lazy = "import sys, expost; print([m for m in sys.modules if m.startswith('expost.')])"
    loaded = subprocess.run([sys.executable, "-c", lazy], check=True, capture_output=True, text=True).stdout
    assert loaded.strip() == "['expost._version']"


def reexported(node: ast.ImportFrom) -> list[str]:
    """What type checkers export of an import: names that are imported as themselves, or all that a module has."""
    if [name.name for name in node.names] != ["*"]:
        return [name.name for name in node.names if name.asname == name.name]
    module = importlib.import_module(str(node.module))
    return [*defined_in(Path(inspect.getfile(module))), *exported(module)]


@pytest.mark.parametrize("package", ["expost", "expost.adapters", "expost.learn"])
def test_the_type_checker_and_the_loader_know_the_same_names(package: str) -> None:
    module = importlib.import_module(package)
    (written,) = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.If)]
    imports = [node for node in written.body if isinstance(node, ast.ImportFrom)]
    pages = [name for node in imports for name in reexported(node) if node.module == "expost"]
    assert pages == list(getattr(module, "_PAGES", ()))
    checked = [(str(node.module), name) for node in imports for name in reexported(node) if node.module != "expost"]
    loaded = [(home, name) for home, names in module._MODULES.items() for name in names]
    assert sorted(checked) == sorted(loaded)
    assert len(loaded) == len(module._HOME) == len({*module.__all__} - {"__version__"})


SHARED = {
    "Engine": ("data/engine.py ledger/engine.py", "behind a private table; behind a durable ledger"),
    "Histogram": ("data/histograms.py mechanisms/histogram.py", "of a private table; of an array"),
    "Outcome": ("ledger/engine.py study/run.py", "of an operation on a ledger; of a question of a study"),
    "Question": ("question.py study/model.py", "what ledgers make a mechanism of; of a study"),
    "Step": ("accounting/composition.py ledger/engine.py", "of a composition; of a durable ledger"),
    "TestedLogisticRegression": (
        "learn/classification.py mechanisms/linear/tested_logistic.py",
        "the scikit-learn estimator, and the mechanism that it runs",
    ),
    "app": ("cli/ledger.py cli/main.py", "the commands for ledgers, and the whole command line"),
    "audit": ("cli/audit.py verify/audit/audit.py", "the command, and what it runs"),
    "create_account": ("cli/ledger.py service/api/governing.py", "the command, and the route of the same name"),
    "example": ("cli/example.py examples/__init__.py", "the command, and the path of what it writes"),
    "plan": ("accounting/planning.py cli/study.py", "of early stops; the command that shows what a study costs"),
    "raise_limit": ("cli/ledger.py service/api/governing.py", "the command, and the route of the same name"),
    "router": (
        "service/api/asking.py service/api/engines.py service/api/governing.py service/api/operating.py "
        "service/api/reading.py service/dashboard/pages.py",
        "of each group of routes of the service",
    ),
    **dict.fromkeys(
        (
            "bernoulli",
            "bernoulli_exp",
            "categorical",
            "discrete_gaussian",
            "discrete_laplace",
            "geometric",
            "rounded_gaussian",
            "rounded_laplace",
        ),
        ("noise/scalar.py noise/vector.py", "one number, and an array of them"),
    ),
    "report": ("cli/study.py ledger/reports.py", "the command about a study, and the function about a ledger"),
}
"""Public names that several modules define: all the modules, and why."""


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """These, and those in the branches of ``if``, ``try``, ``with`` and loops among them."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for block in ("body", "orelse", "finalbody", "handlers"):
                yield from statements(getattr(node, block, []))


def stored(node: ast.stmt) -> Iterator[str]:
    """The names that one statement defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def defined_in(path: Path) -> set[str]:
    """The public names that a module defines: classes, functions, and what is assigned, but not what it imports."""
    written = [*statements(ast.parse(path.read_text()).body)]
    imports = [name for node in written if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names]
    names = {name for node in written for name in stored(node)} - {name.asname or name.name for name in imports}
    return {name for name in names if not name.startswith("_")}


def defined_twice(package: Path) -> dict[str, str]:
    """The names that several modules of a package define, and these modules."""
    homes: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        for name in defined_in(path):
            homes.setdefault(name, []).append(path.relative_to(package).as_posix())
    return {name: " ".join(found) for name, found in homes.items() if len(found) > 1}


def test_no_public_name_is_defined_twice() -> None:
    assert defined_twice(ROOT / "src" / "expost") == {name: where for name, (where, _) in SHARED.items()}


@pytest.mark.parametrize(
    "again",
    [
        "async def name(): ...",
        "if sys.platform == 'win32':\n    pass\nelse:\n    class name: ...",
        "try:\n    pass\nexcept OSError:\n    a, name = 1, 2",
        "with something:\n    name: int = 3",
    ],
)
def test_names_are_found_wherever_they_are_defined(tmp_path: Path, again: str) -> None:
    (tmp_path / "one.py").write_text("def name():\n    inner = 1\n")
    (tmp_path / "two.py").write_text(f"{again}\ndef other():\n    inner = 1\n")
    (tmp_path / "three.py").write_text("try:\n    from one import name\nexcept ImportError:\n    name = None\n")
    assert defined_twice(tmp_path) == {"name": "one.py two.py"}


def test_tests_of_what_has_a_floor_count_branches() -> None:
    floors = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["expost"]["floors"]
    homes = [f"{part}conftest.py" if part.endswith("/") else f"test_{part}" for part in floors]
    texts = {home: (ROOT / "tests/unit" / home).read_text() for home in homes}
    assert [home for home, text in texts.items() if not re.search(r"^pytestmark = .*\.counted\b", text, re.M)] == []


PATCHED = {
    "tests/unit/accounting/test_references.py expost.accounting.convolution._window": (
        "a negative control deep within what composes: a window that is cut short"
    ),
    "tests/unit/ledger/test_tables.py expost.ledger.schema.migrations": "a second migration: there is only one yet",
}
"""Globals of our own modules that tests replace, and why. Tests pass in everything else that they change."""


def test_tests_patch_no_globals_of_modules() -> None:
    paths = [path for folder in ("tests", "paper/tests") for path in (ROOT / folder).rglob("*.py")]
    found = {f"{path.relative_to(ROOT).as_posix()} {name}" for path in paths for name in patched(path.read_text())}
    assert found == PATCHED.keys()


@pytest.mark.parametrize(
    "text",
    [
        "from expost.ledger import writer\nmonkeypatch.setattr(writer, 'MOST', 3)",
        "import expost.ledger.writer\nexpost.ledger.writer.MOST = 3",
        "import expost.ledger.writer as w\nw.MOST += 3",
        "from expost.ledger import writer as w\nwith mock.patch.object(w, 'MOST', 3): ...",
        "patch.setattr('expost.ledger.writer.MOST', 3)",
        "from expost.ledger.writer import MOST\nmonkeypatch.setitem(MOST, 'a', 3)",
        "from expost.ledger import writer\nwriter.MOST['a'] = 3",
        "from expost.ledger import writer\ndel writer.MOST",
    ],
)
def test_patched_globals_are_found(text: str) -> None:
    assert patched(text) == {"expost.ledger.writer.MOST"}


def test_attributes_of_classes_and_modules_of_others_may_be_patched() -> None:
    text = "import os\nfrom expost.ledger.writer import Writer\npatch.setattr(Writer, 'submit', 3)\nos.getpid = 3"
    assert patched(f"{text}\npatch.setattr('expost.ledger.writer.Writer.submit', 3)") == set()


def test_the_files_that_contributors_are_sent_to_exist() -> None:
    tasks = (ROOT / "CONTRIBUTING.md").read_text().split("## Where do I")[1]
    rows = re.findall(r"^\| .* \| (.*) \|$", tasks, re.MULTILINE)
    named = {path for row in rows for path in re.findall(r"`([\w/]+(?:\.py|\.sql|/))`", row)}
    assert len(named) >= 20
    assert {
        path for path in named if not ((ROOT / "src" / "expost" / path).exists() or (ROOT / path).exists())
    } == set()


def test_constraints_hold_no_addresses() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    assert "@" not in text


def test_the_citation_is_of_this_version() -> None:
    assert f"\nversion: {xp.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("Add a mechanism\n\nIt was missing.", 0),
        ("# a comment of git\n", 1),
        ("x" * 73, 1),
        ("Add a mechanism.\nIt was missing.", 2),
    ],
)
def test_subjects_of_commits_are_short(message: str, wrong: int) -> None:
    assert len(runpy.run_path(str(ROOT / ".ci" / "subject.py"))["complaints"](message)) == wrong


def test_the_readme_and_the_page_show_the_last_benchmarks() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import report
    finally:
        sys.path.pop(0)
    page, readme = (ROOT / "docs" / "benchmarks.md").read_text(), (ROOT / "README.md").read_text()
    for results in report.RESULTS.glob("*.json"):
        assert f"## {results.stem}\n\n{report.table(report.rows_of(results.stem))}\n" in page
    assert report.filled(readme) == readme


def test_it_works_where_nothing_forks() -> None:
    """On Windows there is neither ``os.fork`` nor ``os.register_at_fork``."""
    program = (
        "import logging, os, random, threading, numpy; del os.fork, os.register_at_fork; import expost, expost.ledger; "
        "print(expost.Ledger(epsilon=1).run(expost.mechanisms.Coin(epsilon=1, sensitivity=1), on=1).entry.state)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "settled\n", done.stderr


def test_every_public_name_has_a_page_in_the_reference(tmp_path: Path) -> None:
    public = runpy.run_path(str(ROOT / "docs" / "public.py"))
    public["write"](tmp_path)
    pages = {page.stem: page.read_text() for page in tmp_path.glob("*.rst")}
    described = {id(name.value) for name in public["names"]()}
    for package in public["PACKAGES"]:
        module = importlib.import_module(f"expost.{package}" if package else "expost")
        assert [name for name, value in importable(module) if name[0] != "_" and id(value) not in described] == []
    assert "autoclass:: expost.Mean\n" in pages["xp.Mean"]
    assert "autoexception:: expost.errors.UnitMismatch" in pages["xp.errors"]
    listed = re.findall(r"^names/(\S+)$", (ROOT / "docs" / "reference" / "index.md").read_text(), re.MULTILINE)
    assert listed == sorted(listed, key=list(map(public["_typed"], public["PACKAGES"])).index)
    assert set(listed) == {*map(public["_typed"], public["PACKAGES"])}


def test_every_package_with_public_names_is_in_the_reference() -> None:
    packages = {path.parent.relative_to(ROOT / "src" / "expost").as_posix().replace("/", ".")
                for path in (ROOT / "src" / "expost").rglob("__init__.py")
                if re.search(r"^from \S+ import (\w+) as \1$", path.read_text(), re.MULTILINE)} - {"."}  # fmt: skip
    assert packages <= {*runpy.run_path(str(ROOT / "docs" / "public.py"))["PACKAGES"]}


def test_examples_in_the_docs_are_in_fences() -> None:
    """Outside of one, three angle brackets are three quotations."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        outside = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        assert not re.findall(r"^>>>.*", outside, re.MULTILINE), page.name
