"""What can be said about the machine-checked proofs without Coq; `make proofs` checks them."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

import bridge
import check

pytestmark = [pytest.mark.slow, pytest.mark.counted]
ROOT = Path(__file__).resolve().parents[2]
FILES = check.sources(ROOT / "proofs")
PAGE = (ROOT / "docs" / "proofs.md").read_text()
THEORY = "\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("theory*.md")))
MARK = re.compile(r"\*Checked:\* `(\w+)` in `proofs/(\w+)\.v`\.")


def marks() -> dict[str, tuple[str, str]]:
    """The label of each statement that is marked as checked, with the Coq name and file of the mark."""
    blocks = re.findall(r"^```\{prf:\w+\}[^\n]*\n:label: (\S+)\n(.*?)\n```$", THEORY, re.MULTILINE | re.DOTALL)
    return {label: found.groups() for label, body in blocks if (found := MARK.search(body))}  # type: ignore[misc]


def test_marked_labels_name_a_theorem_that_exists() -> None:
    assert len(marks()) == len(MARK.findall(THEORY)) >= 13
    assert {label: name for label, (name, file) in marks().items() if name not in check.statements(FILES[file])} == {}


def test_the_page_lists_every_mark_and_every_theorem() -> None:
    rows = re.findall(r"^\| (.*) \| (.*) \| `(\w+)\.v` \|$", PAGE, re.MULTILINE)
    listed = {(name, file) for _, names, file in rows for name in re.findall(r"`(\w+)`", names)}
    for label, mark in marks().items():
        assert any(f"`{label}`" in row[0] for row in rows), label
        assert mark in listed
    theorems = {(name, file) for file, text in FILES.items() for name in check.statements(text, "Theorem|Corollary")}
    assert theorems <= listed
    assert all(name in check.statements(FILES[file]) for name, file in listed)


def test_included_texts_are_found() -> None:
    included = re.findall(
        r"^```\{literalinclude\} \.\./proofs/(\w+)\.v\n:language: coq\n:start-at: (.*)\n:end-before: (.*)\n```$",
        PAGE,
        re.MULTILINE,
    )
    assert len(included) == PAGE.count("literalinclude") >= 10
    for file, start, end in included:
        assert FILES[file].count(start) == 1, (file, start)
        assert end in FILES[file].split(start)[1], (file, end)


def test_no_file_has_holes() -> None:
    assert {name: found for name, text in FILES.items() if (found := check.holes(text))} == {}


@pytest.mark.parametrize("hole", ["Admitted.", "admit.", "Axiom a : False.", "Parameter x : nat.", "Abort."])
def test_holes_are_found_outside_comments_only(hole: str) -> None:
    assert check.holes(f"Lemma a : True. {hole}")
    assert not check.holes(f"(* outer (* {hole} *) still {hole} *) Lemma a : True.")


def test_the_theorem_uses_only_the_words_of_its_definitions() -> None:
    (statement,) = re.findall(
        r"^Theorem composition (\(a : adversary R\) .*?)\nProof", FILES["composition"], re.MULTILINE | re.DOTALL
    )
    defined = set(re.findall(r"^(?:Definition|Fixpoint|Inductive) (\w+)", FILES["odp"], re.MULTILINE))
    assert set(re.findall(r"[A-Za-z]\w*", statement)) - {"R", "a", "e", "d", "true", "false"} == {
        "adversary",
        "admitted",
        "dp",
        "views",
    }
    assert {"adversary", "admitted", "dp", "views"} <= defined
    definitions = FILES["odp"].split("Section Definitions.")[1].split("(* What a view was charged")[0]
    assert definitions.count("\n") + statement.count("\n") <= 65  # a screen


def test_every_mutation_finds_its_place() -> None:
    for mutation in check.MUTATIONS:
        assert mutation.apply(FILES[mutation.module]) != FILES[mutation.module]
        file, name = mutation.breaks
        assert name in check.statements(FILES[file])


def test_files_are_compiled_after_what_they_require() -> None:
    order = check.in_order(FILES)
    assert sorted(order) == sorted(FILES)
    assert all(order.index(below) < order.index(name) for name in order for below in check.requires(FILES[name]))


def test_without_coq_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert check.main(installed=False) == 2
    out = capsys.readouterr().out
    assert "apt-get install coq libcoq-mathcomp-analysis" in out
    assert out.endswith("not checked\n")


def test_a_hole_fails_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main({"laws": "Lemma a : False. Admitted."}, installed=True) == 1
    assert "laws.v leaves something unproved: it says Admitted" in capsys.readouterr().out


def test_axioms_are_read_from_coq() -> None:
    report = "Axioms:\nboolp.propositional_extensionality : forall P Q\nlong_name\n  : forall (A : Type), A\n"
    assert check.axioms_of(report) == {"propositional_extensionality", "long_name"}


def test_the_coq_definitions_and_the_game_agree() -> None:
    assert bridge.disagreements(bridge.transcription(FILES["odp"]), games=25) == 0


def test_the_games_notice_a_wrong_rule() -> None:
    for old, new in bridge.WRONG:
        assert FILES["odp"].count(old) == 1
        assert bridge.disagreements(bridge.transcription(FILES["odp"].replace(old, new)), games=25) > 0


def test_an_unknown_construct_is_an_error() -> None:
    text = FILES["odp"].replace("forall k, epsilon_of m k <= e", "exists k, epsilon_of m k <= e")
    with pytest.raises(bridge.Untranslatable):
        bridge.transcription(text)


def test_excess_is_transcribed() -> None:
    excess = bridge.loaded(bridge.transcription(FILES["odp"]))["excess"]
    p, q = {0: Fraction(3, 4), 1: Fraction(1, 4)}, {0: Fraction(1, 4), 1: Fraction(3, 4)}
    assert excess([0, 1], lambda o: 2, p.get, q.get) == Fraction(1, 4)
