# SPDX-License-Identifier: Apache-2.0
"""A trainer's search for the connections that its framework made."""

import os

import pytest

from tests.trainers.host import load

pytestmark = pytest.mark.unit

flows = load("training_flows")


def test_looking_for_connections_leaves_no_descriptor_open(tmp_path):
    with (tmp_path / "file").open("w"):
        before = sorted(os.listdir("/proc/self/fd"))
        flows.Flows([{"address": "192.0.2.1", "port": 1}, {"address": "192.0.2.2", "port": 2}], 0).close()
        assert sorted(os.listdir("/proc/self/fd")) == before
