# SPDX-License-Identifier: Apache-2.0
"""Cache of specification files during a block. The catalog needs some files thousands of times."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_cache: ContextVar[dict[Hashable, Any] | None] = ContextVar("cache", default=None)


@contextmanager
def cached_files() -> Iterator[None]:
    """Cache results of `read_once` within this block. Outside such a block, files are read again each time."""
    if _cache.get() is not None:
        yield
        return
    token = _cache.set({})
    try:
        yield
    finally:
        _cache.reset(token)


def read_once(key: Hashable, read: Callable[[], T]) -> T:
    """Return `read()`. Within `cached_files`, return the first result for the same `key` again."""
    results = _cache.get()
    if results is None:
        return read()
    if key not in results:
        results[key] = read()
    found: T = results[key]
    return found
