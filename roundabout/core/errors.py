# SPDX-License-Identifier: Apache-2.0
"""Errors that the user can fix. Each has a message and a hint."""


class RoundaboutError(Exception):
    """An error that the user can fix: the command line prints `message`, then `hint`, and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RoundaboutError):
    """Error for a command line or specification with something invalid or missing. The exit code is 2."""

    exit_code = 2


def in_one_line(text: object) -> str:
    """Return `text` on one line, with unprintable characters escaped, because files may contain terminal commands."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(text))
