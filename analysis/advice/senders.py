# SPDX-License-Identifier: Apache-2.0
"""The hosts that send for each job: a YAML file, or Slurm's list of jobs."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from roundabout.spec.errors import quote_value
from roundabout.spec.reader import json_source
from roundabout.spec.reader.json_source import Location
from roundabout.spec.reader.yaml_source import Content, load_yaml

Senders = Mapping[str, tuple[str, ...]]
"""Hosts that send for each job, by the job's name."""

SLURM = "as `squeue --json` has it"
LIST_PART = re.compile(r"([^\s\[\],]|\[[^\[\]]+\])+")
RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
MAX_HOSTS = 10_000
MAX_YAML_BYTES = 1_000_000  # largest file of YAML: reading that much takes ten seconds
MAX_JSON_BYTES = 1 << 30  # largest file of JSON: `squeue --json` writes 10 kB for each job
RUNNING = "RUNNING"


class JobList(NamedTuple):
    """The hosts that send for each job, and notes on what the list says of the jobs."""

    senders: Senders
    notes: tuple[str, ...] = ()


def read_senders(path: Path) -> JobList:
    """Return the hosts of each job in a file.

    The file is YAML (`j1: [s0, s2]`, or `j1: node[01-03]` as Slurm writes hosts) or the output of `squeue --json`, of
    which the running jobs count, called `<name>-<id>`. The components of a heterogeneous job are one job.

    Raises SpecError.
    """
    is_json = path.suffix.lower() == ".json"
    content = json_source.read(path, MAX_JSON_BYTES) if is_json else load_yaml(path, MAX_YAML_BYTES, all_text=True)
    jobs = content.root
    if not isinstance(jobs, Mapping):
        raise content.error((), quote_value(jobs), "hosts by job, as in j1: [n1, n2]")
    listed = jobs.get("jobs")
    if isinstance(listed, list) and not (listed and all(isinstance(each, str) for each in listed)):
        senders, notes = _parse_slurm(content, listed)
    else:
        notes = ()
        senders = {job: _hosts(content, (job,), hosts) for job, hosts in jobs.items()}
    if not senders:
        raise content.error((), "no job that runs", "one at least")
    for name in (*senders, *itertools.chain(*senders.values())):
        if not name or not name.isprintable():
            raise content.error((), f"the name {quote_value(name)}", "names of letters, digits and signs")
    return JobList(senders, notes)


def shared_hosts(senders: Senders) -> dict[str, str]:
    """Return, by job, why its bytes cannot be distinguished from another job's: both use the same sending host."""
    reasons: dict[str, str] = {}
    for one, other in itertools.combinations(senders, 2):
        if both := sorted({*senders[one]} & {*senders[other]}):
            for job, beside in ((one, other), (other, one)):
                reasons.setdefault(job, f"cannot be separated from {beside}: host {both[0]} sends for both")
    return reasons


def _parse_slurm(content: Content, jobs: list[Any]) -> JobList:
    """Return the running jobs with hosts of `squeue --json` (since Slurm 21.08 `nodes` is a list of hosts as text)."""
    senders: dict[str, tuple[str, ...]] = {}
    components: dict[int, str] = {}
    left_out: Counter[str] = Counter()
    notes: list[str] = []
    for place, job in enumerate(jobs):
        where: Location = ("jobs", place)
        if not isinstance(job, Mapping):
            raise content.error(where, quote_value(job), f"a mapping, {SLURM}")
        states = _states(content, where, job)
        if RUNNING not in states or job.get("nodes", "") in (None, "", []):
            left_out[", ".join(states) + (" without nodes" if RUNNING in states else "")] += 1
            continue
        leader = _leader(job)
        name = components.get(leader) or _name(content, where, job)
        if name in senders and name not in components.values():
            raise content.error(where, f"the job {name} a second time", "each job once")
        if leader:
            components[leader] = name
        hosts = _hosts(content, (*where, "nodes"), job["nodes"])
        senders[name] = tuple(dict.fromkeys((*senders.get(name, ()), *hosts)))
        if len(states) > 1:
            notes.append(f"{name}: its state is {', '.join(states)}")
    if left_out:
        counted = "; ".join(f"{count} {states}" for states, count in left_out.most_common(5))
        notes.append(f"jobs of the list that are left out: {counted}")
    return JobList(senders, tuple(notes))


def _states(content: Content, where: Location, job: Mapping[str, Any]) -> Sequence[str]:
    states = job.get("job_state")
    found = [states] if isinstance(states, str) else states
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise content.error((*where, "job_state"), quote_value(states), f"a state or a list of them, {SLURM}")
    return found


def _leader(job: Mapping[str, Any]) -> int:
    """Return the number of the heterogeneous job that a job is a component of; 0 if it is none."""
    found = job.get("het_job_id")
    number = found.get("number") if isinstance(found, Mapping) and found.get("set", True) else found
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


def _name(content: Content, where: Location, job: Mapping[str, Any]) -> str:
    name, number = job.get("name"), job.get("job_id")
    if not isinstance(name, str):
        raise content.error((*where, "name"), quote_value(name), f"text, {SLURM}")
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise content.error((*where, "job_id"), quote_value(number), f"a number, {SLURM}")
    return f"{name}-{number}"


def _hosts(content: Content, where: Location, found: Any) -> tuple[str, ...]:
    parts = found if isinstance(found, list) and found else [found]
    for each in parts:
        if not isinstance(each, str) or not each:
            raise content.error(where, quote_value(each), "names of hosts, as in [n1, n2] or node[01-03]")
    try:
        hosts = tuple(host for part in parts for host in expand_hosts(part))
    except HostsError as error:
        raise content.error(where, error.found, error.expected) from None
    if len(hosts) > MAX_HOSTS:
        raise content.error(where, f"{len(hosts)} hosts", f"{MAX_HOSTS} at most")
    return tuple(dict.fromkeys(hosts))


class HostsError(Exception):
    """A list of hosts that is not in Slurm's form."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found)
        self.found = found
        self.expected = expected


def expand_hosts(hosts: str) -> list[str]:
    """Return the hosts of Slurm's list `a[1-3,07],b`, as `scontrol show hostnames` does. Raises HostsError."""
    found: list[str] = []
    for part in re.split(r",(?![^\[]*\])", hosts):
        if not LIST_PART.fullmatch(part.strip()):
            raise HostsError(quote_value(hosts), "hosts as in node[01-03,07]")
        pieces = re.split(r"[\[\]]", part.strip())
        choices = [_numbers(piece) if place % 2 else [piece] for place, piece in enumerate(pieces)]
        if len(found) + math.prod(map(len, choices)) > MAX_HOSTS:
            raise HostsError(f"more than {MAX_HOSTS} hosts in {quote_value(hosts)}", "fewer")
        found += ["".join(each) for each in itertools.product(*choices)]
    return found


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for each in ranges.split(","):
        if not (match := RANGE.fullmatch(each)):
            raise HostsError(f"'[{ranges[:40]}]'", "numbers as in [01-03,07]")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise HostsError(f"'[{ranges[:40]}]'", "numbers that rise, as in [01-03,07]")
        if int(last) - int(first) >= MAX_HOSTS:
            raise HostsError(f"more than {MAX_HOSTS} hosts in '[{ranges[:40]}]'", "fewer")
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return numbers
