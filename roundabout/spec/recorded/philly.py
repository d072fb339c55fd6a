# SPDX-License-Identifier: Apache-2.0
"""Microsoft's Philly trace: `cluster_job_log`, a JSON list of jobs.

Source: msr-fiddle/philly-traces, README (Jeon et al., USENIX ATC'19). A job has as many GPUs as its first attempt had,
and ran for as long as all attempts did whose start and end are known.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from roundabout.spec.base import Name
from roundabout.spec.recorded.rows import Row, complaint, content, instant
from roundabout.spec.trace import Submitted

FORMAT = "%Y-%m-%d %H:%M:%S"
At = BeforeValidator(instant(FORMAT))


class Server(Row):
    """What an attempt had of a server."""

    gpus: list[str]


class Attempt(Row):
    """A job's time on some GPUs."""

    start_time: Annotated[float | None, At] = None
    end_time: Annotated[float | None, At] = None
    detail: list[Server]

    @property
    def ran_s(self) -> float | None:
        """How long it took, where that is known."""
        if self.start_time is None or self.end_time is None or self.end_time < self.start_time:
            return None
        return self.end_time - self.start_time


class Logged(Row):
    """A job of the log."""

    jobid: Name
    submitted_time: Annotated[float, BeforeValidator(instant(FORMAT, needed=True))]
    attempts: list[Attempt]

    @property
    def gpus(self) -> int:
        """How many it had; none where it was never tried."""
        return sum(len(server.gpus) for attempt in self.attempts[:1] for server in attempt.detail)

    @property
    def ran_s(self) -> float | None:
        """How long it ran, where that is known."""
        known = [attempt.ran_s for attempt in self.attempts if attempt.ran_s is not None]
        return sum(known) if known else None


def read(path: Path) -> tuple[Submitted, ...]:
    """The jobs of a `cluster_job_log`. Raises SpecError for the first thing wrong with it."""
    try:
        logged = TypeAdapter(list[Logged]).validate_json(content(path))
    except ValidationError as error:
        raise complaint(path, error) from None
    return tuple(
        Submitted(name=job.jobid, at_s=job.submitted_time, gpus=job.gpus, ran_s=job.ran_s) for job in logged if job.gpus
    )
