# SPDX-License-Identifier: Apache-2.0
"""The refusal of damaged bytes, for readers of binary formats."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager


class DamagedError(ValueError):
    """Bytes that are cut short, or of another format."""


@contextmanager
def refuse_damage(name: str) -> Iterator[None]:
    """Raise DamagedError for every error of reading bytes of the format `name`."""
    try:
        yield
    except DamagedError:
        raise
    except (LookupError, ValueError, OverflowError, RecursionError, struct.error) as error:
        raise DamagedError(f"found damaged {name}, which is cut short or points outside itself ({error})") from error
