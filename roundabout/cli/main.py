# SPDX-License-Identifier: Apache-2.0
"""The command line: one command a file; errors are one message, never a traceback."""

import importlib
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from roundabout.cli import output
from roundabout.cli.lines import complain
from roundabout.errors import RoundaboutError

# Command -> module of roundabout.cli, which offers `command` (a function) or `app` (a group); in a day's order.
COMMANDS = {
    "list": "list_",
    "new": "new",
    "validate": "validate",
    "plan": "plan",
    "predict": "predict",
    "cassini": "cassini",
    "affinity": "affinity",
    "advise": "advise",
    "run": "run",
    "resume": "resume",
    "trial": "trial",
    "watch": "watch",
    "status": "status",
    "dashboards": "dashboards",
    "runs": "runs",
    "rm": "rm",
    "export": "export",
    "report": "report",
    "notebook": "notebook",
    "compare": "compare",
    "scoreboard": "scoreboard",
    "decode": "decode",
    "lab": "lab",
    "provision": "provision",
    "verify": "verify",
    "rollback": "rollback",
    "doctor": "doctor",
    "acceptance": "acceptance",
    "cc": "cc",
    "profile": "profile",
    "calibrate": "calibrate",
    "clean": "clean",
    "schema": "schema",
}


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The typer application with the commands `names`."""
    app = typer.Typer(
        name="roundabout",
        help="Run experiments on how training jobs share a network.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_group)
    for name in names:
        module = importlib.import_module(f"roundabout.cli.{COMMANDS[name]}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.command)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 1 for an error, 2 for bad usage, 130 when interrupted."""
    output.prepare()
    status = _run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()  # or it would fail when Python ends
    except OSError as error:
        return _cannot_write(error)
    return status


def _run(words: list[str]) -> int:
    try:
        # Only the command that was asked for is imported: the others' libraries cost a second.
        asked = (words or _being_completed())[:1]
        app = build_app(asked if asked and asked[0] in COMMANDS else COMMANDS)
        app(args=words, prog_name="roundabout")
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except RoundaboutError as error:
        complain(error.message, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, OSError) and output.is_refusal(error):
            return _cannot_write(error)
        complain(f"unexpected {type(error).__name__}: {error}", _crash_log())
        return 1
    return 0


def _cannot_write(error: OSError) -> int:
    """Say that output, or a file, cannot be written. A pipe whose reader ended wants to hear nothing."""
    output.mute(sys.stdout)
    if not isinstance(error, BrokenPipeError):
        complain(output.told_of(error), None)
    return 1


def _being_completed() -> list[str]:
    """The words after the program's name that a shell asks to complete: bash, or zsh and fish."""
    return (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "").split()[1:]


def _show_version(asked: bool) -> None:
    if asked:
        print(f"roundabout {version('roundabout')}")
        raise typer.Exit


def _group(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Holds the commands together, so that a lone command keeps its name."""


def _crash_log() -> str:
    """Write the current exception's traceback to a file of its own and say where it is."""
    details = f"command: {sys.argv}\n\n{traceback.format_exc()}"
    try:
        from roundabout.store import scratch  # noqa: PLC0415 - commands that end well need not wait for it

        path = scratch.write_crash_log(details)
    except Exception as error:  # it may be what crashed
        return f"this is a bug in roundabout; its details could not be written to a file: {error}"
    return f"this is a bug in roundabout; the details are in {path}"


if __name__ == "__main__":
    sys.exit(main())
