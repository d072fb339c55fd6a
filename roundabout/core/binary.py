# SPDX-License-Identifier: Apache-2.0
"""A common error for damaged binary files, and its use in readers of binary formats."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager


class DamagedError(ValueError):
    """Error for bytes that are truncated, inconsistent, or of an unexpected format."""


@contextmanager
def refuse_damage(name: str) -> Iterator[None]:
    """Convert every parsing error in the `with` block to DamagedError. `name` is the format's name in the message."""
    try:
        yield
    except DamagedError:
        raise
    except (LookupError, ValueError, OverflowError, RecursionError, struct.error) as error:
        raise DamagedError(f"found damaged {name}, which is cut short or points outside itself ({error})") from error
