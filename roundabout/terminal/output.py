# SPDX-License-Identifier: Apache-2.0
"""Handling of output that cannot be written, as to a full disk or a closed pipe."""

import errno
import io
import os
import re
import sys
from contextlib import suppress
from typing import IO, Any

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errno values of a write that failed for lack of disk space."""
COLUMNS = re.compile("[2-9][0-9]|[1-9][0-9]{2,3}")
"""Values of COLUMNS that are wide enough for a table. Without a terminal COLUMNS can be 0; rich would print nothing."""


def prepare_output() -> None:
    """Prepare stdout so that any text can be printed, and drop an unusable COLUMNS from the environment.

    If the caller closed stdout (`>&-`), stdout becomes /dev/null, because the next open file would get its number.
    Characters that the output's encoding lacks are escaped.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lasts
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not COLUMNS.fullmatch(os.environ.get("COLUMNS", "")):
        os.environ.pop("COLUMNS", None)


def discard_output(stream: "IO[Any] | Any") -> None:
    """Redirect a stream, with its buffer, to /dev/null, because flushing the stream at exit would fail again."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def describe_refusal(error: OSError) -> str:
    """Return a message about a system error, such as `cannot write: the disk is full`."""
    if _is_lost_folder(error):
        return "the working folder was deleted: change to another one"
    where = f" {error.filename}" if error.filename else ""
    if error.errno in FULL:
        return f"cannot write{where}: the disk is full"
    return f"cannot use{where}: {error.strerror or error}" if where else f"cannot write: {error.strerror or error}"


def is_refusal(error: OSError) -> bool:
    """Return True for system errors that are no bugs: those about a named file, or about writing to a stream."""
    of_streams = error.errno in (*FULL, errno.EIO, errno.EROFS, errno.EPIPE, errno.EBADF)
    return error.filename is not None or of_streams or _is_lost_folder(error)


def _is_lost_folder(error: OSError) -> bool:
    """Return True for what getcwd(2) says of a working folder that was deleted. It names no file."""
    return error.errno == errno.ENOENT and error.filename is None
