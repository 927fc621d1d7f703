"""What the documents say about the command line is what it does."""

import os
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import CliRunner
from expost.cli.console import CODES
from expost.cli.main import app
from expost.data.expression.reference import expression_reference
from expost.study import parse_study, plan_study, run_study
from expost.study.reference import key_reference, kind_reference, model_reference
from studies import write_people

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", "docs/study.md"])
def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = [line for line in commands(ROOT / page) if line.startswith("expost ")]
    if not found[0].startswith("expost example"):
        write_people(tmp_path).rename(tmp_path / "visits.csv")
    assert len(found) >= 2
    for line in found:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, (line, result.output)
    assert "The guarantee" in (tmp_path / "visits.html").read_text()


def test_all_extras_are_listed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for name, _ in rows} == extras.keys()
    for name, brings in rows:
        assert all(any(package in need for need in extras[name]) for package in brings.split(", ")), name


def test_make_targets_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for line in commands(ROOT / "README.md"):
        if line.startswith("make "):
            assert re.search(rf"^{line.split()[1]}:", makefile, re.MULTILINE), line


def test_the_study_in_the_guide_runs(tmp_path: Path) -> None:
    text = re.search(r"```toml\n(title.*?)```", (ROOT / "docs" / "study.md").read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    write_people(tmp_path).rename(tmp_path / "visits.csv")
    study = parse_study(text[1], tmp_path / "visits.toml")
    assert plan_study(study).fits
    result = run_study(study)
    assert result.error is None
    assert result.answered == 4
    assert result.ledger.remaining.epsilon == 0


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("study-keys.md", key_reference),
        ("study-kinds.md", kind_reference),
        ("study-models.md", model_reference),
        ("expressions.md", expression_reference),
    ],
)
def test_the_reference_is_the_table(name: str, reference: Callable[[], str]) -> None:
    page = ROOT / "docs" / name
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- reference -->\n")
    told, _, after = rest.partition("<!-- /reference -->")
    if os.environ.get("EXPOST_GOLDEN") == "update":
        page.write_text(f"{before}<!-- reference -->\n{reference()}<!-- /reference -->{after}", encoding="utf-8")
    else:
        assert told == reference()


def test_exit_codes_are_told() -> None:
    codes = re.findall(r"^\| (\d) \|", (ROOT / "docs" / "study.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert codes == re.findall(r"\b(\d) ", CODES) == ["0", "1", "2", "3", "4"]
