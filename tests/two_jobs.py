# SPDX-License-Identifier: Apache-2.0
"""An experiment of two VGG19 jobs that share a link."""

from typing import Any


def two_jobs(iterations: int) -> dict[str, Any]:
    """Return the fields of the experiment, whose link is L1."""
    return {
        "name": "two",
        "about": "Two jobs, for a moment",
        "topology": "dumbbell-2x2",
        "jobs": {
            "j1": {"profile": "vgg19-1400", "workers": ["s0", "s2"]},
            "j2": {"profile": "vgg19-1400", "workers": ["s1", "s3"]},
        },
        "iterations": iterations,
        "transport": {"name": "dcqcn"},
    }
