# SPDX-License-Identifier: Apache-2.0
"""A testbed that computes: trials are played in the fluid model, and become tables like a measurement's.

Jobs play their profiles without jitter, which the experiment's seed would draw: each trial comes out the same every
time. What would vary is therefore run once, and no interval is claimed.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

from roundabout import fluid
from roundabout.fluid import Course, fluid_jobs, left_by_cross_traffic
from roundabout.plan import PlannedTrial
from roundabout.runner.testbed import Check, Facility, Fidelity, Outcome, Visit
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.store import Attempt, Identity
from roundabout.testbeds.fluid import tables
from roundabout.testbeds.fluid.trace import traced

FIDELITY = Fidelity(
    "computed",
    "computed: fluid model, fair whatever the transport; nothing was measured",
    "Everything on this page was computed: jobs play their profiles, and links are shared like water, by weighted "
    "max-min fairness at every instant. Each trial comes out the same every time, so there are no intervals. What this "
    "cannot show:",
    (
        "transports: every connection gets its fair share whatever it is told, so `unfair` is the same as `fair`",
        "packets: no headers, no queues, no marks, no losses",
        "jitter: phases last exactly as long as profiles say",
        "cross traffic's bursts: it takes its load evenly, and before all jobs",
    ),
)


def facility(_where: Mapping[str, str]) -> "FluidFacility":
    """The model."""
    return FluidFacility()


class FluidFacility(Facility):
    """The model needs nothing and leaves nothing."""

    where: Mapping[str, str] = MappingProxyType({"testbed": "fluid"})
    computes = True

    def opened(self, _topology: Topology, visit: Visit) -> "AbstractContextManager[FluidTestbed]":
        """The model with any topology."""
        return nullcontext(FluidTestbed(visit))

    def checks(self) -> tuple[Check, ...]:
        """Nothing is needed."""
        return (Check("fluid model", True, "needs neither root nor this machine for itself"),)

    def artefacts(self, _transports: Iterable[Transport], /) -> Mapping[str, str]:
        """The model's own files: another model computes something else."""
        folders = {"fluid": Path(fluid.__file__).parent, "testbeds/fluid": Path(__file__).parent}
        files = {f"{name}/{path.name}": path for name, folder in folders.items() for path in folder.glob("*.py")}
        return {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in sorted(files)}


class FluidTestbed:
    """The model at work. It is a Testbed."""

    kind = "fluid"
    scale = 1.0
    fidelity = FIDELITY

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    def identity(self) -> dict[str, Any]:
        """One model is like another; what it is made of is among the artefacts."""
        return {"kind": self.kind}

    def facts(self) -> dict[str, Any]:
        """No hosts, and no clocks but the run's."""
        return {"hosts": {}, "clocks": {}}

    def execute(self, trial: PlannedTrial, _attempt: Attempt, who: Identity) -> Outcome:
        """Compute the trial. A job that cross traffic leaves nothing never ends, which is a fault."""
        start_ns = self._visit.clock.now_ns()
        jobs, left = fluid_jobs(trial.spec), left_by_cross_traffic(trial.spec)
        starved = [name for name, job in jobs.items() if any(left[edge] <= 0 for edge in job.edges)]
        if starved:
            return Outcome({}, [f"cross traffic leaves nothing to {', '.join(starved)}, which never ends"])
        course = Course(list(jobs.values()), left)
        found = traced(trial.spec, course, left)
        for name, workers in zip(jobs, course.iterations, strict=True):
            for number, iteration in enumerate(workers[0], start=1):
                self._visit.observer.iteration(name, number, iteration.end_ms - iteration.start_ms)
        when = tables.When(start_ns, self._visit.clock.offset_ns)
        return Outcome(tables.of_trial(trial.spec, course, found, when, who), record={"start_ns": start_ns})
