# SPDX-License-Identifier: Apache-2.0
"""Variables of the playbooks, computed from an inventory.

They contain settings documents of servers and configurations of switches, by host.
"""

from collections.abc import Iterable
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.tcp import RTO_MIN_MS, wmem
from roundabout.settings.settings_nic import NIC_TRANSPORTS
from roundabout.settings.settings_qos import MLX5_PRIO_TC
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.rack.inventory import Ecn, Inventory, LosslessClasses, Server, ServerNic

ROCE_V2 = "RoCE v2"

NIC_NAMES = {
    "g": "g_code",
    "clamp_target": "clamp_target_rate",
    "clamp_target_after_timer": "clamp_target_rate_after_timer",
}
"""Names that NICs' settings have for parameters of a transport, where they differ (docs/reference/settings.md)."""

FIXED_IN_NICS = ("hyper_by_stage", "alpha_by_timer", "cnp_scope", "retransmission")
"""Parameters of a transport that NICs have no setting for."""

HIGHEST_ALPHA = 1023 / 1024

DEFAULT_CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"

UNDO_AFTER_S = 240
"""Seconds in which a change of a server must be confirmed, without the waits for its link; a guess, for slow logins."""

LINK_WAITS = 4
"""How often settings wait for a NIC's link: after a speed, after PFC, and twice more where a restore writes again."""


def playbook_variables(inventory: Inventory) -> dict[str, Any]:
    """Return an Ansible inventory with the roles' variables by host. Ansible reads it after the user's inventory."""
    servers = {name: server_variables(inventory, server) for name, server in inventory.servers.items()}
    switches = {name: switch_variables(inventory, name) for name in inventory.switches}
    children = {"rack": {"hosts": servers}, "switches": {"hosts": switches}, "testbed": {"hosts": {}}}
    return {"all": {"vars": {"ansible_ssh_common_args": f"-F {inventory.ssh_config}"}, "children": children}}


def server_variables(inventory: Inventory, server: Server) -> dict[str, Any]:
    """Return the Ansible variables of a server, by name."""
    common = inventory.common
    return {
        "ansible_host": server.ansible_host,
        "ansible_user": common.ansible_user,
        "ansible_become": common.ansible_become and common.ansible_user != "root",
        "roundabout_prefix": common.roundabout_prefix,
        "roundabout_state": common.roundabout_state,
        "versions": common.versions,
        "base_clock": common.clock,
        "gpu_policy": common.gpu,
        "nic_driver_wanted": common.driver,
        "training_policy": common.gpu,
        "settings_document": settings_document(inventory, server),
        "settings_compared": _compared_settings(inventory, server),
        "settings_by_nic": {nic.nic: nic_document(inventory, nic) for nic in server.nics},
        "settings_link_timeout_s": common.link_timeout_s,
        "settings_shared_nic": common.shared_nic,
        "settings_undo_after_s": UNDO_AFTER_S + LINK_WAITS * len(server.nics) * common.link_timeout_s,
    }


def _compared_settings(inventory: Inventory, server: Server) -> dict[str, Any]:
    """Return the settings that are compared and never written: the link's speed, unless the inventory sets it.

    Links of an emulated rack are slower than its inventory states, and virtual ones report no speed.
    """
    if inventory.common.set_speed or inventory.all.vars.emulated:
        return {}
    return {"link": {nic.nic: _speed(inventory, nic) for nic in server.nics}}


def switch_variables(inventory: Inventory, name: str) -> dict[str, Any]:
    """Return the Ansible variables of the switch `name`."""
    return {
        "ansible_host": inventory.machine_of(name),
        "ansible_user": inventory.user_of(name),
        "switches_ssh_config": str(inventory.ssh_config),
        "switches_facts": switch_facts(inventory, name),
    }


def settings_document(inventory: Inventory, server: Server) -> dict[str, Any]:
    """Return the document of a server's settings between trials (docs/reference/settings.md)."""
    document: dict[str, Any] = {}
    for nic in server.nics:
        for kind, content in nic_document(inventory, nic).items():
            document.setdefault(kind, {}).update(content)
    return document


def nic_document(inventory: Inventory, nic: ServerNic) -> dict[str, Any]:
    """Return the part of a server's settings that one NIC needs, so that it can be applied when the NIC appears."""
    common, lossless = inventory.common, inventory.all.vars.lossless
    other = "0" if common.pfc_only else "-"
    pfc = ",".join("1" if priority == lossless.priority else other for priority in range(8))
    priorities = {
        f"dscp{lossless.dscp}_prio": lossless.priority,
        f"dscp{lossless.cnp_dscp}_prio": lossless.cnp_priority,
    }
    cable = {} if common.cable_length_m is None else {"cable_length_m": common.cable_length_m}
    ofed = common.driver == "ofed"
    trust = {"trust": "dscp"} if ofed else {}  # with `dcb` it follows from the DSCP entries
    speed = _speed(inventory, nic) if common.set_speed else {}
    link = {"mtu": common.mtu_bytes, **speed, "pause_rx": 0, "pause_tx": 0}
    if common.pfc_prevention_ms is not None:
        link["pfc_prevention_ms"] = common.pfc_prevention_ms
    document: dict[str, Any] = {
        "cpu": {} if common.governor == "leave" else {"governor": common.governor},
        "link": {nic.nic: link},
        "irq": {} if common.irq_cpus is None else {nic.nic: {"cpus": common.irq_cpus}},
        "qos": {
            nic.nic: {
                "dcbx": "os",
                **trust,
                **priorities,
                "prio_tc": MLX5_PRIO_TC,  # a switch's DCBX or a script may have put several priorities into one class
                "tc_schedule": _tc_schedule(lossless),
                "pfc": pfc,
                **(cable if ofed else {}),
            }
        },
        "roce": {nic.nic: _roce(lossless.tos, ofed=ofed)},
        "dcqcn": {nic.nic: _dcqcn(inventory, ofed=ofed)},
        "nv": _nv(inventory, nic),
    }
    return {kind: content for kind, content in document.items() if content}


def _speed(inventory: Inventory, nic: ServerNic) -> dict[str, int]:
    return {"speed_mbps": round(inventory.all.vars.rates(nic.link).line_rate_gbps * 1000)}


def _tc_schedule(lossless: LosslessClasses) -> str:
    """Return the schedule of traffic classes: CNPs before all else, and the lossless class a little above the rest."""
    class_of = [int(each) for each in MLX5_PRIO_TC.split(",")]
    words = ["14"] * 8
    words[class_of[lossless.priority]] = "16"
    words[class_of[lossless.cnp_priority]] = "strict"
    return ",".join(words)


def _roce(tos: int, *, ofed: bool) -> dict[str, Any]:
    traffic_class = {"traffic_class": tos} if ofed else {}
    return {"mode": ROCE_V2, "tos": tos, **traffic_class}


def _dcqcn(inventory: Inventory, *, ofed: bool) -> dict[str, Any]:
    lossless = inventory.all.vars.lossless
    requested = inventory.common.dcqcn.model_dump(exclude_none=True)
    enabled = {f"{side}_enable_prio{lossless.priority}": 1 for side in ("rp", "np")} if ofed else {}
    return {**requested, "cnp_dscp": lossless.cnp_dscp, "cnp_prio": lossless.cnp_priority, **enabled}


def _nv(inventory: Inventory, nic: ServerNic) -> dict[str, Any]:
    if not inventory.common.dcqcn_in_nv_config:
        return {}
    # Without it, ConnectX-6 Dx and later ignore all of them.
    return {nic.nic: {"ROCE_CC_LEGACY_DCQCN": 1, **inventory.common.dcqcn.model_dump(exclude_none=True)}}


def trial_document(trial: TrialSpec, host: str, inventory: Inventory, *, rdma: bool) -> dict[str, Any]:
    """Return the document of a trial's settings on the server `host`.

    It is empty for a server without a part in the trial, which keeps its settings between trials. An ordinary user's
    has what must be found: the host's default congestion control, or by RDMA the NIC's parameters.
    """
    transport = trial.transport_of(host)
    if transport is None:
        return {}
    everywhere = inventory.all.vars
    requested = {name: _whole(value) for name, value in transport.requested.items()}
    by_nic: dict[str, Any] = {}
    if rdma and transport.name in NIC_TRANSPORTS:
        nics = inventory.nics_on(trial.topology, host)
        by_nic[transport.name] = {each.nic.nic: _for_nic(requested) for each in nics}  # the NICs' own
    if by_nic and not inventory.common.ansible_become:
        return by_nic
    sysctl: dict[str, int | str] = {**trial.tcp.sysctls}
    if inventory.common.ansible_become:
        # Sockets get it by the data network's routes, so that SSH and NFS keep their own.
        route: dict[str, int | str] = {"congctl": transport.kernel_name, **trial.tcp.route}
    else:
        route = {"congctl": "none", **trial.tcp.route}
        sysctl[DEFAULT_CONGESTION_CONTROL] = transport.kernel_name
    if trial.topology.hashes_flows:
        sysctl["net.ipv4.tcp_tw_reuse"] = 1  # flows of the next trial have the same source ports
    if everywhere.emulated and transport.stands_for == "TCP":
        sysctl["net.ipv4.tcp_wmem"] = wmem(everywhere.scale / everywhere.dilation)
    if everywhere.dilation != 1:
        route["rto_min_ms"] = round(RTO_MIN_MS * everywhere.dilation)
    document: dict[str, Any] = {"route": dict.fromkeys(data_routes(trial.topology, host, inventory), route)}
    if sysctl:
        document["sysctl"] = sysctl
    if transport.declaration:
        document["transport"] = {transport.name: _host_values(transport)}
    return {**document, **by_nic}


def data_routes(topology: Topology, host: str, inventory: Inventory) -> list[str]:
    """Return the routes by which the NICs of a host reach those of the others, as targets of settings, each once.

    With PXN each NIC reaches those of its own rail alone.
    """
    others = [inventory.nics_on(topology, other) for other in topology.hosts if other != host]
    found: list[str] = []
    for number, own in enumerate(inventory.nics_on(topology, host)):
        rail = slice(number, number + 1) if topology.crosses_nvlink else slice(None)
        found += inventory.data_routes(own.nic, (peer for nics in others for peer in nics[rail]))
    return list(dict.fromkeys(found))


def _host_values(transport: Transport) -> dict[str, float | str]:
    """Return the given parameters as a host's program holds them. Raises RoundaboutError if it cannot hold one."""
    assert transport.declaration
    held: dict[str, float | str] = {}
    declared = {each.name: each for each in transport.declaration.parameters}
    for name, value in transport.requested.items():
        if declared[name].chosen_by == "nic":
            continue
        try:
            held[name] = value if isinstance(value, str) else declared[name].host_value(value)
        except ValueError as error:
            raise RoundaboutError(f"{transport.name}.{name}: found {value:g}; allowed is {error}") from None
    return held


def _for_nic(requested: dict[str, float | str]) -> dict[str, float | str]:
    """Return a transport's parameters by the names of NICs, which keep a code for g, of 1024.

    The code is contested. By NVIDIA's DOC-2790, version 19, the code is 1 - g: alpha becomes code/1024 of itself, plus
    1 - code/1024 after a CNP; so the default of 1019 is g = 1/205, near the paper's 1/256, and this is done here. By
    the database of mlxconfig (mstflint 4.36) alpha = g + (1 - g) * alpha after a CNP, with the code for g itself.
    """
    found = {NIC_NAMES.get(name, name): value for name, value in requested.items() if name not in FIXED_IN_NICS}
    if "g" in requested:
        found["g_code"] = _code(requested["g"])
    if found.pop("alpha_initial", 0):  # 0 leaves a NIC its own
        found["alpha_initial"] = min(float(requested["alpha_initial"]), HIGHEST_ALPHA)
    return found


def _code(g: float | str) -> int:
    return 1024 - round(float(g) * 1024)


def _whole(value: float | str) -> float | str:
    """Return a whole number, because NICs refuse others."""
    return value if isinstance(value, str) or value != int(value) else int(value)


def deployment(inventory: Inventory, hosts: Iterable[str]) -> dict[str, Any]:
    """Return an Ansible inventory with which `site.yml` only updates programs on these hosts."""
    ours = ("ansible_host", "ansible_user", "ansible_become", "roundabout_prefix", "roundabout_state")
    every = playbook_variables(inventory)["all"]
    servers = every["children"]["rack"]["hosts"]
    testbed = {host: {name: servers[host][name] for name in ours} for host in hosts}
    groups = {"rack": {"hosts": {}}, "switches": {"hosts": {}}, "testbed": {"hosts": testbed}}
    return {"all": {"vars": every["vars"], "children": groups}}


def switch_facts(inventory: Inventory, name: str) -> dict[str, Any]:
    """Return the configuration of one switch: ports with rates, classes, and thresholds in its system's units.

    Of an unmanaged switch it has the system only.
    """
    switch, common = inventory.switches[name], inventory.all.children.switches.vars
    if inventory.system_of(name) == "unmanaged":
        return {"system": "unmanaged"}
    ecn = inventory.ecn_of(name)
    assert ecn  # the inventory requires it for managed switches
    ports = []
    for link, port in switch.ports.items():
        rate_gbps = inventory.all.vars.rates(link).line_rate_gbps
        # The ports of an emulated rack are slower than its inventory states, so their speed is not compared.
        compared = {"speed_gbps": 0 if inventory.all.vars.emulated else rate_gbps}
        ports.append({"port": port, "link": link, "line_rate_gbps": rate_gbps, **compared})
    return {
        "system": inventory.system_of(name),
        "apply_on": switch.apply_on.model_dump() if switch.apply_on else None,
        "confirm_minutes": common.confirm_minutes,
        "ports": ports,
        "mtu_bytes": inventory.common.mtu_bytes,
        "lossless": inventory.all.vars.lossless.model_dump(),
        "ecn": {**ecn.model_dump(exclude_none=True), **_thresholds(ecn)},
        "pfc": common.pfc is not False,
        "pfc_watchdog": common.pfc_watchdog is True,
        "routing_engines": common.routing_engines or 1,
        **({} if common.cable_length_m is None else {"cable_length_m": common.cable_length_m}),
    }


def _thresholds(ecn: Ecn) -> dict[str, int]:
    """Return the thresholds in bytes, and for Junos in percent of a queue."""
    cells = {"Kmin": ecn.Kmin_cells, "Kmax": ecn.Kmax_cells}
    found = {f"{name}_bytes": count * ecn.cell_bytes for name, count in cells.items()}
    if ecn.queue_cells is None:
        return found
    percent = {f"{name}_percent": round(100 * count / ecn.queue_cells) for name, count in cells.items()}
    return {**found, "queue_bytes": ecn.queue_cells * ecn.cell_bytes, **percent}
