# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for ip, transport, ethtool, mlnx_qos, dcb, mlxconfig and show_gids; they keep their state below a root.

Constructed, not recorded: calls and paths from the project's notes on RoCE, output from the sources of mlnx-tools and
iproute2 and NVIDIA's manual of mlxconfig; what the driver does with it from mlx5's en_dcbnl.c and port_buffer.c (a link
that goes down with PFC, cables it ignores, buffers that firmware owns until they are written, sizes rounded down). To
what sizes firmware fits buffers is made up.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class RefusedError(Exception):
    """What a tool says on standard error before it exits with 1."""


class State:
    """One JSON file below the root, changed in place."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = root / name
        if not self.path.exists():
            raise RefusedError(f"{name.partition('-')[2]} does not exist")
        self.values: Any = json.loads(self.path.read_text())

    def save(self) -> str:
        self.path.write_text(json.dumps(self.values))
        return ""


def after(words: list[str], word: str) -> str:
    return words[words.index(word) + 1]


def pairs(words: list[str]) -> Iterable[tuple[str, str]]:
    return zip(words[::2], words[1::2], strict=True)


# --- ip, transport


def ip(root: Path, words: list[str]) -> str:
    return route(root, [word for word in words if word not in ("-4", "-o")]) if "route" in words else link(root, words)


def link(root: Path, words: list[str]) -> str:
    name = after(words, "dev")
    state = State(root, f"link-{name}")
    changes = words[words.index("dev") + 2 :]
    if "set" not in words:
        return json.dumps([dict(state.values, ifname=name)])
    state.values.update({key: int(value) for key, value in pairs(changes)})
    return state.save()


def route(root: Path, words: list[str]) -> str:
    state = State(root, "routes")
    if words[1] == "show":
        return "".join(f"{line} linkdown \n" for line in state.values if line.split()[0] == after(words, "exact"))
    if "congctl" in words and after(words, "congctl") == "nothing":
        raise RefusedError("RTNETLINK answers: Invalid argument")
    state.values = [line for line in state.values if line.split()[0] != words[2]] + [" ".join(words[2:])]
    return state.save()


def transport(root: Path, words: list[str]) -> str:
    state = State(root, f"transport-{words[1]}")
    if words[0] == "get":
        return json.dumps({"params": state.values, "counters": {}})
    state.values.update({name: float(value) for name, value in (word.split("=") for word in words[2:])})
    return state.save()


# --- ethtool

PAUSE = {"autoneg": "Autonegotiate", "rx": "RX", "tx": "TX"}


def ethtool(root: Path, words: list[str]) -> str:
    name = words[-1] if len(words) < 3 else words[1]
    state = State(root, f"link-{name}")
    if words[0] == "-a":
        shown = "".join(f"{shown}:\t{state.values['pause'][key]}\n" for key, shown in PAUSE.items())
        return f"Pause parameters for {name}:\n{shown}\n"
    if words[0] == "-A":
        state.values["pause"].update(pairs(words[2:]))
        return state.save()
    if words[0] == "--get-tunable":
        if "pfc_prevention_ms" not in state.values:
            raise RefusedError(f"{words[2]}: Cannot get tunable")
        return f"{words[2]}: {state.values['pfc_prevention_ms']}\n"
    if words[0] == "--set-tunable":
        state.values["pfc_prevention_ms"] = int(words[3])
        return state.save()
    if words[0] == "-s":
        return set_speed(state, dict(pairs(words[2:])))
    speed, detected = (
        ("Unknown!", "no")
        if state.values.get("down") or is_coming_up(root, name)
        else (f"{state.values['speed']}Mb/s", "yes")
    )
    return (
        f"Settings for {name}:\n\tSupported ports: [ Backplane ]\n\tSpeed: {speed}\n"
        f"\tDuplex: Full\n\tAuto-negotiation: {state.values['autoneg']}\n\tLink detected: {detected}\n"
    )


def set_speed(state: State, changes: dict[str, str]) -> str:
    speeds = state.values["speeds"]
    speed = int(changes.get("speed", state.values["speed"]))
    if speed not in speeds:
        raise RefusedError("Cannot set new settings: Invalid argument\n  not setting speed")
    state.values["autoneg"] = changes.get("autoneg", state.values["autoneg"])
    state.values["speed"] = max(speeds) if state.values["autoneg"] == "on" else speed
    return state.save()


# --- mlnx_qos and dcb: two views of one state


def commas(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def is_coming_up(root: Path, name: str) -> bool:
    """Whether PFC took the link down, and it is not up yet: for so many looks at it."""
    looks = root / f"toggled-{name}"
    if not looks.exists():
        return False
    left = int(looks.read_text()) - 1
    looks.write_text(str(left)) if left else looks.unlink()
    return True


def set_pfc(state: State, pfc: list[int]) -> None:
    values = state.values
    if pfc == values["pfc"]:
        return
    (state.path.parent / state.path.name.replace("qos", "toggled")).write_text("2")
    values["pfc"] = pfc
    if not values.get("manual"):
        values["prio2buffer"] = pfc
        values["buffer_size"] = [130944, 130944 if any(pfc) else 0, 0, 0, 0, 0, 0, 0]


def set_cable(values: dict[str, Any], metres: int) -> None:
    if 0 < metres < 1000:
        values["delay"] = metres


def set_buffers(
    values: dict[str, Any], prio2buffer: list[int] | None = None, buffer_size: list[int] | None = None
) -> None:
    """Older drivers take buffers over with any write, newer ones with one that changes something."""
    if buffer_size and sum(buffer_size) > values["max_buffer_size"]:
        raise RefusedError("Buffers commands error")
    values["manual"] = True
    values["prio2buffer"] = prio2buffer or values["prio2buffer"]
    values["buffer_size"] = [size // 128 * 128 for size in buffer_size or values["buffer_size"]]


def show_mlnx_qos(values: dict[str, Any]) -> str:
    lines = ["****** WARNING: lldpad service is running and may overwrite your settings ******", ""]
    lines += ["DCBX mode: " + ("OS controlled" if values["dcbx"] == "os" else "Firmware controlled")]
    lines += ["Priority trust state: " + ("dscp" if values["dscp"] else "pcp")]
    if values["dscp"]:
        lines.append("dscp2prio mapping:")
    for priority in range(8):
        dscps = [f"{int(dscp):02d}," for dscp, mapped in values["dscp"].items() if mapped == priority]
        lines += [f"\tprio:{priority} dscp:{''.join(dscps[at : at + 8])}" for at in range(0, len(dscps), 8)]
    lines += ["default priority:"]
    lines += [
        f"Receive buffer size (bytes): {commas(values['buffer_size'])},max_buffer_size={values['max_buffer_size']}"
    ]
    lines += [f"Cable len: {values['delay']}", "PFC configuration:"]
    lines += ["\tpriority    0   1   2   3   4   5   6   7"]
    lines += [f"\tenabled     {'   '.join(map(str, values['pfc']))}   "]
    lines += [f"\tbuffer      {'   '.join(map(str, values['prio2buffer']))}   "]
    for each, word in enumerate(values["schedule"]):
        lines += [f"tc: {each} ratelimit: unlimited, tsa: {f'ets, bw: {word}%' if word.isdigit() else word}"]
        lines += [f"\t priority:  {each}"]
    return "\n".join(lines) + "\n"


def set_schedule(values: dict[str, Any], kinds: list[str], shares: list[str]) -> None:
    """mlx5e_dbcnl_validate_ets, and what mlnx_qos and dcb look at before."""
    total = sum(map(int, shares))
    if total != (100 if "ets" in kinds else 0):
        raise RefusedError(f"Bandwidth percentages in tc-bw sum to {total}%")
    values["schedule"] = [share if kind == "ets" else kind for kind, share in zip(kinds, shares, strict=True)]


def map_dscp(values: dict[str, Any], change: str) -> None:
    verb, dscp, priority = change.split(",")
    if verb == "set":
        values["dscp"][dscp] = int(priority)
    elif values["dscp"].get(dscp) == int(priority):
        del values["dscp"][dscp]


def mlnx_qos(root: Path, words: list[str]) -> str:
    state = State(root, f"qos-{after(words, '-i')}")
    values = state.values
    options = dict(pairs([part for word in words[2:] for part in word.split("=")]))
    if not options:
        return show_mlnx_qos(values)
    if set(options) == {"-s", "-t"}:
        set_schedule(values, options["-s"].split(","), options["-t"].split(","))
        return state.save()
    if len(options) > 1:
        raise RefusedError("the settings program makes one change a call")
    ((option, value),) = options.items()
    if option == "-d":
        values["dcbx"] = value
    elif option == "--trust":
        fresh = {str(dscp): dscp >> 3 for dscp in range(64)}
        values["dscp"] = {} if value == "pcp" else values["dscp"] or fresh
    elif option == "--dscp2prio":
        map_dscp(values, value)
    elif option == "--pfc":
        set_pfc(state, [int(bit) for bit in value.split(",")])
    elif option == "--cable_len":
        set_cable(values, int(value))
    else:
        set_buffers(values, **{option[2:]: [int(number) for number in value.split(",")]})
    return state.save()


def mapping(words: list[str]) -> list[str]:
    return [word.partition(":")[2] for word in words]


def dcb(root: Path, words: list[str]) -> str:
    state = State(root, f"qos-{after(words, 'dev')}")
    values = state.values
    subject, verb, *_ = [word for word in words if word != "-j"]
    if (root / "iproute2-5.11").exists() and subject in ("app", "dcbx"):
        raise RefusedError(f'Object "{subject}" is unknown')
    if verb == "show":
        return json.dumps(show_dcb(values, subject, three=not (root / "iproute2-6.4").exists()))
    change = words[words.index("dev") + 2 :]
    if subject == "app" and verb == "flush":
        values["dscp"] = {}
    elif subject == "app":
        map_dscp(values, f"{'set' if verb == 'replace' else 'del'},{change[1].replace(':', ',')}")
    elif subject == "dcbx":
        if "host" not in change or "lld-managed" in change:  # mlx5e_dcbnl_setdcbx; without a flag dcb prints its help
            raise RefusedError("dcbx set attribute: response 1" if change else "")
        values["dcbx"] = "os"
    elif subject == "ets":
        set_schedule(values, mapping(change[1:9]), mapping(change[10:]))
    elif change[0] == "prio-pfc":
        set_pfc(state, [int(word == "on") for word in mapping(change[1:])])
    elif change[0] == "delay":
        set_cable(values, int(change[1]))
    else:
        name = {"prio-buffer": "prio2buffer", "buffer-size": "buffer_size"}[change[0]]
        set_buffers(values, **{name: [int(word) for word in mapping(change[1:])]})
    return state.save()


def show_dcb(values: dict[str, Any], subject: str, *, three: bool = True) -> dict[str, Any]:
    """Entries have three fields since iproute2 6.5 (dcb_app.c, dcb_app_print_filtered)."""
    if subject == "app":
        entries = [[int(dscp), mapped, *([" "] if three else [])] for dscp, mapped in values["dscp"].items()]
        return {"dscp_prio": entries} if entries else {}
    if subject == "dcbx":
        return {**({"host": True} if values["dcbx"] == "os" else {}), "cee": True, "ieee": True}
    if subject == "ets":
        kinds = ["ets" if word.isdigit() else word for word in values["schedule"]]
        return {"tc_tsa": kinds, "tc_bw": [int(word) if word.isdigit() else 100 for word in values["schedule"]]}
    if subject == "pfc":
        bits = [bool(bit) for bit in values["pfc"]]
        return {"pfc_cap": 8, "macsec_bypass": False, "delay": values["delay"], "prio_pfc": bits}
    sizes, total = values["buffer_size"], values["max_buffer_size"]
    return {"prio_buffer": values["prio2buffer"], "buffer_size": sizes, "total_size": total}


# --- mlxconfig


def nv_shown(value: int, is_switch: bool) -> str:
    return f"{bool(value)}({value})" if is_switch else str(value)


def mlxconfig(root: Path, words: list[str]) -> str:
    address = after(words, "-d")
    state = State(root, f"nv-{address}")
    asked = words[words.index("q" if "q" in words else "set") + 1 :]
    unknown = [word for word in asked if word.partition("=")[0] not in state.values]
    if unknown:
        raise RefusedError(f"-E- The Device doesn't support {unknown[0].partition('=')[0]} parameter")
    if "set" in words:
        for name, value in (word.split("=") for word in asked):
            state.values[name][2] = int(value)
        return state.save() or "Applying... Done!\n-I- Please reboot machine to load new configurations.\n"
    rows = [f"\nDevice #1:\n----------\n\nDevice type:    ConnectX\nDevice:         {address}\n"]
    rows.append(f"{'Configurations:':<52}{'Default':<16}{'Current':<16}Next Boot")
    for name in asked:
        mark = "*" if state.values[name][0] != state.values[name][2] else " "
        shown = [nv_shown(value, "LEGACY" in name) for value in state.values[name]]
        rows.append(f"{mark}       {name:<44}" + "".join(f"{word:<16}" for word in shown))
    return "\n".join(rows) + "\n"


# --- show_gids


def show_gids(root: Path, _words: list[str]) -> str:
    lines = [
        "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV",
        "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---",
    ]
    for device in sorted((root / "sys/class/infiniband").iterdir()):
        port = device / "ports/1"
        for file in sorted((port / "gids").iterdir()):
            gid = file.read_text().strip()
            version = (port / "gid_attrs/types" / file.name).read_text().split("v")[-1].strip()
            interface = (port / "gid_attrs/ndevs" / file.name).read_text().strip()
            octets = bytes.fromhex(gid[30:].replace(":", ""))
            ipv4 = f"{'.'.join(map(str, octets))}  " if gid.startswith("0000") else "\t"
            lines.append(f"{device.name}\t1\t{file.name}\t{gid}\t{ipv4}\tv{version}\t{interface}")
    return "\n".join([*lines, f"n_gids_found={len(lines) - 2}"]) + "\n"


# --- dcbx_to_firmware.py, which speaks to the kernel


def python3(root: Path, words: list[str]) -> str:
    assert words[-2].endswith("/dcbx_to_firmware.py")
    state = State(root, f"qos-{words[-1]}")
    state.values["dcbx"] = "fw"
    return state.save()


TOOLS = {each.__name__: each for each in (ip, transport, ethtool, mlnx_qos, dcb, mlxconfig, show_gids, python3)}
TOOLS["mstconfig"] = mlxconfig


def main() -> None:
    program = Path(sys.argv[0])
    try:
        sys.stdout.write(TOOLS[program.name](program.parent.parent, sys.argv[1:]))
    except RefusedError as refusal:
        sys.exit(str(refusal))


if __name__ == "__main__":
    main()
