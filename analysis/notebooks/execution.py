# SPDX-License-Identifier: Apache-2.0
"""The execution of a notebook in this process, because Jupyter's kernel would be a second process with its own imports.

Cells are plain Python: without magics, and without `display`. A cell shows its output, the figures that it leaves open
in pyplot, and the value of its last line. It may await.
"""

import ast
import asyncio
import inspect
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import StringIO
from types import FrameType
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from analysis.render.page import svg_of


class CellTimeoutError(Exception):
    """A cell ran for longer than allowed."""


def execute(notebook: NotebookNode, timeout_s: float) -> None:
    """Run the code cells in order, and store each one's output.

    Raises CellTimeoutError if a cell takes longer than `timeout_s`, and any exception that a cell raises.
    """
    printed = StringIO()
    names: dict[str, Any] = {"__name__": "__main__", "print": partial(print, file=printed)}
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            with _limit(timeout_s), warnings.catch_warnings(record=True) as warned:
                value = _value(cell.source, f"<cell {number}>", names)
            cell.outputs = [
                *_append_text("stdout", printed.getvalue()),
                *_append_text("stderr", _describe_warning(warned)),
                *_open_figures(),
                *_output_of(value),
            ]
            printed.seek(printed.truncate(0))


def _value(source: str, file: str, names: dict[str, Any]) -> Any:
    """Run a cell's source. Return the value of its last statement if that is an expression, else None."""
    tree = ast.parse(source, file)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    _evaluate(tree, file, "exec", names)
    return _evaluate(ast.Expression(last.value), file, "eval", names) if isinstance(last, ast.Expr) else None


def _evaluate(tree: ast.Module | ast.Expression, file: str, mode: str, names: dict[str, Any]) -> Any:
    """Run a part of a cell, which may await, and return its value."""
    value = eval(compile(tree, file, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)  # noqa: S307 - our own notebooks
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def _open_figures() -> list[NotebookNode]:
    """Return an output for each open figure of pyplot, as SVG, and close them."""
    plt: Any = sys.modules.get("matplotlib.pyplot")  # importing it takes half a second, and reports do without
    if plt is None:
        return []
    svgs = [svg_of(plt.figure(number)) for number in plt.get_fignums()]
    plt.close("all")
    return [new_output("display_data", {"image/svg+xml": svg}) for svg in svgs]  # type: ignore[no-untyped-call]


def _output_of(value: Any) -> list[NotebookNode]:
    """Return the output for a value, as HTML where it has any; none for None."""
    if value is None:
        return []
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    return [new_output("execute_result", data)]  # type: ignore[no-untyped-call]


def _append_text(stream: str, text: str) -> list[NotebookNode]:
    return [new_output("stream", name=stream, text=text)] if text else []  # type: ignore[no-untyped-call]


def _describe_warning(warned: list[warnings.WarningMessage]) -> str:
    """Return the warnings without their places, which would be paths of this machine."""
    return "".join(f"{each.category.__name__}: {each.message}\n" for each in warned)


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise CellTimeoutError in this block once it has run for so long. Only the main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise CellTimeoutError
