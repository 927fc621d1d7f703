"""From a TOML file to a study. Everything that is wrong is said at once, with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from expost.cost import Cost, exact
from expost.errors import InvalidStudy, InvalidValue
from expost.study.grammar import AMOUNTS, COMMON, REPEAT, SECTIONS, TOP, Key
from expost.study.kinds import KINDS
from expost.study.lines import Path as Place
from expost.study.lines import line_index, line_of
from expost.study.model import REFERENCES, Amount, Books, Condition, Data, Privacy, Question, Repeat, Study

_CONDITION = re.compile(r"^\s*([\w-]+?)\s*(?:\.\s*(\w+)|([<>])\s*(-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))\s*$")
_ADDRESSES = ("sqlite:///", "postgresql://", "postgres://")
_SHOWN_ADDRESSES = "sqlite:///books.db, postgresql://host/database or memory:"
_CSV = (".csv", ".tsv", ".txt")
_NUMERIC = ("count", "sum", "mean", "median", "quantile", "trimmed_mean")


def read_study(file: str | Path) -> Study:
    """The study in a file, or :class:`~expost.errors.InvalidStudy` with everything that is wrong with it."""
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidStudy(str(file), ((None, "cannot be read: is the path right, and is it text?"),)) from None
    return parse_study(text, path)


def parse_study(text: str, path: Path) -> Study:
    """The study that a text says; ``path`` is where other files are seen from."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else None
        raise InvalidStudy(str(path), ((line, f"this is no TOML: {error}"),)) from None
    return _Reader(text, path).study(told)


class _Reader:
    """Collects problems while it reads."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self.index = line_index(text)
        self.problems: list[tuple[int | None, str]] = []

    def study(self, told: dict[str, Any]) -> Study:
        self.unknown(told, TOP, (), "")
        sections = {name: self.section(told, name) for name in SECTIONS}
        derive = told.get("derive", {})
        if not isinstance(derive, dict) or not all(isinstance(text, str) for text in derive.values()):
            self.problem(("derive",), '[derive] has expressions: name = "expression"')
        if "title" in told and not isinstance(told["title"], str):
            self.problem(("title",), "'title' is a text")
        self.types(sections["data"])
        limit = self.limit(sections["limit"])
        self.address(sections["ledger"].get("url"))
        for name in ("name", "account"):
            if "/" in str(sections["ledger"].get(name, "")):
                self.problem(("ledger", name), f"[ledger] {name!r} has no '/': say 'name' and 'account'")
        questions = self.questions(told.get("question"))
        self.privacy(sections["privacy"])
        if self.problems:
            raise InvalidStudy(str(self.path), tuple(sorted(self.problems, key=lambda each: each[0] or 0)))
        assert limit is not None
        return Study(
            file=self.path,
            title=told.get("title", self.path.stem),
            data=Data(**sections["data"]),
            privacy=Privacy(**sections["privacy"]),
            limit=limit,
            books=Books(**sections["ledger"]),
            derive=derive,
            questions=questions,
            lines=self.lines((), "."),
        )

    # ---- problems

    def problem(self, place: Place, what: str) -> None:
        self.problems.append((line_of(self.index, place), what))

    def lines(self, place: Place, between: str) -> dict[str, int]:
        """The lines below a place, by the rest of their paths."""
        below = {path[len(place) :]: line for path, line in self.index.items() if path[: len(place)] == place}
        return {between.join(map(str, path)): line for path, line in below.items()}

    def unknown(self, told: Mapping[str, Any], keys: Iterable[Key], place: Place, where: str) -> None:
        names = [key.name for key in keys]
        for name in told:
            if name not in names:
                near = get_close_matches(name, names, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(names))}"
                self.problem((*place, name), f"{where}unknown key {name!r}: {hint}")

    def table(self, told: Any, keys: tuple[Key, ...], place: Place, where: str) -> bool:
        """Check a table against its keys: unknown, missing and wrong ones."""
        if not isinstance(told, dict):
            self.problem(place, f"{where}this is a table of keys")
            return False
        before = len(self.problems)
        self.unknown(told, keys, place, where)
        for key in keys:
            if key.name not in told:
                if key.required:
                    self.problem(place, f"{where}{key.name!r} is missing: {key.help}")
                continue
            wrong = key.wrong(told[key.name])
            if wrong:
                self.problem((*place, key.name), f"{where}{wrong}, got {_shown(told[key.name])}")
        return len(self.problems) == before

    # ---- sections

    def section(self, told: Mapping[str, Any], name: str) -> dict[str, Any]:
        if name not in told:
            required = ", ".join(key.name for key in SECTIONS[name] if key.required)
            self.problem((), f"section [{name}] is missing: it must say {required}")
            return {}
        self.table(told[name], SECTIONS[name], (name,), f"[{name}] ")
        return dict(told[name]) if isinstance(told[name], dict) else {}

    def types(self, told: Mapping[str, Any]) -> None:
        """A CSV file does not state its types, and to find them out is to look at private values."""
        path = told.get("path")
        if isinstance(path, str) and path.lower().removesuffix(".gz").endswith(_CSV) and "schema" not in told:
            self.problem(
                ("data", "path"),
                "[data] a CSV file does not say what its columns hold, and a look at its values is not public: say it "
                'in \'schema\', such as schema = { age = "integer", city = "text" }, or let expost init write it',
            )

    def address(self, url: Any) -> None:
        if isinstance(url, str) and url != "memory:" and not url.startswith(_ADDRESSES):
            shown = _shown(url.partition("@")[2] or url)  # what stands before may be a password
            self.problem(("ledger", "url"), f"[ledger] 'url' is such as {_SHOWN_ADDRESSES}, got {shown}")

    def limit(self, told: Mapping[str, Any]) -> Cost | None:
        if any(key.name in told and key.wrong(told[key.name]) for key in SECTIONS["limit"]):
            return None  # said already
        epsilon, delta = told.get("epsilon", 1), told.get("delta", 0)
        if not 0 <= delta < 1:
            self.problem(("limit", "delta"), f"[limit] 'delta' is a probability below 1, got {_shown(delta)}")
            return None
        try:
            limit = Cost.within(max(epsilon, 0), delta)
        except InvalidValue:
            rule = "is too large to promise anything"
        else:
            if limit.epsilon_units:
                return limit
            rule = "is above 0" if epsilon <= 0 else "is at least 1e-12"
        self.problem(("limit", "epsilon"), f"[limit] 'epsilon' {rule}, got {_shown(epsilon)}")
        return None

    def privacy(self, told: Mapping[str, Any]) -> None:
        for name in ("rows", "groups", "size"):
            if isinstance(told.get(name), int) and told[name] < 1:
                self.problem(("privacy", name), f"[privacy] {name!r} is at least 1, got {_shown(told[name])}")
        if told.get("unit") == "row":
            for name in ("rows", "groups"):
                if name in told:
                    self.problem(("privacy", name), f'[privacy] {name!r} is for a unit that is a column, not "row"')
        elif "unit" in told and "rows" not in told:
            self.problem(
                ("privacy", "unit"), f"[privacy] say 'rows', the most rows that count of any one {told['unit']!r}"
            )
        if "size" in told and told.get("neighbours") == "add-remove":
            self.problem(("privacy", "size"), "[privacy] under add-remove the number of units is private: no 'size'")

    # ---- questions

    def questions(self, told: Any) -> tuple[Question, ...]:
        if isinstance(told, dict):
            self.problem(("question",), "questions are a list, even if there is one: write [[question]]")
            return ()
        if not isinstance(told, list) or not told:
            self.problem((), "there is no [[question]]: a study asks at least one")
            return ()
        found: dict[str, Question] = {}
        for number, each in enumerate(told):
            question = self.question(each, ("question", number), found)
            if question is not None:
                found[question.name] = question
        return tuple(found.values())

    def question(self, told: Any, place: Place, earlier: Mapping[str, Question]) -> Question | None:
        told = told if isinstance(told, dict) else {}
        name, kind = told.get("name"), told.get("kind")
        where = f"question {name!r}: " if isinstance(name, str) else "question: "
        if not isinstance(kind, str) or kind not in KINDS:
            near = get_close_matches(str(kind), KINDS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(KINDS)}"
            what = (
                f"unknown kind {_shown(kind)}: {hint}" if "kind" in told else f"'kind' is missing: {', '.join(KINDS)}"
            )
            self.problem((*place, "kind"), where + what)
            return None
        keys = (*COMMON, *KINDS[kind].keys)
        sound = self.table(told, keys, place, where)
        if isinstance(name, str) and not re.fullmatch(r"[\w-]+", name):
            self.problem((*place, "name"), f"{where}a name has letters, digits, '_' and '-' only")
            sound = False
        if isinstance(name, str) and name in earlier:
            self.problem((*place, "name"), f"{where}there is a question of that name already")
            sound = False
        amount = self.amount(told, place, where)
        if not sound or amount is None:
            return None
        own = {key.name for key in KINDS[kind].keys}
        values = {key: value for key, value in told.items() if key in own}
        self.references(values, place, where, earlier)
        return Question(
            name=name,
            kind=kind,
            label=told.get("label", name),
            amount=amount,
            delta=self.delta(told, place, where),
            values=values,
            only_if=self.condition(told.get("only_if"), (*place, "only_if"), where, earlier),
            repeat=self.repeat(told.get("repeat"), (*place, "repeat"), where, kind),
            lines=self.lines(place, ""),
        )

    def amount(self, told: Mapping[str, Any], place: Place, where: str) -> Amount | None:
        given = [name for name in AMOUNTS if name in told]
        if len(given) != 1:
            said = "has no ε" if not given else f"has {' and '.join(given)}"
            self.problem(place, f"{where}{said}: give one of epsilon, share, share_of_remaining")
            return None
        name, value = given[0], told[given[0]]
        if value == "rest":
            return Amount("remaining", exact(1, "")) if name == "epsilon" else None
        try:
            number = exact(value, name)
        except InvalidValue:
            return None  # its type was a problem already
        try:
            Cost.within(number if number > 0 else 0)
        except InvalidValue:
            self.problem((*place, name), f"{where}{name!r} is too large to promise anything, got {_shown(value)}")
            return None
        if number <= 0 or (name != "epsilon" and number > 1):
            range_ = "above 0" if name == "epsilon" else "above 0 and at most 1"
            self.problem((*place, name), f"{where}{name!r} must be {range_}, got {_shown(value)}")
            return None
        return Amount({"epsilon": "fixed", "share": "limit", "share_of_remaining": "remaining"}[name], number)  # type: ignore[arg-type]

    def delta(self, told: Mapping[str, Any], place: Place, where: str) -> Any:
        needed = KINDS[told["kind"]].delta or told.get("noise") == "gaussian"
        if needed and "delta" not in told:
            self.problem(place, f"{where}'delta' is missing: {told['kind']!r} needs a δ, such as 1e-6")
        elif not needed and "delta" in told:
            self.problem((*place, "delta"), f"{where}{told['kind']!r} needs no δ: leave 'delta' out")
        value = told.get("delta", 0)
        if value != "rest" and not (0 < value < 1 or (value == 0 and "delta" not in told)):
            said = f"{where}'delta' is a probability above 0 and below 1, got {_shown(value)}"
            self.problem((*place, "delta"), said)
            return exact(0, "δ")
        return "rest" if value == "rest" else exact(value, "δ")

    def references(self, values: Mapping[str, Any], place: Place, where: str, earlier: Mapping[str, Question]) -> None:
        """Keys that name earlier questions."""
        for key, kind in REFERENCES.items():
            name = values.get(key)
            if isinstance(name, str) and (name not in earlier or earlier[name].kind != kind):
                self.problem(
                    (*place, key), f"{where}{key!r} names an earlier question of kind {kind!r}; {name!r} is none"
                )

    def condition(self, text: Any, place: Place, where: str, earlier: Mapping[str, Question]) -> Condition | None:
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
            near = get_close_matches(name, earlier, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"earlier are {', '.join(earlier) or 'none'}"
            self.problem(place, f"{where}'only_if' is about an earlier question, and {name!r} is none: {hint}")
            return None
        outcomes = KINDS[earlier[name].kind].outcomes
        if outcome is not None and outcome not in outcomes:
            known = f"its outcomes are {', '.join(outcomes)}" if outcomes else f"compare its number: '{name} > 100'"
            self.problem(place, f"{where}{name!r} has no outcome {outcome!r}: {known}")
        if sign is not None and earlier[name].kind not in _NUMERIC:
            self.problem(place, f"{where}{name!r} is no single number: its outcomes are {', '.join(outcomes)}")
        return Condition(text, name, outcome, sign, float(number or 0))

    def repeat(self, told: Any, place: Place, where: str, kind: str) -> Repeat | None:
        if told is None or not self.table(told, REPEAT, place, f"{where}repeat: "):
            return None
        if told["until"] not in KINDS[kind].outcomes:
            outcomes = ", ".join(KINDS[kind].outcomes) or "none, so it cannot be repeated"
            self.problem(place, f"{where}repeat: {told['until']!r} is no outcome of {kind!r}: they are {outcomes}")
        times = told.get("at_most", 10)
        if told["floor"] < 0 or not 1 <= times <= 1000:
            self.problem(place, f"{where}repeat: 'floor' is not below 0, and 'at_most' from 1 to 1000")
            return None
        return Repeat(told["until"], Cost.within(told["floor"]), times)


def _shown(value: Any) -> str:
    text = f"{value!r}"
    return text if len(text) <= 60 else f"{text[:57]}…"
