# SPDX-License-Identifier: Apache-2.0
"""Short programs of ssh on several hosts at a time. An interruption ends them, and starts no further ones."""

import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from roundabout.core.errors import RoundaboutError


class SshPrograms:
    """The programs that threads of this process run. Their remote ends read end of file once ssh ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._is_interrupted = False

    def run(
        self, command: Sequence[str], stdin: str, timeout_s: float | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program to its end. Raises OSError, TimeoutExpired, and RoundaboutError after an interruption."""
        pipe = subprocess.PIPE
        with self._lock:
            if self._is_interrupted:
                raise RoundaboutError("interrupted")
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            self._running.add(process)
        try:
            with process:
                try:
                    stdout, stderr = process.communicate(stdin, timeout_s)
                except BaseException:
                    process.kill()
                    raise
        finally:
            with self._lock:
                self._running.discard(process)
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    @contextmanager
    def threads(self, number: int) -> Iterator[ThreadPoolExecutor]:
        """Yield threads for programs. If the block is interrupted, end the programs, and wait for the threads."""
        with ThreadPoolExecutor(number) as pool:
            try:
                yield pool
            except BaseException:
                self._end(pool)
                raise

    def _end(self, pool: ThreadPoolExecutor) -> None:
        with self._lock:
            self._is_interrupted = True
            for process in self._running:
                process.terminate()
        pool.shutdown(cancel_futures=True)
        self._is_interrupted = False


PROGRAMS = SshPrograms()
