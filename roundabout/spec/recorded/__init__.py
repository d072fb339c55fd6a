# SPDX-License-Identifier: Apache-2.0
"""Real traces that a user brings: one file each, which reads columns as published. What is wrong raises SpecError."""

from pathlib import Path

from roundabout.spec.recorded import lingjun, philly
from roundabout.spec.trace import Lingjun, Philly, Submitted


def submitted(trace: Philly | Lingjun, folder: Path = Path()) -> tuple[Submitted, ...]:
    """The jobs in a trace's file, which is named relative to `folder`; those that never had a GPU are left out.

    Raises SpecError for a file that cannot be read: the file, row and column, what was found and expected.
    """
    read = philly.read if isinstance(trace, Philly) else lingjun.read
    return read(folder / trace.file)
