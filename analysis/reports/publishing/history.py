# SPDX-License-Identifier: Apache-2.0
"""The history of a checkout, which decides whether others can check out the code of a run."""

import subprocess
from pathlib import Path

from roundabout.core.git import git_command
from roundabout.core.paths import REVISION


def has_revision(revision: str, checkout: Path) -> bool | None:
    """Return True if `revision` is the checkout's HEAD or one of its ancestors.

    None means unknown: source archives and wheels have no history, and a shallow clone has the end of one.
    """
    if (checkout / REVISION).exists():
        return None
    git = git_command(checkout)
    try:
        shallow = subprocess.run(
            [*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    found = subprocess.run([*git, "merge-base", "--is-ancestor", revision, "HEAD"], capture_output=True, check=False)
    if found.returncode == 0:
        return True
    return None if shallow == "true" else False
