# SPDX-License-Identifier: Apache-2.0
"""The registry of transports: a folder each, in the tree or in a folder of ROUNDABOUT_PATH, or a program's file."""

import functools
import re
from pathlib import Path

from roundabout.core import paths, plugins
from roundabout.spec.assembly.snapshot import answer_once
from roundabout.spec.errors import SpecError, quote_value
from roundabout.spec.reader.yaml_source import shown_path
from roundabout.spec.transports.declarations import Declaration, read_declaration, source_files

TREE = paths.ROOT / "transports"
# Congestion controls of Linux itself, without parameters. Which of them a kernel was built with, the testbed finds out;
# its dctcp gives way to ours.
KERNELS_OWN = (
    *("bbr", "bic", "cdg", "cubic", "highspeed", "htcp", "hybla", "illinois"),
    *("lp", "nv", "reno", "scalable", "vegas", "veno", "westwood", "yeah"),
)
PROGRAM = ".bpf.c"
# Short enough for what the kernel calls it.
NAME = re.compile(r"[a-z][a-z0-9_]{0,11}")
FILE = f"a file called NAME{PROGRAM}, NAME at most 12 of a-z, 0-9 and _, a letter first"


def transport_names() -> tuple[str, ...]:
    """Return all transports that can be called by name."""
    return (*sorted(_programs()), *KERNELS_OWN)


def find_declaration(name: str, file: str | None = None) -> Declaration | None:
    """Return the declaration of the transport `name`, or of the one in `file`; None if it is the kernel's own.

    Raises SpecError if the source of its program is wrong, or if there is none.
    """
    if file is None and name in KERNELS_OWN:
        return None
    program = Path(file) if file is not None else _programs().get(name, TREE / name / f"{name}{PROGRAM}")
    return answer_once(
        program, lambda: _read(program, tuple((each, each.stat().st_mtime_ns) for each in source_files(program)))
    )


def program_name(path: Path) -> str:
    """Return the name of the transport whose program is in `path`.

    Raises:
        SpecError: no transport can have this name.
    """
    name = path.name.removesuffix(PROGRAM)
    if name == path.name:
        raise SpecError(shown_path(path), quote_value(path.name), FILE)
    if not NAME.fullmatch(name):
        raise SpecError(
            shown_path(path), f"the name {quote_value(name)}", f"{FILE}: the kernel takes 15, and ours begin with rb_"
        )
    if name in transport_names():
        raise SpecError(
            shown_path(path), quote_value(name), f"a name that no other transport has ({', '.join(transport_names())})"
        )
    if not str(path).isprintable():
        raise SpecError(
            shown_path(path), "a folder with characters that cannot be printed", "a path that can be written down"
        )
    return name


def is_plugin(found: Declaration) -> bool:
    """Return True if the transport is not built with the tree."""
    return TREE not in found.program.parents


def kernel_name(name: str) -> str:
    """Return the name of the transport `name` in hosts' kernels."""
    return name if name in KERNELS_OWN else f"rb_{name}"


def _programs() -> dict[str, Path]:
    """Return each transport's program by its name. The tree's go first."""
    return answer_once("programs", _found_programs)


def _found_programs() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in (TREE, *(folder / TREE.name for folder in plugins.plugin_folders())):
        for path in folder.glob(f"*/*{PROGRAM}"):
            name = path.name.removesuffix(PROGRAM)
            if name == path.parent.name and NAME.fullmatch(name):
                found.setdefault(name, path)
    return found


@functools.lru_cache(maxsize=64)
def _read(program: Path, _changed: tuple[tuple[Path, int], ...]) -> Declaration:
    return read_declaration(program)
