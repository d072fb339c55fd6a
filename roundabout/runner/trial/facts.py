# SPDX-License-Identifier: Apache-2.0
"""What a manifest says of the code and the machines: a result that nobody can trace is worth little."""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from roundabout.runner.hosts.programs import call
from roundabout.runner.trial.bench import Bench

LIBRARIES = ("fabric", "numpy", "paramiko", "pyarrow", "pydantic", "pyroute2")

# One line a fact: `name<TAB>value`; what a host lacks is left empty.
HOST_SCRIPT = r"""
fact() { printf '%s\t%s\n' "$1" "$(eval "$2" 2>/dev/null | tr '\n\t' '; ' | sed 's/; *$//')"; }
fact kernel 'uname -rv'
fact cpu 'sed -n "s/^model name[^:]*: //p" /proc/cpuinfo | sort | uniq -c | sed "s/^ *//"'
fact sysctls 'cd /proc/sys/net/ipv4 && grep -s . tcp_congestion_control tcp_ecn tcp_rmem tcp_wmem tcp_no_metrics_save'
fact qdiscs 'tc qdisc show'
fact offloads "ethtool -k $1 | sed -n 's/^\([a-z]*-[a-z-]*offload\): /\1=/p'"
fact link "ip -d -o link show dev $1"
fact iproute2 'ip -V'
fact ethtool 'ethtool --version'
fact python 'python3 --version'
"""


def of_hosts(bench: Bench) -> dict[str, dict[str, str]]:
    """Kernel, CPU, settings, offloads and tool versions of every host."""
    answers = bench.each(lambda host: call(bench.links[host.name], ["sh", "-c", HOST_SCRIPT, "facts", host.interface]))
    return {
        host: dict(line.split("\t", 1) for line in answer.stdout.splitlines() if "\t" in line)
        for host, answer in answers.items()
    }


def of_controller() -> dict[str, Any]:
    """The machine that runs this, and the libraries that took part."""
    return {
        "kernel": platform.release(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def of_code(root: Path) -> dict[str, Any]:
    """The git revision of the code, and whether it was changed since; None where git cannot tell."""
    # Under sudo the repository belongs to somebody else, which git would refuse.
    git = ["git", "-c", f"safe.directory={root}", "-C", str(root)]
    try:
        revision = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {"revision": None, "dirty": None}
    return {"revision": revision, "dirty": bool(changes.strip())}
