# SPDX-License-Identifier: Apache-2.0
"""Output that cannot be written: a full disk behind a redirection, a pipe whose reader ended."""

import errno
import io
import os
import sys
from contextlib import suppress
from typing import IO, Any

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The kernel's errors of a write for which there is no room."""


def prepare() -> None:
    """Give this process an output that takes any text.

    A caller may have closed stdout (`>&-`); then the next open file would get its number. An output that knows ASCII
    alone gets escapes.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lasts
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def mute(stream: "IO[Any] | Any") -> None:
    """Send the buffer of a stream, and all further output, to /dev/null: flushing it would fail again at the end."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def describe(error: OSError) -> str:
    """Say why the operating system refused: `cannot write: the disk is full`."""
    where = f" {error.filename}" if error.filename else ""
    if error.errno in FULL:
        return f"cannot write{where}: the disk is full"
    return f"cannot use{where}: {error.strerror or error}" if where else f"cannot write: {error.strerror or error}"


def is_refusal(error: OSError) -> bool:
    """Return True for the system's errors about a file by its name, or about writing to a stream: they are no bugs."""
    return error.filename is not None or error.errno in (*FULL, errno.EIO, errno.EROFS, errno.EPIPE, errno.EBADF)
