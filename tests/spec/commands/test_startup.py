# SPDX-License-Identifier: Apache-2.0
"""A command imports what it needs, and no more: benchmarks/startup.py measures what that saves."""

import os
import subprocess
import sys
from importlib import import_module

import pytest
from typer.main import get_command

from roundabout.cli.main import COMMANDS, build_app, import_command, read_help
from roundabout.core.paths import ROOT

pytestmark = pytest.mark.unit

PROGRAM = """
import sys
from roundabout.cli.main import main
status = main(sys.argv[1:])
print(status, *sys.modules, file=sys.stderr)
"""
MEASURING = {"scipy", "matplotlib", "duckdb", "pandas", "nbformat", "jupytext", "IPython", "jinja2"}
CONNECTING = {"paramiko", "fabric", "invoke", "cryptography", "pyroute2", "ansible"}
TABLES = {"numpy", "pyarrow"}
SPECS = {"yaml", "roundabout.spec.experiment"}


def imported(home, *words):
    """Return the modules that a command has imported when it ends."""
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home)}
    environment.pop("ROUNDABOUT_PATH", None)
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    status, *modules = done.stderr.split()
    assert status == "0"
    return set(modules)


@pytest.mark.parametrize(
    ("words", "others"),
    [
        (["--version"], {*MEASURING, *CONNECTING, *TABLES, *SPECS, "pydantic", "rich.markdown"}),
        (["--help"], {*MEASURING, *CONNECTING, *TABLES, *SPECS, "pydantic"}),
        (["list"], {*MEASURING, *CONNECTING, *TABLES, *SPECS}),
        (["validate", "experiments/catalog/hotnets22/unfair-vgg19.yaml"], {*MEASURING, *CONNECTING, *TABLES}),
        (["runs"], {*MEASURING, *CONNECTING, "roundabout.spec.experiment"}),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_command_imports_none_of_the_modules_that_others_need(words, others, tmp_path):
    imported(tmp_path, *words)  # the first start remembers what the second one finds
    assert imported(tmp_path, *words) & others == set()


def test_the_python_interface_imports_matplotlib_for_figures_alone():
    program = "import sys; from roundabout import api; print(*sys.modules); api.STYLE; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    before, after = (set(line.split()) for line in done.stdout.splitlines())
    assert "matplotlib" not in before
    assert "matplotlib" in after


@pytest.mark.parametrize("name", COMMANDS)
def test_help_that_is_read_from_source_is_that_of_the_command(name):
    assert read_help(name)
    assert read_help(name) == import_command(name).help


def test_every_module_of_a_command_is_listed():
    modules = {f"{path.parent.name}.{path.stem}" for path in (ROOT / "roundabout/cli").glob("*/*.py")}
    offering = {
        name
        for name in modules
        if not name.endswith("__init__") and hasattr(import_module(f"roundabout.cli.{name}"), "command")
    }
    assert offering == set(COMMANDS.values())


def test_the_group_lists_commands_in_their_order():
    group = get_command(build_app())
    assert group.list_commands(None) == list(COMMANDS)
    assert group.get_command(None, "no-such-command") is None
