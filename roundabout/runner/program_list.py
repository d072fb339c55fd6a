# SPDX-License-Identifier: Apache-2.0
"""The list of programs that influence measurements. Their hashes are part of every trial's key."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import BUILD, ROOT
from roundabout.spec.reader.yaml_source import read_document
from roundabout.spec.trainers import MODELS

LIST = Path(__file__).with_name("programs.yaml")


@cache
def program_paths(*groups: str) -> tuple[str, ...]:
    """Return the paths of programs in these groups ("hosts", "controller", "lab"), in the order of programs.yaml."""
    listed = read_document(LIST).root
    return tuple(path for group in groups for path in listed[group])


def plugin_programs() -> tuple[Path, ...]:
    """Return the programs of trainers in plugin folders, which runs copy to hosts."""
    sources = (model.source() for model in MODELS.values())
    return tuple(path for path in sources if not path.is_relative_to(ROOT))


def hash_artifacts(*groups: str, root: Path = ROOT) -> dict[str, str]:
    """Return the SHA-256, by path, of these groups' programs, of plugin trainers and of all eBPF objects.

    Raises RoundaboutError if a file is missing.
    """
    files = {path: root / path for path in program_paths(*groups)} | {
        f"outside/{path.name}": path for path in plugin_programs()
    }
    objects = sorted((root / "build/bpf").glob("*.bpf.o"))
    return hash_files(files | {str(path.relative_to(root)): path for path in objects})


def hash_files(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each file, by name. Raises RoundaboutError if a file is missing."""
    missing = [name for name, path in files.items() if not path.is_file()]
    if missing:
        raise RoundaboutError(f"not built: {', '.join(missing)}", f"build it: {BUILD}")
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
