# SPDX-License-Identifier: Apache-2.0
"""Git of a checkout."""

from pathlib import Path


def git_command(checkout: Path) -> list[str]:
    """Return the begin of a git command that reads a checkout.

    Under sudo the repository belongs to another user, which git would refuse; its index stays theirs.
    """
    return ["git", "--no-optional-locks", "-c", f"safe.directory={checkout}", "-C", str(checkout)]
