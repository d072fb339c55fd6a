# SPDX-License-Identifier: Apache-2.0
"""This machine's folder for state that survives a crash: root's, or an ordinary user's own.

Empty folders are removed.
"""

import os
from contextlib import suppress
from pathlib import Path

from roundabout.core.errors import RoundaboutError

ROOT_STATE = Path("/run/roundabout")
"""The state of root's runs and of labs. Lab hosts have a folder of the same path."""


STATE = ROOT_STATE if os.geteuid() == 0 else Path(f"/tmp/rb-{os.geteuid()}")  # noqa: S108 - `make_state` takes no other user's folder or link
"""The state of this user's runs. Ansible's sockets lie below, whose paths have 107 characters at most."""


def user_folder() -> Path:
    """Return the folder of an ordinary user's files that survive a reboot, in $XDG_STATE_HOME.

    It is below STATE, which does not survive, if the user has no home. Source: XDG Base Directory Specification 0.8,
    which has a relative path ignored.
    """
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    default = Path(os.path.expanduser("~/.local/state"))  # `Path.expanduser` raises an error if the user has no home
    return next(path for path in (given, default, STATE) if path.is_absolute()) / "roundabout"


def make_state(state: Path) -> None:
    """Create the folder `state` if it is missing.

    Other users may access files in it but not open the folder, because they could lock an open folder. Raises
    PermissionError if the folder is another user's, and OSError if it is a link, which another user may have made.
    """
    with suppress(FileExistsError):
        state.mkdir(parents=True)
    descriptor = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o711)
    finally:
        os.close(descriptor)


def make_private(folder: Path) -> None:
    """Create a folder below the state's folder, accessible only to this user, if it is missing."""
    make_state(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path) -> int:
    """Open the file `path` and return its descriptor. Raises RoundaboutError without permission.

    A missing file and its folders are created, accessible only to this user.
    """
    while True:
        try:
            make_private(path.parent)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # another process removed the folder in between
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
