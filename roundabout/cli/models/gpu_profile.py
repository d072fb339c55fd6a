# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile --gpu-plan`: what is to be measured of models' computing on a GPU."""

import json


def print_plan() -> None:
    """Print the plan of measurements as JSON, which `trainers/torch/computing/measurement.py` reads."""
    from roundabout.spec.training.computing_plan import plan_cases  # noqa: PLC0415 - `--help` need not wait for it

    print(json.dumps(plan_cases(), indent=1))
