# SPDX-License-Identifier: Apache-2.0
"""A snapshot of specification files, because the catalog asks for some of them thousands of times."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_answers: ContextVar[dict[Hashable, Any] | None] = ContextVar("answers", default=None)


@contextmanager
def snapshot() -> Iterator[None]:
    """Read each file at most once within this block. Outside of it, every question reads the disk again."""
    if _answers.get() is not None:
        yield
        return
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def answer_once(question: Hashable, answer: Callable[[], T]) -> T:
    """Return the answer; within a snapshot, the first answer to the same `question`."""
    answers = _answers.get()
    if answers is None:
        return answer()
    if question not in answers:
        answers[question] = answer()
    found: T = answers[question]
    return found
