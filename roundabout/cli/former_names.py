# SPDX-License-Identifier: Apache-2.0
"""Names of commands and options that version 1.0 refuses, each with its current name."""

from collections.abc import Sequence

from roundabout.core.errors import UsageError

COMMANDS = {"cc": "judge"}
OPTIONS = {"run": {"--on": "--executor"}, "resume": {"--on": "--executor"}}


def refuse_former_names(words: Sequence[str]) -> None:
    """Raise UsageError with the current name, if a command's first word or one of its options is a former name."""
    command, options = words[0], {word.partition("=")[0] for word in words[1:]}
    renamed = {each: name for each, name in OPTIONS.get(command, {}).items() if each in options}
    if command in COMMANDS:
        renamed = {command: COMMANDS[command]}
    for former, current in renamed.items():
        raise UsageError(f"`{former}` is called `{current}` since version 1.0", f"write {current} in its place")
