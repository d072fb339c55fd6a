# SPDX-License-Identifier: Apache-2.0
"""Facts about the code: version, git revision, and the hash of its programs."""

import hashlib
import json
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from roundabout.core.git import git_command
from roundabout.core.paths import IS_CHECKOUT, REVISION, ROOT


def code_facts() -> dict[str, Any]:
    """Return the version of the code, its git revision, and its form: a checkout, a source archive or a wheel."""
    is_archive = IS_CHECKOUT and (ROOT / REVISION).exists()
    source = "archive" if is_archive else "checkout" if IS_CHECKOUT else "wheel"
    return {"version": version("roundabout"), "source": source, **revision_of(ROOT)}


def describe_code() -> str:
    """Return the lines that `--version` prints: the version, the revision, and the build with its programs' hash."""
    code = code_facts()
    changed = " with uncommitted changes" if code["dirty"] else ""
    programs = hash_programs(ROOT)
    built = f"programs {programs[:12]}" if programs else "programs not built"
    return (
        f"roundabout {code['version']}\n"
        f"revision   {(code['revision'] or 'unknown')[:12]}{changed}\n"
        f"build      {code['source']}, {built}, Python {platform.python_version()} on {platform.machine()}"
    )


def hash_programs(root: Path) -> str | None:
    """Return one SHA-256 of all native programs and eBPF objects that are deployed, or None if one is missing.

    The list is read as text, because `--version` and setup.py import neither YAML nor the specs (program_list).
    """
    listed = re.findall(r"^ +- (build/\S+)$", (root / "roundabout/runner/programs.yaml").read_text(), re.MULTILINE)
    files = [*(root / each for each in listed), *sorted((root / "build/bpf").glob("*.bpf.o"))]
    if not all(each.is_file() for each in files):
        return None
    return hashlib.sha256(b"".join(hashlib.sha256(each.read_bytes()).digest() for each in files)).hexdigest()


def revision_of(root: Path) -> dict[str, Any]:
    """Return the git revision of the code and a flag for uncommitted changes. Unknown values are None.

    Wheels and source archives record the revision in a file; whether an archive's files were changed is unknown.
    """
    if (root / REVISION).exists():
        recorded: dict[str, Any] = json.loads((root / REVISION).read_text())
        return recorded
    git = git_command(root)
    try:
        revision = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {"revision": None, "dirty": None}
    return {"revision": revision, "dirty": bool(changes.strip())}
