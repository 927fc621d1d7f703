"""The reference of study files as Markdown, from the one table of keys and kinds."""

from __future__ import annotations

from collections.abc import Iterable

from expost.study.grammar import COMMON, HOLDS, REPEAT, SECTIONS, Key
from expost.study.kinds import KINDS


def study_reference() -> str:
    """Every section, every kind of question, every key."""
    parts = ["### Sections\n"]
    for name, keys in SECTIONS.items():
        parts.append(f"`[{name}]`\n\n{_table(keys)}")
    parts.append("`[derive]`\n\nOne key a new column, whose value is an expression over one row.\n")
    parts.append(f"### Every question\n\n{_table(COMMON)}")
    parts.append(f"`repeat`\n\n{_table(REPEAT)}")
    parts.append("### Kinds of questions\n")
    parts.append('An outcome follows the question\'s name: `only_if = "spread.released"`.\n')
    rows = [f"| [`{name}`](#{name}) | {_cell(kind.help)} |" for name, kind in KINDS.items()]
    parts.append("\n".join(("| kind | what it answers |", "|---|---|", *rows, "")))
    parts += [_kind(name) for name in KINDS]
    return "\n".join(parts)


def _kind(name: str) -> str:
    kind = KINDS[name]
    needs = " Needs a `delta`." if kind.delta else ""
    ends = f" Outcomes: {', '.join(f'`{outcome}`' for outcome in kind.outcomes)}." if kind.outcomes else ""
    return f"#### `{name}`\n\n{kind.help}{needs}{ends}\n\n```toml\n{kind.example}\n```\n\n{_table(kind.keys)}"


def _table(keys: Iterable[Key]) -> str:
    rows = [
        f"| `{key.name}`{' (required)' if key.required else ''} | {_words(key)} | {_cell(key.help)} |" for key in keys
    ]
    return "\n".join(("| key | holds | meaning |", "|---|---|---|", *rows, ""))


def _words(key: Key) -> str:
    return " or ".join(f'`"{choice}"`' for choice in key.choices) if key.choices else _cell(HOLDS[key.type][0])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
