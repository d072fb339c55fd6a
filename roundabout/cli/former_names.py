# SPDX-License-Identifier: Apache-2.0
"""Names of commands and options that version 1.0 refuses, each with its current name."""

from collections.abc import Collection, Sequence

from typer.main import get_group

from roundabout.core.errors import UsageError

COMMANDS = {"cc": "judge"}
OPTIONS = {"run": {"--on": "--executor"}, "resume": {"--on": "--executor"}}

# Options of `profile`, which was one command, with the commands that replace them. Without these options it measured.
PROFILE_OPTIONS = {"--from-gpu": "gpu FILE", "--gpu-plan": "gpu-plan", "--sample": "records --sample"}


def refuse_former_names(words: Sequence[str]) -> None:
    """Raise UsageError with the current name, if a command's first word or one of its options is a former name."""
    command, options = words[0], {word.partition("=")[0] for word in words[1:]}
    renamed = {each: name for each, name in OPTIONS.get(command, {}).items() if each in options}
    if command in COMMANDS:
        renamed = {command: COMMANDS[command]}
    for former, current in renamed.items():
        raise UsageError(f"`{former}` is called `{current}` since version 1.0", f"write {current} in its place")
    if command == "profile" and words[1:]:
        _refuse_former_profile(words[1], options)


def _refuse_former_profile(word: str, options: Collection[str]) -> None:
    """Raise UsageError unless `word` is a command of `profile` or --help."""
    from roundabout.cli.profile.profile import app  # noqa: PLC0415 - other commands need not wait for it

    commands = list(get_group(app).commands)
    if word in (*commands, "--help"):
        return
    replacement = next((name for each, name in PROFILE_OPTIONS.items() if each in options), None)
    if not replacement and "--from" in options:
        replacement = "measure JOB --from RUN, or profile records FILE..."
    raise UsageError(
        f"profile: found {word}, expected one of {', '.join(commands)}",
        f"write: roundabout profile {replacement or 'measure JOB'}",
    )
