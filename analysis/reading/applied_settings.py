# SPDX-License-Identifier: Apache-2.0
"""The transports' requested parameters in the papers' units, and the applied ones in the hosts' own."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from roundabout.spec import Transport
from roundabout.store import Run
from roundabout.store.trial_states import counted_trials

TIMER, GAP = "T_us", "cnp_gap_us"


class AppliedParameter(NamedTuple):
    """A transport's parameter as requested (None if the testbed chose it), and as applied on hosts."""

    transport: str
    parameter: str
    requested: float | str | None
    on_hosts: float | str


def applied_parameters(run: Run) -> list[AppliedParameter]:
    """Return each distinct parameter of the trials that count, in their order; empty if nothing was set on hosts."""
    counted = counted_trials(run.trials())
    known = (record for record in run.trials() if record["trial"] in counted)
    return list(dict.fromkeys(each for record in known for each in _of_trial(record)))


def timer_warnings(values: Sequence[AppliedParameter]) -> list[str]:
    """Return a warning if timers T of different lengths elapse equally often in the gap between two CNPs.

    A rate cut restarts T (DCQCN, SIGCOMM'15, section 3). While all packets are marked, each gap brings a CNP, so only
    the number of times that T elapses in a gap matters.
    """
    gaps = [float(each.on_hosts) for each in values if each.parameter == GAP]
    timers = {float(each.on_hosts): each.requested for each in values if each.parameter == TIMER}
    found = []
    for gap in dict.fromkeys(gaps):
        groups: dict[int, list[float]] = defaultdict(list)
        for timer in sorted(timers):
            groups[int(gap // timer)].append(timer)
        for times, same in groups.items():
            if len(same) > 1:
                listed = " and ".join(f"{timers[timer]:g} (on hosts {timer:g} µs)" for timer in same)
                often = "not at all" if times == 0 else "once" if times == 1 else f"{times} times"
                found.append(
                    f"T of {listed} elapse {often} within the {gap:g} µs that hosts leave between two CNPs: while "
                    "all is marked they act alike, and differ only when marks pause."
                )
    return found


def _of_trial(record: dict[str, Any]) -> Iterator[AppliedParameter]:
    jobs = record["spec"]["jobs"].values()
    transports = [Transport.model_validate(job["transport"]) for job in jobs]
    hosts = [job["workers"] for job in jobs]
    for transport, workers in zip(transports, hosts, strict=True):
        reported = record.get("settings", {}).get(workers[0], {}).get("applied", {}).get("transport", {})
        for parameter, value in reported.get(transport.name, {}).items():
            yield AppliedParameter(transport.name, parameter, transport.requested.get(parameter), value)
