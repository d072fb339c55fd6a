# SPDX-License-Identifier: Apache-2.0
"""Settings of any Linux host: sysctls, CPUs, links, interrupts, routes, and the parameters of transports."""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from roundabout.settings.settings_host import (
    AbsentError,
    Host,
    Kind,
    SettingsError,
    ToolError,
    Value,
    Values,
    check_by,
    either,
    one_of,
    read_file,
    same,
    text,
    whole,
    write_file,
)

SYSCTL_NAME = re.compile(r"[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)+")
AVAILABLE = "net.ipv4.tcp_available_congestion_control"
SWITCH = whole(0, 1)
LINK_RULES = {
    "gso_max_size": whole(1, 2**32 - 1),
    "mtu": whole(68, 65535),
    "autoneg": SWITCH,
    "speed_mbps": whole(1, 10**7),
    "pause_autoneg": SWITCH,
    "pause_rx": SWITCH,
    "pause_tx": SWITCH,
    # For how long a NIC may pause its peer without a break, then it drops instead; 0 is forever. Limits: mlx5's
    # en_ethtool.c, mlx5e_set_pfc_prevention_tout; other drivers have narrower ones and refuse the rest.
    "pfc_prevention_ms": either(one_of(0), whole(80, 8000)),
}
PFC_PREVENTION = "pfc-prevention-tout"  # name in `ethtool --get-tunable`
IP_NAMES = ("gso_max_size", "mtu")
# Setting -> names in the output of `ethtool -a` and the options of `ethtool -A`. (It is unverified that pause frames of
# the whole link conflict with PFC.)
PAUSE = {
    "pause_autoneg": ("Autonegotiate", "autoneg"),
    "pause_rx": ("RX", "rx"),
    "pause_tx": ("TX", "tx"),
}
ROUTE_WORDS = {"congctl": "congctl", "rto_min_ms": "rto_min", "quickack": "quickack"}  # setting -> word of `ip route`
ROUTE_RULES = {"congctl": text(), "rto_min_ms": either(text(), whole(1, 2**31 - 1)), "quickack": either(text(), SWITCH)}
# A temporary protocol, unused by daemons, with which a route loses its metrics. For a route with a next-hop id and
# without metrics, Linux would reuse any known one of the same id and protocol with its metrics (fib_find_info_nh).
PASSING_PROTOCOL = "254"
UNKNOWN = "unknown"  # speed that is reported for a link that is down
LOOK_S = 0.1  # interval of checks of a link, in which the kernel notices that it went down; a guess
IPV4_PREFIX = re.compile(r"([0-9]{1,3}\.){3}[0-9]{1,3}(/[0-9]{1,2})?( table [0-9]{1,10})?")
# Words in the output of `ip route` that its input does not accept.
ROUTE_FLAGS = {"linkdown", "dead", "offload", "rt_offload", "offload_failed", "trap", "rt_trap", "unresolved", "\\"}


# --- sysctls


def check_sysctl(_target: str, name: str, _value: Optional[Value]) -> None:
    """Raise SettingsError if `name` is not a file below /proc/sys."""
    if not SYSCTL_NAME.fullmatch(name):
        raise SettingsError(f"sysctl {name!r} is not a sysctl's name", "write it as net.ipv4.tcp_ecn")


def _sysctl_path(host: Host, name: str) -> Path:
    return host.root / "proc/sys" / name.translate({ord("."): "/", ord("/"): "."})


def _parse_sysctl(content: str) -> Value:
    """Parse a sysctl. The kernel separates several numbers by tabs; a single one is an integer."""
    words = content.split()
    is_integer = len(words) == 1 and re.fullmatch(r"-?[0-9]+", words[0])
    return int(words[0]) if is_integer else " ".join(words)


def read_sysctls(host: Host, _target: str, names: Iterable[str]) -> Values:
    """Return the values of sysctls from /proc/sys."""
    found = {}
    for name in names:
        try:
            found[name] = _parse_sysctl(_sysctl_path(host, name).read_text())
        except OSError as error:
            raise AbsentError(f"cannot read sysctl {name}: {error.strerror}") from error
    return found


def write_sysctls(host: Host, _target: str, values: Mapping[str, Value]) -> None:
    """Write sysctls to /proc/sys in the given order."""
    for name, value in values.items():
        try:
            write_file(_sysctl_path(host, name), f"sysctl {name}", value)
        except SettingsError as error:
            if name == "net.ipv4.tcp_congestion_control" and not error.hint:
                error.hint = _available(host)
            raise


def _available(host: Host) -> str:
    return f"available here: {read_sysctls(host, '', [AVAILABLE])[AVAILABLE]}; load the transport first"


# --- One value for all CPUs or interrupts, or words that they take in turn


def is_same_cycle(left: Value, right: Value) -> bool:
    """Return True if two lists of words are equal after repeating the shorter one."""
    ours, theirs = str(left).split(), str(right).split()
    return all(ours[index % len(ours)] == theirs[index % len(theirs)] for index in range(max(len(ours), len(theirs))))


def _read_turns(paths: List[Path], label: str) -> str:
    words = [read_file(path, label) or "nothing" for path in paths]
    return words[0] if len(set(words)) == 1 else " ".join(words)


def _write_turns(paths: List[Path], label: str, value: Value) -> None:
    """Write every file, then raise the first refusal, because one CPU or interrupt must not keep the others back."""
    words = str(value).split()
    refusals = []
    for index, path in enumerate(paths):
        try:
            write_file(path, f"{label} ({path.parent.name})", words[index % len(words)])
        except SettingsError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def _by_number(paths: Iterable[Path]) -> List[Path]:
    return sorted(paths, key=lambda path: int(re.sub(r"[^0-9]", "", path.name)))


def _governors(host: Host) -> List[Path]:
    cpus = _by_number((host.root / "sys/devices/system/cpu").glob("cpu[0-9]*"))
    files = [cpu / "cpufreq/scaling_governor" for cpu in cpus if (cpu / "cpufreq/scaling_governor").exists()]
    if not files:
        message = "cpu governor: no CPU of this host has cpufreq/scaling_governor"
        raise AbsentError(message, "let the BIOS leave power to the system, or leave the governor out")
    return files


def read_cpu(host: Host, _target: str, names: Iterable[str]) -> Values:
    """Return the frequency governor of all CPUs: one word if it is the same, else one for each CPU."""
    return {name: _read_turns(_governors(host), f"cpu {name}") for name in names}


def write_cpu(host: Host, _target: str, values: Mapping[str, Value]) -> None:
    """Write the frequency governor of each CPU. One word applies to all CPUs."""
    for name, value in values.items():
        _write_turns(_governors(host), f"cpu {name}", value)


def _affinities(host: Host, target: str) -> List[Path]:
    interrupts = _by_number((host.root / "sys/class/net" / target / "device/msi_irqs").glob("[0-9]*"))
    if not interrupts:
        raise AbsentError(f"irq {target}: /sys/class/net/{target}/device/msi_irqs names no interrupt")
    return [host.root / "proc/irq" / interrupt.name / "smp_affinity_list" for interrupt in interrupts]


def read_irq(host: Host, target: str, names: Iterable[str]) -> Values:
    """Return the CPU list of all interrupts of a NIC: one if it is the same, else one for each interrupt."""
    return {name: _read_turns(_affinities(host, target), f"irq {target} {name}") for name in names}


def write_irq(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Assign CPU lists to a NIC's interrupts in turn."""
    for name, value in values.items():
        _write_turns(_affinities(host, target), f"irq {target} {name}", value)


# --- Links


def _query(host: Host, tool: str, *arguments: str) -> str:
    """Return a tool's answer about an object that may be absent."""
    try:
        return host.run(tool, *arguments)
    except ToolError as error:
        raise AbsentError(str(error), error.hint) from error


def read_link(host: Host, target: str, names: Iterable[str]) -> Values:
    """Return an interface's values from `ip -d link`, `ethtool`, `ethtool -a` and `ethtool --get-tunable`."""
    wanted = list(names)
    found: Values = {}
    if any(name in IP_NAMES for name in wanted):
        found.update(json.loads(_query(host, "ip", "-j", "-d", "link", "show", "dev", target))[0])
    if "speed_mbps" in wanted or "autoneg" in wanted:
        found.update(_speed(_query(host, "ethtool", target)))
    if any(name in PAUSE for name in wanted):
        said = _fields(_query(host, "ethtool", "-a", target))
        found.update({name: int(said[shown] == "on") for name, (shown, _) in PAUSE.items() if shown in said})
    if "pfc_prevention_ms" in wanted:
        said = _fields(_query(host, "ethtool", "--get-tunable", target, PFC_PREVENTION))
        found.update({"pfc_prevention_ms": int(said[PFC_PREVENTION])} if PFC_PREVENTION in said else {})
    missing = [name for name in wanted if name not in found]
    if missing:
        raise SettingsError(f"link {target} {missing[0]}: this host's tools do not report it")
    return {name: found[name] for name in wanted}


def _fields(said: str) -> Dict[str, str]:
    pairs = (line.split(":", 1) for line in said.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def _speed(said: str) -> Values:
    fields = _fields(said)
    found: Values = {"autoneg": int(fields.get("Auto-negotiation") == "on")}
    speed = re.fullmatch(r"([0-9]+)Mb/s", fields.get("Speed", ""))
    found["speed_mbps"] = int(speed.group(1)) if speed else UNKNOWN
    return found


def write_link(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Write an interface's values by one call of each required tool."""
    by_ip = [word for name in IP_NAMES if name in values for word in (name, str(values[name]))]
    if by_ip:
        host.run("ip", "link", "set", "dev", target, *by_ip)
    if "speed_mbps" in values or "autoneg" in values:
        _write_speed(host, target, values)
    pause = [
        word
        for name, (_, given) in PAUSE.items()
        if name in values
        for word in (given, "on" if values[name] else "off")
    ]
    if pause:
        host.run("ethtool", "-A", target, *pause)
    if "pfc_prevention_ms" in values:
        host.run("ethtool", "--set-tunable", target, PFC_PREVENTION, str(values["pfc_prevention_ms"]))


def _write_speed(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Set the speed, which turns autoneg off; with autoneg the link chooses its speed. The link goes down for it."""
    if values.get("autoneg"):
        words = ["autoneg", "on"]
    elif "speed_mbps" in values:
        words = ["speed", str(values["speed_mbps"]), "autoneg", "off"]
    else:
        words = ["autoneg", "off"]
    host.run("ethtool", "-s", target, *words)
    _await_speed(host, target)


def _await_speed(host: Host, target: str) -> None:
    give_up = time.monotonic() + host.link_timeout_s
    while not _is_up(host, target) and time.monotonic() < give_up:
        time.sleep(LOOK_S)


def _is_up(host: Host, target: str) -> bool:
    return read_link(host, target, ["speed_mbps"])["speed_mbps"] != UNKNOWN


@contextlib.contextmanager
def link_comes_back(host: Host, target: str) -> Iterator[None]:
    """Wait, at the end of the block, until a link that was up before is up again."""
    was_up = _is_up(host, target)
    yield
    if was_up:
        time.sleep(LOOK_S)
        _await_speed(host, target)


def drags_link(_host: Host, _target: str, names: List[str]) -> List[str]:
    """Return the settings that a write changes as a side effect: speed and autoneg change each other."""
    return ["autoneg", "speed_mbps"] if {"autoneg", "speed_mbps"} & set(names) else []


def moot_link(name: str, settings: Values) -> bool:
    """Return True if `name` is the speed and the link was down, so that it had no speed to restore."""
    return name == "speed_mbps" and settings.get(name) == UNKNOWN


# --- Routes


def check_route(target: str, name: str, value: Optional[Value]) -> None:
    """Raise SettingsError if `target` is not an IPv4 prefix, or is the default route, or if name or value is invalid.

    Connections outside data networks, such as SSH, must keep the host's own congestion control.
    """
    if not IPV4_PREFIX.fullmatch(target):
        raise SettingsError(
            f"route {target!r}: expected an IPv4 prefix such as 10.0.2.0/24, or one with its routing "
            "table such as 10.0.2.0/24 table 100, never the default route"
        )
    check_by("route", ROUTE_RULES)(target, name, value)


def _route(host: Host, target: str) -> Tuple[List[str], Values]:
    """Return the words of the present route without the settable ones, and those.

    A table other than main, which is for the packets of one NIC, may have a route to all destinations instead.
    """
    prefix, *table = target.split()
    lines = _query(host, "ip", "-4", "-o", "route", "show", "exact", prefix, *table).splitlines()
    if table and not lines:
        containing = _query(host, "ip", "-4", "-o", "route", "show", "match", prefix, *table).splitlines()
        longest = max(map(_prefix_length, containing), default=0)
        lines = [line for line in containing if _prefix_length(line) == longest]
    if not lines:
        raise AbsentError(f"route {target}: this host has no such route", "look at: ip route")
    if len(lines) > 1:
        raise SettingsError(f"route {target}: found {len(lines)} routes, expected one", "look at: ip route")
    words = _to_ip_input(lines[0].split())
    if words[0].isalpha() and not (table and words[0] == "default"):
        raise SettingsError(f"route {target}: found a route of type {words[0]}, expected one to a data network")
    found: Values = dict.fromkeys(ROUTE_WORDS, "none")
    for name, word in ROUTE_WORDS.items():
        if word in words:
            at = words.index(word)
            end = at + (3 if words[at + 1] == "lock" else 2)
            found[name] = " ".join(words[at + 1 : end])
            words = words[:at] + words[end:]
    if found["rto_min_ms"] != "none":
        found["rto_min_ms"] = _ms(str(found["rto_min_ms"]).split()[-1])  # `ip route` always locks it
    if found["quickack"] in ("0", "1"):
        found["quickack"] = int(found["quickack"])
    return [words[0], *table, *words[1:]], found


def _prefix_length(shown: str) -> int:
    """Return the prefix length of a route as `ip route` shows it, perhaps behind its type."""
    prefix = next(word for word in shown.split() if word == "default" or word[0].isdigit())
    return 0 if prefix == "default" else int(prefix.partition("/")[2] or 32)


def _to_ip_input(shown: List[str]) -> List[str]:
    """Return the words of a route as `ip route` takes them."""
    words = [word for at, word in enumerate(shown) if word not in ROUTE_FLAGS or shown[at - 1] == "dev"]
    if "scope" not in words and not {"via", "nexthop", "nhid"} & set(words):
        # `ip route` does not show this scope, and takes a route with a device alone for one of scope `link`.
        words += ["scope", "global"]
    return _tos_first(words)


def _tos_first(words: List[str]) -> List[str]:
    """Put a route's TOS before its encapsulation, or `ip` takes it for a part of that. IP in IP has its own."""
    if "encap" not in words or "nexthop" in words:
        return words
    at = words.index("encap")
    end = at + next(index for index, word in enumerate(words[at:]) if word in ("via", "dev"))
    is_routes = words[end - 2] == "tos" and words[at:end].count("tos") == (2 if words[at + 1] == "ip" else 1)
    return [words[0], *words[end - 2 : end], *words[1 : end - 2], *words[end:]] if is_routes else words


def _without_next_hops(words: List[str]) -> List[str]:
    """Return a route's words without those that its next-hop id stands for."""
    kept = words[: words.index("nexthop")] if "nexthop" in words else list(words)
    if "encap" in kept:
        at = kept.index("encap")
        kept = kept[:at] + kept[at + next(index for index, word in enumerate(kept[at:]) if word in ("via", "dev")) :]
    for word in ("via", "dev"):
        if word in kept:
            at = kept.index(word)
            kept = kept[:at] + kept[at + (3 if kept[at + 1] in ("inet", "inet6") else 2) :]
    return [word for word in kept if word != "onlink"]


def _ms(reported: str) -> int:
    """Parse a time as `ip route` prints it: 250ms, 1.5s."""
    return round(float(reported[:-2])) if reported.endswith("ms") else round(1000 * float(reported.rstrip("s")))


def _devices(host: Host, words: List[str]) -> Set[str]:
    """Return the interfaces by which a route leaves, by its words or by its next-hop id."""
    found = {words[at + 1] for at, word in enumerate(words) if word == "dev"}
    return _devices_behind(host, words[words.index("nhid") + 1]) if "nhid" in words and not found else found


def _devices_behind(host: Host, next_hop: str) -> Set[str]:
    (hop,) = json.loads(_query(host, "ip", "-j", "nexthop", "show", "id", next_hop))
    members = (_devices_behind(host, str(each["id"])) for each in hop.get("group", ()))
    return {hop["dev"]} if "dev" in hop else {device for devices in members for device in devices}


def default_devices(host: Host) -> Set[str]:
    """Return the interfaces of the IPv4 default route that is active, which is the one with the lowest metric."""
    shown = _query(host, "ip", "-4", "-o", "route", "show", "exact", "default").splitlines()
    routes = [words for words in map(str.split, shown) if "dead" not in words]  # the kernel does not use dead ones
    lowest = min(map(_route_metric, routes), default=0)
    return {device for words in routes if _route_metric(words) == lowest for device in _devices(host, words)}


def _route_metric(words: List[str]) -> int:
    return int(words[words.index("metric") + 1]) if "metric" in words else 0


def devices_to(host: Host, address: str, own_address: str = "") -> Set[str]:
    """Return the interfaces by which packets to an address leave; none if it has no route.

    Packets of a connection have the source address `own_address`, on which the route may depend.
    """
    address, _, interface = address.partition("%")
    if interface:  # IPv6's link-local addresses name their own
        return {interface}
    try:
        shown = host.run("ip", "-o", "route", "get", address, *(["from", own_address] if own_address else []))
    except ToolError:
        return set()
    return _devices(host, shown.split())


def read_route(host: Host, target: str, names: Iterable[str]) -> Values:
    """Return the metrics of the route to a prefix. Raises SettingsError if its interface has the active default route.

    The active one has the lowest metric; others are common where DHCP configures data networks, too.
    """
    words, found = _route(host, target)
    shared = sorted(_devices(host, words) & default_devices(host))
    if shared:
        raise SettingsError(
            f"route {target} leaves by {shared[0]}, which has the active default route: expected a data network",
            "SSH and file servers must keep the host's own congestion control; `ip route` shows the metrics of default "
            "routes, of which the lowest is active",
        )
    return {name: found[name] for name in names}


def write_route(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Change the metrics in `values` of the route to a prefix. Other attributes of the route stay."""
    words, found = _route(host, target)
    if "nhid" in words:
        words = _without_next_hops(words)
    wanted = {**found, **values}
    change = [
        part
        for name, word in ROUTE_WORDS.items()
        if wanted[name] != "none"
        for part in (word, *f"{wanted[name]}{'ms' if name.endswith('_ms') else ''}".split())
    ]
    at = words.index("nexthop") if "nexthop" in words else len(words)
    try:
        if "nhid" in words and not change:
            host.run("ip", "-4", "route", "change", *_of_protocol(words, PASSING_PROTOCOL))
        host.run("ip", "-4", "route", "change", *words[:at], *change, *words[at:])
    except ToolError as error:
        raise SettingsError(str(error), error.hint or _missing(host, str(wanted["congctl"]))) from error


def _of_protocol(words: List[str], protocol: str) -> List[str]:
    at = words.index("proto") if "proto" in words else len(words)
    return [*words[:at], "proto", protocol, *words[at + 2 :]]


def _missing(host: Host, congctl: str) -> str:
    """Return what to do about a congestion control that the kernel lacks; empty if it has it."""
    names = str(read_sysctls(host, "", [AVAILABLE])[AVAILABLE]).split()
    return "" if congctl.rsplit(maxsplit=1)[-1] in ("none", *names) else _available(host)


# --- Transports


def read_transport(host: Host, target: str, names: Iterable[str]) -> Values:
    """Return the active parameters of a transport in this network namespace."""
    parameters = json.loads(_query(host, "transport", "get", target))["params"]
    unknown = [name for name in names if name not in parameters]
    if unknown:
        raise SettingsError(f"transport {target} has no parameter {unknown[0]!r}", f"known: {', '.join(parameters)}")
    return {name: parameters[name] for name in names}


def write_transport(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Write the parameters of a transport by one call of `transport set`."""
    host.run("transport", "set", target, *(f"{name}={value}" for name, value in values.items()))


def _nearly_same(left: Value, right: Value) -> bool:
    """Return True if the values differ by at most a part in a thousand, because transports keep fixed point."""
    try:
        return math.isclose(float(left), float(right), rel_tol=1e-3)
    except ValueError:
        return left == right


def _any_name(_target: str, _name: str, _value: Optional[Value]) -> None:
    """Accept any name, because the transport itself checks its parameters."""


KINDS = {
    "sysctl": Kind(read_sysctls, write_sysctls, same, check_sysctl),
    "cpu": Kind(read_cpu, write_cpu, is_same_cycle, check_by("cpu", {"governor": text()})),
    "link": Kind(read_link, write_link, same, check_by("link", LINK_RULES), drags_link, moot_link),
    "irq": Kind(read_irq, write_irq, is_same_cycle, check_by("irq", {"cpus": either(text(), whole(0, 10**5))})),
    "route": Kind(read_route, write_route, same, check_route),
    "transport": Kind(read_transport, write_transport, _nearly_same, _any_name),
}
