# SPDX-License-Identifier: Apache-2.0
"""The registry of transports: one folder each, in the tree or in a plugin folder; or a program's file."""

import functools
import re
from pathlib import Path

from roundabout.core import paths, plugins
from roundabout.spec.assembly.file_cache import read_once
from roundabout.spec.errors import SpecError, quote_value
from roundabout.spec.reader.yaml_source import shown_path
from roundabout.spec.transports.declarations import MODEL, PROGRAM, Declaration, read_declaration, source_files

TREE = paths.ROOT / "transports"
# Congestion controls of Linux, without parameters. The testbed checks if a kernel has them. Linux's dctcp is not among
# them, because this project has its own.
KERNELS_OWN = (
    *("bbr", "bic", "cdg", "cubic", "highspeed", "htcp", "hybla", "illinois"),
    *("lp", "nv", "reno", "scalable", "vegas", "veno", "westwood", "yeah"),
)
# A transport's name. The limit of 12 characters leaves room for the prefix of `kernel_name`.
NAME = re.compile(r"[a-z][a-z0-9_]{0,11}")
FILE = f"a file called NAME{PROGRAM}, NAME at most 12 of a-z, 0-9 and _, a letter first"


def transport_names() -> tuple[str, ...]:
    """Return the names of all registered transports: the tree's, the plugins', and Linux's own."""
    return (*sorted(_sources()), *KERNELS_OWN)


def program_names() -> tuple[str, ...]:
    """Return the names of all transports with an eBPF program: the tree's and the plugins'."""
    return tuple(sorted(name for name, source in _sources().items() if source.name.endswith(PROGRAM)))


def find_declaration(name: str, file: str | None = None) -> Declaration | None:
    """Return the declaration of the transport `name`, or of the program `file`. Return None for Linux's own.

    A transport that models alone play has a header NAME.model.h in a program's place.

    Raises SpecError if the program is missing or its declarations are invalid.
    """
    if file is None and name in KERNELS_OWN:
        return None
    program = Path(file) if file is not None else _sources().get(name, TREE / name / f"{name}{PROGRAM}")
    return read_once(
        program, lambda: _read(program, tuple((each, each.stat().st_mtime_ns) for each in source_files(program)))
    )


def program_name(path: Path) -> str:
    """Return the transport's name from the path of its program NAME.bpf.c.

    Raises SpecError if the name is invalid for a transport.
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
    """Return True if the transport is a plugin's or user's, so that it is not built with the tree."""
    return TREE not in found.program.parents


def kernel_name(name: str) -> str:
    """Return the name that the transport `name` has in the hosts' kernels."""
    return name if name in KERNELS_OWN else f"rb_{name}"


def _sources() -> dict[str, Path]:
    """Return each transport's program, or its model's header, by its name. The tree's go first."""
    return read_once("programs", _found_sources)


def _found_sources() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in (TREE, *(folder / TREE.name for folder in plugins.plugin_folders())):
        for suffix in (PROGRAM, MODEL):
            for path in folder.glob(f"*/*{suffix}"):
                name = path.name.removesuffix(suffix)
                if name == path.parent.name and NAME.fullmatch(name):
                    found.setdefault(name, path)
    return found


@functools.lru_cache(maxsize=64)
def _read(program: Path, _changed: tuple[tuple[Path, int], ...]) -> Declaration:
    return read_declaration(program)
