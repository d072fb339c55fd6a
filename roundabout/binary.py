# SPDX-License-Identifier: Apache-2.0
"""What readers of binary formats have in common: bytes that are damaged are refused, whatever is wrong with them."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager


class DamagedError(ValueError):
    """Bytes that are not what their format says: cut short, or of another format."""


@contextmanager
def refuse_damage(name: str) -> Iterator[None]:
    """Raise DamagedError where reading bytes of the format `name` finds what no intact ones hold."""
    try:
        yield
    except DamagedError:
        raise
    except (LookupError, ValueError, OverflowError, RecursionError, struct.error) as error:
        raise DamagedError(f"found damaged {name}, which is cut short or points outside itself ({error})") from error
