# SPDX-License-Identifier: Apache-2.0
"""Cache of specification files during a block. The catalog needs some files thousands of times."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_answers: ContextVar[dict[Hashable, Any] | None] = ContextVar("answers", default=None)


@contextmanager
def snapshot() -> Iterator[None]:
    """Cache answers of `answer_once` within this block. Outside such a block, files are read again each time."""
    if _answers.get() is not None:
        yield
        return
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def answer_once(question: Hashable, answer: Callable[[], T]) -> T:
    """Return `answer()`. Within a snapshot, return the first result for the same `question` again."""
    answers = _answers.get()
    if answers is None:
        return answer()
    if question not in answers:
        answers[question] = answer()
    found: T = answers[question]
    return found
