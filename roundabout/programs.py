# SPDX-License-Identifier: Apache-2.0
"""The programs that measure: part of every trial's key, since other programs measure something else."""

import hashlib
from pathlib import Path

from roundabout.errors import RoundaboutError

ROOT = Path(__file__).parents[1]
PROGRAMS = (
    "build/bin/decode",
    "build/bin/replay",
    "build/bin/sampler",
    "build/bin/crossgen",
    "build/bin/transport",
    "build/bin/switchport",
    "roundabout/settings/settings.py",
    "roundabout/settings/settings_host.py",
    "roundabout/settings/settings_journal.py",
    "roundabout/settings/settings_linux.py",
    "roundabout/settings/settings_nic.py",
    "roundabout/settings/settings_qos.py",
    "collectors/clock.py",
    "crossgen/iperf.py",
    "collectors/capture.py",
)


def artefacts(root: Path = ROOT) -> dict[str, str]:
    """SHA-256 of host programs and eBPF objects, by path. Raises RoundaboutError where one is missing."""
    missing = [name for name in PROGRAMS if not (root / name).is_file()]
    if missing:
        raise RoundaboutError(f"not built: {', '.join(missing)}", "run: make build")
    objects = sorted(str(path.relative_to(root)) for path in (root / "build/bpf").glob("*.bpf.o"))
    return {name: hashlib.sha256((root / name).read_bytes()).hexdigest() for name in (*PROGRAMS, *objects)}
