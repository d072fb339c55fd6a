# SPDX-License-Identifier: Apache-2.0
"""Shanghai AI Laboratory's Acme traces of 2023: `trace_seren.csv` and `trace_kalos.csv`.

Source: InternLM/AcmeTrace, README (Hu et al., NSDI'24), which names the columns and shows rows. Times have a zone:
+08:00 in Seren, +00:00 in Kalos. The README calls `duration` the time from start to end. In its rows of Kalos it is the
time from submission to end, so the column is not read. A job that runs when the log ends has no end.
"""

from pathlib import Path

from roundabout.spec.trace import SubmittedJob
from roundabout.spec.trace_readers import helios
from roundabout.spec.trace_readers.rows import read_table
from roundabout.spec.trace_readers.values import ZonedInstant, ZonedInstantIfKnown


class JobRow(helios.JobRow):
    """A row of either file. It has the columns of the Helios table, but its times have a zone."""

    submit_time: ZonedInstant
    start_time: ZonedInstantIfKnown
    end_time: ZonedInstantIfKnown


def read(path: Path) -> tuple[SubmittedJob, ...]:
    """Return the jobs of a trace_seren.csv or trace_kalos.csv. Raises SpecError for the file's first fault."""
    return tuple(job.submitted for job in read_table(path, JobRow) if job.had_gpus)
