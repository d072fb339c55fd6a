# SPDX-License-Identifier: Apache-2.0
"""The command line: one command a file; errors are one message, never a traceback."""

import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress

import typer

from roundabout.errors import RoundaboutError

# Command -> module of roundabout.cli, which offers `command` (a function) or `app` (a group); in a day's order.
COMMANDS = {
    "list": "list_",
    "validate": "validate",
    "plan": "plan",
    "predict": "predict",
    "cassini": "cassini",
    "affinity": "affinity",
    "advise": "advise",
    "run": "run",
    "resume": "resume",
    "status": "status",
    "runs": "runs",
    "rm": "rm",
    "export": "export",
    "report": "report",
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
        add_completion=False,
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
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # Only the command that was asked for is imported: the others' libraries cost a second.
        app = build_app(words[:1] if words[:1] and words[0] in COMMANDS else COMMANDS)
        app(args=words, prog_name="roundabout")
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except RoundaboutError as error:
        _complain(error.message, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        _complain(f"unexpected {type(error).__name__}: {error}", _crash_log())
        return 1
    return 0


def _group() -> None:
    """Holds the commands together, so that a lone command keeps its name."""


def _complain(message: str, hint: str | None) -> None:
    with suppress(OSError):  # the terminal may be gone
        print(f"error: {message}", file=sys.stderr)
        if hint:
            print("\n".join(f"  {line}" for line in hint.splitlines()), file=sys.stderr)


def _crash_log() -> str:
    """Write the current exception's traceback to a file of its own and say where it is."""
    try:
        handle, path = tempfile.mkstemp(prefix="roundabout-crash-", suffix=".log")
        with os.fdopen(handle, "w") as log:
            log.write(f"command: {sys.argv}\n\n{traceback.format_exc()}")
    except OSError as error:
        return f"this is a bug in roundabout; its details could not be written to a file: {error}"
    return f"this is a bug in roundabout; the details are in {path}"


if __name__ == "__main__":
    sys.exit(main())
