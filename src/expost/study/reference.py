"""The reference of study files as Markdown, from the one table of keys and kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from expost.study.grammar import COMMON, HOLDS, REPEAT, SECTIONS, Key
from expost.study.kinds import FAMILIES, KINDS
from expost.study.kinds.kind import QuestionKind

_OFTEN = 5
"""A key that means the same in as many kinds is told once, for all of them."""
_APART = ("Tests before the release", "Classifiers")
"""Families with a page of their own."""
_SHARED = "study-kinds.md#keys-that-many-kinds-have"


def key_reference() -> str:
    """Every section, and the keys that every question has."""
    parts = [f"## `[{name}]`\n\n{_table(keys)}" for name, keys in SECTIONS.items()]
    parts.append(
        "## `[derive]`\n\nOne key a new column, whose value is an {doc}`expression <expressions>` over one row.\n"
    )
    parts.append(f"## Every `[[question]]`\n\n{_table(COMMON)}")
    parts.append(f"## `repeat`\n\n{_table(REPEAT)}")
    return "\n".join(parts)


def kind_reference() -> str:
    """Every kind of question, and the keys of those that are statistics."""
    parts = ["## All kinds\n"]
    for family, kinds in FAMILIES.items():
        page = "study-models.md" if family in _APART else ""
        rows = [f"| [`{kind.name}`]({page}#{kind.name}) | {_cell(kind.help)} |" for kind in kinds]
        parts.append("\n".join((f"| {family} | what it answers |", "|---|---|", *rows, "")))
    parts.append(f"## Keys that many kinds have\n\n{_table(_shared())}")
    parts.append(
        'Some kinds have *outcomes*. An outcome follows the question\'s name: `only_if = "spread.released"`.\n'
    )
    return "\n".join((*parts, *_families(name for name in FAMILIES if name not in _APART)))


def model_reference() -> str:
    """The kinds that test before they release, and those that train."""
    return "\n".join(_families(_APART))


def _families(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield f"## {name}\n"
        yield from map(_kind, FAMILIES[name])


def _shared() -> list[Key]:
    """The keys that many kinds have: of one name, that which most of them have."""
    found = Counter(key for kind in KINDS.values() for key in kind.keys)
    often = {key.name: key for key, times in reversed(found.most_common()) if times >= _OFTEN}
    return list(reversed(often.values()))


def _kind(kind: QuestionKind) -> str:
    shared = _shared()
    needs = " Needs a `delta`." if kind.delta else ""
    ends = f" Outcomes: {', '.join(f'`{outcome}`' for outcome in kind.outcomes)}." if kind.outcomes else ""
    own = [key for key in kind.keys if key not in shared]
    others = [f"`{key.name}`{' (required)' if key.required else ''}" for key in kind.keys if key in shared]
    shown = f"```toml\n{kind.example}\n```"
    table = f"\n\n{_table(own).rstrip()}" if own else ""
    more = f"\n\n{'Also' if own else 'Keys'} ([shared]({_SHARED})): {', '.join(others)}." if others else ""
    return f"### `{kind.name}`\n\n{kind.help}{needs}{ends}\n\n{shown}{table}{more}\n"


def _table(keys: Iterable[Key]) -> str:
    rows = [
        f"| `{key.name}`{' (required)' if key.required else ''} | {_words(key)} | {_cell(key.help)} |" for key in keys
    ]
    return "\n".join(("| key | holds | meaning |", "|---|---|---|", *rows, ""))


def _words(key: Key) -> str:
    return " or ".join(f'`"{choice}"`' for choice in key.choices) if key.choices else _cell(HOLDS[key.type][0])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
