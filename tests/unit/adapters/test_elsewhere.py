"""Libraries whose versions clash with ours run in environments of their own, which the Makefile builds."""

import os
import subprocess
from pathlib import Path

import pytest

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
