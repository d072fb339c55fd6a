# SPDX-License-Identifier: Apache-2.0
"""Small networks of each kind, measured on a CPU, and PyTorch's own buckets.

TRAINING_PYTHON names an interpreter with PyTorch, if not Debian's.
"""

import json
import os
import subprocess

import pytest

from tests.trainers.host import COMPUTING

pytestmark = pytest.mark.unit

PYTHON = os.environ.get("TRAINING_PYTHON", "/usr/bin/python3")
LAYER = {"kind": "layer", "hidden": 64, "heads": 4, "kv_heads": 2, "head": 16, "inner": 96}
EXPERTS = {**LAYER, "experts": 8, "chosen": 2, "common": 1}
LATENT = {"kind": "layer", "hidden": 64, "heads": 4, "head": 16, "latent": {"query": 24, "key_value": 16, "turned": 8}}
SHAPES = {
    "layer": (LAYER, {"tensors": 2}, 64 * (32 + 2 * 16) + 32 * 64 + 3 * 64 * 48 + 2 * 64),
    "experts": (EXPERTS, {"experts": 4}, 64 * (64 + 2 * 32) + 64 * 64 + (2 + 1) * 3 * 64 * 96 + 8 * 64 + 2 * 64),
    "latent": (
        {**LATENT, "inner": 96},
        {},
        64 * (24 + 16 + 8) + 24 + 16 + 24 * 4 * 24 + 16 * 4 * 32 + 64 * 64 + 3 * 64 * 96 + 2 * 64,
    ),
    "gpt": (
        {"kind": "gpt", "words": 50, "places": 16, "hidden": 16, "layers": 1, "heads": 2, "norm_first": True},
        {},
        66 * 16 + 16 * 48 + 48 + 16 * 16 + 16 + 16 * 64 + 64 + 64 * 16 + 16 + 3 * 2 * 16,
    ),
    "dlrm": ({"kind": "dlrm", "tables": 4, "rows": 10, "dim": 4, "bottom": [13, 4], "top": [1]}, {}, 160 + 56 + 15),
}


def case(name: str) -> dict[str, object]:
    shape, share, _ = SHAPES[name]
    return {"set": "small", "model": name, "batch": 1, "input": {"tokens": 8}, "shape": shape, "share": share}


OWN_BUCKETS = """
import random, sys
import torch, torch.distributed
sys.path.append(sys.argv[1])
from computing_buckets import FIRST_BYTES, MAX_BYTES, assign_buckets

random.seed(1)
for _ in range(50):
    numbers = [int(4 ** random.uniform(1, 12)) for _ in range(random.randint(1, 60))]
    tensors = [torch.empty(each, device="meta") for each in numbers]
    limits = [FIRST_BYTES, MAX_BYTES]
    own = torch.distributed._compute_bucket_assignment_by_size(tensors, limits, [False] * len(tensors))[0]
    assert assign_buckets([4 * each for each in numbers]) == own, numbers
"""


LOADS_TORCH = """
import torch
"""


def has_torch() -> bool:
    try:
        return subprocess.run([PYTHON, "-c", LOADS_TORCH], capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module", autouse=True)
def needs_torch():
    if not has_torch():
        pytest.skip(f"{PYTHON} has no PyTorch")


def test_buckets_are_those_that_pytorch_makes():
    done = subprocess.run([PYTHON, "-c", OWN_BUCKETS, COMPUTING], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_small_networks_are_measured_on_a_cpu_and_a_failure_is_a_line(tmp_path):
    broken = {**case("layer"), "model": "broken", "share": {"tensors": 3}}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps([broken, *map(case, SHAPES)]))
    options = ["--device", "cpu", "--precision", "fp32", "--iterations", "5", "--seconds", "0.01", "--revision", "r1"]
    command = [PYTHON, COMPUTING / "measurement.py", plan, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, *reported = map(json.loads, done.stdout.splitlines())
    assert (first["model"], first["revision"]) == ("broken", "r1")
    assert "ValueError: found the share {'tensors': 3}" in first["error"]
    assert {each["model"]: each.get("error") or each["parameters"] for each in reported} == {
        name: parameters for name, (*_, parameters) in SHAPES.items()
    }
    for each in reported:
        in_buckets = each["parameters"] - (160 if each["model"] == "dlrm" else 0)
        assert sum(bucket["bytes"] for bucket in each["buckets"]) == each["gradient_bytes"] == 4 * in_buckets
        assert 0 < each["buckets"][-1]["ready_ms"]["min"] <= each["backward_ms"]["max"]
        assert each["iterations"] == 5
