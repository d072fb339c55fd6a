# SPDX-License-Identifier: Apache-2.0
"""This machine's folder for state that outlives a crash. Folders exist only while they hold something."""

import os
from contextlib import suppress
from pathlib import Path

from roundabout.core.errors import RoundaboutError

STATE = Path("/run/roundabout")


def make_state(state: Path) -> None:
    """Create the folder `state` if it is missing.

    Other users may pass through it but not open it, because an opened folder can be locked.
    """
    state.mkdir(parents=True, exist_ok=True)
    state.chmod(0o711)


def make_private(folder: Path) -> None:
    """Create a folder of the state, for root alone, if it is missing."""
    make_state(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path) -> int:
    """Open the file `path`, for root alone, and create it and its folders if they are missing.

    Raises RoundaboutError without permission.
    """
    while True:
        try:
            make_private(path.parent)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # somebody tidied up in between
        except PermissionError as error:
            raise RoundaboutError(
                f"cannot write {path}: permission denied", "run as root, with sudo for example"
            ) from error
        except OSError as error:
            raise RoundaboutError(f"cannot write {path}: {error.strerror}") from error


def remove_empty(folder: Path) -> None:
    """Remove `folder` and its parent if they are empty."""
    for each in (folder, folder.parent):
        with suppress(OSError):
            each.rmdir()
