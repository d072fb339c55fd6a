# SPDX-License-Identifier: Apache-2.0
"""What an inventory becomes: settings documents that settings.py takes, and what switches are told, as golden files."""

import json
from pathlib import Path

from roundabout.settings.settings import flatten
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.variables import playbook_variables, settings_document


def test_every_document_is_one_that_settings_takes(testbed_of_a_paper: tuple[str, Path]) -> None:
    inventory = read_inventory(testbed_of_a_paper[1])
    for server in inventory.servers.values():
        document = settings_document(inventory, server)
        flatten(document)
        assert document["roce"][server.nic]["tos"] == 106
        assert document["qos"][server.nic]["pfc"] == "0,0,0,1,0,0,0,0"
        assert document["dcqcn"][server.nic]["T_us"] == 125


def test_ofed_and_inbox_are_told_what_they_have(testbed_of_a_paper: tuple[str, Path]) -> None:
    inventory = read_inventory(testbed_of_a_paper[1])
    document = settings_document(inventory, inventory.servers["s0"])
    ofed = inventory.common.driver == "ofed"
    assert ("rp_enable_prio3" in document["dcqcn"]["ens1f0np0"]) == ofed
    assert ("traffic_class" in document["roce"]["ens1f0np0"]) == ofed
    assert ("dcbx" in document["qos"]["ens1f0np0"]) == ofed
    assert document["link"]["ens1f0np0"]["speed_mbps"] == (25000 if testbed_of_a_paper[0] == "four" else 50000)


def test_nv_config_only_on_request(inventory_file: Path) -> None:
    text = inventory_file.read_text()
    unasked = read_inventory(inventory_file)
    assert "nv" not in settings_document(unasked, unasked.servers["s0"])
    inventory_file.write_text(text.replace("driver: inbox", "driver: inbox, dcqcn_in_nv_config: true"))
    asked = read_inventory(inventory_file)
    assert settings_document(asked, asked.servers["s0"])["nv"] == {"ens1f0np0": {"T_us": 125}}


def test_variables_hold_no_secrets_and_are_json(inventory_file: Path) -> None:
    text = json.dumps(playbook_variables(read_inventory(inventory_file)))
    assert "pass" not in text
    assert json.loads(text)["all"]["children"]["rack"]["hosts"]["s0"]["ansible_host"] == "gpu0.example.org"
