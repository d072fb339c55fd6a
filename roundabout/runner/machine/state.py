# SPDX-License-Identifier: Apache-2.0
"""Where this machine keeps what must be found again after a crash. Folders exist only while something is in them."""

import os
from contextlib import suppress
from pathlib import Path

from roundabout.core.errors import RoundaboutError

STATE = Path("/run/roundabout")


def make_state(state: Path) -> None:
    """Make the folder `state` where it is missing. Others may pass it, not open it: who opens a folder can lock it."""
    state.mkdir(parents=True, exist_ok=True)
    state.chmod(0o711)


def make_private(folder: Path) -> None:
    """Make a folder of the state, for root alone, where it is missing."""
    make_state(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path) -> int:
    """A handle on the file `path`, for root alone; it and its folders are made where missing.

    Raises RoundaboutError where we may not.
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


def tidy(folder: Path) -> None:
    """Remove `folder` and the one around it where nothing is in them."""
    for each in (folder, folder.parent):
        with suppress(OSError):
            each.rmdir()
