"""What all commands share: consoles, exit codes, and errors as messages instead of stack traces."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.text import Text

from expost import errors
from expost.cost import Cost, shortened
from expost.mentions import Action, Argument, GivenValue, Mention, printable

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def argument(metavar: str, text: str, **more: Any) -> Any:
    """An argument, whose default is not shown."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, **more)


def option(text: str, *names: str, **more: Any) -> Any:
    """An option, whose default is not shown."""
    return typer.Option(*names, help=text, show_default=False, **more)


Account = Annotated[str | None, option("An account below it, such as clinic/alice.", metavar="PATH")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead, for other programs.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
OK = 0
FAILED = 1
"""It could not be run, or a check failed."""
INVALID = 2
"""Wrong usage, or a mistake in the study, the data's schema or the ledger's name."""
EXCEEDED = 3
"""Over budget."""
UNAVAILABLE = 4
"""The ledger does not answer, is closed, or contradicts its audit trail."""

CODES = "Exit codes: 0 done · 1 it could not be run · 2 wrong usage or study · 3 over budget · 4 ledger trouble."

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.BudgetExceeded, EXCEEDED),
    (errors.LedgerUnavailable, UNAVAILABLE),
    (errors.LedgerCorrupt, UNAVAILABLE),
    (errors.LedgerClosed, UNAVAILABLE),
    (errors.InvalidValue, INVALID),
    (errors.UnknownEntry, INVALID),
    (errors.KeyConflict, INVALID),
)


class _Shown:
    """What is printed, without characters that a terminal would obey."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._inner, options):
            yield Segment(text if control else printable(text, keep="\n"), style, control)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._inner)


class _Escaping(RenderHook):
    """Escapes whatever a console prints: styles are added afterwards, so that codes can only come from texts."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Shown(each) for each in renderables]


def console(**settings: Any) -> Console:
    """A console for plain text, in which texts command nothing."""
    made = Console(highlight=False, markup=False, emoji=False, **settings)
    made.push_render_hook(_Escaping())
    return made


_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
out = console(width=_WIDTH)
"""Answers, which other programs may read."""
err = console(stderr=True, width=_WIDTH)
"""Progress and errors."""


def code_of(error: Exception) -> int:
    """The exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)


def command_words(mention: Mention) -> str:
    """What a message mentions, as it is typed."""
    match mention:
        case Argument(name, None):
            return f"--{name.replace('_', '-')}"
        case Argument(name, value):
            return f"--{name.replace('_', '-')} {value}"
        case Action():
            return mention.command
        case GivenValue():
            return str(mention)


def fail(error: errors.ExpostError) -> int:
    """Print an error on standard error; returns the exit code."""
    text = error.text(command_words)
    err.print(Text.assemble(("error: ", "bold red"), text, *(f"\n{note}" for note in notes(error))), soft_wrap=True)
    return code_of(error)


def notes(error: BaseException) -> list[str]:
    """What was added to an error while it was raised, such as that the worst case was charged."""
    return list(getattr(error, "__notes__", []))


def guarded(command: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """A command whose errors become a message and an exit code. The text of unexpected errors is not shown."""

    @wraps(command)
    def run(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return command(*args, **kwargs)
        except errors.ExpostError as error:
            raise typer.Exit(fail(error)) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if os.environ.get("EXPOST_TRACE"):
                raise
            err.print(
                f"error: unexpected {type(error).__name__}, a bug. Its message may quote data and is not shown; "
                "EXPOST_TRACE=1 shows it.",
                soft_wrap=True,
            )
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt as interrupt:
            charged = [note.removeprefix("expost: ") for note in notes(interrupt)]
            err.print(f"interrupted: {'; '.join(charged) or 'nothing was being sampled'}", soft_wrap=True)
            raise typer.Exit(130) from None

    return run


class Commands(typer.Typer):
    """Commands that fail with a message and an exit code, never with a stack trace."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(
            name=name, help=text, short_help=_in_short(text), no_args_is_help=True, rich_markup_mode=None,
            pretty_exceptions_enable=False,
        )  # fmt: skip

    def add(self, name: str | None = None) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
        """Adds a function as a command; under its own name unless another is given."""
        return lambda command: self.command(name, short_help=_in_short(command.__doc__ or ""))(guarded(command))


def _in_short(text: str) -> str:
    """The first sentence of a help text, whole: typer cuts it to a line where it makes one itself."""
    return re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()), maxsplit=1)[0]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Says which file cannot be written, if one cannot."""
    try:
        yield
    except OSError as error:
        raise errors.InvalidValue(f"{path} cannot be written: {error.strerror}") from None


def write(path: Path, text: str) -> None:
    """Write a text file."""
    with writing(path):
        path.write_text(text, encoding="utf-8")


def confirm(question: str, yes: bool) -> None:
    """Ask, unless it was answered on the command line; ends the command if the answer is no."""
    if not yes:
        typer.confirm(question, abort=True, err=True)


def short(cost: Cost, *, up: bool) -> str:
    """A cost to six places, for tables: charges round up, refunds and balances down."""
    basic = shortened(cost, up=up)
    rho = getattr(cost, "rho_units", 0)  # where there are several meters
    parts = [f"{basic}"] if basic or not rho else []
    return " or ".join([*parts, *([f"ρ {rho / 1e12:.4g}"] if rho else [])])
