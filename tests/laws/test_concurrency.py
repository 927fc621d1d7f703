"""Interactions interleaved: the decomposition behind it, and the best interleaving adversary, exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

History: TypeAlias = tuple[tuple[int, str], ...]

ANSWERS = ("a", "b")
QUESTIONS = (0, 1)
DEPTH = 2


@dataclass(frozen=True)
class Tree:
    """An interactive pair of laws: P and Q of each history, two questions, two answers, so many rounds."""

    p: dict[History, Fraction]
    q: dict[History, Fraction]
    ratio: dict[History, Fraction]
    """e^E of each complete transcript."""


def histories(depth: int) -> list[History]:
    found: list[History] = [()]
    for history in found:
        if len(history) < depth:
            found.extend((*history, (question, answer)) for question in QUESTIONS for answer in ANSWERS)
    return found


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    p: dict[History, Fraction] = {(): Fraction(1)}
    q: dict[History, Fraction] = {(): Fraction(1)}
    ratio: dict[History, Fraction] = {}
    for history in histories(DEPTH):
        if len(history) == DEPTH:
            ratio[history] = draw(st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2)]))
            continue
        for question in QUESTIONS:
            heads = [Fraction(draw(st.integers(0, 4)), 4) for _ in range(2)]
            for answer, shares in zip(ANSWERS, (heads, [1 - h for h in heads]), strict=True):
                later = (*history, (question, answer))
                p[later], q[later] = p[history] * shares[0], q[history] * shares[1]
    return Tree(p, q, ratio)


def after(history: History, question: int) -> list[History]:
    return [(*history, (question, answer)) for answer in ANSWERS]


def total(masses: Iterable[Fraction]) -> Fraction:
    return sum(masses, Fraction(0))


def losses(tree: Tree) -> dict[History, Fraction]:
    """L of thm-causal: at leaves (P − e^E·Q)₊, above the best question's sum."""
    found: dict[History, Fraction] = {}
    for history in reversed(histories(DEPTH)):
        if history in tree.ratio:
            found[history] = max(Fraction(0), tree.p[history] - tree.ratio[history] * tree.q[history])
        else:
            found[history] = max(total(found[later] for later in after(history, question)) for question in QUESTIONS)
    return found


@given(trees())
def test_causal_decomposition(tree: Tree) -> None:
    """P = P̃ + N with both causal, N(root) = δ and P̃ ≤ e^E·Q at every leaf (built as in the proof)."""
    loss = losses(tree)
    n: dict[History, Fraction] = {(): loss[()]}
    for history in histories(DEPTH - 1):
        for question in QUESTIONS:
            rest = n[history] - sum(loss[later] for later in after(history, question))
            assert rest >= 0
            for later in after(history, question):
                extra = min(rest, tree.p[later] - loss[later])
                n[later] = loss[later] + extra
                rest -= extra
            assert rest == 0
    for history, mass in n.items():
        assert 0 <= mass <= tree.p[history]
    for leaf, ratio in tree.ratio.items():
        assert tree.p[leaf] - n[leaf] <= ratio * tree.q[leaf]


@settings(max_examples=25)
@given(trees(), trees())
def test_interleaving_two_interactions(one: Tree, two: Tree) -> None:
    """The best adversary over all interleavings stays within E₁ + E₂ and 1 − (1 − δ₁)(1 − δ₂)."""

    @cache
    def best(first: History, second: History) -> Fraction:
        if first in one.ratio and second in two.ratio:
            allowed = one.ratio[first] * two.ratio[second]
            return max(Fraction(0), one.p[first] * two.p[second] - allowed * one.q[first] * two.q[second])
        options = []
        if first not in one.ratio:
            options += [total(best(later, second) for later in after(first, question)) for question in QUESTIONS]
        if second not in two.ratio:
            options += [total(best(first, later) for later in after(second, question)) for question in QUESTIONS]
        return max(options)

    lost = [losses(tree)[()] for tree in (one, two)]
    assert best((), ()) <= 1 - (1 - lost[0]) * (1 - lost[1])
