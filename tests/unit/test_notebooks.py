"""Every notebook among the examples runs, and says what is stored in it."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.counted]


with warnings.catch_warnings():  # what other people's packages deprecate is not about ours
    warnings.simplefilter("ignore")
    import nbformat
    from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.ipynb"))


def said(notebook: Any) -> list[tuple[int, str, str]]:
    """What each cell printed or showed, as text; an image only says that it is one. Print arrives in pieces."""
    shown: list[tuple[int, str, str]] = []
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            kind = "image" if "image/png" in output.get("data", {}) else output.output_type
            if kind == "stream" and shown and shown[-1][:2] == (number, kind):
                text = shown.pop()[2] + text
            shown.append((number, kind, text))
    return shown


def test_there_is_one() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_it_runs_and_says_what_is_stored(path: Path, tmp_path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(
        fresh, timeout=600, startup_timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert said(fresh) == said(stored)
    assert "image" in {kind for _, kind, _ in said(stored)}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_clean(path: Path) -> None:
    """No errors, no places of somebody's machine, cells executed once and in order."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert not {kind for _, kind, _ in said(notebook)} & {"error"}
    assert not re.search(r"(/(tmp|home|root|Users|var)/|[A-Z]:\\\\)", path.read_text())
