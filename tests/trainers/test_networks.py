# SPDX-License-Identifier: Apache-2.0
"""Table 4.2's networks as PyTorch 2 builds them, on its device that only counts: parameters, and a way there and back.

DEEPSPEED_PYTHON names an interpreter that has it.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from roundabout.spec.training.training_spec import read_models
from tests.trainers.host import FOLDER

pytestmark = [pytest.mark.lab, pytest.mark.proof]
PYTHON = os.environ.get("DEEPSPEED_PYTHON", "/opt/torch/bin/python")
COUNT = """
import json, sys
import torch
import training_dlrm, training_networks

def network_of(shape):
    if shape["kind"] == "dlrm":
        return torch.nn.ModuleList([training_dlrm.Tables(shape, 1, 0), training_dlrm.Above(shape, 1)])
    return training_networks.network(shape, None)

def goes_back(shape):
    given, said = training_networks.Examples(shape, 4, seed=1, rank=0).draw()
    with torch.device("meta"):
        network = network_of(shape)
        training_networks.loss_of(network(given.to("meta")), said.to("meta")).backward()
    return all(each.grad is not None for each in network.parameters())

found = {}
for name, shape in json.load(sys.stdin).items():
    with torch.device("meta"):
        parameters = sum(each.numel() for each in network_of(shape).parameters())
    found[name] = parameters, shape["kind"] == "dlrm" or goes_back(shape)
print(json.dumps(found))
"""


@pytest.mark.skipif(not Path(PYTHON).exists(), reason=f"there is no {PYTHON}")
def test_networks_have_the_tables_parameter_counts_all_trainable():
    shapes = json.dumps({name: model.shape for name, model in read_models().items()})
    around = {**os.environ, "PYTHONPATH": str(FOLDER)}
    done = subprocess.run([PYTHON, "-c", COUNT], input=shapes, capture_output=True, text=True, env=around)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: [model.parameters, True] for name, model in read_models().items()}
