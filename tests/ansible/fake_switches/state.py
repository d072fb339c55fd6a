# SPDX-License-Identifier: Apache-2.0
"""What a fake switch remembers: one JSON file, read and written by each of its programs."""

import json
from pathlib import Path
from typing import Any

PORTS = {"1/0": 128, "1/1": 129}
# As each switch is before Roundabout has met it. Constructed: settings of its owner, some of them in our way.
FACTORY: dict[str, Any] = {
    "junos": {
        "running": [
            "groups SITE system ntp server 10.0.0.9",
            "apply-groups SITE",
            "system host-name tor",
            "class-of-service forwarding-classes class VOICE queue-num 5",
        ],
        "commits": ["via cli"],
    },
    "sonic": {
        "running": {
            "DEVICE_METADATA": {"localhost": {"hostname": "tor"}},
            "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "5", "tc_to_queue_map": "AZURE"}},
        },
        "timers": {},
    },
    "tofino": {
        "running": {
            "roundabout.pipe.Egress.ecn_min_cells": {"0": {"f1": [0, 0]}},
            "roundabout.pipe.Egress.ecn_max_cells": {"0": {"f1": [0, 0]}},
            "port.port_hdl_info": {port.replace("/", ","): {"DEV_PORT": number} for port, number in PORTS.items()},
            # The owner has PFC for priority 5 on the second port.
            "port.port": {
                "128": {"TX_PFC_EN_MAP": 0, "RX_PFC_EN_MAP": 0},
                "129": {"TX_PFC_EN_MAP": 0x20, "RX_PFC_EN_MAP": 0x20},
            },
            "tm.port.flowcontrol": {
                "128": {"mode_tx": "DISABLE", "mode_rx": "DISABLE"},
                "129": {"mode_tx": "PFC", "mode_rx": "PFC"},
            },
            "tm.ppg.cfg": {"128,3": {"skid_max_cells": 100}, "129,3": {"skid_max_cells": 200}},
        },
        "timers": {},
    },
}
# What tests make of it: `refuses` (a pattern of commands), `cuts` (a change cuts the switch off), `late` (the next
# connection after a change takes so many minutes).
ORDINARY = {"minute": 0, "refuses": None, "cuts": False, "late": 0}


def load(folder: Path) -> dict[str, Any]:
    """The state in `folder`, whose name is the switch's system."""
    path = folder / "switch.json"
    if not path.exists():
        save(folder, ORDINARY | FACTORY[folder.name])
    state: dict[str, Any] = json.loads(path.read_text())
    return state


def save(folder: Path, state: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "switch.json").write_text(json.dumps(state, indent=1))
