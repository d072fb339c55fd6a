# SPDX-License-Identifier: Apache-2.0
"""What a rack's inventory with `ansible_become: false` changes: documents, refusals, findings and capabilities."""

import json
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from roundabout.core.errors import UsageError
from roundabout.runner.hosts.clocks import RunClock
from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.machine import undo_journal
from roundabout.runner.machine.undo_journal import Entry
from roundabout.runner.session.host_session import open_host_session
from roundabout.runner.testbed import RunContext
from roundabout.spec import TrialSpec, load_profile, load_topology
from roundabout.spec.errors import SpecError
from roundabout.testbeds.rack.examination import SCRIPT, parse, script_arguments
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.ordinary_user import is_needed
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rack import ORDINARY_RDMA, Rack, RackError, common_capabilities
from roundabout.testbeds.rack.variables import server_variables, trial_document
from tests.rack.examined_hosts import add_all, furnish

pytestmark = pytest.mark.unit


@pytest.fixture
def users_inventory(inventory_file: Path) -> Path:
    """The twelve servers as an ordinary user has them."""
    text = inventory_file.read_text()
    given = "gpu: none, ansible_user: alice, ansible_become: false, mtu_bytes: 1500,"
    inventory_file.write_text(text.replace("mtu_bytes: 4200,", given))
    return inventory_file


def trial(transport: dict[str, Any], trainer: dict[str, Any] | None = None, **fields: Any) -> TrialSpec:
    job = {
        "profile": load_profile("vgg19-fig1").model_dump(), "workers": ["s0", "s2"], "transport": transport,
        "trainer": trainer or {"name": "replay"}, "flows": 1, "start_offset_ms": 0.0, "jitter": 0.0,
    }  # fmt: skip
    topology = load_topology("dumbbell-2x2").model_dump(by_alias=True)
    return TrialSpec.model_validate(
        {"topology": topology, "jobs": {"j1": job}, "cross_traffic": {}, "iterations": 1, **fields}
    )


def test_tcp_needs_the_hosts_default_congestion_control(users_inventory: Path) -> None:
    document = trial_document(trial({"name": "reno"}), "s0", read_inventory(users_inventory), rdma=True)
    assert document == {
        "route": {"10.10.0.0/24": {"congctl": "none"}},
        "sysctl": {"net.ipv4.tcp_congestion_control": "reno"},
    }


def test_rdma_needs_the_nics_parameters_alone(users_inventory: Path) -> None:
    spec = trial({"name": "dcqcn", "T_us": 100.0})
    document = trial_document(spec, "s0", read_inventory(users_inventory), rdma=True)
    assert document == {"dcqcn": {"ens1f0np0": {"T_us": 100}}}


def test_all_that_needs_root_is_named_at_once(users_inventory: Path) -> None:
    program = {"name": "program", "command": "iperf3", "pattern": "(?P<gbps>.*) Gbits"}
    spec = trial({"name": "dcqcn"}, program, capture={"hosts": ["s0"]})
    with pytest.raises(UsageError) as refused:
        RackProvider(users_inventory).check_trial(spec)
    assert "capture (tcpdump on s0); jobs.j1.transport (eBPF program dcqcn)" in refused.value.message
    assert refused.value.hint.startswith("--set capture=null --set transport.name=cubic; or")


@pytest.mark.parametrize("trainer", [{"name": "replay"}, {"name": "ddp", "backend": "nccl"}])
def test_jobs_that_may_go_by_rdma_are_not_refused(users_inventory: Path, trainer: dict[str, Any]) -> None:
    RackProvider(users_inventory).check_trial(trial({"name": "dcqcn"}, trainer))


def test_without_rdma_a_transport_that_root_loads_is_refused(users_inventory: Path) -> None:
    spec = trial({"name": "dcqcn"})
    rack = Rack(read_inventory(users_inventory), spec.topology, "run1", frozenset({"own clock"}))
    with pytest.raises(RackError, match="transport dcqcn without RDMA on all hosts"):
        rack.require_rdma(spec.jobs["j1"].transport)
    assert rack.settings_state is None


@pytest.mark.parametrize("changed", [{"kind": "settings"}, {"kind": "transport", "name": "mltcp"}])
def test_changes_by_root_stay_in_the_journal_if_the_inventory_turns_to_an_ordinary_user(
    users_inventory: Path, tmp_path: Path, changed: dict[str, str]
) -> None:
    """As after a crash of a run whose inventory had root."""
    journals, provider = tmp_path / "roundabout/runs", RackProvider(users_inventory)
    journals.mkdir(parents=True)
    pending: list[Entry] = [{**changed, "owner": "run1", "hosts": ["s0", "s1"]}]
    undo_journal.write_entries(journals / "run1.json", "runs/x/run1", pending)
    (failed,) = undo_journal.replay(journals, provider.undo, lambda _line: None)
    assert failed.message == (
        f"run run1: cannot undo the {changed['kind']} of run1 on s0, s1: {users_inventory}: "
        "all.children.rack.vars.ansible_become: found false, expected true, as when that run changed them"
    )
    assert "roundabout rollback INVENTORY --owner run1" in str(failed.hint)
    assert json.loads((journals / "run1.json").read_text())["pending"] == pending


def test_an_ordinary_users_session_registers_no_change(tmp_path: Path) -> None:
    provider, journals = MagicMock(sampler=None, where={}), tmp_path / "roundabout/runs"
    provider.connect = lambda _site, host: LocalConnection(host)
    transports = (trial({"name": "reno"}).jobs["j1"].transport,)
    kinds = {}
    for state in (None, tmp_path):
        site = MagicMock(hosts={"s0": MagicMock()}, settings_state=state, capabilities=frozenset)
        site.name = "run1"
        with undo_journal.open_journal("run1", tmp_path / "run1", journals) as journal:
            context = RunContext("run1", transports, frozenset(), RunClock.start(), MagicMock(), journal)
            with open_host_session(provider, site, context):
                kinds[state] = journal.entry_kinds
    assert kinds == {None: [], tmp_path: ["settings", "transport"]}


def test_settings_are_restored_by_root_alone(users_inventory: Path) -> None:
    provider = RackProvider(users_inventory)
    refused = pytest.raises(UsageError, match="allowed for `provision`, `verify`, `acceptance` and `rollback` is true")
    with refused, provider.inventories("rack"):
        pass
    inventory = read_inventory(users_inventory)
    assert server_variables(inventory, inventory.servers["s0"])["ansible_become"] is False


def test_root_is_no_ordinary_user(users_inventory: Path) -> None:
    users_inventory.write_text(users_inventory.read_text().replace("alice", "root"))
    with pytest.raises(SpecError, match="found root with ansible_become: false, expected an ordinary user"):
        read_inventory(users_inventory)


@pytest.mark.parametrize(("limit", "has_rdma"), [("unlimited", True), ("64", False)])
def test_an_ordinary_users_rdma_needs_memory_to_pin_and_no_debugfs(
    users_inventory: Path, tmp_path: Path, limit: str, has_rdma: bool
) -> None:
    root, tools = tmp_path / "root", tmp_path / "tools"
    furnish(root)
    add_all(tools)
    (root / "sys/kernel/debug/mlx5").rename(root / "sys/kernel/debug/closed")
    inventory = read_inventory(users_inventory)
    words = script_arguments(inventory, inventory.nics["s0"], str(root))
    script = f"ulimit() {{ echo {limit}; }}\nid() {{ echo alice; }}\n{SCRIPT}"
    done = subprocess.run(
        ["/bin/sh", "-s", "--", *words], input=script, capture_output=True, text=True, env={"PATH": str(tools)}
    )
    found = list(parse(done.stdout))
    missing = [each.name for each in found if not each.good and is_needed(each.name)]
    assert missing == ([] if has_rdma else ["RDMA memlock"])
    assert [each.found[:5] for each in found if each.name == "ordinary user"] == ["alice"]
    assert ("rdma" in common_capabilities({"s0": found}, ORDINARY_RDMA)) is has_rdma
    assert "rdma" not in common_capabilities({"s0": found})
