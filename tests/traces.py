# SPDX-License-Identifier: Apache-2.0
"""What runs leave on this machine, or should not."""

import json
import subprocess
from pathlib import Path
from typing import Any

from roundabout.runner.machine.state import STATE
from roundabout.runner.machine.undo_journal import JOURNALS

ROOT = Path(__file__).parents[1]


def traces() -> set[str]:
    """Everything on this machine that a run could leave: namespaces, devices, mounts, eBPF objects, programs, files."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.add(f"namespace {(process / 'ns/net').readlink()}")
            words = (process / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if any(str(ROOT / "build") in word or "/run/roundabout" in word for word in words):
            found.add(f"process {process.name} {' '.join(words)}")
    found |= {f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if "roundabout" in line}
    found |= {f"file {path}" for path in Path("/tmp").glob("roundabout-*")}
    found |= {f"file {path}" for path in STATE.rglob("*")} | ({f"file {STATE}"} if STATE.exists() else set())
    found |= {f"file {path}" for path in JOURNALS.glob("*")}
    found |= {f"device {link['ifname']}" for link in listing("ip", "-j", "link")}
    found |= {f"queue {queue['kind']} on {queue['dev']}" for queue in listing("tc", "-j", "qdisc")}
    for kind, objects in listing(ROOT / "build/bin/bpf_objects", "list").items():
        found |= {f"eBPF {kind} {each['id']} {each.get('name')}" for each in objects}
    return found


def listing(*command: str | Path) -> Any:
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout or "[]")
