# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile gpu-plan`: the plan of measurements on a GPU."""

import json


def gpu_plan() -> None:
    """Print the plan of measurements on a GPU as JSON, which trainers/torch/computing/measurement.py reads."""
    from roundabout.spec.training.computing_plan import plan_cases  # noqa: PLC0415 - `--help` need not wait for it

    print(json.dumps(plan_cases(), indent=1))
