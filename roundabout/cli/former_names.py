# SPDX-License-Identifier: Apache-2.0
"""Former names of commands and options, which work with a hint on stderr until version 0.3."""

import sys
from collections.abc import Sequence

FORMER_NAMES = {"cc": "judge"}
FORMER_OPTIONS = {"run": {"--on": "--executor"}, "resume": {"--on": "--executor"}}


def rename_command(word: str) -> str:
    """Return a command's current name, after a hint if `word` is its former one."""
    name = FORMER_NAMES.get(word, word)
    if name != word:
        print(f"hint: `roundabout {word}` is now `roundabout {name}`", file=sys.stderr)
    return name


def rename_options(command: str | None, args: Sequence[str]) -> list[str]:
    """Return a command's arguments with the options' current names, after a hint for each former name."""
    renames, renamed = FORMER_OPTIONS.get(command or "", {}), []
    for word in args:
        option, equals, value = word.partition("=")
        if option in renames:
            print(f"hint: `{option}` is now `{renames[option]}`", file=sys.stderr)
        renamed.append(f"{renames.get(option, option)}{equals}{value}")
    return renamed
