"""Libraries whose versions clash with ours run in environments of their own, which the Makefile builds."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
PLACES = (ROOT, Path(os.environ.get("EXPOST_ENVIRONMENTS", ROOT)))


@pytest.mark.parametrize(("library", "target"), [("diffprivlib", "make test"), ("opacus", "make adapters")])
def test_in_its_own_environment(library: str, target: str) -> None:
    found = [place / ".venvs" / library for place in PLACES if (place / ".venvs" / library / ".installed").exists()]
    if not found:
        pytest.skip(f"there is no environment for {library}: `{target}` builds it and runs its tests")
    command = [found[0] / "bin" / "python", "-m", "pytest", "-q", "-c", os.devnull, "--noconftest"]
    checks = ROOT / "tests" / "elsewhere" / f"{library}_checks.py"
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    settings = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", checks.parent, checks],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_the_extra_brings_a_scikit_learn_that_diffprivlib_can_import() -> None:
    """diffprivlib 0.6.6 imports what scikit-learn 1.7 no longer has, and does not say so itself."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (limit,) = (each for each in map(Requirement, extras["diffprivlib"]) if each.name == "scikit-learn")
    wanted = limit.specifier
    assert "1.6.1" in wanted
    assert "1.7.0" not in wanted
