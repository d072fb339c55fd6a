# SPDX-License-Identifier: Apache-2.0
"""Errors for the user: one message, and a remedy."""


class RoundaboutError(Exception):
    """An error that the user can fix: the command line prints `message`, then `hint`, and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RoundaboutError):
    """The command line or a specification asks for something that does not exist or makes no sense."""

    exit_code = 2


def in_one_line(text: object) -> str:
    """Return `text` on one line, with all that does not print as its escape: files may hold a terminal's commands."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(text))
