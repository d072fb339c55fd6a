# SPDX-License-Identifier: Apache-2.0
"""Writing files: whole or not at all, given back to whoever called sudo, and clear about a full disk."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roundabout.errors import RoundaboutError


class StoreError(RoundaboutError):
    """A run cannot be read or written."""


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write `path` into one message that says what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        found = "the disk is full" if full else (error.strerror or str(error))
        hint = "free some space, then `roundabout resume`: committed trials are intact" if full else None
        raise StoreError(f"cannot write {path}: {found}", hint) from error


def make_directory(path: Path) -> Path:
    """Create `path` and the parents that are missing; what is new belongs to whoever called sudo."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        for each in missing:
            give_back(each)
    return path


def write_text(path: Path, text: str) -> None:
    """Replace `path` by a file that holds `text`: readers see the old file or the new one, also after a crash."""
    partial = path.with_name(f".{path.name}.partial")
    with disk_errors(path):
        try:
            with partial.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            give_back(partial)
            partial.rename(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, like write_text."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON, or say which file is not what it should be."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise StoreError(
            f"{path} is not valid JSON: {error}", "restore the file, or run the experiment again"
        ) from error


def give_back(path: Path) -> None:
    """Make `path` belong to the user who called sudo, where one did."""
    user = os.environ.get("SUDO_UID")
    if user is not None and os.geteuid() == 0:
        os.chown(path, int(user), int(os.environ.get("SUDO_GID", user)), follow_symlinks=False)


def give_back_tree(root: Path) -> None:
    """Like give_back, for `root` and everything under it."""
    give_back(root)
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            give_back(Path(folder, name))
