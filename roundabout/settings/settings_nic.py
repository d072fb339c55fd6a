# SPDX-License-Identifier: Apache-2.0
"""Settings of ConnectX NICs: DCQCN, RoCE, and the firmware's persistent NV config.

DCQCN has two backends, and each file is searched in both: OFED's sysfs (/sys/class/net/IF/ecn, with or without a folder
`params`), and mainline's debugfs (cc_params). Only PARAMETERS has the names and units of both and of NV config.
Firmware of newer NICs may accept the parameters of both and ignore them. Without its answer, they count as ignored.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional

from roundabout.settings.settings_host import (
    AbsentError,
    Host,
    Kind,
    Rule,
    SettingsError,
    ToolError,
    Value,
    Values,
    check_by,
    either,
    one_of,
    read_file,
    same,
    whole,
    write_file,
)

U32 = whole(0, 2**32 - 1)
SWITCH = whole(0, 1)
TOS = whole(0, 255)
# PCI device number of ConnectX-6 Dx (mlx5_core_pci_table), the first NIC whose firmware may ignore DCQCN's parameters.
FIRST_WITHOUT_LEGACY_DCQCN = 0x101D
LEGACY_DCQCN = "ROCE_CC_LEGACY_DCQCN"
# NV settings, and the values at which firmware obeys DCQCN's parameters. A device may lack them.
OBEYING = {LEGACY_DCQCN: 1, "USER_PROGRAMMABLE_CC": 0}
# The congestion control that firmware may use at another value (NVIDIA: "DOCA PCC"; blog "Scaling Zero Touch RoCE").
IN_ITS_PLACE = {LEGACY_DCQCN: "ZTR-RTTCC", "USER_PROGRAMMABLE_CC": "programmable congestion control"}
# Queries of the register PPCC (mstflint's register_access_table.adb), and the field of each answer: the algorithm in
# slot 15, or 0, and whether it is enabled. By the blog, disabling it forces ZTR-RTTCC on all flows.
RTTCC_SLOT = "local_port=1,pnat=0,lp_msb=0,algo_slot=15"
RTTCC_QUERIES = {"cmd_type=0x10": "text[15]", "cmd_type=0x3": "value"}
# The kernel's debugfs_locked_down (fs/debugfs/file.c): lockdown opens only files of mode 0444, and these have 0600.
LOCKDOWN = "kernel lockdown (Secure Boot) closes debugfs: use DOCA-OFED's sysfs (driver: ofed), or turn lockdown off"
# mstflint's issue 416: 4.15 fails under lockdown, and 4.18 does not.
UNANSWERED = "run as root, with mstflint 4.18 or later, or MFT; kernel lockdown (Secure Boot) can deny PCI access"
# Kinds of interfaces that are not a NIC's own, by a file in sysfs, each with the remedy (docs/how-to/rack.md).
NO_NICS = {
    "bonding": ("a bond", "name one of its ports, taken out of it"),
    "master": ("a port of a bond or bridge", "take it out: ip link set NIC nomaster"),
    "device/physfn": ("a virtual function", "name its physical function, on the machine that has it"),
}
# PCI devices that mlx5_core_pci_table marks as virtual functions; a guest that has one lacks device/physfn.
VIRTUAL_FUNCTIONS = ("0x1012", "0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e", "0xa2d3")
VLAN = ("a VLAN", "name the NIC below it, and give that an address")
PHYSICAL_ONLY = "OFED's attributes are writable on physical functions only"


class InertError(AbsentError):
    """Error for a NIC that ignores DCQCN's parameters until the NV setting `cure` has the value `obeying`.

    `reset` is the command that resets the firmware, after which NV config is in force.
    """

    def __init__(self, target: str, name: str, found: Value, reset: str, hint: str) -> None:
        in_charge = f"{name} is {found}, and {IN_ITS_PLACE[name]} may be in its place"
        super().__init__(f"dcqcn {target}: DCQCN's parameters do nothing on this NIC: {in_charge}", hint)
        self.cure = ("nv", target, name)
        self.obeying = OBEYING[name]
        self.reset = reset


def _read_if_there(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def nic_folder(host: Host, target: str) -> Path:
    """Return the folder in sysfs of the device behind the interface `target`.

    Raises AbsentError if the interface does not exist, and SettingsError if it has no device.
    """
    folder = host.root / "sys/class/net" / target
    kinds = [kind for file, kind in NO_NICS.items() if (folder / file).exists()]
    if "DEVTYPE=vlan" in _read_if_there(folder / "uevent").splitlines():
        kinds.append(VLAN)
    if _read_if_there(folder / "device/device").strip() in VIRTUAL_FUNCTIONS:
        kinds.append(NO_NICS["device/physfn"])
    if kinds:
        kind, remedy = kinds[0]
        hint = f"{remedy}, because QoS and DCQCN are each port's own (docs/how-to/rack.md)"
        raise SettingsError(f"{target} is {kind}, expected a NIC's own interface", hint)
    if not (folder / "device").exists():
        raise AbsentError(f"{target}: no network interface of a PCI device here has this name")
    return folder


def _pci_address(host: Host, target: str) -> str:
    return os.path.basename(os.path.realpath(nic_folder(host, target) / "device"))


# --- DCQCN


class Unit(NamedTuple):
    """The conversion between a document's value and the NIC's whole number, and the allowed values."""

    rule: Rule
    to_nic: Callable[[float], int] = int
    from_nic: Callable[[int], Value] = int


def _fraction(low: int, high: int) -> Rule:
    return Rule(
        f"a number from {low}/1024 to {high}/1024",
        lambda value: not isinstance(value, str) and low / 1024 <= value <= high / 1024,
    )


COUNT = Unit(U32)
ALPHA = Unit(_fraction(1, 1023), lambda value: round(value * 1024), lambda code: code / 1024)
# Ranges are the intersection of two sources: NVIDIA's page "DCQCN CC Parameters" (DOCA 3.4), and mstflint 4.36's
# mlxconfig_host.db. Firmware with 32-bit rates accepts larger rates and byte counters.
RATE = Unit(whole(1, 131071))
TIME = Unit(whole(1, 131071))


class Parameter(NamedTuple):
    """A DCQCN parameter: its names in OFED's sysfs and in cc_params, and its unit."""

    ofed: Optional[str]
    cc_params: str
    unit: Unit = COUNT

    def nv(self, port: int) -> Optional[str]:
        """Return the parameter's name in NV config for a port of the NIC: OFED's name in capitals, and _P1 or _P2."""
        return f"{self.ofed.upper()}_P{port}" if self.ofed else None


PARAMETERS = {
    "T_us": Parameter("rpg_time_reset", "rp_time_reset", TIME),
    "byte_counter_bytes": Parameter("rpg_byte_reset", "rp_byte_reset", Unit(whole(0, 32767))),
    "F": Parameter("rpg_threshold", "rp_threshold", Unit(whole(1, 31))),
    "R_AI_mbps": Parameter("rpg_ai_rate", "rp_ai_rate", RATE),
    "R_HAI_mbps": Parameter("rpg_hai_rate", "rp_hai_rate", RATE),
    "R_min_mbps": Parameter("rpg_min_rate", "rp_min_rate", RATE),
    "R_max_mbps": Parameter("rpg_max_rate", "rp_max_rate"),
    "Gd_log2": Parameter("rpg_gd", "rp_gd", Unit(whole(10, 11))),
    "min_decrease_factor_percent": Parameter("rpg_min_dec_fac", "rp_min_dec_fac", Unit(whole(1, 100))),
    "g_code": Parameter("dce_tcp_g", "rp_dce_tcp_g", Unit(whole(1, 1023))),  # as it is: what it means is contested
    "alpha_timer_us": Parameter("dce_tcp_rtt", "rp_dce_tcp_rtt", TIME),
    "rate_reduce_period_us": Parameter("rate_reduce_monitor_period", "rp_rate_reduce_monitor_period", TIME),
    "alpha_initial": Parameter("initial_alpha_value", "rp_initial_alpha_value", ALPHA),
    "clamp_target_rate": Parameter("clamp_tgt_rate", "rp_clamp_tgt_rate", Unit(SWITCH)),
    "clamp_target_rate_after_timer": Parameter("clamp_tgt_rate_after_time_inc", "rp_clamp_tgt_rate_ati", Unit(SWITCH)),
    "rate_on_first_cnp_mbps": Parameter(
        "rate_to_set_on_first_cnp", "rp_rate_to_set_on_first_cnp", Unit(whole(0, 131071))
    ),
    "cnp_gap_us": Parameter("min_time_between_cnps", "np_min_time_between_cnps", Unit(whole(0, 131071))),
    "cnp_dscp": Parameter("cnp_dscp", "np_cnp_dscp", Unit(whole(0, 63))),
    "cnp_prio": Parameter("cnp_802p_prio", "np_cnp_prio", Unit(whole(0, 7))),
    "cnp_prio_mode": Parameter(None, "np_cnp_prio_mode", Unit(SWITCH)),
}
ENABLES = {
    f"{side}_enable_prio{priority}": f"roce_{side}/enable/{priority}" for side in ("rp", "np") for priority in range(8)
}
DCQCN_RULES = {**{name: each.unit.rule for name, each in PARAMETERS.items()}, **dict.fromkeys(ENABLES, SWITCH)}


def _unit(name: str) -> Unit:
    return PARAMETERS[name].unit if name in PARAMETERS else COUNT


def _dcqcn_files(host: Host, target: str, name: str) -> List[Path]:
    """Return the possible files of a parameter, best first."""
    ecn = nic_folder(host, target) / "ecn"
    if name in ENABLES:
        return [ecn / ENABLES[name]]
    parameter = PARAMETERS[name]
    files = [host.root / "sys/kernel/debug/mlx5" / _pci_address(host, target) / "cc_params" / parameter.cc_params]
    if parameter.ofed:
        side = ecn / f"roce_{parameter.cc_params[:2]}"
        files = [side / "params" / parameter.ofed, side / parameter.ofed, *files]
    return files


def _dcqcn_file(host: Host, target: str, name: str) -> Path:
    files = _dcqcn_files(host, target, name)
    try:
        found = next((file for file in files if file.exists()), None)
        hint = "" if found else _why_no_file(files[-1].parent, name)
    except PermissionError as error:
        raise SettingsError(f"dcqcn {target} {name}: {error.filename}: {error.strerror}", "run as root") from error
    if found:
        return found
    tried = ", ".join(f"/{file.relative_to(host.root)}" for file in files)
    raise SettingsError(f"dcqcn {target} {name}: found none of {tried}", hint)


def _why_no_file(folder: Path, name: str) -> str:
    """Return the remedy for a parameter without a file. `folder` is that of the file searched last."""
    if name in ENABLES:
        return "without OFED, priorities are chosen by ROCE_CC_PRIO_MASK_P1 in nv (_P2 on a second port)"
    if not folder.is_dir():
        return "mount debugfs and load mlx5_ib, or install DOCA-OFED"
    return "this driver has no such parameter: remove it from the document" if any(folder.iterdir()) else LOCKDOWN


def read_dcqcn(host: Host, target: str, names: Iterable[str]) -> Values:
    """Return DCQCN's parameters of a NIC, in the units of documents.

    Raises InertError if the NIC ignores them, and SettingsError if the NIC's firmware does not answer.
    """
    files = {name: _dcqcn_file(host, target, name) for name in names}
    values = {name: _number(file, f"dcqcn {target} {name}", _unit(name)) for name, file in files.items()}
    _refuse_inert(host, target)
    return values


def _number(file: Path, label: str, unit: Unit = COUNT) -> Value:
    try:
        content = read_file(file, label)
    except SettingsError as error:
        error.hint = error.hint or _closed_hint(file)
        raise
    if not content.isdigit():
        raise SettingsError(f"{label}: {file}: found {content!r}, expected a whole number")
    return unit.from_nic(int(content))


def _closed_hint(file: Path) -> str:
    return LOCKDOWN if file.parent.name == "cc_params" else ""


def write_dcqcn(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Write DCQCN's parameters of a NIC, one file each.

    cnp_prio_mode is written last, because mainline clears it when cnp_prio is written (mlx5's cong.c).
    """
    for name in sorted(values, key=lambda each: each == "cnp_prio_mode"):
        file = _dcqcn_file(host, target, name)
        try:
            write_file(file, f"dcqcn {target} {name}", _unit(name).to_nic(float(values[name])))
        except SettingsError as error:
            error.hint = error.hint or _closed_hint(file) or PHYSICAL_ONLY
            raise


def drags_dcqcn(host: Host, target: str, names: List[str]) -> List[str]:
    """Return the settings that a write changes as a side effect: in cc_params, cnp_prio changes cnp_prio_mode."""
    if "cnp_prio" in names and _dcqcn_file(host, target, "cnp_prio").parent.name == "cc_params":
        return ["cnp_prio_mode"]
    return []


def _refuse_inert(host: Host, target: str) -> None:
    """Raise InertError if firmware ignores DCQCN's parameters, and SettingsError if it cannot be queried."""
    if _always_obeys_dcqcn(host, target):
        return
    for name, obeying in OBEYING.items():
        stored = _query_if_supported(host, target, name)
        if stored and stored.current != obeying:
            tool = _nv_tool(host).replace("config", "fwreset")  # MFT's, or mstflint's own
            # A reset of level 3 includes the other ports, which may carry SSH. BlueField NICs in DPU mode reject it.
            reset = f"{tool} -d {_pci_address(host, target)} reset (of all functions of the card), or reboot"
            of_inventory = " (dcqcn_in_nv_config in an inventory)" if name == LEGACY_DCQCN else ""
            apply = f"apply nv {target} {name}: {obeying}{of_inventory}, then "
            found = bool(stored.current) if stored.current in (0, 1) else stored.current
            raise InertError(target, name, found, reset, reset if stored.next_boot == obeying else apply + reset)
    _refuse_forced_rttcc(host, target)


def _refuse_forced_rttcc(host: Host, target: str) -> None:
    """Raise SettingsError if ZTR-RTTCC is forced on all flows. It is not if the NIC or its tools lack the register."""
    tool = next((each for each in ("mlxreg", "mstreg") if host.has(each)), None)
    if tool is None:
        return
    words = [tool, "-d", _pci_address(host, target), "--reg_name", "PPCC"]
    found = []
    for query, field in RTTCC_QUERIES.items():
        try:
            said = host.run(*words, "--get", "--op", query, "--indexes", RTTCC_SLOT)
        except ToolError:
            return
        found += re.findall(rf"^\s*{re.escape(field)}\s*\|\s*(0x[0-9a-fA-F]+)\s*$", said, re.MULTILINE)
    values = [int(each, 16) for each in found]
    if len(values) == len(RTTCC_QUERIES) and values[0] and not values[1]:
        hint = f"{' '.join(words)} --set cmd_type=1 --indexes {RTTCC_SLOT} --yes, or a reset of firmware"
        raise SettingsError(f"dcqcn {target}: DCQCN's parameters do nothing on this NIC: ZTR-RTTCC is forced", hint)


def _has_legacy_choice(host: Host, target: str) -> bool:
    return not _always_obeys_dcqcn(host, target) and _query_if_supported(host, target, LEGACY_DCQCN) is not None


def _query_if_supported(host: Host, target: str, nv_name: str) -> Optional[Stored]:
    """Return a setting of NV config, or None if the device does not support it.

    Raises SettingsError for all other failures, such as denied access, or a tool that has no such setting.
    """
    try:
        return _query_nv(host, target, [nv_name])[nv_name]
    except ToolError as error:
        if f"The Device doesn't support {nv_name} parameter" in str(error):
            return None
        raise SettingsError(f"dcqcn {target}: NIC does not report if it obeys DCQCN: {error}", UNANSWERED) from error


def _always_obeys_dcqcn(host: Host, target: str) -> bool:
    device = int(read_file(nic_folder(host, target) / "device/device", f"dcqcn {target}"), 16)
    return device < FIRST_WITHOUT_LEGACY_DCQCN


# --- NV config: what firmware keeps, in force after mlxfwreset or a reboot


class Stored(NamedTuple):
    """The values of one setting in the output of `mlxconfig -e q`."""

    current: Value
    next_boot: Value


PORTS = {"0": 1, "1": 2}  # the number of a NIC's port by its PCI function
NV_NAMES = {parameter.nv(port): name for name, parameter in PARAMETERS.items() for port in PORTS.values()}


def check_nv(target: str, name: str, value: Optional[Value]) -> None:
    """Raise SettingsError unless `name` is a DCQCN parameter, or another name of mlxconfig in capitals."""
    if name in PARAMETERS and PARAMETERS[name].ofed:
        check_by("nv", DCQCN_RULES)(target, name, value)
    elif name in NV_NAMES:
        raise SettingsError(f"nv {target} {name}: found mlxconfig's name, expected {NV_NAMES[name]}")
    elif not re.fullmatch(r"[A-Z][A-Z0-9_]+", name):
        raise SettingsError(
            f"nv {target} has no setting {name!r}", "known: DCQCN's parameters, and mlxconfig's in capitals"
        )
    elif value is not None and not U32.accepts(value):
        raise SettingsError(f"nv {target} {name}: found {value!r}, expected {U32.expected}")


def _nv_name(host: Host, target: str, name: str) -> str:
    if name not in PARAMETERS:
        return name
    address = _pci_address(host, target)
    function = address.rpartition(".")[2]
    if function not in PORTS:
        raise SettingsError(f"nv {target} {name}: found PCI function {address}, expected function 0 or 1 of a NIC")
    return str(PARAMETERS[name].nv(PORTS[function]))


def _nv_tool(host: Host) -> str:
    for tool in ("mlxconfig", "mstconfig"):
        if host.has(tool):
            return tool
    raise SettingsError("found neither mlxconfig nor mstconfig", "install NVIDIA MFT, or the package mstflint")


def _query_nv(host: Host, target: str, nv_names: List[str]) -> Dict[str, Stored]:
    said = host.run(_nv_tool(host), "-d", _pci_address(host, target), "-e", "q", *nv_names)
    stored = {}
    for line in said.splitlines():
        words = line.replace("*", " ").split()
        if len(words) == 4 and words[0] in nv_names:  # name, default, current, next boot
            stored[words[0]] = Stored(_nv_value(words[2]), _nv_value(words[3]))
    missing = [name for name in nv_names if name not in stored]
    if missing:
        raise SettingsError(f"nv {target}: the output of mlxconfig lacks {missing[0]}: found {said.strip()!r}")
    return stored


def _nv_value(word: str) -> Value:
    """Parse `300`, or the number of `True(1)`."""
    number = re.fullmatch(r"(?:\w+\()?(0x[0-9a-fA-F]+|[0-9]+)\)?", word)
    return int(number.group(1), 0) if number else word


def read_nv(host: Host, target: str, names: Iterable[str]) -> Values:
    """Return the NV config of the next boot. ROCE_CC_LEGACY_DCQCN counts as set on NICs that support only DCQCN."""
    by_name = {name: _nv_name(host, target, name) for name in names}
    found: Values = {}
    if LEGACY_DCQCN in by_name and not _has_legacy_choice(host, target):
        found[by_name.pop(LEGACY_DCQCN)] = 1
    stored = _query_nv(host, target, list(by_name.values())) if by_name else {}
    read = {name: _unit(name).from_nic(int(stored[nv_name].next_boot)) for name, nv_name in by_name.items()}
    return {**found, **read}


def write_nv(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Write NV config by one call of `mlxconfig set`. It becomes active at the next boot or firmware reset."""
    pairs = [f"{_nv_name(host, target, name)}={_unit(name).to_nic(float(value))}" for name, value in values.items()]
    host.run(_nv_tool(host), "-d", _pci_address(host, target), "-y", "set", *pairs)


# --- RoCE

ROCE_RULES = {
    "mode": one_of("RoCE v2", "IB/RoCE v1"),
    "tos": TOS,
    "traffic_class": either(TOS, one_of("none")),
    "gid_index": U32,
}
CMA_FILES = {"mode": "default_roce_mode", "tos": "default_roce_tos"}


def _rdma_device(host: Host, target: str) -> Path:
    devices = sorted((nic_folder(host, target) / "device/infiniband").glob("*")) or _soft_devices(host, target)
    if not devices:
        raise SettingsError(f"roce {target}: found no RDMA device of this interface", "load mlx5_ib")
    return host.root / "sys/class/infiniband" / devices[0].name


def _soft_devices(host: Host, target: str) -> List[Path]:
    """Return Soft-RoCE devices, which have no NIC but name their interface (the kernel's rxe_verbs.c)."""
    parents = sorted((host.root / "sys/class/infiniband").glob("*/parent"))
    return [file.parent for file in parents if file.read_text().strip() == target]


@contextlib.contextmanager
def _cma_port(host: Host, target: str) -> Iterator[Path]:
    """Yield the folder of rdma_cm's defaults, which exists while a program has created it; its values stay."""
    group = host.root / "sys/kernel/config/rdma_cm" / _rdma_device(host, target).name
    made = not group.exists()
    if made:
        try:
            group.mkdir()
        except OSError as error:
            raise SettingsError(
                f"roce {target}: {group}: {error.strerror}", "mount configfs, modprobe rdma_cm"
            ) from error
    try:
        yield group / "ports/1"
    finally:
        if made:
            group.rmdir()


def read_roce(host: Host, target: str, names: Iterable[str]) -> Values:
    """Return a NIC's RoCE settings from configfs and sysfs."""
    readers: Dict[str, Callable[[], Value]] = {
        "mode": lambda: _read_cma(host, target, "mode", read_file),
        "tos": lambda: _read_cma(host, target, "tos", _number),
        "traffic_class": lambda: _traffic_class(host, target),
        "gid_index": lambda: _gid_index(host, target),
    }
    return {name: readers[name]() for name in names}


def _read_cma(host: Host, target: str, name: str, read: Callable[[Path, str], Value]) -> Value:
    with _cma_port(host, target) as port:
        return read(port / CMA_FILES[name], f"roce {target} {name}")


def _traffic_class_file(host: Host, target: str) -> Path:
    file = _rdma_device(host, target) / "tc/1/traffic_class"
    if not file.exists():
        hint = "without OFED, applications choose it (NCCL_IB_TC), and tos is for rdma_cm's"
        raise SettingsError(f"roce {target} traffic_class: found no /{file.relative_to(host.root)}", hint)
    return file


def _traffic_class(host: Host, target: str) -> Value:
    """Return the value of `Global tclass=106`, or nothing while none is set."""
    said = read_file(_traffic_class_file(host, target), f"roce {target} traffic_class")
    number = re.match(r"(?:Global tclass=)?([0-9]+)", said)
    return int(number.group(1)) if number else "none"


def _gid_index(host: Host, target: str) -> int:
    """Return the first GID that is RoCE v2 with an IPv4 address, as show_gids prints it."""
    port = _rdma_device(host, target) / "ports/1"
    types = sorted((port / "gid_attrs/types").glob("[0-9]*"), key=lambda path: int(path.name))
    for file in types:
        label = f"roce {target} gid_index"
        gid = read_file(port / "gids" / file.name, label)
        if gid.startswith("0000:0000:0000:0000:0000:ffff:") and read_file(file, label) == "RoCE v2":
            return int(file.name)
    raise SettingsError(
        f"roce {target} gid_index: found no RoCE v2 GID with an IPv4 address", "give the NIC an address"
    )


def write_roce(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """Write a NIC's RoCE settings to configfs and sysfs in the given order."""
    for name, value in values.items():
        label = f"roce {target} {name}"
        if name == "gid_index":
            raise SettingsError(f"{label} is read only: it follows from the interface's addresses")
        if name == "traffic_class":
            # -1 takes it back: what OFED's driver starts with.
            write_file(_traffic_class_file(host, target), label, -1 if value == "none" else value)
            continue
        with _cma_port(host, target) as port:
            write_file(port / CMA_FILES[name], label, value)


# Kinds of settings that are transports in hardware. A kind has its transport's name and parameters.
NIC_TRANSPORTS = ("dcqcn",)
KINDS = {
    "roce": Kind(read_roce, write_roce, same, check_by("roce", ROCE_RULES)),
    "dcqcn": Kind(read_dcqcn, write_dcqcn, same, check_by("dcqcn", DCQCN_RULES), drags_dcqcn),
    "nv": Kind(read_nv, write_nv, same, check_nv, survives_reboot=True),
}
