# SPDX-License-Identifier: Apache-2.0
"""The reference page of the command line, made from the typer application."""

from collections.abc import Iterator
from typing import Any

from typer import Context
from typer.core import TyperArgument, TyperGroup

from docgen.markdown import code, notice, plain, prose, table
from roundabout.cli.main import GROUPS, import_command

HEAD = """# Commands

`roundabout` is `./rb` of the checkout, or `.venv/bin/roundabout`. `roundabout COMMAND --help`
prints what this page says of a command. [Exit status](exit-status.md) lists what a command's status
means.

"""


def format_page() -> str:
    """Return the page: the commands by group, then each command with its arguments and options."""
    parts = [notice("roundabout/cli"), HEAD]
    commands = {group: {name: import_command(name) for name in names} for group, names in GROUPS.items()}
    rows = [
        [group, ", ".join(f"[{name}](#roundabout-{name})" for name in members)] for group, members in commands.items()
    ]
    parts.append(table(("", ""), rows))
    for members in commands.values():
        for name, command in members.items():
            parts += _describe(command, Context(command), f"roundabout {name}", "##")
    return "".join(parts).rstrip() + "\n"


def _describe(command: Any, context: Any, name: str, heading: str) -> Iterator[str]:
    yield f"{heading} {name}\n\n"
    for paragraph in (command.help or "").split("\n\n"):
        yield prose(paragraph)
    yield f"    {' '.join([name, *_usage(command)])}\n\n"
    rows = [list(_row(each, context)) for each in command.params if not each.hidden]
    if rows:
        yield table(("", "", "default"), rows)
    if isinstance(command, TyperGroup):
        for member in command.list_commands(context):
            found: Any = command.get_command(context, member)
            yield from _describe(found, Context(found), f"{name} {member}", "###")


def _usage(command: Any) -> Iterator[str]:
    """Yield the words after a command's name. Brackets mark arguments that may be omitted."""
    yield "[OPTIONS]"
    if isinstance(command, TyperGroup):
        yield "COMMAND"
    for each in command.params:
        if isinstance(each, TyperArgument):
            value = each.metavar or each.name.upper()
            yield value if each.required or value.startswith("[") else f"[{value}]"


def _row(parameter: Any, context: Context) -> Iterator[str]:
    """Yield an option's or argument's names, its help text, and its default."""
    value = parameter.metavar or ""
    if isinstance(parameter, TyperArgument):
        yield code(value or parameter.name.upper())
    else:
        named = [*parameter.opts[:-1], f"{parameter.opts[-1]} {value}".rstrip()]
        yield ", ".join(map(code, [*named, *parameter.secondary_opts]))
    yield plain(parameter.help or "")
    yield "required" if parameter.required else code(_default(parameter, context))


def _default(parameter: Any, context: Context) -> str:
    found = parameter.get_default(context, call=False)
    if found is None or found is False or callable(found) or not parameter.show_default:
        return ""
    return " ".join(map(str, found)) if isinstance(found, list | tuple) else str(getattr(found, "value", found))
