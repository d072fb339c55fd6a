# SPDX-License-Identifier: Apache-2.0
"""Model of a treatment: the fields that define one trial, as declared."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from roundabout.spec.base import Name, NotNegative, Positive, Strict, Tuple
from roundabout.spec.capture import Capture
from roundabout.spec.cassini import Cassini
from roundabout.spec.cluster import Cluster
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.spec.delays import Delays
from roundabout.spec.job import Iterations, Job
from roundabout.spec.link_events import LinkEvent
from roundabout.spec.priority_queues import MAX_QUEUES, Queues, WeightedQueues
from roundabout.spec.profile import ProfileScaling
from roundabout.spec.routing import Routing
from roundabout.spec.tcp import Tcp
from roundabout.spec.transports import Transport
from roundabout.spec.transports.queues import RED_WEIGHT, QueueName

RedWeight = Annotated[float, Field(gt=0, le=1)]
ErrorShare = Annotated[float, Field(gt=0, lt=1)]


class Treatment(Strict):
    """The fields that define one trial and that overlays may change. Profiles and topology are still names."""

    topology: Name = Field(description="name of the topology")
    line_rate_gbps: Positive | None = Field(
        default=None, description="replaces the topology's line rate; the payload rate scales with it by default"
    )
    payload_rate_gbps: Positive | None = Field(default=None, description="replaces the topology's payload rate")
    delays: Delays | None = Field(default=None, description="replaces those of the topology's delays that it has")
    routing: Routing | None = Field(default=None, description="replaces the topology's routing")
    profile: Name | None = Field(default=None, description="profile of every job without its own")
    resized: ProfileScaling | None = Field(default=None, description="factors of every job's profile")
    jobs: Annotated[dict[Name, Job], Field(min_length=1)] = Field(description="jobs of the trial, by name")
    cluster: Cluster | None = Field(default=None, description="trace of jobs and their scheduler, in place of `jobs`")
    cross_traffic: dict[Name, CrossTraffic] = Field(
        default={}, description="traffic of no job, which starts before the jobs"
    )
    events: Tuple[LinkEvent] = Field(
        default=(), description="failures, recoveries, losses and lower rates of links at given instants"
    )
    reroute_after_ms: NotNegative | None = Field(
        default=None, description="time from a link's failure or recovery until routes follow it; default: routes stay"
    )
    load_gbps: Annotated[float, Field(ge=0, le=1e4)] | None = Field(
        default=None, description="load of all cross traffic without its own"
    )
    iterations: Iterations = Field(description="iterations of each job")
    transport: Transport | None = Field(
        default=None, description="transport of every job; a job's own is merged into it"
    )
    tcp: Tcp = Field(default=Tcp(), description="TCP settings of all hosts")
    queue: Literal[QueueName, "auto"] = Field(
        default="thresholds",
        description="kind of queue at switch ports; `auto`: the kind that the transports in use declare",
    )
    priority_queues: Queues = Field(
        default=MAX_QUEUES, description="priority queues of a port; lower priorities share the last"
    )
    dwrr: WeightedQueues | None = Field(
        default=None, description="weights of the lowest priority queues; default: higher priorities come first"
    )
    red_weight: RedWeight | None = Field(
        default=None, description=f"weight of a packet in the average of `queue: red`; default: {RED_WEIGHT}"
    )
    skip_within: ErrorShare | None = Field(
        default=None,
        description="share by which mean iteration times may change because `packets` skips iterations of jobs in a "
        "steady state; default: every iteration is played",
    )
    one_job_at_a_time: bool = Field(
        default=False, description="whether each job is a trial of its own, without the others"
    )
    cassini: Cassini | None = Field(
        default=None, description="Cassini: shifts jobs in time so that their demands interleave"
    )
    depends_on: Tuple[Name] = Field(default=(), description="variants whose trials must run before")
    capture: Capture | None = Field(default=None, description="hosts whose packets are captured")

    @model_validator(mode="after")
    def _only_who_meets_is_shifted(self) -> Self:
        if self.cassini and self.one_job_at_a_time:
            raise ValueError("either cassini or one_job_at_a_time: a job that runs alone needs no time shift")
        unknown = [name for name in (self.cassini.timetables if self.cassini else ()) if name not in self.jobs]
        if unknown:
            raise ValueError(f"timetables of jobs that there are: there is no {unknown[0]}")
        return self


class ClusterTreatment(Treatment):
    """A treatment whose jobs come from a cluster's trace."""

    cluster: Cluster
    jobs: dict[Name, Job] = Field(default={}, description="must be empty: the trace gives the jobs")
    iterations: Iterations = Field(default=1, description="unused: the trace gives each job's iterations")

    @model_validator(mode="after")
    def _jobs_of_the_trace_alone(self) -> Self:
        others = {
            "events": self.events,
            "jobs": self.jobs,
            "one_job_at_a_time": self.one_job_at_a_time,
            "cassini": self.cassini,
        }
        for field, found in others.items():
            if found:
                expected = "cluster alone: its jobs come by its trace, on intact links, and Cassini is a part of it"
                fault = {"location": (field,), "found": f"{field} beside cluster", "expected": expected, "hint": None}
                raise PydanticCustomError("located", "{expected}", fault)
        return self
