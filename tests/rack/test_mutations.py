# SPDX-License-Identifier: Apache-2.0
"""Hundreds of spoilt inventories: each is read, or refused with one message that names the file."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from roundabout.spec import SpecError
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.variables import playbook_variables
from tests.mutations import Mistakes, assert_one_message, spoilt_bytes
from tests.rack.conftest import examples

pytestmark = pytest.mark.unit

MISTAKES = Mistakes(
    ["", "all", "vars", "hosts", "s0", "s9", "tor0", "L1", "nic", "link", "inbox", "T_us", "-oProxyCommand=x",
     "{{ x }}", "10.10.0.1/24", "0.0.0.0/0", "fe80::1/64", "yes", "1", "~", "a/b", "ü", "\0", "ansible_become_password"]
)  # fmt: skip
UNHURRIED = settings(max_examples=150)
KEPT = ("s0", "s2", "L1")  # a small inventory has all that a large one has


def small() -> dict[str, Any]:
    """Two servers and two switches of the inventory."""
    tree: dict[str, Any] = yaml.safe_load(examples()["twelve"])
    groups = tree["all"]["children"]
    groups["rack"]["hosts"] = {name: each for name, each in groups["rack"]["hosts"].items() if name in KEPT}
    for switch in groups["switches"]["hosts"].values():
        switch["ports"] = {link: port for link, port in switch["ports"].items() if link in KEPT}
    return tree


WHOLE = small()
CONTENT = yaml.safe_dump(WHOLE).encode()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inventory as it is before any spoiling: accepted."""
    path = tmp_path_factory.mktemp("rack") / "spoilt"
    path.write_bytes(CONTENT)
    assert len(read_inventory(path).servers) == 2
    return path


def check(path: Path, content: bytes) -> None:
    """Fails on anything but an inventory that playbooks can use, or one message."""
    path.write_bytes(content)
    refusal = None
    try:
        json.dumps(playbook_variables(read_inventory(path)), allow_nan=False)
    except SpecError as error:
        refusal = error
    if refusal:
        assert refusal.message.startswith(str(path))
        assert_one_message(refusal, str(path))


@UNHURRIED
@given(data=st.data())
def test_an_inventory_with_spoilt_values_is_read_or_refused(path: Path, data: st.DataObject) -> None:
    check(path, MISTAKES.spoilt(deepcopy(WHOLE), data.draw))


@pytest.mark.proof
@UNHURRIED
@given(data=st.data())
def test_an_inventory_with_spoilt_bytes_is_read_or_refused(path: Path, data: st.DataObject) -> None:
    check(path, spoilt_bytes(CONTENT, data.draw))
