# SPDX-License-Identifier: Apache-2.0
"""Settings of a NIC's priorities by mlnx_qos (mlnx-tools) or dcb (iproute2): trust, DSCP map, classes, PFC, buffers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from roundabout.settings.settings_host import (
    Host,
    Kind,
    Rule,
    SettingsError,
    ToolError,
    Value,
    Values,
    check_by,
    eight,
    either,
    one_of,
    same,
    whole,
)
from roundabout.settings.settings_linux import link_comes_back
from roundabout.settings.settings_nic import nic_folder

DSCPS = {f"dscp{dscp}_prio": dscp for dscp in range(64)}


def _is_schedule(value: Value) -> bool:
    words = str(value).split(",")
    shares = [int(word) for word in words if word.isdigit()]
    kinds_fit = set(words) == {"vendor"} or all(word.isdigit() or word == "strict" for word in words)
    return len(words) == 8 and kinds_fit and (not shares or sum(shares) == 100)


# The rule excludes a mix of `vendor` and `strict`: mlx5 serves vendor classes first (en_dcbnl.c,
# MLX5E_VENDOR_TC_GROUP_NUM).
SCHEDULE = Rule("`vendor` eight times, or eight of `strict` and percents that add up to 100, with commas", _is_schedule)
KEEP = "-"  # in place of a priority's 0 or 1: as it is found
PFC = Rule("eight of 0, 1 and - with commas", lambda value: bool(re.fullmatch("[01-](,[01-]){7}", str(value))))
RULES = {
    "dcbx": one_of("os", "fw"),
    "trust": one_of("pcp", "dscp"),
    **dict.fromkeys(DSCPS, either(whole(0, 7), one_of("none"))),
    "prio_tc": eight(0, 7),
    "tc_schedule": SCHEDULE,
    "pfc": PFC,
    "cable_length_m": whole(1, 999),  # mlx5 ignores any other (en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc)
    "prio2buffer": eight(0, 7),
    "buffer_size_bytes": eight(0, 2**32 - 1),
}
# Each of these pairs is written by one call. An mlnx_qos before 83b87d9 (6 Feb 2024) turns PFC off if it gets
# --cable_len alone. A map of priorities alone would be sent with the 100 % that mlx5 reports for each class without a
# share, which dcb refuses (dcb_ets.c, dcb_ets_validate_bw).
CLASSES = ("prio_tc", "tc_schedule")
LOSSLESS = ("pfc", "cable_length_m")
# TIED settings may change each other, because drivers adapt buffers to PFC and to the cable's length.
BUFFERS = ("prio2buffer", "buffer_size_bytes")
TIED = (*LOSSLESS, *BUFFERS)
DCB_IS_IN = "iproute2 5.12 or later (Debian 12, Ubuntu 22.04)"  # 5.11 has dcb, but neither `dcb app` nor `dcb dcbx`
GIVE_BACK_DCBX = Path(__file__).with_name("dcbx_to_firmware.py")
MLNX_OPTIONS = {"prio2buffer": "--prio2buffer", "buffer_size_bytes": "--buffer_size"}
# A traffic class in the output of mlnx_qos: its number, its service, and a line for each of its priorities. Before
# d477a17 (24 May 2022) classes come in the order of their first priority.
MLNX_CLASS = re.compile(r"^tc: ([0-9]+) .*tsa: (.*)\n((?:\s*priority:.*\n?)*)", re.MULTILINE)
MLX5_PRIO_TC = "1,0,2,3,4,5,6,7"  # the class of each priority once mlx5 has loaded (en_dcbnl.c, mlx5e_ets_init)


def read_qos(host: Host, target: str, names: Iterable[str]) -> Values:
    """Return the priority settings of an interface from the available tool."""
    state = _state(host, target)
    wanted = list(names)
    missing = [name for name in wanted if name not in state]
    if missing:
        raise SettingsError(
            f"qos {target} {missing[0]}: {_tool(host)} does not report it", _why_missing(host, target, missing[0])
        )
    return {name: state[name] for name in wanted}


def _why_missing(host: Host, target: str, name: str) -> str:
    """Return what the tool complains about, or else the remedy."""
    if not host.has("mlnx_qos"):
        return "it may need mlnx_qos, of mlnx-tools"
    complaints = [line for line in _report(host, target).splitlines() if "not supported" in line]
    if complaints:
        return f"mlnx_qos prints: {'; '.join(complaints)}"
    if name == "tc_schedule":
        return f"priorities share classes; to give each its own: mlnx_qos -i {target} -d os -p {MLX5_PRIO_TC}"
    return "a newer mlnx_qos, of mlnx-tools"


def write_qos(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Write the priority settings of an interface in an order in which each takes effect.

    After buffers are written, firmware no longer adapts them to PFC until the driver is loaded again (en_dcbnl.c).
    Therefore buffers are read after all other settings are written, and only wrong ones are written.
    """
    if KEEP in str(values.get("pfc", "")):
        values = {**values, "pfc": _fill(values["pfc"], read_qos(host, target, ["pfc"])["pfc"])}
    write = {"mlnx_qos": _write_by_mlnx_qos, "dcb": _write_by_dcb}[_tool(host)]
    write(host, target, {name: value for name, value in values.items() if name not in BUFFERS})
    for name in BUFFERS:
        if name in values and not same(values[name], read_qos(host, target, [name])[name]):
            write(host, target, {name: values[name]})


def _fill(value: Value, found: Value) -> str:
    """Return a value whose words `-` are replaced by those of `found`."""
    pairs = zip(str(value).split(","), str(found).split(","))  # noqa: B905 (Python 3.8)
    return ",".join(now if word == KEEP else word for word, now in pairs)


def is_same_but_kept(left: Value, right: Value) -> bool:
    """Return True if two values are equal where neither has the word `-`."""
    return same(_fill(left, right), _fill(right, left)) if "," in str(left) and "," in str(right) else same(left, right)


def drags_qos(host: Host, target: str, names: List[str]) -> List[str]:
    """Return the settings that a write changes as a side effect: DSCP map and trust, or PFC and buffers."""
    state = _state(host, target)
    dragged = [name for name in TIED if name in state] if set(names) & set(TIED) else []
    if "trust" in names:
        dragged += [name for name in DSCPS if state[name] != "none"]
    if "trust" in names or set(names) & set(DSCPS):
        dragged.insert(0, "trust")
    return dragged


def moot_qos(name: str, settings: Values) -> bool:
    """Return True if `name` is an entry of the DSCP map and trust is not dscp, so that the entry does not exist."""
    return name in DSCPS and settings.get("trust") == "pcp" and settings[name] != "none"


def _tool(host: Host) -> str:
    for tool in ("mlnx_qos", "dcb"):
        if host.has(tool):
            return tool
    raise SettingsError("found neither mlnx_qos nor dcb", f"install mlnx-tools, or {DCB_IS_IN}")


def _state(host: Host, target: str) -> Values:
    nic_folder(host, target)
    if _tool(host) == "mlnx_qos":
        return parse_mlnx_qos(_report(host, target))
    return _state_by_dcb(host, target)


def _complete(host: Host, target: str, names: Iterable[str], values: Mapping[str, Value]) -> List[str]:
    """Return the value of each name, which is the present one if `values` has none."""
    state = read_qos(host, target, names)
    return [str(values.get(name, state[name])) for name in names]


# --- mlnx_qos


def _report(host: Host, target: str) -> str:
    """Return the output of mlnx_qos with all traffic classes. Without -a it omits those without a priority."""
    return host.run("mlnx_qos", "-i", target, "-a")


def parse_mlnx_qos(output: str) -> Values:
    """Parse the output of `mlnx_qos -i IF`, with or without `-a`. Omit settings that it lacks.

    If trust is pcp, the output has no DSCP map; all entries are `none`.
    """
    state: Values = {**dict.fromkeys(DSCPS, "none"), **_parse_classes(output)}
    for line in output.splitlines():
        name, _, rest = line.strip().partition(":")
        words = line.split()
        if name == "DCBX mode":
            state["dcbx"] = "os" if "OS" in rest else "fw"
        elif name == "Priority trust state" and rest.strip() != "none":  # a driver without trust
            state["trust"] = rest.strip()
        elif name == "prio":
            priority, _, dscps = rest.partition("dscp:")
            state.update({f"dscp{int(dscp)}_prio": int(priority) for dscp in re.findall(r"[0-9]+", dscps)})
        elif name == "Receive buffer size (bytes)":
            state["buffer_size_bytes"] = ",".join(rest.strip().split(",")[:8])
        elif name == "Cable len":
            state["cable_length_m"] = int(rest)
        elif len(words) == 9 and words[0] in ("enabled", "buffer"):
            state["pfc" if words[0] == "enabled" else "prio2buffer"] = ",".join(words[1:])
    return state


def _parse_classes(output: str) -> Values:
    """Return the class of each priority, and the schedule if all eight classes are in the output."""
    service: Dict[int, str] = {}
    class_of: Dict[int, str] = {}
    for number, words, priorities in MLNX_CLASS.findall(output):
        share = re.search(r"bw: ([0-9]+)%", words)
        service[int(number)] = share.group(1) if share else words.strip()
        class_of.update({int(priority): number for priority in re.findall("[0-9]+", priorities)})
    classes = {"prio_tc": class_of, "tc_schedule": service}
    return {name: ",".join(each[i] for i in range(8)) for name, each in classes.items() if len(each) == 8}


def _write_by_mlnx_qos(host: Host, target: str, values: Mapping[str, Value]) -> None:
    call = ("mlnx_qos", "-i", target)
    if "dcbx" in values:
        host.run(*call, "-d", str(values["dcbx"]))
    if "trust" in values:
        host.run(*call, f"--trust={values['trust']}")
    mapped = {name: values[name] for name in values if name in DSCPS}
    if mapped:
        now = _state(host, target)  # trust has changed the map
        for name, priority in mapped.items():
            _map_by_mlnx_qos(host, target, DSCPS[name], now[name], priority)
    if not values.keys().isdisjoint(CLASSES):
        prio_tc, schedule = _complete(host, target, CLASSES, values)
        kinds, shares = _schedule(schedule)
        host.run(*call, "-p", prio_tc, "-s", ",".join(kinds), "-t", ",".join(shares))
    if not values.keys().isdisjoint(LOSSLESS):
        pfc, metres = _complete(host, target, LOSSLESS, values)
        with link_comes_back(host, target):  # PFC takes it down (en_dcbnl.c, mlx5_toggle_port_link)
            host.run(*call, "--pfc", pfc, "--cable_len", metres)
    for name, option in MLNX_OPTIONS.items():
        if name in values:
            host.run(*call, option, str(values[name]))


def _schedule(value: str) -> Tuple[List[str], List[str]]:
    """Return the service of each class, and its percentage. One call takes both, because percentages must add up."""
    words = value.split(",")
    return ["ets" if word.isdigit() else word for word in words], [word if word.isdigit() else "0" for word in words]


def _map_by_mlnx_qos(host: Host, target: str, dscp: int, now: Value, priority: Value) -> None:
    if same(now, priority):
        return
    change = f"del,{dscp},{now}" if priority == "none" else f"set,{dscp},{priority}"
    host.run("mlnx_qos", "-i", target, "--dscp2prio", change)


# --- dcb: trust is dscp while there is a DSCP entry


def _state_by_dcb(host: Host, target: str) -> Values:
    try:
        reported = [host.run("dcb", "-j", subject, "show", "dev", target) for subject in ("app", "dcbx", "ets", "pfc")]
    except ToolError as error:
        error.hint = error.hint or f"it needs {DCB_IS_IN}, and a driver with DCB"
        raise
    try:
        buffer = host.run("dcb", "-j", "buffer", "show", "dev", target)
    except ToolError:
        buffer = ""  # drivers need not have buffers
    return parse_dcb([*reported, buffer])


def parse_dcb(reported: List[str]) -> Values:
    """Parse the outputs of `dcb -j app`, `dcbx`, `ets`, `pfc` and `buffer show dev IF`. The last may be empty."""
    try:
        app, flags, classes, lossless, buffers = (json.loads(each or "null") for each in reported)
    except ValueError as error:
        raise SettingsError(f"dcb: found {reported!r}, expected JSON") from error
    entries = app.get("dscp_prio", [])
    state: Values = dict.fromkeys(DSCPS, "none")
    # Since iproute2 6.5 each entry ends with the blank that sets it apart from the next.
    state.update({f"dscp{dscp}_prio": priority for dscp, priority, *_ in entries})
    state["dcbx"] = "os" if flags.get("host") else "fw"
    state["trust"] = "dscp" if entries else "pcp"
    shares = zip(classes["tc_tsa"], classes["tc_bw"])  # noqa: B905 (mlx5 has 100 for a class without any)
    state["prio_tc"] = _join_by_commas(classes["prio_tc"])
    state["tc_schedule"] = ",".join(str(share) if kind == "ets" else kind for kind, share in shares)
    state["pfc"] = _join_by_commas(lossless["prio_pfc"])
    state["cable_length_m"] = lossless["delay"]  # the field that mlnx_qos --cable_len sets (mlnx-tools: set_ieee_pfc)
    if buffers:
        state["prio2buffer"] = _join_by_commas(buffers["prio_buffer"])
        state["buffer_size_bytes"] = _join_by_commas(buffers["buffer_size"])
    return state


def _join_by_commas(numbers: Iterable[Any]) -> str:
    return ",".join(str(int(number)) for number in numbers)


def _write_by_dcb(host: Host, target: str, values: Mapping[str, Value]) -> None:
    if values.get("dcbx") == "os":
        host.run("dcb", "dcbx", "set", "dev", target, "host", "ieee")
    elif "dcbx" in values:
        host.run("python3", "-IS", str(GIVE_BACK_DCBX), target)  # dcb has no word for it
    _map_by_dcb(host, target, values)
    if not values.keys().isdisjoint(CLASSES):
        prio_tc, schedule = _complete(host, target, CLASSES, values)
        kinds, shares = (_mapping(",".join(each)) for each in _schedule(schedule))
        host.run("dcb", "ets", "set", "dev", target, "prio-tc", *_mapping(prio_tc), "tc-tsa", *kinds, "tc-bw", *shares)
    if not values.keys().isdisjoint(LOSSLESS):
        pfc, metres = _complete(host, target, LOSSLESS, values)
        with link_comes_back(host, target):
            host.run("dcb", "pfc", "set", "dev", target, "prio-pfc", *_mapping(pfc, ("off", "on")), "delay", metres)
    if "prio2buffer" in values:
        host.run("dcb", "buffer", "set", "dev", target, "prio-buffer", *_mapping(values["prio2buffer"]))
    if "buffer_size_bytes" in values:
        host.run("dcb", "buffer", "set", "dev", target, "buffer-size", *_mapping(values["buffer_size_bytes"]))


def _mapping(value: Value, names: Iterable[str] = ()) -> List[str]:
    """Return `0,1` as dcb's `0:0 1:1`, or with a name for each number."""
    words = list(names)
    numbers = [words[int(number)] if words else number for number in str(value).split(",")]
    return [f"{index}:{number}" for index, number in enumerate(numbers)]


def _map_by_dcb(host: Host, target: str, values: Mapping[str, Value]) -> None:
    if values.get("trust") == "pcp":
        host.run("dcb", "app", "flush", "dev", target, "dscp-prio")
    now = _state_by_dcb(host, target)
    for name, dscp in DSCPS.items():
        wanted = values.get(name, now[name])
        if same(wanted, now[name]):
            continue
        verb, priority = ("del", now[name]) if wanted == "none" else ("replace", wanted)
        host.run("dcb", "app", verb, "dev", target, "dscp-prio", f"{dscp}:{priority}")
    if values.get("trust") == "dscp" and _state_by_dcb(host, target)["trust"] != "dscp":
        raise SettingsError(f"qos {target} trust: with dcb it follows from DSCP entries", "declare dscp26_prio, say")


KINDS = {"qos": Kind(read_qos, write_qos, is_same_but_kept, check_by("qos", RULES), drags_qos, moot_qos)}
