# SPDX-License-Identifier: Apache-2.0
"""The entry point of the command line. It prints an error as one message, never as a traceback."""

import ast
import importlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from roundabout.cli.former_names import refuse_former_names
from roundabout.core.errors import RoundaboutError
from roundabout.terminal import output
from roundabout.terminal.lines import print_error

# Group -> command -> module of roundabout.cli, in the order of help texts. The module's function `command` is the
# command, or the callback of the module's group `app`.
GROUPS = {
    "Experiments": {
        "list": "experiments.list_",
        "new": "experiments.new",
        "validate": "experiments.validate",
        "plan": "experiments.plan",
        "draw": "experiments.draw",
    },
    "Runs": {
        "run": "runs.run",
        "resume": "runs.resume",
        "status": "runs.status",
        "watch": "runs.watch",
        "runs": "runs.runs",
        "rm": "runs.rm",
        "clean": "runs.clean",
    },
    "Results": {
        "report": "results.report",
        "compare": "results.compare",
        "explain": "results.explain",
        "explore": "results.explore",
        "notebook": "results.notebook",
        "export": "results.export",
        "scoreboard": "results.scoreboard",
        "publish": "results.publish",
        "reproduce": "results.reproduce",
    },
    "Models": {
        "predict": "models.predict",
        "identify": "models.identify",
        "cassini": "models.cassini",
        "advise": "models.advise",
        "profile": "profile.profile",
    },
    "Lab and rack": {
        "lab": "lab.lab",
        "judge": "lab.judge",
        "acceptance": "lab.acceptance",
        "calibrate": "lab.calibrate",
        "provision": "rack.provision",
        "verify": "rack.verify",
        "rollback": "rack.rollback",
        "doctor": "tools.doctor",
        "dashboards": "tools.dashboards",
    },
}
# Commands for programs and for building the documentation, which help texts do not list.
HIDDEN = {
    "trial": "runs.trial",
    "decode": "tools.decode",
    "affinity": "models.affinity",
    "schema": "experiments.schema",
}
COMMANDS = {**{name: module for group in GROUPS.values() for name, module in group.items()}, **HIDDEN}
PANELS = {name: panel for panel, group in GROUPS.items() for name in group}

LINE_BREAK = re.compile(r"(?<=\S)\n(?=\S)")
"""A line break within a paragraph. A help text is wrapped at the terminal's width, not at the source's."""


class LazyGroup(TyperGroup):
    """The group of all commands. It imports only the called command, since importing all of them takes seconds."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": dict.fromkeys(COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - typer's signature
        """Return a command with only its name and help text, for lists of commands, or None if it does not exist."""
        if cmd_name not in COMMANDS:
            return None
        panel = PANELS.get(cmd_name)
        return TyperCommand(cmd_name, help=read_help(cmd_name), rich_help_panel=panel, hidden=panel is None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command in `args`, the imported command, and the remaining arguments."""
        refuse_former_names(args)
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and import_command(name), rest


def read_help(name: str) -> str:
    """Return the help text of a command, the docstring of its function, without importing its module."""
    source = Path(__file__).parent.joinpath(*COMMANDS[name].split(".")).with_suffix(".py").read_text()
    functions = (each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef))
    texts = (ast.get_docstring(each) for each in functions if each.name == "command")
    return LINE_BREAK.sub(" ", next(texts, None) or "")


def import_command(name: str) -> Any:
    """Import a command and return it as typer's object, a TyperCommand or a TyperGroup."""
    module = importlib.import_module(f"roundabout.cli.{COMMANDS[name]}")
    app = typer.Typer()
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command(name, help=read_help(name))(module.command)
    return get_group(app).commands[name]


def build_app() -> typer.Typer:
    """Return the typer application with all commands, none of which is imported yet."""
    app = typer.Typer(
        name="roundabout",
        cls=LazyGroup,
        help="Run experiments on how training jobs share a network.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_group)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 1 for an error, 2 for a usage error, 130 after Ctrl-C."""
    output.prepare_output()
    os.environ.pop("MPLBACKEND", None)  # no command opens a window, and matplotlib refuses a backend that it lacks
    status = _run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()  # Python's own flush at its end could not report an error
    except OSError as error:
        return _cannot_write(error)
    return status


def _run(words: list[str]) -> int:
    try:
        build_app()(args=words, prog_name="roundabout")
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except RoundaboutError as error:
        print_error(error.message, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, OSError) and output.is_refusal(error):
            return _cannot_write(error)
        print_error(f"unexpected {type(error).__name__}: {error}", _crash_log())
        return 1
    return 0


def _cannot_write(error: OSError) -> int:
    """Say that output, or a file, cannot be written. Say nothing if the reader of a pipe ended."""
    output.discard_output(sys.stdout)
    if not isinstance(error, BrokenPipeError):
        print_error(output.describe_refusal(error), None)
    return 1


def _show_version(requested: bool) -> None:
    if requested:
        from roundabout.runner.code_facts import describe_code  # noqa: PLC0415 - it runs git

        print(describe_code())
        raise typer.Exit


def _group(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show version, revision and build, and exit."
        ),
    ] = False,
) -> None:
    """Hold the commands together, so that a lone command keeps its name."""


def _crash_log() -> str:
    """Write the current exception's traceback to a file of its own and say where it is."""
    details = f"command: {sys.argv}\n\n{traceback.format_exc()}"
    try:
        from roundabout.store import scratch  # noqa: PLC0415 - commands that end well do not need it

        path = scratch.write_crash_log(details)
    except Exception as error:  # the crash may come from `scratch` itself
        return f"this is a bug in roundabout; its details could not be written to a file: {error}"
    return f"this is a bug in roundabout; the details are in {path}"


if __name__ == "__main__":
    sys.exit(main())
