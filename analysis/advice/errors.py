# SPDX-License-Identifier: Apache-2.0
"""What advice refuses."""

from roundabout.errors import UsageError, printable


class AdviceError(UsageError):
    """Counters that cannot be read as such."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(printable(message), hint)
