# SPDX-License-Identifier: Apache-2.0
"""SenseTime's Helios traces of 2020: `cluster_log.csv` of Earth, Saturn, Uranus or Venus.

Source: S-Lab-System-Group/HeliosData, README (Hu et al., SC'21), which names the columns and shows rows. Times have no
zone. A job that runs or is suspended when the log ends has no end. The states are Slurm's. Slurm writes no start, or
the end as the start, for a job that was cancelled while it waited.
"""

from pathlib import Path

from roundabout.spec.base import Name
from roundabout.spec.trace import SubmittedJob
from roundabout.spec.trace_readers.rows import Row, read_table
from roundabout.spec.trace_readers.values import Instant, InstantIfKnown, Whole, elapsed

WAITED = ("CANCELLED", "PENDING", "REQUEUED", "DEADLINE", "BOOT_FAIL")  # states that a job can have before it starts


class JobRow(Row):
    """A row of cluster_log.csv: one job."""

    job_id: Name
    gpu_num: Whole
    state: str
    submit_time: Instant
    start_time: InstantIfKnown
    end_time: InstantIfKnown

    @property
    def had_gpus(self) -> bool:
        """Return True if the job requested GPUs and was started."""
        has_no_start = self.start_time is None or self.start_time == self.end_time
        return self.gpu_num > 0 and not (has_no_start and self.state.upper().startswith(WAITED))

    @property
    def submitted(self) -> SubmittedJob:
        """The job that this row describes."""
        ran_s = elapsed(self.submit_time, self.start_time, self.end_time)
        return SubmittedJob(name=self.job_id, at_s=self.submit_time, gpus=self.gpu_num, ran_s=ran_s)


def read(path: Path) -> tuple[SubmittedJob, ...]:
    """Return the jobs of a cluster_log.csv. Raises SpecError for the file's first fault."""
    return tuple(job.submitted for job in read_table(path, JobRow) if job.had_gpus)
