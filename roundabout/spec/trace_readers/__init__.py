# SPDX-License-Identifier: Apache-2.0
"""Real traces that a user brings: one file each, which reads columns as published. Faults raise SpecError."""

from collections.abc import Callable
from pathlib import Path

from roundabout.spec.trace import (
    Acme,
    AlibabaGpu2020,
    AlibabaGpu2023,
    Helios,
    Lingjun,
    Philly,
    RecordedTrace,
    SubmittedJob,
)
from roundabout.spec.trace_readers import acme, alibaba_gpu_2020, alibaba_gpu_2023, helios, lingjun, philly

READERS: dict[type[RecordedTrace], Callable[[Path], tuple[SubmittedJob, ...]]] = {
    Philly: philly.read,
    Lingjun: lingjun.read,
    Helios: helios.read,
    Acme: acme.read,
    AlibabaGpu2020: alibaba_gpu_2020.read,
    AlibabaGpu2023: alibaba_gpu_2023.read,
}


def read_trace(trace: RecordedTrace, folder: Path = Path()) -> tuple[SubmittedJob, ...]:
    """Return the jobs in a trace's file, which is named relative to `folder`, without those that never had a GPU.

    Raises SpecError for a file that cannot be read: the file, row and column, what was found and expected.
    """
    return READERS[type(trace)](folder / trace.file)
