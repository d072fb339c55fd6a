# SPDX-License-Identifier: Apache-2.0
"""Cache of computed answers in the user's cache folder. It saves about a second at each start of the program.

The key of an answer is a hash of the state of the program's source, of the files from which the answer is computed, of
Python and of the installed packages. If a cache file cannot be read, the answer is computed again.
"""

import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from roundabout.core import plugins
from roundabout.core.paths import PACKAGES

SOURCE = (PACKAGES / "roundabout", PACKAGES / "analysis")
MAX_ANSWERS = 8  # limit of cached answers for each name: enough for eight checkouts or branches
FOLDER = "roundabout"
ANSWER = "answer"  # key of the answer in its file, so that a JSON value of another program is not taken for it


def cached_answer(name: str, folders: Iterable[Path], compute: Callable[[], tuple[Any, bool]]) -> Any:
    """Return the cached JSON value `name`, or compute it and cache it.

    The cache is valid as long as the program and the files in `folders` do not change. `compute` returns the value, and
    False if the value also depends on something else and must not be cached. The cache is not used while
    ROUNDABOUT_PATH adds modules, because their files are not known here.
    """
    if plugins.plugin_folders():
        return compute()[0]
    files = [*_files(SOURCE, (".py", ".yaml")), *_files(folders, ("",))]
    before = _fingerprint(files)
    with suppress(OSError, ValueError, RecursionError, TypeError, KeyError):
        return json.loads(_read(_cache_folder() / f"{name}-{before}.json"))[ANSWER]
    answer, lasts = compute()
    if lasts and before == _fingerprint(files):
        with suppress(OSError):
            _write(_cache_folder(), name, f"{name}-{before}.json", json.dumps({ANSWER: answer}))
    return answer


def _files(folders: Iterable[Path], endings: tuple[str, ...]) -> list[str]:
    """Return every file below `folders` whose name has one of these endings, without compiled modules."""
    return sorted(
        os.path.join(path, each)
        for folder in folders
        for path, _, names in os.walk(folder, followlinks=True)
        if not path.endswith("__pycache__")
        for each in names
        if each.endswith(endings) and os.path.isfile(os.path.join(path, each))
    )


def _fingerprint(files: Iterable[str]) -> str:
    """Return a hash of Python, its packages, and each file's path, inode, size and time of change."""
    digest = hashlib.sha256(sys.version.encode())
    for package in _packages():
        digest.update(f"{package}\0".encode())
    for file in files:
        with suppress(FileNotFoundError):  # deleted meanwhile
            found = os.stat(file)
            state = f"{file}\0{found.st_ino} {found.st_size} {found.st_ctime_ns}\0"
            digest.update(state.encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]


def _packages() -> Iterator[str]:
    """Yield the installed packages with their versions, as their folders are called."""
    for folder in sys.path:
        if folder.endswith("-packages") and os.path.isdir(folder):
            yield from sorted(name for name in os.listdir(folder) if name.endswith(".dist-info"))


def _cache_folder() -> Path:
    """Return the cache folder, which is created if it is missing.

    Raises OSError, also if the folder or its parent belongs to another user, or if others may write there.
    """
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise FileNotFoundError from None  # the user has no home
    if not base.is_absolute():
        raise FileNotFoundError  # it would be another folder wherever the program starts, and a new one there
    for path in (base, base / FOLDER):
        if not path.exists():
            _check_own(path.parent)
            path.mkdir(mode=0o700, exist_ok=True)
        _check_own(path)
    return base / FOLDER


def _check_own(path: Path) -> None:
    """Raise PermissionError if another user owns the folder or may write to it."""
    found = path.stat()
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError


def _read(path: Path) -> bytes:
    """Return the content of a cache file. Raises OSError, also for a link, and for a pipe, which would block."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise FileNotFoundError
    return path.read_bytes()


def _write(folder: Path, name: str, file: str, content: str) -> None:
    """Write an answer, and delete all but the MAX_ANSWERS youngest of this name. Readers see the whole file or none."""
    partial = folder / f".{file}.{os.getpid()}"
    try:
        partial.write_text(content)
        partial.replace(folder / file)
    finally:
        partial.unlink(missing_ok=True)
    found = sorted(folder.glob(f"*{name}-*"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for each in found[MAX_ANSWERS:]:
        each.unlink(missing_ok=True)
