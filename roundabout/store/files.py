# SPDX-License-Identifier: Apache-2.0
"""Safe writing of files: atomic, never through a link, and with a clear message about a full disk.

New files belong to the user who called sudo, if sudo was used.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from roundabout.core.errors import RoundaboutError

LOST_MESSAGE = "restore the file, or run the experiment again"
LARGEST_JSON = 256 << 20
"""Limit of a JSON file, in bytes. A manifest of 100,000 trials has 30 MB; a far larger file would fill the memory."""
KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class StoreError(RoundaboutError):
    """Error for a run that cannot be read or written."""


@contextmanager
def disk_errors(path: Path, hint: str | None = None) -> Iterator[None]:
    """Convert an OSError about `path` in this block to a StoreError, with `hint`, or another if the disk is full."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        found = "the disk is full" if full else (error.strerror or str(error))
        free = "free some space, then `roundabout resume`: committed trials are intact"
        raise StoreError(f"cannot write {path}: {found}", free if full else hint) from error


def make_directory(path: Path, mode: int = 0o777) -> Path:
    """Create the folder `path` and missing parents, synced to disk, with `mode` minus the umask.

    New folders belong to the caller of sudo. Raises StoreError.
    """
    with disk_errors(path):
        missing = [each for each in (path, *path.parents) if not each.exists()]
        path.mkdir(mode, parents=True, exist_ok=True)
        for each in missing:
            return_to_caller(each)
            sync(each.parent)
    return path


def claim_directory(path: Path) -> bool:
    """Create `path` like `make_directory`. Return True if this call created it, not another machine's."""
    make_directory(path.parent)
    with disk_errors(path):
        try:
            path.mkdir()
        except FileExistsError:
            return False
        return_to_caller(path)
        sync(path.parent)
    return True


@contextmanager
def create_file(path: Path) -> Iterator[BinaryIO]:
    """Create a file at `path`. An existing file is removed first, so that a planted link is not followed."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
        return_to_caller(file.fileno())
        yield file


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that atomically replaces `path` at the end of the block. A crash leaves the old or the new file."""
    with disk_errors(path):
        # A rename would replace /dev/null, or the link /dev/stdout, for the whole machine.
        if (kind := unexpected_kind(path)) and (kind != "a link" or is_stream(path)):
            raise StoreError(
                f"cannot write {path}: it is {kind}, expected a file or nothing", "move it away, or name another file"
            )
        partial = path.with_name(f".{path.name}.partial")
        try:
            with create_file(partial) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
            sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until the content of a file, or the entries of a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(root: Path) -> None:
    """Wait until `root` and everything below it are on disk. Each folder is synced after its entries."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def write_text(path: Path, text: str) -> None:
    """Replace the file `path` by one with the content `text`, atomically. Raises StoreError."""
    with replace_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Replace the file `path` by one with `value` as indented JSON, atomically. Raises StoreError."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def unexpected_kind(path: Path) -> str | None:
    """Return the kind of `path` if it is not a regular file ("a folder", "a pipe").

    Return None for a regular file and for a missing path. Call it before opening, because opening a pipe would block.
    Raises OSError.
    """
    try:
        return KINDS.get(stat.S_IFMT(path.lstat().st_mode))
    except FileNotFoundError:
        return None


def is_stream(path: Path) -> bool:
    """Return True if `path` links to an open file of a process, such as /dev/stdout. Raises OSError."""
    return path.is_symlink() and path.readlink().parts[:2] == ("/", "proc")


def check_file(path: Path) -> None:
    """Raise StoreError if `path` cannot be examined, or is a link, folder, pipe or device."""
    try:
        kind = unexpected_kind(path)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", LOST_MESSAGE) from error
    if kind:
        raise StoreError(f"{path} is {kind}, expected a file", LOST_MESSAGE)


def read_json(path: Path) -> Any:
    """Return the value in a JSON file. Raises StoreError if it is missing, too large, or invalid."""
    check_file(path)
    try:
        if (size := path.stat().st_size) > LARGEST_JSON:
            raise StoreError(
                f"{path} has {size / 1e6:.0f} MB, expected at most {LARGEST_JSON / 1e6:.0f} MB", LOST_MESSAGE
            )
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", LOST_MESSAGE) from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is not valid JSON: {error}", LOST_MESSAGE) from error


def return_to_caller(path: Path | int) -> None:
    """Give `path`, or an open file, to the user who called sudo. Without sudo, do nothing."""
    user = _caller()
    if user is not None:
        os.chown(path, *user, follow_symlinks=isinstance(path, int))


def return_tree_to_caller(root: Path) -> None:
    """Give `root` and everything below it to the user who called sudo, like `return_to_caller`.

    Folders are opened first, so that the user cannot replace one by a link during the change.
    """
    user = _caller()
    if user is None:
        return
    return_to_caller(root)
    for _, folders, files, handle in os.fwalk(root):
        for name in (*folders, *files):
            os.chown(name, *user, dir_fd=handle, follow_symlinks=False)


def _caller() -> tuple[int, int] | None:
    """Return the user and group of the caller of sudo; None without one."""
    user = os.environ.get("SUDO_UID")
    if user is None or os.geteuid() != 0:
        return None
    return int(user), int(os.environ.get("SUDO_GID", user))
