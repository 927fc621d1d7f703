"""Promises that the project makes about itself."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import expost as xp
import expost.mechanisms

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
        assert kind.__name__ in PUBLIC


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
    assert not hasattr(xp, "Nothing")
    lazy = "import sys, expost; print([m for m in sys.modules if m.startswith('expost.')])"
    loaded = subprocess.run([sys.executable, "-c", lazy], check=True, capture_output=True, text=True).stdout
    assert loaded.strip() == "['expost._version']"


@pytest.mark.parametrize("package", ["expost", "expost.learn"])
def test_the_type_checker_and_the_loader_know_the_same_names(package: str) -> None:
    module = importlib.import_module(package)
    (written,) = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.If)]
    imports = [node for node in written.body if isinstance(node, ast.ImportFrom)]
    checked = [(node.module, name.name, name.asname) for node in imports for name in node.names]
    loaded = [(room, name, name) for room, names in module._ROOMS.items() for name in names]
    assert sorted(checked) == sorted(loaded)
    assert len(loaded) == len(module._HOME) == len({*module.__all__} - {"__version__"})


def test_constraints_hold_no_addresses() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    assert "@" not in text


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
