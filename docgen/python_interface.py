# SPDX-License-Identifier: Apache-2.0
"""The reference page of `roundabout.api`, made from signatures and docstrings."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from docgen.markdown import WIDTH, notice, prose
from roundabout import api

HEAD = """# Python interface

`from roundabout import api`. Notebooks and scripts need nothing else
([notebooks](../how-to/notebooks.md), [experiments](../how-to/experiments.md#from-python)). Names
and columns keep their meaning within 1.x. DataFrames are those of pandas, which
`./bootstrap notebook` installs; other functions work without it. All errors are RoundaboutError.

"""
GROUPS: dict[str, tuple[str, ...]] = {
    "Experiments and runs": (
        *("load_experiment", "build_experiment", "plan_experiment", "run_experiment"),
        *("open_run", "open_results", "query"),
    ),
    "Measurements of a run": ("iterations", "bandwidth", "queues", "marks"),
    "Delays of jobs": ("explain_delays", "explain_records", "Attribution"),
    "Results of runs and published runs": (
        *("compare", "verdicts", "interval"),
        *("sweeps", "fit_degradation", "Degradation"),
    ),
    "Figures": ("draw_jobs", "draw_comparison", "draw_degradation"),
}

_DEFAULT = re.compile(r"(?<=[\w\]])=(?=[\w'(])")


def format_page() -> str:
    """Return the page: each function and class with its signature and its docstring."""
    parts = [notice("roundabout/api.py"), HEAD]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n\n")
        for name in names:
            parts += _describe(name, getattr(api, name))
    parts.append(prose("`STYLE` has settings for the look of reports: `matplotlib.pyplot.rcParams.update(api.STYLE)`."))
    return "".join(parts).rstrip() + "\n"


def _describe(name: str, found: Any) -> Iterator[str]:
    yield f"### {name}\n\n"
    if not inspect.isclass(found):
        yield f"```python\n{_signature(name, found)}\n```\n\n"
    yield from map(prose, inspect.cleandoc(found.__doc__).split("\n\n"))
    members = vars(found).items() if inspect.isclass(found) else ()
    for member, value in members:
        if member.startswith("_") or not isinstance(value, property | FunctionType) or not value.__doc__:
            continue
        yield f"#### {name}.{member}\n\n"
        if isinstance(value, FunctionType):
            yield f"```python\n{_signature(member, value)}\n```\n\n"
        yield from map(prose, inspect.cleandoc(value.__doc__).split("\n\n"))


def _signature(name: str, function: Callable[..., Any]) -> str:
    """Return a function's signature with its annotations as they are written, in lines that fit the page."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    assert node.returns is not None
    node.args.args = [each for each in node.args.args if each.arg != "self"]
    given, returned = _DEFAULT.sub(" = ", ast.unparse(node.args)), ast.unparse(node.returns).strip("'")
    line = f"{name}({given}) -> {returned}".replace("'pd.DataFrame'", "pd.DataFrame")
    return line if len(line) <= WIDTH else textwrap.fill(line, WIDTH, subsequent_indent="    ", break_long_words=False)
