# SPDX-License-Identifier: Apache-2.0
"""Which hosts send for which job: a YAML file, or Slurm's list of jobs."""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.advice.errors import AdviceError
from roundabout.spec import json_source
from roundabout.spec.errors import show
from roundabout.spec.source import load

Senders = Mapping[str, tuple[str, ...]]
"""By job, its hosts."""

MOST_HOSTS = 10_000
MOST_YAML_BYTES = 1_000_000  # reading that much YAML takes ten seconds
MOST_JSON_BYTES = 1 << 30  # `squeue --json` writes 10 kB for each job


def read(path: Path) -> Senders:
    """The hosts of each job.

    Read are YAML (`j1: [s0, s2]`; hosts may be written as Slurm does, `j1: node[01-03]`), and what `squeue --json`
    prints, of which jobs that run count, by `<name>-<id>`.

    Raises AdviceError or SpecError.
    """
    is_json = path.suffix.lower() == ".json"
    found = (json_source.read(path, MOST_JSON_BYTES) if is_json else load(path, MOST_YAML_BYTES)).root
    if not isinstance(found, Mapping):
        raise AdviceError(f"{path}: found {show(found)}, expected jobs with their hosts")
    pairs = _of_slurm(found["jobs"], path) if isinstance(found.get("jobs"), list) else found.items()
    senders = {str(job): _hosts(hosts, f"{path}: {job}") for job, hosts in pairs}
    if not senders:
        raise AdviceError(f"{path}: found no job, expected one at least")
    return senders


def shared(senders: Senders) -> dict[str, str]:
    """By job: why its bytes cannot be told from another's, where one of its hosts sends for that one too."""
    reasons: dict[str, str] = {}
    for one, other in itertools.combinations(senders, 2):
        if both := sorted({*senders[one]} & {*senders[other]}):
            for job, beside in ((one, other), (other, one)):
                reasons.setdefault(job, f"cannot be told from {beside}: host {both[0]} sends for both")
    return reasons


def _of_slurm(jobs: list[Any], path: Path) -> Iterator[tuple[str, str]]:
    """Jobs that run, of `squeue --json` (Slurm 21.08 and later: `nodes` is a list of hosts as Slurm writes it)."""
    for place, job in enumerate(jobs):
        try:
            states = job["job_state"]
            if "RUNNING" in ([states] if isinstance(states, str) else states):
                yield f"{job['name']}-{job['job_id']}", job["nodes"]
        except (KeyError, TypeError) as error:
            expected = "job_id, name, job_state and nodes, as `squeue --json` has them"
            raise AdviceError(f"{path}: jobs, number {place + 1}: found no {error}, expected {expected}") from error


def _hosts(found: Any, where: str) -> tuple[str, ...]:
    parts = [found] if isinstance(found, str) else found
    if not isinstance(parts, list) or not parts or not all(isinstance(each, str) and each for each in parts):
        raise AdviceError(f"{where}: found {found!r}, expected names of hosts")
    return tuple(dict.fromkeys(host for part in parts for host in expanded(part, where)))


def expanded(hosts: str, where: str = "hosts") -> list[str]:
    """The hosts of a list as Slurm writes it, `a[1-3,07],b`; as `scontrol show hostnames` would. Raises AdviceError."""
    found = []
    for part in re.split(r",(?![^\[]*\])", hosts):
        pieces = re.split(r"[\[\]]", part)
        if len(pieces) % 2 == 0 or not part:
            raise AdviceError(f"{where}: found '{hosts}', expected hosts as in node[01-03,07]")
        choices = [_numbers(piece, where) if place % 2 else [piece] for place, piece in enumerate(pieces)]
        found += ["".join(each) for each in itertools.product(*choices)]
        if len(found) > MOST_HOSTS:
            raise AdviceError(f"{where}: found more than {MOST_HOSTS} hosts in '{hosts}', expected fewer")
    return found


def _numbers(ranges: str, where: str) -> list[str]:
    numbers: list[str] = []
    for each in ranges.split(","):
        if not (match := re.fullmatch(r"(\d+)(?:-(\d+))?", each)):
            raise AdviceError(f"{where}: found '[{ranges}]', expected numbers as in [01-03,07]")
        first, last = match[1], match[2] or match[1]
        if int(last) - int(first) >= MOST_HOSTS:
            raise AdviceError(f"{where}: found more than {MOST_HOSTS} hosts in '[{ranges}]', expected fewer")
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return numbers
