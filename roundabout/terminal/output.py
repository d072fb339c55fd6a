# SPDX-License-Identifier: Apache-2.0
"""Output that cannot be written: a full disk behind a redirection, a pipe whose reader ended."""

import errno
import io
import os
import re
import sys
from contextlib import suppress
from typing import IO, Any

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The kernel's errors of a write for which there is no room."""
COLUMNS = re.compile("[2-9][0-9]|[1-9][0-9]{2,3}")
"""Widths of a screen that show a table. COLUMNS is 0 where no terminal is; rich would then print nothing."""


def prepare_output() -> None:
    """Prepare this process's output for any text, with a width suitable for it.

    A caller may have closed stdout (`>&-`); then the next open file would get its number. An output that knows ASCII
    alone gets escapes.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lasts
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not COLUMNS.fullmatch(os.environ.get("COLUMNS", "")):
        os.environ.pop("COLUMNS", None)


def discard_output(stream: "IO[Any] | Any") -> None:
    """Send the buffer of a stream, and all further output, to /dev/null: flushing it would fail again at the end."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def describe_refusal(error: OSError) -> str:
    """Say why the operating system refused: `cannot write: the disk is full`."""
    if _is_lost_folder(error):
        return "the working folder was deleted: change to another one"
    where = f" {error.filename}" if error.filename else ""
    if error.errno in FULL:
        return f"cannot write{where}: the disk is full"
    return f"cannot use{where}: {error.strerror or error}" if where else f"cannot write: {error.strerror or error}"


def is_refusal(error: OSError) -> bool:
    """Return True for the system's errors about a file by its name, or about writing to a stream: they are no bugs."""
    of_streams = error.errno in (*FULL, errno.EIO, errno.EROFS, errno.EPIPE, errno.EBADF)
    return error.filename is not None or of_streams or _is_lost_folder(error)


def _is_lost_folder(error: OSError) -> bool:
    """Return True for what getcwd(2) says of a working folder that was deleted. It names no file."""
    return error.errno == errno.ENOENT and error.filename is None
