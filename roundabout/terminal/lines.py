# SPDX-License-Identifier: Apache-2.0
"""Plain output lines. Unprintable characters are escaped, because names and reasons come from files."""

import os
import sys
import textwrap
from contextlib import suppress

from roundabout.core.errors import in_one_line

MIN_WIDTH = 20  # columns; a narrower terminal wraps the text itself, as a pseudo-terminal without a size (0) must


def print_line(line: object) -> None:
    """Print a line on stdout."""
    print(in_one_line(line), flush=True)


def print_notice(line: object) -> None:
    """Print a line on stderr, where it does not mix with results."""
    print(_wrap(in_one_line(line)), file=sys.stderr, flush=True)


def print_warning(line: object) -> None:
    """Print a warning on stderr."""
    print(_wrap(f"warning: {in_one_line(line)}"), file=sys.stderr)


def print_error(message: str, hint: str | None) -> None:
    """Print an error and, if given, a hint on stderr."""
    with suppress(OSError):  # the terminal may be gone
        print(_wrap(f"error: {in_one_line(message)}"), file=sys.stderr)
        for line in (hint or "").splitlines():
            print(_wrap(f"  {in_one_line(line)}"), file=sys.stderr)


def _wrap(line: str) -> str:
    """Return `line` wrapped between words at the terminal's width; unchanged if stderr is no terminal."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return line
    if len(line) <= width or width < MIN_WIDTH:
        return line
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False, drop_whitespace=True)
    return wrapper.fill(line)


def format_duration(seconds: float) -> str:
    """Format `seconds` as `18 s`, `4 min 1 s` or `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
