"""From a TOML file to a study. Everything that is wrong is reported at once, each with its line."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from expost.cost import Cost, exact
from expost.data.expression import is_word
from expost.errors import InvalidStudy
from expost.mentions import brief
from expost.study.grammar import AMOUNTS, COMMON, REPEAT, SECTIONS, TOP, Key
from expost.study.kinds import KINDS, keys
from expost.study.kinds.kind import QuestionKind
from expost.study.lines import Place, line_index, line_of
from expost.study.model import Amount, Condition, Data, LedgerSection, Privacy, Question, Repeat, Study
from expost.study.toml import toml_text

_CONDITION = re.compile(r"^\s*([\w-]+?)\s*(?:\.\s*(\w+)|([<>])\s*(-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))\s*$")
_ADDRESSES = ("sqlite:///", "postgresql://", "postgres://")
_SHOWN_ADDRESSES = "sqlite:///books.db, postgresql://host/database or memory:"
_CSV = (".csv", ".tsv", ".txt")
_DATA = (".csv", ".tsv", ".parquet", ".pq", ".duckdb", ".xlsx")
_MOST_PARTS = 20
_MOST_HINTS = 10
"""Unknown keys of one table that are named: to find what was meant takes time."""
_STRINGS = re.compile(
    r"""'''.*?(?:'''|\Z)|\"{3}(?:\\.|[^\\])*?(?:\"{3}|\Z)|'[^'\n]*+'?|"(?:[^"\\\n]|\\.)*+"?|\#[^\n]*+""", re.DOTALL
)
"""Strings and comments of TOML. One that does not end reaches as far as it can: it is not looked at again."""
_NO_KEY = re.compile(r"[^\w.\- \t]+")
_Given = Mapping[str, Any]


def read_study(file: str | Path) -> Study:
    """The study in a file, or :class:`~expost.errors.InvalidStudy` with everything that is wrong with it."""
    path = Path(file)
    refuse_data(path)
    return parse_study(file_text(path), path)


def refuse_data(path: Path) -> None:
    """Raise for a file of data, of which a study is made first."""
    if path.suffix.lower() in _DATA or path.name.lower().endswith(".csv.gz"):
        remedy = f"make a study of it first: expost init {shlex.quote(str(path))}"
        raise InvalidStudy(str(path), ((None, f"this is data, and no study: {remedy}"),))


def parse_study(text: str, path: Path) -> Study:
    """The study in a text; other files are relative to the folder of ``path``."""
    return StudyReader(text, path).study(toml_of(text, path))


def file_text(path: Path) -> str:
    """What a file contains. Raises ``InvalidStudy``."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidStudy(str(path), ((None, "is not UTF-8, which TOML must be: save it as UTF-8"),)) from None
    except OSError:
        raise InvalidStudy(str(path), ((None, "cannot be read: is the path right, and is it a file?"),)) from None


def toml_of(text: str, path: Path) -> dict[str, Any]:
    """A text as TOML. Raises ``InvalidStudy`` with the line."""
    if _parts(text) > _MOST_PARTS:  # they would be read in a time that grows with their square
        raise InvalidStudy(str(path), ((None, f"a key has at most {_MOST_PARTS} parts with dots between them"),))
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"at line (\d+)", str(error))  # Python before 3.14 says it in words only
        line = int(found[1]) if found else None
        there = "" if line is None else "".join(text.split("\n")[line - 1 : line])
        comma = re.search(r"=\s*[-+]?\d+,\d", there)
        bare = re.search(r"=\s*[^\W\d]", there)
        remedy = (
            ". Numbers have a decimal point, not a comma: 0.5" if comma
            else '. Text goes in quotation marks: "age"' if bare and "Invalid value" in str(error) else ""
        )  # fmt: skip
        raise InvalidStudy(str(path), ((line, f"this is not TOML: {error}{remedy}"),)) from None
    except ValueError:  # Python reads whole numbers of at most 4,300 digits
        raise InvalidStudy(str(path), ((None, "a number has thousands of digits: write fewer"),)) from None


def _parts(text: str) -> int:
    """The most parts that a key has, or more where a line is not TOML."""
    return 1 + max(piece.count(".") for piece in _NO_KEY.split(_STRINGS.sub("s", text)))


class StudyReader:
    """Collects problems while it reads. ``index`` says where things are in a file that is more than one study."""

    def __init__(self, text: str, path: Path, index: dict[Place, int] | None = None) -> None:
        self.path, self.text = path, text
        self.index = line_index(text) if index is None else index
        self.problems: list[tuple[int | None, str]] = []
        self.refused: set[Place] = set()
        self.metered = False

    def study(self, given: _Given) -> Study:
        """The study, or ``InvalidStudy`` with all that is wrong."""
        self.unknown(given, TOP, (), "")
        sections = {name: self.section(given, name, keys) for name, keys in SECTIONS.items()}
        derive = given.get("derive", {})
        self.derived(derive)
        if "title" in given and not isinstance(given["title"], str):
            self.problem(("title",), "'title' is a text")
        self.types(sections["data"])
        self.privacy(sections["privacy"])
        self.ledger(sections["ledger"], sections["limit"])
        questions = self.questions(given.get("question"))
        self.refuse()
        return Study(
            file=self.path,
            title=given.get("title", self.path.stem),
            data=Data(**sections["data"]),
            privacy=Privacy(**sections["privacy"]),
            limit=Cost.within(sections["limit"]["epsilon"], sections["limit"].get("delta", 0)),
            ledger=LedgerSection(**sections["ledger"]),
            derive=derive,
            questions=questions,
            lines=self.lines((), "."),
            text=self.text,
        )

    def derived(self, given: Any) -> None:
        """The names and expressions of derived columns."""
        if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
            self.problem(("derive",), '[derive] has expressions: name = "expression"')
            return
        for name in given:
            if not is_word(name):
                what = "a derived column is named by a word of letters, digits and _, such as year_of_birth"
                self.problem(("derive", name), f"[derive] {brief(name)}: {what}")

    # ---- problems

    def refuse(self) -> None:
        """Raise what was found."""
        if self.problems:
            raise InvalidStudy(str(self.path), tuple(sorted(self.problems, key=lambda each: each[0] or 0)))

    def problem(self, place: Place, what: str) -> None:
        """Something is wrong at a place."""
        self.refused.add(place)
        self.problems.append((line_of(self.index, place), what))

    def lines(self, place: Place, between: str) -> dict[str, int]:
        """The lines below a place, by the rest of their paths."""
        below = {path[len(place) :]: line for path, line in self.index.items() if path[: len(place)] == place}
        return {between.join(map(str, path)): line for path, line in below.items()}

    def unknown(self, given: _Given, keys: Iterable[Key], place: Place, where: str) -> None:
        """Refuse keys that are not among these."""
        names = [key.name for key in keys]
        unknown = [name for name in given if name not in names]
        for name in unknown[:_MOST_HINTS]:
            self.problem((*place, name), f"{where}unknown key {brief(name)}: {_hint(name, sorted(names))}")
        if len(unknown) > _MOST_HINTS:
            self.problem(place, f"{where}{len(unknown) - _MOST_HINTS} more unknown keys")

    def table(self, given: Any, keys: tuple[Key, ...], place: Place, where: str) -> bool:
        """Check a table against its keys: unknown, missing and wrong ones."""
        if not isinstance(given, dict):
            self.problem(place, f"{where}this is a table of keys")
            return False
        before = len(self.problems)
        self.unknown(given, keys, place, where)
        for key in keys:
            if key.name in given:
                wrong = key.wrong(given[key.name])
                if wrong:
                    self.problem((*place, key.name), f"{where}{wrong}, got {toml_text(given[key.name])}")
            elif key.required:
                self.problem(place, f"{where}state {key.name!r}: {key.help}")
        return len(self.problems) == before

    # ---- sections

    def section(self, given: _Given, name: str, keys: tuple[Key, ...]) -> dict[str, Any]:
        """A section, checked against its keys; those of them that hold what they should."""
        if name not in given:
            required = ", ".join(key.name for key in keys if key.required)
            self.problem((), f"section [{name}] is missing: it needs {required}")
            return {}
        self.table(given[name], keys, (name,), f"[{name}] ")
        found = given[name] if isinstance(given[name], dict) else {}
        return {key.name: found[key.name] for key in keys if key.name in found and key.wrong(found[key.name]) is None}

    def lacks(self, given: _Given, section: str, key: str) -> bool:
        """Whether a section does not state a key, not even wrongly."""
        return key not in given and (section, key) not in self.refused

    def types(self, given: _Given) -> None:
        """A CSV file does not state its types, and to find them out is to look at private values."""
        path = given.get("path")
        csv = isinstance(path, str) and path.lower().removesuffix(".gz").endswith(_CSV)
        if csv and self.lacks(given, "data", "schema"):
            self.problem(
                ("data", "path"),
                "[data] a CSV file does not state the types of its columns, and its values are not public: write them "
                'in \'schema\', such as schema = { age = "integer", city = "text" }, or let expost init do it',
            )

    def privacy(self, given: _Given) -> None:
        """What depends on the unit and the neighbours."""
        if given.get("unit") == "row":
            for name in ("rows", "groups"):
                if name in given:
                    self.problem(("privacy", name), f'[privacy] {name!r} is for a unit that is a column, not "row"')
        elif "unit" in given and self.lacks(given, "privacy", "rows"):
            self.problem(
                ("privacy", "unit"),
                f"[privacy] 'rows' is missing: the most rows that count of one {given['unit']!r}. Choose it from what "
                "is known, not from this data; more rows bring more noise, and fewer leave rows out",
            )
        if "size" in given and given.get("neighbours") == "add-remove":
            self.problem(
                ("privacy", "size"), "[privacy] under add-remove the number of units is private: leave 'size' out"
            )

    def ledger(self, given: _Given, limit: _Given) -> None:
        """An address, and names without slashes; a δ for Rényi accounting."""
        url = given.get("url")
        if isinstance(url, str) and url != "memory:" and not url.startswith(_ADDRESSES):
            shown = toml_text(url.partition("@")[2] or url)  # what comes before may be a password
            self.problem(("ledger", "url"), f"[ledger] 'url' is an address such as {_SHOWN_ADDRESSES}, got {shown}")
        if "/" in str(given.get("name", "")):
            self.problem(("ledger", "name"), "[ledger] 'name' has no '/': write the account's path in 'account'")
        if not all(str(given.get("account", "x")).split("/")):
            self.problem(("ledger", "account"), "[ledger] 'account' is a path of names such as team/bob")
        self.metered = given.get("accounting") == "renyi"
        if self.metered and (self.lacks(limit, "limit", "delta") or limit.get("delta") == 0):
            self.problem(
                ("ledger", "accounting"),
                "[ledger] Rényi accounting needs a δ: state 'delta' in [limit], or leave 'accounting' out",
            )

    # ---- questions

    def questions(self, given: Any) -> tuple[Question, ...]:
        """All questions, in order."""
        if isinstance(given, dict):
            self.problem(("question",), "questions are a list, even if there is one: write [[question]]")
            return ()
        if not isinstance(given, list) or not given:
            self.problem((), "there is no [[question]]: a study asks at least one")
            return ()
        found: dict[str, Question] = {}
        for number, each in enumerate(given):
            question = self.question(each if isinstance(each, dict) else {}, ("question", number), found)
            if question is not None:
                found[question.name] = question
        return tuple(found.values())

    def question(self, given: _Given, place: Place, earlier: Mapping[str, Question]) -> Question | None:
        """One question; None if something is wrong with it."""
        name, kind = given.get("name"), given.get("kind")
        where = f"question {name!r}: " if isinstance(name, str) else "question: "
        if not isinstance(kind, str) or kind not in KINDS:
            unknown = f"unknown kind {toml_text(kind)}: {_hint(toml_text(kind), KINDS)}"
            missing = f"'kind' is missing: {', '.join(KINDS)}"
            self.problem((*place, "kind"), where + (unknown if "kind" in given else missing))
            return None
        own = KINDS[kind]
        sound = self.table(given, (*COMMON, *own.keys), place, where)
        if isinstance(name, str) and (name in earlier or not re.fullmatch(r"[\w-]+", name)):
            rule = "there is an earlier question of that name" if name in earlier else (
                "a name has letters, digits, '_' and '-' only; 'label' is free text")  # fmt: skip
            self.problem((*place, "name"), where + rule)
            sound = False
        amounts = [key for key in AMOUNTS if key in given]
        enough = len(amounts) == 1 or (not amounts and "accuracy" in given)
        if not enough:
            found = f"has {' and '.join(amounts)}" if amounts else "has no ε"
            or_accuracy = ", or an accuracy" if not amounts and keys.ACCURACY in own.keys else ""
            self.problem(place, f"{where}{found}: give one of {', '.join(AMOUNTS)}{or_accuracy}")
        if not sound or not enough:
            return None
        self.delta(given, own, place, where)
        values = {key.name: given[key.name] for key in own.keys if key.name in given}
        self.references(values, own, place, where, earlier)
        delta = given.get("delta", 0)
        return Question(
            name=given["name"],
            kind=kind,
            label=given.get("label", name),
            amount=_amount(amounts[0], given[amounts[0]]) if amounts else _amount("epsilon", "rest"),
            delta=delta if delta == "rest" else exact(delta, "δ"),
            values=values,
            only_if=self.condition(given.get("only_if"), (*place, "only_if"), where, earlier),
            repeat=self.repeat(given.get("repeat"), (*place, "repeat"), where, own),
            lines=self.lines(place, ""),
        )

    def delta(self, given: _Given, kind: QuestionKind, place: Place, where: str) -> None:
        """A δ exactly where one is needed."""
        needed = kind.needs_delta(given)
        optional = self.metered and not kind.delta  # Gaussian noise, which is priced without
        if needed and "delta" not in given and not optional:
            self.problem(
                place,
                f"{where}'delta' is missing: {kind.name!r} needs a δ, such as 1e-6: "
                "far below one in the number of units",
            )
        elif not needed and "delta" in given:
            self.problem((*place, "delta"), f"{where}{kind.name!r} needs no δ: leave 'delta' out")

    def references(
        self, values: _Given, kind: QuestionKind, place: Place, where: str, earlier: Mapping[str, Question]
    ) -> None:
        """Earlier questions that are named."""
        wanted = {key.name: key.refers_to for key in kind.keys}
        for key, name in kind.refers_to(values).items():
            if name not in earlier or earlier[name].kind != wanted[key]:
                rule = f"{key!r} names an earlier question of kind {wanted[key]!r}, and {name!r} is not one"
                self.problem((*place, key), where + rule)

    def condition(self, text: Any, place: Place, where: str, earlier: Mapping[str, Question]) -> Condition | None:
        """What must hold of an earlier answer."""
        if text is None:
            return None
        found = _CONDITION.match(text)
        if found is None:
            self.problem(
                place, f"{where}'only_if' reads 'name.outcome', 'name > number' or 'name < number', got {text!r}"
            )
            return None
        name, outcome, sign, number = found.groups()
        if name not in earlier:
            hint = _hint(name, earlier, "earlier are")
            self.problem(place, f"{where}'only_if' is about an earlier question, and {name!r} is not one: {hint}")
            return None
        kind = KINDS[earlier[name].kind]
        outcomes = ", ".join(kind.outcomes)
        if outcome is not None and outcome not in kind.outcomes:
            known = f"its outcomes are {outcomes}" if outcomes else f"compare its number: '{name} > 100'"
            self.problem(place, f"{where}{name!r} has no outcome {outcome!r}: {known}")
        if sign is not None and not kind.number:
            known = f"its outcomes are {outcomes}" if outcomes else "it has no outcomes, either"
            self.problem(place, f"{where}the answer of {name!r} is not one number: {known}")
        return Condition(text, name, outcome, sign, float(number or 0))

    def repeat(self, given: Any, place: Place, where: str, kind: QuestionKind) -> Repeat | None:
        """When it is asked again."""
        if given is None or not self.table(given, REPEAT, place, f"{where}repeat: "):
            return None
        if given["until"] not in kind.outcomes:
            outcomes = ", ".join(kind.outcomes) or "none, so it cannot be repeated"
            rule = f"{given['until']!r} is not an outcome of {kind.name!r}: they are {outcomes}"
            self.problem(place, f"{where}repeat: {rule}")
        return Repeat(given["until"], Cost.within(given["floor"]), given.get("at_most", 10))


def _amount(key: str, value: Any) -> Amount:
    if value == "rest":
        return Amount("remaining", exact(1, key))
    return Amount(AMOUNTS[key], exact(value, key))


def _hint(name: str, known: Iterable[str], otherwise: str = "known are") -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"{otherwise} {', '.join(known) or 'none'}"
