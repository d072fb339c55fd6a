# SPDX-License-Identifier: Apache-2.0
"""Readers of published traces, one module each. They read the columns as published and raise SpecError for faults."""

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
    """Return the jobs in a trace's file, without jobs that never had a GPU. `folder` is the base of a relative path.

    Raises SpecError, with file, row and column, if the file cannot be read or is invalid.
    """
    return READERS[type(trace)](folder / trace.file)
