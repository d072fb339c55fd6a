# SPDX-License-Identifier: Apache-2.0
"""Alibaba's GPU trace of 2020: `pai_job_table.csv`, and `pai_task_table.csv` beside it.

Source: alibaba/clusterdata, cluster-trace-gpu-v2020 (Weng et al., NSDI'22). The README describes the columns. The
tables have no heading; `.header` files beside them give the columns' order. The `start_time` of a job is its
submission, that of a task its launch. The repository's own analysis (utils.py) treats 0 as an unknown time.
"""

import math
from collections import Counter
from pathlib import Path

from roundabout.spec.base import Name
from roundabout.spec.trace import SubmittedJob
from roundabout.spec.trace_readers.rows import Row, read_table
from roundabout.spec.trace_readers.values import PercentIfKnown, SecondsIfKnown, WholeIfKnown, elapsed

JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK_COLUMNS = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)
WAITING = "Waiting"  # the status of a task that was never launched


class JobRow(Row):
    """A row of pai_job_table.csv."""

    job_name: Name
    start_time: SecondsIfKnown
    end_time: SecondsIfKnown


class TaskRow(Row):
    """A row of pai_task_table.csv: instances of a program. `plan_gpu` is the GPUs of each instance, in percent."""

    job_name: str
    inst_num: WholeIfKnown
    status: str
    start_time: SecondsIfKnown
    plan_gpu: PercentIfKnown

    @property
    def gpus(self) -> int | None:
        """The number of GPUs of all instances, or None if unknown. A share of a GPU counts as one GPU."""
        if not self.plan_gpu or self.status == WAITING:
            return 0
        return None if self.inst_num is None else self.inst_num * math.ceil(self.plan_gpu / 100)


def read(path: Path) -> tuple[SubmittedJob, ...]:
    """Return the jobs of a pai_job_table.csv, with the GPUs from pai_task_table.csv beside it.

    Jobs without a known submission time or number of GPUs are left out. Raises SpecError for the first fault of either
    file.
    """
    unknown: set[str] = set()
    gpus: Counter[str] = Counter()
    began: dict[str, float] = {}
    for task in read_table(path.with_name("pai_task_table.csv"), TaskRow, TASK_COLUMNS):
        if task.gpus is None:
            unknown.add(task.job_name)
        gpus[task.job_name] += task.gpus or 0
        if task.gpus and task.start_time:
            began[task.job_name] = min(task.start_time, began.get(task.job_name, math.inf))
    return tuple(
        SubmittedJob(
            name=job.job_name,
            at_s=job.start_time,
            gpus=gpus[job.job_name],
            ran_s=elapsed(job.start_time, began.get(job.job_name), job.end_time or None),
        )
        for job in read_table(path, JobRow, JOB_COLUMNS)
        if job.start_time and gpus[job.job_name] and job.job_name not in unknown
    )
