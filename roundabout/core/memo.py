# SPDX-License-Identifier: Apache-2.0
"""Cache of computed answers in the user's cache folder. It saves about a second at each start of the program.

The key of an answer is a hash of the program's source, the files from which the answer is computed, Python and the
installed packages. A cache file has a checksum line and a JSON value. If a cache file cannot be read or is damaged, the
answer is computed again.
"""

import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from roundabout.core import plugins
from roundabout.core.paths import PACKAGES

SOURCE = (PACKAGES / "roundabout", PACKAGES / "analysis")
MAX_BYTES = 1_000_000  # limit of one answer, to bound the cache; the catalog's answer has 8,000
MAX_ANSWERS = 8  # limit of cached answers for each name: enough for eight checkouts or branches
FOLDER = "roundabout"


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
    if before and (kept := _read(f"{name}-{before[0]}.json")) is not None:
        return kept
    answer, lasts = compute()
    if lasts and before and before == _fingerprint(files):
        _write(name, f"{name}-{before[0]}.json", answer)
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


def _fingerprint(files: Iterable[str]) -> tuple[str, tuple[int, ...]] | None:
    """Return a hash of files, Python and its packages, and each file's time of change; None if one is unreadable."""
    digest, changed = hashlib.sha256(sys.version.encode()), []
    try:
        for package in _packages():
            digest.update(f"{package}\0".encode())
        for file in files:
            with open(file, "rb", buffering=0) as stream:
                changed.append(os.fstat(stream.fileno()).st_ctime_ns)
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{file}\0{content}\0".encode(errors="surrogateescape"))
    except OSError:
        return None
    return digest.hexdigest()[:32], tuple(changed)


def _packages() -> Iterator[str]:
    """Yield the installed packages with their versions, as their folders are called."""
    for folder in sys.path:
        if folder.endswith("-packages") and os.path.isdir(folder):
            yield from sorted(name for name in os.listdir(folder) if name.endswith(".dist-info"))


@contextmanager
def _folder(*, create: bool) -> Iterator[int]:
    """Open the cache folder. Raises OSError, also if another user owns it or may write there."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise FileNotFoundError from None  # the user has no home
    if not base.is_absolute():
        raise FileNotFoundError  # it would be another folder wherever the program starts, and a new one there
    for path in (base, base / FOLDER):
        if create and not path.exists():
            _check_own(path.parent.stat())
            path.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(base / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _check_own(os.fstat(handle))
        yield handle
    finally:
        os.close(handle)


def _check_own(found: os.stat_result) -> None:
    """Raise PermissionError if another user owns the file or folder, or may write to it."""
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError


def _read(file: str) -> Any | None:
    """Return the kept answer, or None."""
    with suppress(OSError, ValueError, RecursionError), _folder(create=False) as folder:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(file, flags, dir_fd=folder), "rb") as stream:
            found = os.fstat(stream.fileno())
            _check_own(found)
            if stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES:
                digest, _, content = stream.read(MAX_BYTES).partition(b"\n")
                if digest == checksum_line(content):
                    return json.loads(content)
    return None


def _write(name: str, file: str, answer: Any) -> None:
    """Keep an answer, and delete the oldest ones of this name. Readers see the whole file or none."""
    content = json.dumps(answer).encode()
    content = checksum_line(content) + b"\n" + content
    if len(content) > MAX_BYTES:
        return
    with suppress(OSError), _folder(create=True) as folder:
        partial = f".{file}.{os.getpid()}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(partial, flags, 0o600, dir_fd=folder), "wb") as stream:
                stream.write(content)
            os.replace(partial, file, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(OSError):
                os.unlink(partial, dir_fd=folder)
        _bound(name, folder)


def checksum_line(content: bytes) -> bytes:
    """Return the first line of the cache file of `content`: its SHA-256 in hex, which detects damage."""
    return hashlib.sha256(content).hexdigest().encode()


def _bound(name: str, folder: int) -> None:
    """Delete all but the MAX_ANSWERS youngest answers of a name, and files that a killed process left."""
    found = [each for each in os.listdir(folder) if each.lstrip(".").startswith(f"{name}-")]
    found.sort(key=lambda each: os.stat(each, dir_fd=folder, follow_symlinks=False).st_mtime_ns, reverse=True)
    for each in found[MAX_ANSWERS:]:
        os.unlink(each, dir_fd=folder)
