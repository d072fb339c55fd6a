# SPDX-License-Identifier: Apache-2.0
"""CONFIG_DB states as `config qos reload` leaves them, rendered from sonic-buildimage's own templates.

    python -m tests.ansible.sonic_states FOLDER SKU [PORTS]    one state as JSON, of its first PORTS ports

FOLDER is a checkout of sonic-buildimage (Apache-2.0), of which nothing is kept here but small rendered states. The
environment is that of sonic-cfggen (src/sonic-config-engine). buffermgrd adds its groups (fake_switches/tools.py).
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

SKUS = (
    "mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700",
    "mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700 dynamic",
    "mellanox/x86_64-mlnx_msn2700-r0/Mellanox-SN2700-D48C8 dynamic",
    "mellanox/x86_64-mlnx_msn3700-r0/ACS-MSN3700",
    "mellanox/x86_64-mlnx_msn3700-r0/ACS-MSN3700 dynamic",
    "mellanox/x86_64-mlnx_msn4600c-r0/ACS-MSN4600C",
    "mellanox/x86_64-mlnx_msn4700-r0/ACS-MSN4700 dynamic",
    "mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600",
    "arista/x86_64-arista_7050_qx32s/Arista-7050-QX-32S",
    "arista/x86_64-arista_7060_cx32s/Arista-7060CX-32S-C32",
    "arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64",
    "dell/x86_64-dell_s6100_c2538-r0/Force10-S6100",
    "dell/x86_64-dellemc_z9264f_c3538-r0/DellEMC-Z9264f-C64",
    "dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-M-O16C64",
    "dell/x86_64-dell_z9100_c2538-r0/Force10-Z9100-C32",
    "celestica/x86_64-cel_seastone-r0/Celestica-DX010-C32",
    "barefoot/x86_64-accton_wedge100bf_32x-r0/montara",
    "quanta/x86_64-quanta_ix8_rglbmc-r0/Quanta-IX8-56X",
    "nokia/x86_64-nokia_ixr7220_h4-r0/Nokia-IXR7220-H4-64D",
    "micas/x86_64-micas_m2-w6940-128x1-fr4-r0/M2-W6940-64X1-FR4",
)


class State(NamedTuple):
    """A state of CONFIG_DB, and the speeds and lengths of cable for which the switch has a headroom."""

    config_db: dict[str, Any]
    headroom: frozenset[tuple[str, str]]


def render_state(checkout: Path, sku: str, ports: int | None = None) -> State:
    """Return the state of a SKU, `VENDOR/PLATFORM/NAME` with ` dynamic` for the dynamic buffer model."""
    name, _, model = sku.partition(" ")
    vendor, platform, _ = name.split("/")
    folder = checkout / "device" / name
    headroom = frozenset(tuple(words[:2]) for words in _rows(folder / "pg_profile_lookup.ini"))
    port_table = dict(list(_ports(folder, headroom).items())[:ports])
    role = "ToRRouter" if (folder / "buffers_defaults_t0.j2").exists() else "LeafRouter"  # others have t1 alone
    metadata = {"platform": platform, "hwsku": folder.name, "type": role, "hostname": "tor"}
    if vendor in ("mellanox", "barefoot"):
        metadata["buffer_model"] = model or "traditional"
    data = {
        "PORT": port_table,
        "DEVICE_METADATA": {"localhost": metadata},
        "asic_type": vendor if vendor in ("mellanox", "barefoot", "marvell") else "broadcom",
    }
    environment = _environment(folder, checkout / "files/build_templates")
    tables: dict[str, Any] = {"DEVICE_METADATA": data["DEVICE_METADATA"], "PORT": port_table}
    for template in ("buffers_dynamic.json.j2" if model else "buffers.json.j2", "qos.json.j2"):
        tables |= json.loads(environment.get_template(template).render(data))
    return State(tables, headroom)


def _environment(*folders: Path) -> jinja2.Environment:
    """Return the environment of sonic-cfggen."""
    loader = jinja2.FileSystemLoader(folders, followlinks=True)
    environment = jinja2.Environment(loader=loader, trim_blocks=True)
    environment.filters["sort_by_port_index"] = lambda ports: ports.sort(key=lambda port: int(port[8:]))
    environment.globals["template_exists"] = lambda name: any((folder / name).exists() for folder in folders)
    environment.globals["is_smartswitch"] = False
    return environment


def _rows(path: Path) -> list[list[str]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def _ports(folder: Path, headroom: frozenset[tuple[str, ...]]) -> dict[str, dict[str, str]]:
    """Return the table PORT. A SKU without speeds in its port_config.ini gets its highest one with a headroom."""
    path = folder / "port_config.ini"
    heading = next(line for line in path.read_text().splitlines() if "lanes" in line).strip("# ").split()
    highest = max((speed for speed, _ in headroom), key=int, default="100000")
    every = [dict(zip(heading, words, strict=False)) for words in _rows(path)]
    return {
        port["name"]: {
            "lanes": port["lanes"], "alias": port.get("alias", port["name"]), "speed": port.get("speed", highest),
            "admin_status": "up", "mtu": "9100",
        }
        for port in every if not port["name"].startswith(("Ethernet-Rec", "Ethernet-IB"))
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(render_state(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])).config_db, indent=1))
