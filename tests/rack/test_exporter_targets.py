# SPDX-License-Identifier: Apache-2.0
"""What is read of a rack's servers: over SSH, as `roundabout provision` deployed it."""

from pathlib import Path

import pytest

from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.provider import RackProvider

pytestmark = pytest.mark.unit

EXAMPLE = Path(__file__).parents[2] / "inventory.example"


def test_every_server_has_an_exporter_and_those_beside_it() -> None:
    inventory = read_inventory(EXAMPLE)
    found = {each.node: each for each in RackProvider(EXAMPLE).exporter_targets()}
    assert found.keys() == inventory.servers.keys()
    for name, each in found.items():
        server = inventory.servers[name]
        (switch,) = set(inventory.ends[server.link]) - {name}
        program, sampler = each.argv[2:4]
        prefix = inventory.common.roundabout_prefix
        assert (program, sampler) == (f"{prefix}/bin/exporter.py", f"{prefix}/bin/sampler")
        assert {"--cpu", "--rdma-devices", server.nic} <= set(each.argv)
        assert each.site == "inventory.example"
        ways = {"link": server.link, "out": f"{name} to {switch}", "in": f"{switch} to {name}"}
        assert each.facts["interfaces"] == {server.nic: ways}
        assert each.facts["beside"] == {"node": 9100, "dcgm": 9400}
        rates = {rate for metric, _, rate in each.facts["series"] if "capacity" in metric}
        assert rates == {inventory.all.vars.rates(server.link).line_rate_gbps * 1e9 / 8}
