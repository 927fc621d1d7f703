"""Check the Coq proofs: `make proofs`.

In this order: find Coq, or install Debian's where the machine allows it; refuse proofs with holes; compile every file
in a copy under ``build/proofs``; let ``coqchk`` check what was compiled; see that all statements together rest on
exactly three axioms; see that weakened definitions break the proofs; and compare the definitions with
``expost.verify.game`` (``bridge.py``). The first failure ends the check.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "proofs"
PACKAGES = ("coq", "libcoq-mathcomp-analysis")
AXIOMS = {
    "propositional_extensionality": "propositions that imply each other are equal",
    "functional_extensionality_dep": "functions that agree everywhere are equal",
    "constructive_indefinite_description": "what exists can be chosen",
}
HOLES = (
    "Admitted",
    "admit",
    "Axiom",
    "Axioms",
    "Parameter",
    "Parameters",
    "Conjecture",
    "Abort",
    "Unset Guard Checking",
)
WARNINGS = "-notation-overridden,-ambiguous-paths,-spurious-ssr-injection"
CORES = BoundedSemaphore(2)
"""How many processes of Coq may run at once."""


class NotChecked(Exception):
    """Coq is missing: nothing was proved or refuted."""


class CheckFailed(Exception):
    """A proof, or a check of the proofs, failed."""


# ---- the files


def sources(folder: Path = HERE) -> dict[str, str]:
    """The text of each Coq file, by module name."""
    return {path.stem: path.read_text() for path in sorted(folder.glob("*.v"))}


def without_comments(text: str) -> str:
    """The text with every (nested) comment blanked out, line breaks kept."""
    depth, kept = 0, []
    for token in re.split(r"(\(\*|\*\))", text):
        depth += (token == "(*") - (token == "*)")
        kept.append(re.sub(r"[^\n]", " ", token) if depth or token == "*)" else token)
    return "".join(kept)


def requires(text: str) -> list[str]:
    """The modules of this folder that a file builds on."""
    return [
        name
        for line in re.findall(r"^From Expost Require Import ([\w ]+)\.", text, re.MULTILINE)
        for name in line.split()
    ]


def in_order(files: Mapping[str, str]) -> list[str]:
    """The modules, each after those it builds on."""
    order: list[str] = []

    def visit(name: str) -> None:
        for below in requires(files[name]):
            visit(below)
        if name not in order:
            order.append(name)

    for name in files:
        visit(name)
    return order


def statements(text: str, kinds: str = "Theorem|Corollary|Lemma") -> list[str]:
    """The names of what a file proves."""
    return re.findall(rf"^(?:{kinds}) (\w+)", without_comments(text), re.MULTILINE)


def holes(text: str) -> list[str]:
    """The words in a file that would leave something unproved."""
    return [word for word in HOLES if re.search(rf"\b{word}\b", without_comments(text))]


# ---- Coq


def has_coq() -> bool:
    """Whether Coq and mathcomp-analysis are there."""
    if shutil.which("coqc") is None or shutil.which("coqchk") is None:
        return False
    library = subprocess.run(["coqc", "-where"], check=True, capture_output=True, text=True).stdout.strip()
    return (Path(library) / "user-contrib/mathcomp/analysis/esum.vo").exists()


def install() -> None:
    """Install Debian's packages, if this is Debian and we are root."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotChecked(f"Coq is missing, and this needs root and apt-get: apt-get install {' '.join(PACKAGES)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["-y", "--no-install-recommends", "install", *PACKAGES]):
        done = subprocess.run(
            ["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    if done.returncode or not has_coq():
        raise NotChecked(
            f"Coq is missing, and apt-get could not install {' '.join(PACKAGES)}: {done.stderr.strip()[-500:]}"
        )


def coq(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Coq's, when there is a core for it."""
    with CORES:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def compile_one(folder: Path, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Compile a file whose requirements are compiled already."""
    return coq(folder, "coqc", "-q", *options, "-Q", ".", "Expost", "-w", WARNINGS, f"{name}.v")


def compile_all(folder: Path) -> None:
    """Compile all files of a folder, each as soon as those it builds on are compiled."""
    files = sources(folder)
    jobs: dict[str, Future[None]] = {}

    def job(name: str) -> None:
        for below in requires(files[name]):
            jobs[below].result()
        done = compile_one(folder, name)
        if done.returncode:
            raise CheckFailed(f"{name}.v does not compile:\n{done.stderr.strip()}")

    with ThreadPoolExecutor(len(files)) as pool:
        for name in in_order(files):
            jobs[name] = pool.submit(job, name)
        for future in jobs.values():
            future.result()


def check_text(files: Mapping[str, str]) -> None:
    """Refuse files with holes."""
    for name, text in files.items():
        if found := holes(text):
            raise CheckFailed(f"{name}.v leaves something unproved: it says {', '.join(found)}")


def check_again(names: Iterable[str]) -> None:
    """Let the independent checker check what was compiled; it trusts the libraries below."""
    modules = [part for name in names for part in ("-norec", f"Expost.{name}")]
    done = coq(BUILD, "coqchk", "-silent", "-Q", ".", "Expost", *modules)
    if done.returncode:
        raise CheckFailed(f"coqchk refuses the proofs:\n{(done.stdout + done.stderr).strip()[-2000:]}")


def axioms_of(report: str) -> set[str]:
    """The names in the answer to ``Print Assumptions``."""
    return set(re.findall(r"^(?:\w+\.)*(\w+)\s*:", report.replace("Axioms:", ""), re.MULTILINE))


def check_axioms(files: Mapping[str, str]) -> None:
    """All statements together rest on exactly the three axioms."""
    names = [f"@{module}.{name}" for module, text in files.items() for name in statements(text)]
    lines = [f"From Expost Require {' '.join(files)}."]
    lines += [f"Definition all{i} := ({', '.join(names[i : i + 20])})." for i in range(0, len(names), 20)]
    lines.append(
        f"Definition all := ({', '.join(f'all{i}' for i in range(0, len(names), 20))}).\nPrint Assumptions all."
    )
    (BUILD / "assumptions.v").write_text("\n".join(lines))
    done = compile_one(BUILD, "assumptions")
    found = axioms_of(done.stdout)
    if done.returncode or found != set(AXIOMS):
        raise CheckFailed(f"the theorems rest on {sorted(found)}, not on {sorted(AXIOMS)}\n{done.stderr}")


# ---- mutations


@dataclass(frozen=True)
class Mutation:
    """A wrong change to a definition, and the first proof that must break because of it."""

    name: str
    module: str
    changes: tuple[tuple[str, str], ...]
    breaks: tuple[str, str]

    def apply(self, text: str) -> str:
        """The changed text; each place must be there exactly once."""
        for old, new in self.changes:
            if text.count(old) != 1:
                raise CheckFailed(f"mutation {self.name!r}: {old!r} must stand in {self.module}.v exactly once")
            text = text.replace(old, new)
        return text


OWN_DELTA = (
    ("  delta : R;\n", "  delta : R;\n  delta_of : K -> R;\n"),
    (
        "  keeps : forall",
        "  keeps_subsets : forall x y, neighbours x y -> forall k (S : set O), (forall o, S o -> part_of o = k) ->\n"
        "    (pr (run x) S <= (expR (epsilon_of k))%:E * pr (run y) S + (delta_of k)%:E)%E;\n"
        "  keeps : forall",
    ),
    ("Arguments delta {R D", "Arguments delta_of {R D neighbours O K} m k.\nArguments delta {R D"),
    ("<= e, delta m <= d\n", "<= e, forall k, delta_of m k <= d\n"),
    ("(part_of m o)) (d - delta m) (next o)", "(part_of m o)) (d - delta_of m (part_of m o)) (next o)"),
)

MUTATIONS = (
    Mutation("a part's own delta in the rule", "odp", OWN_DELTA, ("composition", "admitted_spends")),
    Mutation(
        "the bound on the worst case dropped",
        "odp",
        (("[/\\ forall k, epsilon_of m k <= e,", "[/\\ True,"),),
        ("composition", "admitted_spends"),
    ),
    Mutation(
        "E of another output",
        "odp",
        (
            (
                "forall o, admitted (e - epsilon_of m (part_of m o))",
                "forall o, exists o', admitted (e - epsilon_of m (part_of m o'))",
            ),
        ),
        ("composition", "admitted_spends"),
    ),
    Mutation(
        "e^epsilon replaced by 1",
        "odp",
        (("(expR epsilon)%:E * pr q S + delta%:E", "(1 : R)%:E * pr q S + delta%:E"),),
        ("odp", "dp_to_odp"),
    ),
    Mutation(
        "the guarantee required for one set only",
        "odp",
        (("  forall S : set O,\n", "  forall S : set O, S = setT ->\n"),),
        ("odp", "hockey_stick"),
    ),
    Mutation(
        "half the tangent price",
        "meters",
        (("(1 - expR (- E)))) / (alpha - 1).", "(1 - expR (- E)))) / (2 * (alpha - 1))."),),
        ("meters", "below_the_line"),
    ),
)


def broken(folder: Path, names: Sequence[str]) -> tuple[str, str] | None:
    """The file and statement whose proof does not compile; of the files before the last only statements are read."""
    for name in names:
        done = compile_one(folder, name, "-vok" if name == names[-1] else "-vos")
        if done.returncode:
            line = int(re.findall(r", line (\d+),", done.stderr)[-1])
            before = "\n".join((folder / f"{name}.v").read_text().splitlines()[:line])
            return name, statements(before)[-1]
    return None


def check_mutation(mutation: Mutation, files: Mapping[str, str]) -> None:
    """In a copy with the mutation, the proof that depends on it must break."""
    folder = BUILD / "mutations" / re.sub(r"\W+", "-", mutation.name)
    folder.mkdir(parents=True)
    order = in_order({name: files[name] for name in needed(mutation.breaks[0], files)})
    for name in order:
        text = files[name]
        (folder / f"{name}.v").write_text(mutation.apply(text) if name == mutation.module else text)
        if name not in above(mutation.module, files):
            for end in ("vo", "vos", "vok", "glob"):
                shutil.copy(BUILD / f"{name}.{end}", folder)
    found = broken(folder, [name for name in order if name in above(mutation.module, files)])
    if found != mutation.breaks:
        raise CheckFailed(f"mutation {mutation.name!r} should break {mutation.breaks}, and breaks {found}")


def needed(name: str, files: Mapping[str, str]) -> set[str]:
    """A module and all it builds on."""
    return {name}.union(*(needed(below, files) for below in requires(files[name])))


def above(name: str, files: Mapping[str, str]) -> set[str]:
    """A module and all that build on it."""
    return {other for other in files if name in needed(other, files)}


# ---- all of it


def check_games() -> None:
    """The definitions and ``expost.verify.game`` agree on random finite games."""
    sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
    import bridge

    try:
        bridge.check((HERE / "odp.v").read_text(), BUILD / "transcription.py")
    except (bridge.Disagreement, bridge.Untranslatable) as failure:
        raise CheckFailed(str(failure)) from failure


def fresh_copy(files: Mapping[str, str]) -> None:
    """A clean folder with all files in it."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    for name, text in files.items():
        (BUILD / f"{name}.v").write_text(text)


def timed(what: str, step: Callable[[], None]) -> None:
    """Take a step and print how long it took."""
    start = time.monotonic()
    step()
    print(f"{time.monotonic() - start:6.1f} s  {what}", flush=True)


def all_at_once(steps: Mapping[str, Callable[[], None]]) -> None:
    """Take steps that do not depend on each other."""
    with ThreadPoolExecutor(len(steps)) as pool:
        for future in [pool.submit(timed, what, step) for what, step in steps.items()]:
            future.result()


def check_everything(files: Mapping[str, str], *, installed: bool) -> None:
    """Raise unless everything holds. Coq is installed first, if it is not there."""
    proved = sum(len(statements(text)) for text in files.values())
    if not installed:
        timed(f"install {' '.join(PACKAGES)}", install)
    check_text(files)
    fresh_copy(files)
    timed(f"{len(files)} files compile: {proved} statements", lambda: compile_all(BUILD))
    steps: dict[str, Callable[[], None]] = {
        f"the axioms are {', '.join(AXIOMS)}": lambda: check_axioms(files),
        "coqchk agrees": lambda: check_again(in_order(files)),
    }
    for mutation in MUTATIONS:
        steps[f"{mutation.name}: breaks {mutation.breaks[1]}"] = partial(check_mutation, mutation, files)
    all_at_once({**steps, "200 random games: verify.game agrees with the definitions": check_games})


def main(files: Mapping[str, str] | None = None, *, installed: bool | None = None) -> int:
    """Check everything, or these files; 0 if all holds. Whether Coq is there is found out, if it is not said."""
    start = time.monotonic()
    try:
        check_everything(files or sources(), installed=has_coq() if installed is None else installed)
    except NotChecked as missing:
        print(f"{missing}\nnot checked")
        return 2
    except CheckFailed as failure:
        print(f"{failure}\nfailed")
        return 1
    print(f"checked, in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
