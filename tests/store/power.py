# SPDX-License-Identifier: Apache-2.0
"""A disk that forgets: what a power cut leaves of a folder at every step of a program that writes there.

A run's folder is written by this process and its Python alone, so it is enough to watch the functions of `os` by which
all of that goes: what os.fsync was called on is on disk, all else may be lost. Both extremes are tried: `strict`,
where new names are lost with the rest, and `eager`, where the folders are as they were last and only the content of
files is lost (as when a rename overtakes the data).
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

STEPS = ("fsync", "rename", "mkdir", "unlink", "rmdir")


class Disk:
    """What is on disk of everything below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files: dict[int, bytes] = {}
        self._folders: dict[int, dict[str, os.DirEntry[str]]] = {}
        self._held: list[int] = []  # or another file would get the inode's number

    def synced(self, handle: int) -> None:
        """os.fsync was called on it."""
        found = os.fstat(handle)
        self._held.append(os.open(f"/proc/self/fd/{handle}", os.O_RDONLY))
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(self._held[-1]) as entries:
                self._folders[found.st_ino] = {entry.name: entry for entry in entries}
        else:
            self._files[found.st_ino] = os.pread(self._held[-1], found.st_size, 0)

    def close(self) -> None:
        for handle in self._held:
            os.close(handle)

    def strict(self, target: Path) -> None:
        """Only what was synced, by names that were."""
        self._make(self.root.stat().st_ino, target, folder=True)

    def _make(self, inode: int, target: Path, *, folder: bool) -> None:
        """What is on disk of an inode whose name is; nothing but that where it was not synced itself."""
        if not folder:
            target.write_bytes(self._files.get(inode, b""))
            return
        target.mkdir()
        for name, entry in self._folders.get(inode, {}).items():
            self._make(entry.inode(), target / name, folder=entry.is_dir(follow_symlinks=False))

    def eager(self, target: Path) -> None:
        """All names; of files what was synced."""
        for folder, _, names in os.walk(self.root):
            there = target / Path(folder).relative_to(self.root)
            there.mkdir()
            for name in names:
                (there / name).write_bytes(self._files.get(Path(folder, name).stat().st_ino, b""))


@contextmanager
def cut_at_every_step(root: Path, scratch: Path, look: Callable[[Path], None]) -> Iterator[list[str]]:
    """Call `look` with what is left of `root` after a power cut, before and after every step; the cuts so far."""
    disk, cuts, busy = Disk(root), [], []

    def cut(name: str) -> None:
        for kind, make in (("strict", disk.strict), ("eager", disk.eager)):
            left = scratch / "left"
            make(left)
            cuts.append(f"{len(cuts)}: {kind}, {name}")
            look(left)
            shutil.rmtree(left)

    def step(name: str) -> Any:
        real = getattr(os, name)

        @wraps(real)
        def called(*words: Any, **more: Any) -> Any:
            if busy:  # we ourselves
                return real(*words, **more)
            busy.append(True)
            try:
                cut(f"before {name}")
                result = real(*words, **more)
                if name == "fsync":
                    disk.synced(words[0])
                cut(f"after {name}")
            finally:
                busy.pop()
            return result

        return patch.object(os, name, called)

    root_handle = os.open(root, os.O_RDONLY)
    disk.synced(root_handle)
    os.close(root_handle)
    steps = [step(name) for name in STEPS]
    for each in steps:
        each.start()
    try:
        yield cuts
    finally:
        for each in steps:
            each.stop()
        disk.close()


EXPERIMENT = """
name: tiny
about: A ring beside cross traffic
topology: configuration-b
jobs: {dnn: {profile: resnet50-ring3, workers: [s0, s1, s3]}}
transport: {name: dcqcn}
iterations: 3
repetitions: 5
cross_traffic: {cross: {kind: consistent, from: s2, to: [s0]}}
factors: {load_gbps: [0, 11]}
"""
