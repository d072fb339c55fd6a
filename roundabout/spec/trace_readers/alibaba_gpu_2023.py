# SPDX-License-Identifier: Apache-2.0
"""Alibaba's GPU trace of 2023: `openb_pod_list_default.csv`, or another list of its pods.

Source: alibaba/clusterdata, cluster-trace-gpu-v2023, README and tables (Weng et al., USENIX ATC'23). Times are seconds
on the trace's own clock. A pod that shares a GPU (`num_gpu` 1, `gpu_milli` below 1000) counts as one with a GPU.
Pending pods, and only these, have no `scheduled_time`. The lists openb_pod_list_multigpu*.csv have no times and are
refused.
"""

from pathlib import Path

from roundabout.spec.base import Name
from roundabout.spec.trace import SubmittedJob
from roundabout.spec.trace_readers.rows import Row, read_table
from roundabout.spec.trace_readers.values import Seconds, SecondsIfKnown, Whole, elapsed

PENDING = "Pending"  # the phase of a pod that was never scheduled


class PodRow(Row):
    """A row of a list of pods: one pod. Times are seconds."""

    name: Name
    num_gpu: Whole
    pod_phase: str
    creation_time: Seconds
    deletion_time: SecondsIfKnown
    scheduled_time: SecondsIfKnown


def read(path: Path) -> tuple[SubmittedJob, ...]:
    """Return the pods of a list, each as one job. Raises SpecError for the file's first fault."""
    return tuple(
        SubmittedJob(
            name=pod.name,
            at_s=pod.creation_time,
            gpus=pod.num_gpu,
            ran_s=elapsed(pod.creation_time, pod.scheduled_time, pod.deletion_time),
        )
        for pod in read_table(path, PodRow)
        if pod.num_gpu and pod.pod_phase != PENDING
    )
