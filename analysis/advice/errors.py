# SPDX-License-Identifier: Apache-2.0
"""The error of advice."""

from roundabout.core.errors import UsageError, in_one_line


class AdviceError(UsageError):
    """An error for counters or jobs on which no advice is possible."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(in_one_line(message), hint)
