"""From the Coq definitions to ``expost.verify.game``: do they describe the same game?

The definitions ``view``, ``views``, ``admitted`` and ``excess`` are read from the text of ``odp.v`` and transcribed to
Python, word by word; a construct that the small grammar below does not know is an error, never a guess. The
transcription then plays random games with rational probabilities: it lists *every* adversary, keeps those that
``admitted`` admits, and takes the largest ``excess`` of their views. ``verify.game`` finds the same number by backward
induction. Both are exact, so they must be equal.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from expost.accounting import OdpFilter
from expost.cost import Cost
from expost.guarantee import Guarantee
from expost.verify.finite import FiniteMechanism
from expost.verify.game import Move, worst_delta_at

GAMES = 200
DEFINITIONS = ("view", "views", "admitted", "excess")


class Disagreement(Exception):
    """The definitions and ``verify.game`` do not describe the same game."""


class Untranslatable(Exception):
    """The Coq text uses a construct that the transcription does not know."""


# ---- reading


def definition(text: str, name: str) -> str:
    """A definition's text, up to its full stop."""
    found = re.search(rf"^(?:Fixpoint|Definition) {name} .*?\.$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise Untranslatable(f"odp.v has no definition {name}")
    return found.group()


def tokens(text: str) -> list[str]:
    """Words and signs."""
    return re.findall(r"fun=>|=>|:=|<=|\[/\\|\[choiceType of|%:E|[\w.']*\w|\S", text)


# ---- parsing: a Pratt parser that writes Python as it goes

BINDERS = {"k": "a.m.labels", "o": "a.m.outputs"}
"""What the bound variables of `forall` range over: the labels of the mechanism's parts, and its outputs."""
STRENGTH = {"<=": 1, "+": 2, "-": 2, "*": 3}
CALLS = {"tag": "{0}[0]", "tagged": "{0}[1]", "Num.max": "max({0}, {1})", "run": "{0}.run({1}, {2})"}
FIELDS = ("part_of", "epsilon_of", "delta")
NAMES = {*"abdekmopqvxE01", "next", "expR", "view", "views", "admitted"}
"""Every other word that may occur; there is no room for one that means something else in Python."""


class Parser:
    """Reads one term and writes it as a Python expression."""

    def __init__(self, words: Sequence[str], known: Mapping[str, int]) -> None:
        self._words = [*words, "end of text"]
        self._at = 0
        self._known = known
        """The functions that are being transcribed, and how many arguments they take."""

    def peek(self) -> str:
        """The next word."""
        return self._words[self._at]

    def take(self, expected: str | None = None) -> str:
        """The next word, which must be the expected one."""
        word = self._words[self._at]
        if expected is not None and word != expected:
            raise Untranslatable(f"expected {expected!r}, found {word!r} in {' '.join(self._words[:-1])!r}")
        self._at += 1
        return word

    def whole(self) -> str:
        """The term that is the whole text."""
        written = self.term()
        self.take("end of text")
        return written

    def term(self, strength: int = 0) -> str:
        """A term whose operators bind more strongly than ``strength``."""
        left = self.prefix()
        while STRENGTH.get(self.peek(), 0) > strength:
            sign = self.take()
            left = f"({left} {sign} {self.term(STRENGTH[sign])})"
        return left

    def prefix(self) -> str:
        """A binder, or an application."""
        word = self.peek()
        if word == "forall":
            return self.quantified()
        if word == "fun=>":
            self.take()
            return f"(lambda _: {self.term()})"
        if word == "fun":
            self.take()
            name = self.take()
            self.take("=>")
            return f"(lambda {name}: {self.term()})"
        return self.application()

    def quantified(self) -> str:
        """``forall k, …`` becomes a check of every value."""
        self.take("forall")
        name = self.take()
        self.take(",")
        if name not in BINDERS:
            raise Untranslatable(f"what does {name} range over?")
        return f"all({self.term()} for {name} in {BINDERS[name]})"

    def application(self) -> str:
        """A function and its arguments, or an atom alone."""
        word = self.take()
        if word in ("(", "[/\\", "{", "[choiceType of"):
            return self.bracketed(word)
        if not re.fullmatch(r"[\w.']+", word):
            raise Untranslatable(f"unknown sign {word!r}")
        arguments = []
        while re.fullmatch(r"[\w.']+", self.peek()) or self.peek() == "(":
            arguments.append(self.argument())
        return self.call(word, arguments)

    def argument(self) -> str:
        """An argument: a word, or something in brackets."""
        word = self.take()
        return self.bracketed(word) if word == "(" else self.call(word, [])

    def call(self, word: str, arguments: list[str]) -> str:
        """The application in Python."""
        if word in CALLS:
            return CALLS[word].format(*arguments)
        if word in FIELDS:
            owner, *rest = arguments
            return f"{owner}.{word}({rest[0]})" if rest else f"{owner}.{word}"
        if word in self._known and len(arguments) == self._known[word] - 1:  # applied to all but the last
            return f"(lambda last: {word}({', '.join([*arguments, 'last'])}))"
        if word in ("unit", "True") and not arguments:
            return "[()]" if word == "unit" else word
        if word not in NAMES:
            raise Untranslatable(f"unknown word {word!r}")
        return f"{word}({', '.join(arguments)})" if arguments else word

    def bracketed(self, opening: str) -> str:
        """What stands in brackets: a term, a conjunction, a type of pairs."""
        if opening == "(":
            inner = self.term()
            self.take(")")
            return f"({inner})"
        if opening == "[/\\":
            return self.conjunction()
        if opening == "[choiceType of":
            inner = self.term()
            self.take("]")
            return inner
        return self.pairs()

    def conjunction(self) -> str:
        """``[/\\ a, b & c]``."""
        parts = [self.term()]
        while self.peek() in (",", "&"):
            self.take()
            parts.append(self.term())
        self.take("]")
        return f"({' and '.join(parts)})"

    def pairs(self) -> str:
        """``{o : _ & T}``, the pairs of an output and something that depends on it."""
        name = self.take()
        for sign in (":", "_", "&"):
            self.take(sign)
        second = self.term()
        self.take("}")
        return f"[({name}, second) for {name} in {BINDERS[name]} for second in {second}]"


# ---- transcribing


def parameters(head: str) -> list[str]:
    """The names of a definition's parameters."""
    return [name for group in re.findall(r"\(([^:()]+) :", head) for name in group.split()]


def transcribe_match(name: str, text: str) -> str:
    """A Fixpoint over adversaries as a Python function."""
    head, body = text.split(":=\n", 1)
    names = parameters(head)
    arms = re.findall(r"\| (Stop|Ask)((?: \w+)*) =>(.*?)(?=\n  \| |\n  end\.)", body, re.DOTALL)
    if [arm[0] for arm in arms] != ["Stop", "Ask"] or "match a with" not in body:
        raise Untranslatable(f"{name} must be a match on Stop and Ask")
    known = {"view": 1, "views": 3, "admitted": 3, name: len(names) + (name == "views")}
    stop, ask = (Parser(implicit(tokens(arm[2])), known).whole() for arm in arms)
    bound = arms[1][1].split()
    fields = [f"    {word} = a.{word}" for word in bound if word != "_"]
    last = ", v" if name == "views" else ""
    apply = "(v)" if last else ""
    return "\n".join(
        [
            f"def {name}({', '.join(names)}{last}):",
            f"    if a is Stop: return ({stop}){apply}",
            *fields,
            f"    return ({ask}){apply}",
        ]
    )


def implicit(words: list[str]) -> list[str]:
    """Coq infers the adversary of `views b (tagged v)`; Python is told."""
    text = " ".join(words)
    return (
        text.replace("views b ( tagged v )", "views ( next ( tag v ) ) b ( tagged v )").split(" ")
        if "views" in text
        else words
    )


def transcribe_excess(text: str) -> str:
    """The definition of excess; a total is a sum over the given outputs."""
    head, body = text.split(":=\n", 1)
    found = re.fullmatch(r"\s*total \((fun o => .*)\)\.", body, re.DOTALL)
    if found is None:
        raise Untranslatable("excess must be a total")
    names = [name for name in parameters(head) if name != "O"]
    term = Parser(tokens(found.group(1)), {}).whole()
    return f"def excess(outputs, {', '.join(names)}):\n    return sum(map({term}, outputs), Fraction(0))"


def transcription(text: str) -> str:
    """Python for the definitions in the text of ``odp.v``."""
    functions = [transcribe_match(name, definition(text, name)) for name in DEFINITIONS[:-1]]
    return "\n\n\n".join([*functions, transcribe_excess(definition(text, "excess"))]) + "\n"


# ---- playing

STOP = object()


@dataclass(frozen=True)
class Played:
    """A mechanism of odp.v, finite."""

    table: FiniteMechanism
    guarantee: Guarantee
    outputs: tuple[Any, ...]
    labels: tuple[Any, ...]

    def run(self, x: Any, o: Any) -> Fraction:
        """The probability of the output on a database."""
        return Fraction(self.table.laws[x].get(o, 0))

    def part_of(self, o: Any) -> Any:
        """The part of an output."""
        return self.table.part_of(o)

    def epsilon_of(self, k: Any) -> Fraction:
        """The epsilon of a part, exactly."""
        return self.guarantee.cost_of(k).exact_epsilon

    @property
    def delta(self) -> Fraction:
        """The one delta."""
        return self.guarantee.worst_case.exact_delta


@dataclass(frozen=True)
class Asking:
    """`Ask` of odp.v."""

    m: Played
    x: Callable[[bool], Any]
    next: Callable[[Any], Any]


def adversaries(moves: Sequence[Played], rounds: int) -> Iterator[Any]:
    """Every adversary of at most so many rounds."""
    yield STOP
    if rounds == 0:
        return
    below = list(adversaries(moves, rounds - 1))
    for m in moves:
        for pair in m.table.ordered_pairs():
            for choice in product(below, repeat=len(m.outputs)):
                answers = dict(zip(m.outputs, choice, strict=True))
                yield Asking(m, pair.__getitem__, answers.__getitem__)


def best_excess(
    functions: Mapping[str, Any], moves: Sequence[Played], limit: Cost, rounds: int, ratio: Fraction
) -> Fraction:
    """The largest excess of an admitted adversary's views, by listing all adversaries."""
    view, views, admitted, excess = (functions[name] for name in DEFINITIONS)
    best = Fraction(0)
    for a in adversaries(moves, rounds):
        if admitted(limit.exact_epsilon, limit.exact_delta, a):
            best = max(best, excess(view(a), lambda v: ratio, partial(views, a, False), partial(views, a, True)))
    return best


def random_law(draw: random.Random, outputs: Sequence[int]) -> dict[int, Fraction]:
    """Rational probabilities, some of them zero."""
    weights = [draw.choice((0, 1, 1, 2, 3, 5)) for _ in outputs]
    weights[draw.randrange(len(outputs))] += 1
    return {output: Fraction(weight, sum(weights)) for output, weight in zip(outputs, weights, strict=True)}


def random_move(draw: random.Random, size: int) -> Played:
    """A mechanism with a guarantee, which need not be true: the game is played by guarantees."""
    outputs = tuple(range(size))
    table = FiniteMechanism({x: random_law(draw, outputs) for x in (0, 1)}, [(0, 1)], lambda output: output % 2)
    labels = tuple(sorted({table.part_of(output) for output in outputs}))
    epsilons = {label: Fraction(draw.randrange(5), 4) for label in labels}
    return Played(table, Guarantee(epsilons, Fraction(draw.randrange(3), 8)), outputs, labels)


SHAPES = ((1, 3, 2), (2, 2, 2), (2, 2, 2), (1, 2, 3), (1, 3, 2))
"""Mechanisms, outputs and rounds of a game."""


def loaded(source: str) -> dict[str, Any]:
    """The functions of a transcription. Games are judged at a rational ratio, which is passed as its own logarithm."""
    functions: dict[str, Any] = {"Stop": STOP, "Fraction": Fraction, "expR": lambda ratio: ratio}
    exec(compile(source, "transcription of odp.v", "exec"), functions)
    return functions


def disagreements(source: str, games: int = GAMES, seed: int = 7) -> int:
    """How many random games the transcription and ``verify.game`` value differently."""
    draw, functions, count = random.Random(seed), loaded(source), 0
    for number in range(games):
        mechanisms, size, rounds = SHAPES[number % len(SHAPES)]
        moves = [random_move(draw, size) for _ in range(mechanisms)]
        limit = Cost(Fraction(draw.randrange(1, 7), 4), Fraction(draw.randrange(5), 8))
        ratio = Fraction(draw.randrange(4, 13), 4)
        listed = best_excess(functions, moves, limit, rounds, ratio)
        solved = worst_delta_at([Move.of(m.table, m.guarantee) for m in moves], OdpFilter(limit), rounds, ratio)
        count += listed != solved
    return count


WRONG = (
    ("<= e, delta m <= d", "<= e, True"),
    ("forall k, epsilon_of m k <= e", "True"),
    ("(d - delta m) (next o)", "d (next o)"),
    ("(e - epsilon_of m (part_of m o))", "e"),
)
"""Changes to the rule in odp.v that the games must notice."""


def check(text: str, keep: Path) -> None:
    """Raise unless all games agree, and games with a wrong rule do not."""
    source = transcription(text)
    keep.write_text(source)
    if count := disagreements(source):
        raise Disagreement(f"{count} of {GAMES} games have another value by the Coq definitions than by verify.game")
    for old, new in WRONG:
        if text.count(old) != 1 or not disagreements(transcription(text.replace(old, new)), GAMES // 5):
            raise Disagreement(f"no game notices that {old!r} became {new!r}")
