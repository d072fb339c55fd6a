# SPDX-License-Identifier: Apache-2.0
"""The programs that measure: part of every trial's key, since other programs measure something else."""

import hashlib
from functools import cache
from pathlib import Path

import yaml

from roundabout.errors import RoundaboutError

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("programs.yaml")


@cache
def programs(*groups: str) -> tuple[str, ...]:
    """The paths of the list's `groups` ("hosts", "controller", "lab"), in its order."""
    listed = yaml.safe_load(LIST.read_text())
    return tuple(path for group in groups for path in listed[group])


def artefacts(*groups: str, root: Path = ROOT) -> dict[str, str]:
    """SHA-256 of these groups' programs and of all eBPF objects, by path.

    Raises RoundaboutError where one is missing.
    """
    paths = programs(*groups)
    missing = [path for path in paths if not (root / path).is_file()]
    if missing:
        raise RoundaboutError(f"not built: {', '.join(missing)}", "build it: ./bootstrap")
    objects = sorted(str(path.relative_to(root)) for path in (root / "build/bpf").glob("*.bpf.o"))
    return {path: hashlib.sha256((root / path).read_bytes()).hexdigest() for path in (*paths, *objects)}
