# SPDX-License-Identifier: Apache-2.0
"""Shanghai AI Laboratory's Acme traces of 2023: `trace_seren.csv` and `trace_kalos.csv`.

Source: InternLM/AcmeTrace, README (Hu et al., NSDI'24), which names the columns and shows rows. Times have a zone:
+08:00 in Seren, +00:00 in Kalos. The README calls `duration` the time from start to end. In its rows of Kalos it is the
time from submission to end, so that the column is not read. A job that runs when the log ends has no end.
"""

from pathlib import Path

from roundabout.spec.base import Name
from roundabout.spec.recorded.rows import Row, table
from roundabout.spec.recorded.values import Whole, ZonedInstant, ZonedInstantIfKnown, elapsed
from roundabout.spec.trace import Submitted


class JobRow(Row):
    """A row of either file."""

    job_id: Name
    gpu_num: Whole
    submit_time: ZonedInstant
    start_time: ZonedInstantIfKnown
    end_time: ZonedInstantIfKnown


def read(path: Path) -> tuple[Submitted, ...]:
    """Return the jobs of a trace_seren.csv or a trace_kalos.csv. Raises SpecError for the first thing wrong with it."""
    return tuple(
        Submitted(
            name=job.job_id,
            at_s=job.submit_time,
            gpus=job.gpu_num,
            ran_s=elapsed(job.submit_time, job.start_time, job.end_time),
        )
        for job in table(path, JobRow)
        if job.gpu_num
    )
