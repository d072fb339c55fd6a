# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for tools that settings.py calls, from ip to systemd-run; they keep their state below a root.

Constructed, not recorded: calls and paths from the project's notes on RoCE, output from the sources of mlnx-tools and
iproute2 and NVIDIA's manual of mlxconfig; what the driver does with it from mlx5's en_dcbnl.c and port_buffer.c (a link
that goes down with PFC, cables it ignores, buffers that firmware owns until they are written, sizes rounded down). To
what sizes firmware fits buffers is made up. mlnx_qos behaves as the revision of mlnx-tools that the file
`mlnx_qos-revision` names: its answers are held against those of NVIDIA's own tool (test_mlnx_qos.py).
"""

import json
import sys
from collections.abc import Iterable
from ipaddress import ip_address, ip_network
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
    if words[1] == "get":
        return f"{words[2]} {route_to(state.values, words[2])} uid 0 \\    cache \n"
    if words[1] == "show":
        return "".join(f"{line} linkdown \n" for line in state.values if line.split()[0] == after(words, "exact"))
    if "congctl" in words and after(words, "congctl") == "nothing":
        raise RefusedError("RTNETLINK answers: Invalid argument")
    state.values = [line for line in state.values if line.split()[0] != words[2]] + [" ".join(words[2:])]
    return state.save()


def route_to(lines: list[str], address: str) -> str:
    """The next hop and device of the best route."""
    networks = {line: ip_network(line.split()[0].replace("default", "0.0.0.0/0")) for line in lines}
    fitting = [line for line, network in networks.items() if ip_address(address) in network]
    if not fitting:
        raise RefusedError("RTNETLINK answers: Network is unreachable")
    metric = {line: int(after(line.split(), "metric")) if " metric " in line else 0 for line in fitting}
    return min(fitting, key=lambda line: (-networks[line].prefixlen, metric[line])).partition(" ")[2]


# --- rdma, and systemd


def rdma(root: Path, words: list[str]) -> str:
    """Text of rdma-link and rdma-resource as iproute2 6.1 prints it (rdma/link.c, res-qp.c, res.c)."""
    return (root / f"rdma-{words[0]}").read_text()


def systemd_run(root: Path, words: list[str]) -> str:
    state = State(root, "systemd")
    unit = next(word for word in words if word.startswith("--unit=")).partition("=")[2]
    if f"{unit}.timer" in state.values:
        raise RefusedError(f"Failed to start transient timer unit: Unit {unit}.timer was already loaded")
    state.values[f"{unit}.timer"] = {"after": words[2], "command": words[4:]}
    return state.save()


def systemctl(root: Path, words: list[str]) -> str:
    state = State(root, "systemd")
    loaded = [word for word in words if word in state.values]
    if words[0] == "list-units":
        return "".join(f"{unit} loaded active waiting Roundabout\n" for unit in loaded)
    if words[0] == "show":
        return "waiting\n" if loaded else "dead\n"
    if words[1:] != loaded:
        raise RefusedError(f"Failed to stop {words[1]}: Unit {words[1]} not loaded.")
    state.values = {unit: each for unit, each in state.values.items() if unit not in loaded}
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


def set_pfc(state: State, pfc: list[int], metres: int) -> None:
    values = state.values
    if 0 < metres < 1000:
        values["delay"] = metres
    if pfc == values["pfc"]:
        return
    (state.path.parent / state.path.name.replace("qos", "toggled")).write_text("2")
    values["pfc"] = pfc
    if not values.get("manual"):
        values["prio2buffer"] = pfc
        values["buffer_size"] = [130944, 130944 if any(pfc) else 0, 0, 0, 0, 0, 0, 0]


def set_buffers(
    values: dict[str, Any], prio2buffer: list[int] | None = None, buffer_size: list[int] | None = None
) -> None:
    """Older drivers take buffers over with any write, newer ones with one that changes something."""
    if buffer_size and sum(buffer_size) > values["max_buffer_size"]:
        raise RefusedError("Buffers commands error")
    values["manual"] = True
    values["prio2buffer"] = prio2buffer or values["prio2buffer"]
    values["buffer_size"] = [size // 128 * 128 for size in buffer_size or values["buffer_size"]]


REVISIONS = ("d477a17^", "83b87d9^", "83b87d9", "227c7ab", "8fbfd9c")
"""Revisions of mlnx-tools, the oldest first: each behaves otherwise than the one before."""


def show_mlnx_qos(values: dict[str, Any], *, every: bool = False, revision: str = REVISIONS[-1]) -> str:
    age, lacks = REVISIONS.index(revision), values.get("lacks", ())
    lines = ["****** WARNING: lldpad service is running and may overwrite your settings ******", ""]
    lines = lines if values.get("lldpad") else []
    lines += ["Priority trust state is not supported on your system"] if "trust" in lacks else []
    lines += ["Buffers commands are not supported on your system"] if "buffers" in lacks else []
    lines += ["Rate limit is not supported on your system!"] if "maxrate" in lacks else []
    lines += ["DCBX mode: " + ("OS controlled" if values["dcbx"] == "os" else "Firmware controlled")]
    trust = "none" if "trust" in lacks else "dscp" if values["dscp"] else "pcp"
    lines += [f"Priority trust state: {trust}"]
    if trust == "dscp":
        lines += ["dscp2prio mapping:", *show_dscps(values["dscp"])]
    lines += ["default priority:"] if age < 4 else []
    total = f"{'max_buffer_size' if age else 'total_size'}={values['max_buffer_size']}"
    lines += [] if "buffers" in lacks else [f"Receive buffer size (bytes): {commas(values['buffer_size'])},{total}"]
    lines += [f"Cable len: {values['delay']}", "PFC configuration:"]
    lines += ["\tpriority    0   1   2   3   4   5   6   7"]
    lines += [f"\tenabled     {'   '.join(map(str, values['pfc']))}   "]
    lines += [] if "buffers" in lacks else [f"\tbuffer      {'   '.join(map(str, values['prio2buffer']))}   "]
    classes = list(dict.fromkeys([*(range(8) if every else ()), *values["prio_tc"]]))
    for each in sorted(classes) if age else classes:
        word = values["schedule"][each]
        number = "" if "maxrate" in lacks else f"tc: {each} ratelimit: unlimited, tsa: "
        lines += [number + (f"ets, bw: {word}%" if word.isdigit() else word)]
        lines += [f"\t priority:  {priority}" for priority in range(8) if values["prio_tc"][priority] == each]
    return "\n".join(lines) + "\n"


def show_dscps(priority_of: dict[str, int]) -> Iterable[str]:
    for priority in range(8):
        dscps = [f"{int(dscp):02d}," for dscp, mapped in priority_of.items() if mapped == priority]
        yield from (f"\tprio:{priority} dscp:{''.join(dscps[at : at + 8])}" for at in range(0, len(dscps), 8))


def shares(values: dict[str, Any]) -> list[int]:
    """The percentage of each class: mlx5 has 100 for one without a share."""
    return [int(word) if word.isdigit() else 100 for word in values["schedule"]]


def kinds(values: dict[str, Any]) -> list[str]:
    return ["ets" if word.isdigit() else word for word in values["schedule"]]


def set_classes(values: dict[str, Any], prio_tc: list[int], kinds: list[str], shares: list[int]) -> None:
    """mlx5e_dbcnl_validate_ets."""
    if "ets" in kinds and sum(share for kind, share in zip(kinds, shares, strict=True) if kind == "ets") != 100:
        raise RefusedError("Netlink error: Bad value. see dmesg.")
    values["prio_tc"] = prio_tc
    values["schedule"] = [str(share) if kind == "ets" else kind for kind, share in zip(kinds, shares, strict=True)]


def map_dscp(values: dict[str, Any], change: str) -> None:
    verb, dscp, priority = change.split(",")
    if verb == "set":
        values["dscp"][dscp] = int(priority)
    elif values["dscp"].get(dscp) == int(priority):
        del values["dscp"][dscp]


def numbers(value: str) -> list[int]:
    return [int(number) for number in value.split(",")]


def mlnx_qos(root: Path, words: list[str]) -> str:
    state = State(root, f"qos-{after(words, '-i')}")
    values, revision = state.values, root / "mlnx_qos-revision"
    age = REVISIONS.index(revision.read_text() if revision.exists() else REVISIONS[-1])
    options = dict(pairs([part for word in words[2:] if word != "-a" for part in word.split("=")]))
    if not options:
        return show_mlnx_qos(values, every="-a" in words, revision=REVISIONS[age])
    if "-d" in options:
        values["dcbx"] = options["-d"]
    if {"--pfc", "--cable_len"} & set(options):
        set_lossless(state, options, is_split=age > 1)
    if "--dscp2prio" in options:
        map_dscp(values, options["--dscp2prio"])
    if "--trust" in options:
        fresh = {str(dscp): dscp >> 3 for dscp in range(64)}
        values["dscp"] = {} if options["--trust"] == "pcp" else values["dscp"] or fresh
    for name in {"prio2buffer", "buffer_size"} & {option[2:] for option in options}:
        set_buffers(values, **{name: numbers(options[f"--{name}"])})
    if {"-p", "-s", "-t"} & set(options):
        prio_tc = numbers(options["-p"]) if "-p" in options else values["prio_tc"]
        services = options["-s"].split(",") if "-s" in options else kinds(values)
        set_classes(values, prio_tc, services, numbers(options["-t"]) if "-t" in options else shares(values))
    return state.save()


def set_lossless(state: State, options: dict[str, str], *, is_split: bool) -> None:
    """Since 83b87d9 each option is sent by itself, with the other as it is; before, with zeros for it."""
    if not is_split:
        set_pfc(state, numbers(options.get("--pfc", commas([0] * 8))), int(options.get("--cable_len", "0")))
        return
    if "--cable_len" in options:
        set_pfc(state, state.values["pfc"], int(options["--cable_len"]))
    if "--pfc" in options:
        set_pfc(state, numbers(options["--pfc"]), state.values["delay"])


def mappings(words: list[str]) -> dict[str, list[str]]:
    """The values after each of dcb's words: those of a map without their keys."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word[0].isdigit():
            found[next(reversed(found))].append(word.rpartition(":")[2])
        else:
            found[word] = []
    return found


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
    else:
        set_by_maps(state, subject, mappings(change))
    return state.save()


def set_by_maps(state: State, subject: str, maps: dict[str, list[str]]) -> None:
    values = state.values
    whole = {name: [int(word) for word in words] for name, words in maps.items() if all(map(str.isdigit, words))}
    if subject == "ets":
        total, services = whole.get("tc-bw", shares(values)), maps.get("tc-tsa", kinds(values))
        if sum(total) != 100 and ("ets" in services or any(total)):  # dcb_ets_validate_bw
            raise RefusedError(f"Bandwidth percentages in tc-bw sum to {sum(total)}%")
        set_classes(values, whole.get("prio-tc", values["prio_tc"]), services, total)
    elif subject == "pfc":
        bits = [int(word == "on") for word in maps.get("prio-pfc", ())]
        set_pfc(state, bits or values["pfc"], *whole.get("delay", [values["delay"]]))
    else:
        set_buffers(values, whole.get("prio-buffer"), whole.get("buffer-size"))


def show_dcb(values: dict[str, Any], subject: str, *, three: bool = True) -> dict[str, Any]:
    """Entries have three fields since iproute2 6.5 (dcb_app.c, dcb_app_print_filtered)."""
    if subject == "app":
        entries = [[int(dscp), mapped, *([" "] if three else [])] for dscp, mapped in values["dscp"].items()]
        return {"dscp_prio": entries} if entries else {}
    if subject == "dcbx":
        return {**({"host": True} if values["dcbx"] == "os" else {}), "cee": True, "ieee": True}
    if subject == "ets":
        return {"tc_tsa": kinds(values), "tc_bw": shares(values), "prio_tc": values["prio_tc"]}
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
    requested = words[words.index("q" if "q" in words else "set") + 1 :]
    unknown = [word for word in requested if word.partition("=")[0] not in state.values]
    if unknown:
        raise RefusedError(f"-E- The Device doesn't support {unknown[0].partition('=')[0]} parameter")
    if "set" in words:
        for name, value in (word.split("=") for word in requested):
            state.values[name][2] = int(value)
        return state.save() or "Applying... Done!\n-I- Please reboot machine to load new configurations.\n"
    rows = [f"\nDevice #1:\n----------\n\nDevice type:    ConnectX\nDevice:         {address}\n"]
    rows.append(f"{'Configurations:':<52}{'Default':<16}{'Current':<16}Next Boot")
    for name in requested:
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
TOOLS.update({"mstconfig": mlxconfig, "rdma": rdma, "systemd-run": systemd_run, "systemctl": systemctl})


def main() -> None:
    program = Path(sys.argv[0])
    try:
        sys.stdout.write(TOOLS[program.name](program.parent.parent, sys.argv[1:]))
    except RefusedError as refusal:
        sys.exit(str(refusal))


if __name__ == "__main__":
    main()
