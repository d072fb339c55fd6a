# SPDX-License-Identifier: Apache-2.0
"""What a fake switch remembers: one JSON file, read and written by each of its programs."""

import json
from pathlib import Path
from typing import Any

PORTS = {"1/0": 128, "1/1": 129}
LINK = {
    "SPEED": "BF_SPEED_50G",
    "TX_MTU": 9216,
    "RX_MTU": 9216,
    "FEC": "BF_FEC_TYP_NONE",
    "AUTO_NEGOTIATION": "PM_AN_DEFAULT",
}
# As each switch is before Roundabout has met it. Constructed: settings of its owner, some of them in our way.
FACTORY: dict[str, Any] = {
    "junos": {
        "platform": "qfx5120-48y",
        "release": "21.4R3-S5.4",
        "running": [
            "groups SITE system ntp server 10.0.0.9",
            "apply-groups SITE",
            "system host-name tor",
            "class-of-service forwarding-classes class VOICE queue-num 5",
        ],
        "commits": ["via cli"],
        # As many as rack-in-vms has guests at most.
        "interfaces": {f"et-0/0/{number}": {"mtu": 9216, "speed": "50Gbps"} for number in range(8)},
    },
    "sonic": {
        "release": "202311.553318-0a1b2c3d4",
        # As `config qos reload` leaves it, but for the owner's PFC on priority 5 of the first port, and fewer maps.
        "running": {
            "DEVICE_METADATA": {"localhost": {"hostname": "tor", "platform": "x86_64-mlnx_msn2700-r0"}},
            "PORT": {
                port: {"speed": "50000", "admin_status": "up", "mtu": "9100", "fec": "rs"}
                for port in ("Ethernet0", "Ethernet4")
            },
            "BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "12766208"}},
            "BUFFER_PROFILE": {
                "pg_lossless_50000_40m_profile": {"pool": "ingress_lossless_pool", "xon": "19456", "xoff": "16384"}
            },
            "BUFFER_PG": {"Ethernet0|5": {"profile": "pg_lossless_50000_40m_profile"}},
            "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m", "Ethernet4": "40m"}},
            "TC_TO_QUEUE_MAP": {"AZURE": {str(number): str(number) for number in range(8)}},
            "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "5", "tc_to_queue_map": "AZURE"}},
            "SCHEDULER": {"scheduler.0": {"type": "DWRR", "weight": "14"}},
            "QUEUE": {"Ethernet0|3": {"scheduler": "scheduler.0"}},
        },
        "timers": {},
    },
    "tofino": {
        "release": "9.13.4-404",
        "running": {
            "roundabout.pipe.Egress.ecn_min_cells": {"0": {"f1": [0, 0]}},
            "roundabout.pipe.Egress.ecn_max_cells": {"0": {"f1": [0, 0]}},
            "port.port_hdl_info": {port.replace("/", ","): {"DEV_PORT": number} for port, number in PORTS.items()},
            # The owner has PFC for priority 5 on the second port, and a group for our priority there.
            "port.port": {
                "128": {"TX_PFC_EN_MAP": 0, "RX_PFC_EN_MAP": 0} | LINK,
                "129": {"TX_PFC_EN_MAP": 0x20, "RX_PFC_EN_MAP": 0x20} | LINK,
            },
            "tf1.tm.port.flowcontrol": {
                "128": {"mode_tx": "NONE", "mode_rx": "PFC", "cos_to_icos": list(range(8))},
                "129": {"mode_tx": "PFC", "mode_rx": "PFC", "cos_to_icos": [0, 1, 2, 0, 4, 5, 6, 7]},
            },
            "tf1.tm.port.cfg": {
                str(port): {"pg_id": 0, "egress_qid_queues": [8 * place + queue for queue in range(8)]}
                for place, port in enumerate(PORTS.values())
            },
            "tf1.tm.queue.cfg": {f"1,0,{queue}": {"pfc_cos": 0} for queue in range(16)},
            "tf1.tm.queue.sched_cfg": {
                f"1,0,{queue}": {"min_priority": "LOW", "max_priority": "LOW"} for queue in range(16)
            },
            "tf1.tm.ppg.cfg": {
                "1,1": {"dev_port": 129, "pfc_enable": False, "pfc_skid_max_cells": 200, "icos": [3]},
            },
        },
        "timers": {},
    },
    # Header, interfaces and class 0's thresholds: `?rev=applied` of NVIDIA's Cumulus Linux Automation Workshop (5.5.1).
    # `nv config show` has of it what is set, with interfaces in ranges (NVUE reference).
    "cumulus": {
        "platform": "MSN2700",
        "release": "5.11.0",
        "running": {
            "interface": {
                "eth0": {"ip": {"address": {"dhcp": {}}, "vrf": "mgmt"}, "type": "eth"},
                "swp1-2": {"link": {"state": {"up": {}}}, "type": "swp"},
            },
            "qos": {"congestion-control": {"default-global": {"traffic-class": {"0": {"min-threshold": 150000}}}}},
            "system": {"hostname": "tor"},
        },
        "links": {
            port: {"auto-negotiate": "on", "duplex": "full", "fec": "auto", "mtu": 9216, "speed": "50G"}
            for port in ("swp1", "swp2")
        },
        "revisions": {"1": {"state": "applied_and_saved"}},
    },
    # The release is NAPALM's sample, and so are the fields of interfaces.
    "eos": {
        "platform": "DCS-7060CX-32S",
        "release": "4.30.0F-31408673.4300F (engineering build)",
        "running": {
            "hostname tor": None,
            "interface Ethernet1": {"description gpu0": None},
            "interface Ethernet2": {"mtu 9214": None},
            "qos map dscp 8 to traffic-class 1": None,
        },
        "interfaces": {
            port: {"mtu": 9214, "bandwidth": 50000000000, "interfaceStatus": "connected", "lineProtocolStatus": "up"}
            for port in ("Ethernet1", "Ethernet2")
        },
        "sessions": {},
    },
}
# What tests make of it: `refuses` (a pattern of commands), `cuts` (a change cuts the switch off), `late` (the next
# connection after a change takes so many minutes).
ORDINARY = {"minute": 0, "refuses": None, "cuts": False, "late": 0}
# Of SONiC: keys that orchagent has not handled yet, and what it gave to queues and priority groups.
SONIC = {"events": [], "asic": None}


def load(folder: Path) -> dict[str, Any]:
    """The state in `folder`, whose name is the switch's system."""
    path = folder / "switch.json"
    if not path.exists():
        save(folder, ORDINARY | SONIC | FACTORY[folder.name])
    state: dict[str, Any] = json.loads(path.read_text())
    return state


def save(folder: Path, state: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "switch.json").write_text(json.dumps(state, indent=1))


def take_due_undo(state: dict[str, Any]) -> dict[str, Any] | None:
    """Take the undo out of the state if its time has come."""
    undo: dict[str, Any] | None = state.get("undo")
    return state.pop("undo") if undo and undo["due"] <= state["minute"] else None
