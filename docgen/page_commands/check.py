# SPDX-License-Identifier: Apache-2.0
"""Checks of the commands that pages show, without running them.

The application's own parser takes the words of each command. Experiments are loaded with the options that change them,
so that levels, fields and overlays must exist, and so must profiles, topologies, testbeds, targets of the Makefile and
programs.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from copy import copy
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from typer import Context
from typer.exceptions import TyperException

from analysis.reports.guard import parse_rule
from docgen.page_commands.lines import CommandLine, find_commands
from roundabout.checks.check import select_parts
from roundabout.checks.judge.figures import SCENES, parse_measured_condition
from roundabout.cli.main import COMMANDS, import_command, main
from roundabout.cli.options import chosen_length
from roundabout.cli.overrides import parse_overrides
from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.spec.assembly.library import CATALOG, PROFILES, TOPOLOGIES, Library
from roundabout.spec.loader import load_experiment
from roundabout.spec.transports.identification import identification_names
from roundabout.testbeds import find_provider

EAGER = ("--help", "--version", "--install-completion", "--show-completion")
MODULES_OF_PYTHON = ("venv", "http.server")
# Arguments and options that name runs, by command.
RUNS = {
    "compare": ("one", "others"),
    **dict.fromkeys(("report", "status", "export", "resume", "watch", "notebook", "publish"), ("which",)),
    "calibrate": ("source",),
    "rm": ("names",),
}
# Words that stand for what a reader puts there: RUN, NAME|FILE, FILE.png, [WORD...], <id>.
_PLACEHOLDER = re.compile(r"[\[<.]|[A-Z][A-Z|_]*(?:[.]\w+|[.]{3})?$")
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
_PARTS = re.compile(r"^  ([\w |]+\|[\w |]+)\) ;;$", re.MULTILINE)
_C = re.compile(r"^```c\n(.*?)^```", re.MULTILINE | re.DOTALL)
_YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


class CommandError(RoundaboutError):
    """A command that a reader could not give as a page shows it."""


class Commands:
    """The commands of one page, checked in a folder that has the files which the page gives."""

    def __init__(self, page: Path, text: str, root: Path = ROOT) -> None:
        self._page = page
        self._text = text
        self._root = root
        self._made: set[str] = set()  # names of experiments of which the page has runs
        self._written: set[str] = set()  # files that earlier commands write

    def check(self) -> Iterator[str]:
        """Yield a message with file and line for each command that could not be given."""
        with TemporaryDirectory() as folder, chdir(folder):
            self._write_examples()
            for command in find_commands(self._text):
                try:
                    self._check(command)
                except (TyperException, RoundaboutError) as error:
                    shown = " ".join([command.program, *command.words])
                    message = error.format_message() if isinstance(error, TyperException) else error.message
                    yield f"{self._page.relative_to(self._root)}:{command.line}: {shown}: {message}"

    def _write_examples(self) -> None:
        """Write the files that the page lets its reader save, and the experiments in the folder beside it."""
        for block in _C.findall(self._text):
            if named := re.search(r"^// ([\w-]+\.bpf\.c)\b", block, re.MULTILINE):
                Path(named[1]).write_text(block)
        for block in _YAML.findall(self._text):
            if named := re.search(r"^name: ([\w-]+)$", block, re.MULTILINE):
                Path(f"{named[1]}.yaml").write_text(block)
        for given in self._page.with_suffix("").glob("*.yaml"):
            Path(given.name).write_text(given.read_text())
        self._made = {path.stem for path in Path().glob("*.yaml")}
        self._made |= set(re.findall(r"--set name=([\w-]+)", self._text))

    def _check(self, command: CommandLine) -> None:
        if command.program == "roundabout":
            self._check_roundabout(command)
        elif command.program == "make":
            self._check_make(command)
        elif command.program == "bootstrap":
            _check_bootstrap(command.words)
        else:
            self._check_python(command.words)

    def _check_roundabout(self, command: CommandLine) -> None:
        words = list(command.words)
        if not words or words[0] in EAGER or _is_placeholder(words[0]):
            return
        if words[0] not in COMMANDS:
            raise CommandError(f"no command {words[0]}")
        values = _parse(words, may_lack=command.is_inline)
        if words[0] == "new":
            self._create(words, values)
        self._written |= set(_chosen(values, "check"))
        self._check_names(words[0], values)
        _check_conditions(words[0], values)

    def _check_names(self, command: str, values: dict[str, Any]) -> None:
        """Check testbeds, experiments with what changes them, runs, and all other names of a command."""
        for name in ",".join(_chosen(values, "testbed")).split(","):
            if name and f"roundabout/testbeds/{name}/" not in self._text:
                find_provider({"testbed": name})
        if command in ("run", "plan", "predict", "affinity"):
            for name in _chosen(values, "name"):
                self._load(name, values)
        for parameter in RUNS.get(command, ()):
            for run in _chosen(values, parameter):
                self._check_run(run)
        _check_library(command, values)

    def _create(self, words: list[str], values: dict[str, Any]) -> None:
        """Run `roundabout new`, so that later commands of the page find its file, unless it needs a reader's files."""
        names = _chosen(values, "name")
        self._made |= set(names)
        if not names or any(_is_placeholder(word) for word in words):
            self._written |= {f"{name}.yaml" for name in names}
            return
        said = StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            status = main(words)
        if status:
            raise CommandError(said.getvalue().strip())

    def _load(self, name: str, values: dict[str, Any]) -> None:
        """Load an experiment with the options that change it, unless an earlier command writes its file."""
        if name in self._written:
            return
        length = chosen_length(quick=bool(values.get("quick")), full=bool(values.get("full")))
        changes = [tuple(values.get(each) or ()) for each in ("fields", "only")]
        arguments = (name, length, *changes, values.get("repetitions"))
        if Path(name).suffix:
            _load.__wrapped__(*arguments)  # each page has files of its own
        else:
            _load(*arguments)

    def _check_run(self, run: str) -> None:
        """Check that a run's name is that of an experiment, unless it is a path."""
        if "/" not in run and run != "last" and run not in self._made and run not in _names(CATALOG):
            raise CommandError(f"no experiment {run}, whose run this could be")

    def _check_make(self, command: CommandLine) -> None:
        makefile = (ROOT / "Makefile").read_text()
        targets = _TARGET.findall(makefile)
        given = dict(word.split("=", 1) for word in command.words if "=" in word)
        for target in (word for word in command.words if "=" not in word):
            if target not in targets:
                raise CommandError(f"no target {target} in the Makefile")
            needed = re.findall(rf"\$\(call needs,[^,]*\b{target}\b[^,]*,(\w+),", makefile)
            if not command.is_inline and (lacking := set(needed) - given.keys()):
                raise CommandError(f"{min(lacking)} is needed")
        for name, value in given.items():
            if f"$({name}" not in makefile and f"({name}:" not in makefile and f"ifdef {name}" not in makefile:
                raise CommandError(f"no variable {name} in the Makefile")
            if name == "NAME" and not _is_placeholder(value):
                self._load(value, {"quick": given.get("LENGTH") == "quick", "full": given.get("LENGTH") == "full"})
            if name == "TESTBED":
                find_provider({"testbed": value})
            if name == "LENGTH" and value not in ("quick", "full"):
                raise CommandError(f"LENGTH is {value}, expected quick or full")

    def _check_python(self, words: Sequence[str]) -> None:
        """Check that a module or file exists, and that its source has the options that are given."""
        if not words or (words[0] == "-m" and words[1] in MODULES_OF_PYTHON):
            return
        if words[0] == "-m":
            path = ROOT.joinpath(*words[1].split("."))
            candidates = [path.with_suffix(".py"), path / "__main__.py"]
        else:
            candidates = [folder / words[0] for folder in (ROOT, self._page.parent, self._page.with_suffix(""))]
        found = next((each for each in candidates if each.is_file()), None)
        if not found:
            raise CommandError(f"no program {words[0] if words[0] != '-m' else words[1]}")
        for option in (word.partition("=")[0] for word in words[1:] if word.startswith("--")):
            if option not in found.read_text():
                raise CommandError(f"{found.name} has no option {option}")


def _parse(words: list[str], *, may_lack: bool) -> dict[str, Any]:
    """Return the values that the application's parser finds in a command's words.

    A command that `may_lack` arguments is one that prose only names. Raises TyperException.
    """
    command, name, words = _command(words[0]), words[0], words[1:]
    while hasattr(command, "commands"):
        if not words:
            return {}
        if words[0] not in command.commands:
            raise CommandError(f"no command {name} {words[0]}")
        command, name, words = command.commands[words[0]], f"{name} {words[0]}", words[1:]
    if may_lack:
        command = copy(command)
        command.params = [copy(each) for each in command.params]
        for parameter in command.params:
            parameter.required = False
    context = Context(command, info_name=name)
    try:
        command.parse_args(context, words)
    except TyperException:
        # The value of a typed option may be a placeholder, like N.
        if not any(_is_placeholder(word) for word in words):
            raise
    return context.params


def _chosen(values: dict[str, Any], parameter: str) -> list[str]:
    """Return a parameter's values as a list, without placeholders."""
    value = values.get(parameter)
    listed = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    return [str(each) for each in listed if not _is_placeholder(str(each))]


def _check_conditions(command: str, values: dict[str, Any]) -> None:
    """Check the rules of `compare --fail-if`, and the conditions of `judge --fail-if`."""
    for condition in _chosen(values, "fail_if"):
        if command == "judge":
            parse_measured_condition(condition, select_parts(_chosen(values, "only"), SCENES))
        else:
            parse_rule(condition)


def _check_library(command: str, values: dict[str, Any]) -> None:
    """Check profiles, topologies and identifications by their names. A topology may also be a file."""
    for topology in _chosen(values, "topology"):
        if not Path(topology).suffix:
            _expect(topology, _names(TOPOLOGIES), "topology")
    if command == "cassini":
        for profile in _chosen(values, "profiles"):
            _expect(profile, _names(PROFILES), "profile")
    if command == "profile" and not values.get("measured"):
        for word in _chosen(values, "job"):
            shelf = (CATALOG, "experiment") if ":" in word else (PROFILES, "profile")
            _expect(word.partition(":")[0], _names(shelf[0]), shelf[1])
    for parameter in ("identified", *(("name",) if command == "identify" else ())):
        for document in _chosen(values, parameter):
            _expect(document, tuple(identification_names()), "identification")


def _check_bootstrap(words: Sequence[str]) -> None:
    parts = {each.strip() for found in _PARTS.findall((ROOT / "bootstrap").read_text()) for each in found.split("|")}
    for word in words:
        _expect(word, tuple(parts), "part of bootstrap")


def _expect(word: str, known: Sequence[str], what: str) -> None:
    if word not in known:
        raise CommandError(f"no {what} {word}")


def _is_placeholder(word: str) -> bool:
    return bool(_PLACEHOLDER.match(word))


@cache
def _load(
    name: str, length: str | None, fields: tuple[str, ...], only: tuple[str, ...], repetitions: int | None
) -> None:
    load_experiment(name, length=length, changes=parse_overrides(fields, only, repetitions))


@cache
def _names(shelf: str) -> tuple[str, ...]:
    return tuple(Library().names(shelf))


@cache
def _command(name: str) -> Any:
    return import_command(name)
