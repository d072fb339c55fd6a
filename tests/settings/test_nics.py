# SPDX-License-Identifier: Apache-2.0
"""Servers with ConnectX NICs, made of files: every setting is set, read back and rolled back."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from roundabout.settings import settings, settings_nic, settings_qos
from roundabout.settings.settings_host import Host, SettingsError

pytestmark = pytest.mark.unit

Server = Callable[[str], Host]
Answer = tuple[str, int]  # what a tool prints, and its exit status
CASES = Path(__file__).parents[1] / "cases/rack"
BACKENDS = ("connectx-5-ofed", "connectx-5-ofed-params", "connectx-5-inbox")

# A value other than the default for each parameter, and what the NIC must hold then.
TABLE = {
    "T_us": (100, 100),
    "byte_counter_bytes": (0, 0),
    "F": (5, 5),
    "R_AI_mbps": (40.0, 40),
    "R_HAI_mbps": (400, 400),
    "R_min_mbps": (10, 10),
    "R_max_mbps": (25000, 25000),
    "Gd_log2": (10, 10),
    "min_decrease_factor_percent": (25, 25),
    "g_code": (1020, 1020),
    "alpha_timer_us": (55, 55),
    "rate_reduce_period_us": (50, 50),
    "alpha_initial": (0.5, 512),
    "clamp_target_rate": (1, 1),
    "clamp_target_rate_after_timer": (0, 0),
    "rate_on_first_cnp_mbps": (10000, 10000),
    "cnp_gap_us": (50, 50),
    "cnp_dscp": (46, 46),
    "cnp_prio": (5, 5),
}


def nic_file(trees: ModuleType, host: Host, parameter: settings_nic.Parameter) -> Path:
    ecn = host.root / "sys/class/net/eth2/ecn"
    if ecn.exists():
        return next(ecn.glob(f"**/{parameter.ofed}"))
    path: Path = host.root / trees.CC_PARAMS / parameter.cc_params
    return path


def test_the_table_is_the_whole_table(trees: ModuleType) -> None:
    rows = {(each.ofed, each.cc_params) for each in settings_nic.PARAMETERS.values() if each.ofed}
    assert rows == {(ofed, mainline) for ofed, mainline, _ in trees.RP + trees.NP}
    assert set(TABLE) | {"cnp_prio_mode"} == set(settings_nic.PARAMETERS)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("parameter", TABLE)
def test_every_parameter_is_set_read_back_and_rolled_back(
    server: Server, trees: ModuleType, name: str, parameter: str
) -> None:
    host = server(name)
    before = trees.snapshot(host.root)
    value, code = TABLE[parameter]
    document = {"dcqcn": {"eth2": {parameter: value}}}
    answer = settings.apply(host, document, "run")
    assert answer["applied"] == document
    assert answer["changed"] == [f"dcqcn eth2 {parameter}"]
    assert nic_file(trees, host, settings_nic.PARAMETERS[parameter]).read_text() == f"{code}\n"
    assert settings.read(host, document)["differs"] == []
    assert settings.restore(host, "run")["failed"] == []
    assert trees.snapshot(host.root) == before


@pytest.mark.parametrize("parameter", TABLE)
def test_every_parameter_is_kept_in_nv_config(server: Server, trees: ModuleType, parameter: str) -> None:
    host = server("connectx-5-ofed")
    value, code = TABLE[parameter]
    document = {"nv": {"eth2": {parameter: value}}}
    stored = json.loads((host.root / f"nv-{trees.PCI}").read_text())
    name = settings_nic.PARAMETERS[parameter].nv(1)
    assert settings.apply(host, document, "site")["applied"] == document
    assert json.loads((host.root / f"nv-{trees.PCI}").read_text())[name][2] == code
    settings.restore(host, "site")
    assert json.loads((host.root / f"nv-{trees.PCI}").read_text()) == stored


def test_defaults_in_the_units_of_the_papers(server: Server) -> None:
    for name in BACKENDS:
        found = settings.read(server(name), {"dcqcn": {"eth2": dict.fromkeys(TABLE)}})["found"]["dcqcn"]["eth2"]
        assert found["T_us"] == 300
        assert found["g_code"] == 1019
        assert found["alpha_initial"] == 1023 / 1024


@pytest.mark.parametrize("name", BACKENDS)
def test_a_whole_rack_document_is_applied_once_and_rolled_back(server: Server, trees: ModuleType, name: str) -> None:
    host, document = server(name), trees.document(name)
    before = trees.snapshot(host.root)
    dry = settings.read(host, document)
    assert trees.snapshot(host.root) == before
    answer = settings.apply(host, document, "site")
    assert answer["differs"] == []
    assert answer["applied"] == document
    assert [each["setting"] for each in dry["differs"]] == answer["changed"]
    journal = (host.state / "journal.jsonl").read_bytes()
    after = trees.snapshot(host.root)
    assert settings.apply(host, document, "site")["changed"] == []
    assert trees.snapshot(host.root) == after
    assert (host.state / "journal.jsonl").read_bytes() == journal
    report = settings.restore(host, "site")
    assert report["failed"] == report["skipped"] == report["overridden"] == []
    assert trees.snapshot(host.root) == before


@pytest.mark.parametrize("name", BACKENDS)
def test_a_reboot_leaves_nothing_to_restore_but_nv_config(server: Server, trees: ModuleType, name: str) -> None:
    host, document = server(name), trees.document(name)
    before = trees.snapshot(host.root)
    settings.apply(host, document, "site")
    trees.reboot(name, host.root)
    drift = {each["setting"] for each in settings.read(host, document)["differs"]}
    assert drift >= {"dcqcn eth2 T_us", "qos eth2 pfc", "roce eth2 mode", "link eth2 mtu"}
    assert not any(each.startswith("nv ") for each in drift)
    report = settings.restore(host, "site")
    assert report["failed"] == []
    assert {each["reason"] for each in report["skipped"]} == {"gone with an earlier boot"}
    assert all(each.startswith("nv ") for each in report["restored"])
    trees.reboot(name, host.root)
    boot = "proc/sys/kernel/random/boot_id"
    assert trees.snapshot(host.root) | {boot: ""} == before | {boot: ""}


def test_settings_are_applied_again_after_a_reboot(server: Server, trees: ModuleType) -> None:
    host, document = server("connectx-5-ofed"), trees.document("connectx-5-ofed")
    settings.apply(host, document, "site")
    trees.reboot("connectx-5-ofed", host.root)
    assert settings.apply(host, document, "site")["differs"] == []
    settings.restore(host, "site")
    assert settings.read(host, {"dcqcn": {"eth2": {"T_us": 300}}, "nv": {"eth2": {"T_us": 300}}})["differs"] == []


def test_drift_is_named_and_restored(server: Server, trees: ModuleType) -> None:
    host = server("connectx-5-ofed")
    document = {"dcqcn": {"eth2": {"T_us": 100}}, "qos": {"eth2": trees.QOS_WANTED}}
    before = trees.snapshot(host.root)
    settings.apply(host, document, "site")
    nic_file(trees, host, settings_nic.PARAMETERS["T_us"]).write_text("55\n")
    host.run("mlnx_qos", "-i", "eth2", "--trust=pcp")
    differs = settings.read(host, document)["differs"]
    assert {"setting": "dcqcn eth2 T_us", "expected": 100, "found": 55} in differs
    assert {"setting": "qos eth2 trust", "expected": "dscp", "found": "pcp"} in differs
    assert {"setting": "qos eth2 dscp26_prio", "expected": 3, "found": "none"} in differs
    report = settings.restore(host, "site")
    assert {"setting": "dcqcn eth2 T_us", "wrote": 100, "found": 55} in report["overridden"]
    assert trees.snapshot(host.root) == before


def test_a_dscp_map_lost_by_a_change_of_trust_is_restored(server: Server, trees: ModuleType) -> None:
    for name in ("connectx-5-ofed", "connectx-5-inbox"):
        host = server(name)
        settings.apply(host, {"qos": {"eth2": {**trees.QOS_WANTED, "dscp8_prio": 7}}}, "admin")
        before = trees.snapshot(host.root)
        settings.apply(host, {"qos": {"eth2": {"trust": "pcp"}}}, "run")
        assert (
            settings.read(host, {"qos": {"eth2": {"dscp8_prio": None}}})["found"]["qos"]["eth2"]["dscp8_prio"] == "none"
        )
        assert settings.restore(host, "run")["failed"] == []
        assert trees.snapshot(host.root) == before


def test_a_setting_changed_by_another_settings_write_is_restored(
    server: Server, trees: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mainline's cong.c clears np_cnp_prio_mode with each write of np_cnp_prio."""
    host = server("connectx-5-inbox")
    mode = host.root / trees.CC_PARAMS / "np_cnp_prio_mode"
    write_file = settings_nic.write_file

    def write(path: Path, label: str, value: settings.Value) -> None:
        write_file(path, label, value)
        if path.name == "np_cnp_prio":
            mode.write_text("0\n")

    monkeypatch.setattr(settings_nic, "write_file", write)
    before = trees.snapshot(host.root)
    settings.apply(host, {"dcqcn": {"eth2": {"cnp_prio": 5}}}, "run")
    assert mode.read_text() == "0\n"
    assert settings.restore(host, "run")["failed"] == []
    assert trees.snapshot(host.root) == before
    both = {"dcqcn": {"eth2": {"cnp_prio_mode": 1, "cnp_prio": 5}}}
    assert settings.apply(host, both, "run")["differs"] == []


def test_inert_cc_params_are_said_until_nv_config_mends_them(server: Server, trees: ModuleType) -> None:
    host = server("connectx-6-dx")
    document = {"dcqcn": {"eth2": {"T_us": 300}}}  # the default: nothing to write, and still not in force
    for act in (lambda: settings.read(host, document), lambda: settings.apply(host, document, "run")):
        with pytest.raises(
            SettingsError, match="DCQCN's parameters do nothing on this NIC: ROCE_CC_LEGACY_DCQCN is False"
        ) as error:
            act()
        assert "nv eth2 ROCE_CC_LEGACY_DCQCN: 1" in error.value.hint
    settings.apply(host, {"nv": {"eth2": {"ROCE_CC_LEGACY_DCQCN": 1}}}, "site")
    with pytest.raises(SettingsError, match="parameters do nothing"):
        settings.read(host, document)
    trees.reboot("connectx-6-dx", host.root)
    assert settings.read(host, document)["differs"] == []
    assert settings.apply(host, {"dcqcn": {"eth2": {"T_us": 100}}}, "run")["differs"] == []


def test_nv_config_is_applied_in_two_steps_with_a_reset_between(server: Server, trees: ModuleType) -> None:
    host = server("connectx-6-dx")
    before = trees.snapshot(host.root)
    legacy = {"nv": {"eth2": {"ROCE_CC_LEGACY_DCQCN": 1}}}
    document = {"link": {"eth2": {"mtu": 4200}}, "dcqcn": {"eth2": {"T_us": 100}}, **legacy}
    for _ in range(2):  # again before the reset: reported again, and nothing else is written
        with pytest.raises(SettingsError, match="step 1 of 2 is done, NV config is written and nothing else") as error:
            settings.apply(host, document, "site")
        reset = "mlxfwreset -d 0000:3b:00.0 reset (of all functions of the card), or reboot"
        assert error.value.hint == f"{reset}; then the same again, which is step 2"
        outstanding = settings.show_journal(host)["outstanding"]
        assert [each["setting"] for each in outstanding] == ["nv eth2 ROCE_CC_LEGACY_DCQCN"]
        assert settings.read(host, legacy)["differs"] == []
    with pytest.raises(SettingsError, match="parameters do nothing") as error:  # verify
        settings.read(host, document)
    assert error.value.hint == reset
    trees.reboot("connectx-6-dx", host.root)
    answer = settings.apply(host, document, "site")
    assert answer["changed"] == ["link eth2 mtu", "dcqcn eth2 T_us"]
    assert answer["differs"] == []
    assert settings.apply(host, document, "site")["changed"] == []
    assert settings.restore(host, "site")["failed"] == []
    trees.reboot("connectx-6-dx", host.root)
    boot = "proc/sys/kernel/random/boot_id"
    assert trees.snapshot(host.root) | {boot: ""} == before | {boot: ""}


def test_a_document_that_leaves_cc_params_inert_is_refused_whole(server: Server, trees: ModuleType) -> None:
    host = server("connectx-6-dx")
    before = trees.snapshot(host.root)
    with pytest.raises(SettingsError, match="parameters do nothing"):
        settings.apply(host, {"nv": {"eth2": {"ROCE_CC_LEGACY_DCQCN": 0}}, "dcqcn": {"eth2": {"T_us": 100}}}, "site")
    assert trees.snapshot(host.root) == before


def test_older_nics_need_no_legacy_dcqcn(server: Server) -> None:
    host = server("connectx-5-ofed")
    document = {"nv": {"eth2": {"T_us": 100, "ROCE_CC_LEGACY_DCQCN": 1}}}
    answer = settings.apply(host, document, "site")
    assert answer["changed"] == ["nv eth2 T_us"]
    assert answer["applied"] == document


def test_pfc_prevention_is_set_and_restored_if_the_driver_has_it(server: Server) -> None:
    host = server("connectx-5-inbox")
    requested = {"link": {"eth2": {"pfc_prevention_ms": 100}}}
    assert settings.apply(host, requested, "run")["found"] == {"link": {"eth2": {"pfc_prevention_ms": 8000}}}
    assert settings.restore(host, "run")["restored"] == ["link eth2 pfc_prevention_ms"]
    (host.root / "link-eth2").write_text('{"mtu": 1500}')
    with pytest.raises(SettingsError, match="ethtool --get-tunable eth2 pfc-prevention-tout: .*Cannot get tunable"):
        settings.apply(host, requested, "run")
    with pytest.raises(SettingsError, match="found 79, expected 0, or a whole number from 80 to 8000"):
        settings.read(host, {"link": {"eth2": {"pfc_prevention_ms": 79}}})


def test_the_inbox_drivers_tools_have_a_reset_of_their_own(server: Server) -> None:
    host = server("connectx-6-dx")
    (host.root / "bin/mlxconfig").rename(host.root / "bin/mstconfig")
    with pytest.raises(SettingsError) as error:
        settings.read(host, {"dcqcn": {"eth2": {"T_us": None}}})
    assert error.value.hint.endswith("then mstfwreset -d 0000:3b:00.0 reset (of all functions of the card), or reboot")


# What both of NVIDIA's sources take: the least and the most, and what is just beyond.
LIMITS = {
    "T_us": (1, 131071, 0, 131072),
    "byte_counter_bytes": (0, 32767, -1, 32768),
    "F": (1, 31, 0, 32),
    "R_AI_mbps": (1, 131071, 0, 131072),
    "R_HAI_mbps": (1, 131071, 0, 131072),
    "R_min_mbps": (1, 131071, 0, 131072),
    "Gd_log2": (10, 11, 9, 12),
    "min_decrease_factor_percent": (1, 100, 0, 101),
    "g_code": (1, 1023, 0, 1024),
    "alpha_timer_us": (1, 131071, 0, 131072),
    "rate_reduce_period_us": (1, 131071, 0, 131072),
    "alpha_initial": (1 / 1024, 1023 / 1024, 0, 1),
    "rate_on_first_cnp_mbps": (0, 131071, -1, 131072),
    "cnp_gap_us": (0, 131071, -1, 131072),
}


@pytest.mark.parametrize("parameter", LIMITS)
@pytest.mark.parametrize("kind", ["dcqcn", "nv"])
def test_values_that_nvidia_does_not_document_are_refused(parameter: str, kind: str) -> None:
    least, most, below, above = LIMITS[parameter]
    for value in (least, most):
        settings.flatten({kind: {"eth2": {parameter: value}}})
    for value in (below, above):
        with pytest.raises(SettingsError, match=f"{kind} eth2 {parameter}: found "):
            settings.flatten({kind: {"eth2": {parameter: value}}})


def test_a_found_value_outside_the_limits_is_restored(server: Server, trees: ModuleType) -> None:
    host = server("connectx-5-inbox")
    (host.root / trees.CC_PARAMS / "rp_gd").write_text("7\n")
    settings.apply(host, {"dcqcn": {"eth2": {"Gd_log2": 10}}}, "run")
    assert settings.restore(host, "run")["failed"] == []
    assert (host.root / trees.CC_PARAMS / "rp_gd").read_text() == "7\n"


def test_a_new_nic_without_mlxconfig_is_not_trusted(server: Server) -> None:
    host = server("connectx-6-dx")
    (host.root / "bin/mlxconfig").unlink()
    with pytest.raises(SettingsError, match="neither mlxconfig nor mstconfig"):
        settings.read(host, {"dcqcn": {"eth2": {"T_us": None}}})


ABSENT = (CASES / "mlxconfig-unknown-parameter.txt").read_text()


def answer_queries(host: Host, legacy: Answer, user: Answer) -> None:
    """Let mlxconfig print a text and exit with a status for each of the two settings that decide about DCQCN."""
    program = host.root / "bin/mlxconfig"
    cases = ""
    for name, (text, status) in (("ROCE_CC_LEGACY_DCQCN", legacy), ("USER_PROGRAMMABLE_CC", user)):
        (host.root / f"said-{name}").write_text(text)
        cases += f"{name}) cat {host.root}/said-{name}; exit {status};; "
    program.write_text(f"#!/bin/sh\ncase $5 in {cases} esac\n")


def absent(name: str) -> Answer:
    return ABSENT.replace("ROCE_CC_LEGACY_DCQCN", name), 3


def present(name: str, current: str, next_boot: str) -> Answer:
    """mstconfig's own output with another name and other values."""
    return CX6_DX.replace("ROCE_CC_LEGACY_DCQCN", name).replace(
        "False(0)            False(0)", f"{current:<20}{next_boot}"
    ), 0


CX6_DX = (CASES / "mstconfig-cx6dx-e-q.txt").read_text()
LOCKED = ((CASES / "mstconfig-lockdown.txt").read_text(), 1)
LEGACY, USER = "ROCE_CC_LEGACY_DCQCN", "USER_PROGRAMMABLE_CC"


@pytest.mark.parametrize("driver", ["ofed", "inbox"])
@pytest.mark.parametrize(("answers", "said"), [
    ((absent(LEGACY), absent(USER)), ""),
    ((absent(LEGACY), present(USER, "False(0)", "True(1)")), ""),
    ((present(LEGACY, "True(1)", "True(1)"), present(USER, "False(0)", "False(0)")), ""),
    ((absent(LEGACY), present(USER, "True(1)", "False(0)")), "USER_PROGRAMMABLE_CC is True, and programmable"),
    (((CX6_DX, 0), absent(USER)), "do nothing on this NIC: ROCE_CC_LEGACY_DCQCN is False, and ZTR-RTTCC"),
    ((LOCKED, LOCKED), "(?s)NIC does not report if it obeys DCQCN: mlxconfig .* Failed to open the device"),
    ((absent(LEGACY), LOCKED), "NIC does not report if it obeys DCQCN"),
    ((("-E- Cannot open Device: 0000:3b:00.0. No such file or directory.\n", 3), absent(USER)), "does not report"),
    ((("-E- Unknown Parameter: ROCE_CC_LEGACY_DCQCN\n", 3), absent(USER)), "NIC does not report if it obeys DCQCN"),
    ((("", 0), absent(USER)), "the output of mlxconfig lacks ROCE_CC_LEGACY_DCQCN"),
])  # fmt: skip
def test_only_firmwares_own_answer_counts_as_obeying_dcqcn(
    tmp_path: Path, trees: ModuleType, driver: str, answers: tuple[Answer, Answer], said: str
) -> None:
    host = Host(tmp_path / "root", tmp_path / "state")
    trees.build("connectx-6-dx", host.root)
    if driver == "ofed":
        shutil.rmtree(host.root / trees.CC_PARAMS)
        trees.write(host.root, trees.ecn(""))
    answer_queries(host, *answers)
    document = {"dcqcn": {"eth2": {"T_us": 300}}}
    if not said:
        assert settings.read(host, document)["differs"] == []
        return
    with pytest.raises(SettingsError, match=said) as error:
        settings.read(host, document)
    assert error.value.hint or "lacks" in said


def test_names_of_a_second_port_in_nv_config_end_with_2(server: Server, trees: ModuleType) -> None:
    host = server("connectx-5-ofed")
    second = f"{trees.PCI[:-1]}1"
    (host.root / trees.DEVICE).rename(host.root / trees.DEVICE.replace(trees.PCI, second))
    (host.root / "sys/class/net/eth2/device").unlink()
    (host.root / "sys/class/net/eth2/device").symlink_to(f"../../../../{trees.DEVICE.replace(trees.PCI, second)}")
    stored = host.root / f"nv-{second}"
    stored.write_text((host.root / f"nv-{trees.PCI}").read_text().replace("_P1", "_P2"))
    document = {"nv": {"eth2": {"T_us": 100}}}
    assert settings.apply(host, document, "site")["applied"] == document
    assert json.loads(stored.read_text())["RPG_TIME_RESET_P2"][2] == 100


def test_closed_debugfs_is_said_when_it_is_read(
    server: Server, trees: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lockdown leaves names, and refuses to open: open(2) gives EPERM (fs/debugfs/file.c)."""
    host = server("connectx-5-inbox")
    read_text = Path.read_text

    def closed(path: Path, *words: str) -> str:
        if path.parent.name == "cc_params":
            raise PermissionError(1, "Operation not permitted")
        return read_text(path, *words)

    monkeypatch.setattr(Path, "read_text", closed)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SettingsError, match="cannot read dcqcn eth2 T_us: .*: Operation not permitted") as error:
        settings.read(host, {"dcqcn": {"eth2": {"T_us": None}}})
    assert "use DOCA-OFED's sysfs (driver: ofed), or turn lockdown off" in error.value.hint
    monkeypatch.undo()
    for file in (host.root / trees.CC_PARAMS).iterdir():
        file.unlink()
    with pytest.raises(SettingsError, match="T_us: found none of") as error:
        settings.read(host, {"dcqcn": {"eth2": {"T_us": None}}})
    assert "turn lockdown off" in error.value.hint


def test_a_value_that_the_nic_rounds_is_said_and_not_written_forever(server: Server) -> None:
    host = server("connectx-5-ofed")
    qos = {"eth2": {"buffer_size_bytes": "100000,0,0,0,0,0,0,0"}}
    document = {"dcqcn": {"eth2": {"alpha_initial": 0.01}}, "qos": qos}
    answer = settings.apply(host, document, "run")
    assert answer["differs"] == [
        {"setting": "dcqcn eth2 alpha_initial", "expected": 0.01, "found": 10 / 1024},
        {"setting": "qos eth2 buffer_size_bytes", "expected": "100000,0,0,0,0,0,0,0", "found": "99968,0,0,0,0,0,0,0"},
    ]
    assert settings.apply(host, document, "run")["changed"] == []


@pytest.mark.parametrize("name", ["connectx-5-ofed", "connectx-5-inbox"])
def test_settings_are_read_back_after_pfc_took_the_link_down_and_up(server: Server, name: str) -> None:
    host = server(name)
    document = {"link": {"eth2": {"speed_mbps": 25000}}, "qos": {"eth2": {"pfc": "0,0,0,1,0,0,0,0"}}}
    answer = settings.apply(host, document, "run")
    assert answer["differs"] == []
    assert answer["applied"] == document
    assert settings.restore(host, "run")["failed"] == []
    assert settings.read(host, {"link": {"eth2": {"speed_mbps": 50000}}})["differs"] == []


@pytest.mark.parametrize("name", ["connectx-5-ofed", "connectx-5-inbox"])
def test_pfc_of_priorities_that_a_document_does_not_name_is_kept(server: Server, trees: ModuleType, name: str) -> None:
    """Priority 5 is lossless for a site's storage."""
    host = server(name)
    (host.root / "qos-eth2").write_text(json.dumps({**trees.QOS, "pfc": [0, 0, 0, 0, 0, 1, 0, 0]}))
    before = trees.snapshot(host.root)
    document = {"qos": {"eth2": {"pfc": "-,-,-,1,-,-,-,-", "cable_length_m": 5}}}
    answer = settings.apply(host, document, "site")
    assert answer["applied"]["qos"]["eth2"]["pfc"] == "0,0,0,1,0,1,0,0"
    assert answer["differs"] == settings.drifted(host)["differs"] == []
    assert settings.apply(host, document, "site")["changed"] == []
    assert settings.restore(host, "site")["overridden"] == []
    assert trees.snapshot(host.root) == before


@pytest.mark.parametrize("name", ["connectx-5-ofed", "connectx-5-inbox"])
def test_buffers_stay_firmwares_unless_they_are_requested(server: Server, name: str) -> None:
    """They follow PFC there and back; written, they would have no owner until the driver loads again."""
    host = server(name)
    settings.apply(host, {"qos": {"eth2": {"pfc": "0,0,0,1,0,0,0,0", "cable_length_m": 5}}}, "run")
    assert settings.restore(host, "run")["failed"] == []
    found = json.loads((host.root / "qos-eth2").read_text())
    assert "manual" not in found
    assert found["prio2buffer"] == [0] * 8
    settings.apply(host, {"qos": {"eth2": {"buffer_size_bytes": "65536,65536,0,0,0,0,0,0"}}}, "run")
    assert json.loads((host.root / "qos-eth2").read_text())["manual"]


def test_dcb_hands_dcbx_over_and_firmware_gets_it_back(server: Server) -> None:
    host = server("connectx-5-inbox")
    assert settings.apply(host, {"qos": {"eth2": {"dcbx": "os"}}}, "run")["found"] == {"qos": {"eth2": {"dcbx": "fw"}}}
    assert settings.read(host, {"qos": {"eth2": {"dcbx": "os"}}})["differs"] == []
    assert settings.restore(host, "run")["restored"] == ["qos eth2 dcbx"]
    assert settings.read(host, {"qos": {"eth2": {"dcbx": "fw"}}})["differs"] == []


def test_the_kernel_understands_how_dcbx_is_given_back() -> None:
    program = [sys.executable, "-IS", str(settings_qos.GIVE_BACK_DCBX)]
    for interface, why in (("lo", "Operation not supported"), ("nothing0", "No such device")):  # lo has no DCB
        done = subprocess.run([*program, interface], capture_output=True, text=True)
        assert (done.returncode, done.stderr.strip()) == (1, why)


@pytest.mark.parametrize("release", ["6.4", "6.5"])
def test_entries_of_dcb_app_are_read_with_two_fields_and_with_three(server: Server, release: str) -> None:
    host = server("connectx-5-inbox")
    (host.root / f"iproute2-{release}").touch()
    document = {"qos": {"eth2": {"dscp26_prio": 3, "dscp48_prio": 6}}}
    assert settings.apply(host, document, "run")["applied"] == document


def test_dcb_without_app_says_which_iproute2_has_it(server: Server) -> None:
    host = server("connectx-5-inbox")
    (host.root / "iproute2-5.11").touch()
    with pytest.raises(SettingsError, match='Object "app" is unknown') as error:
        settings.read(host, {"qos": {"eth2": {"pfc": None}}})
    assert "iproute2 5.12 or later (Debian 12, Ubuntu 22.04)" in error.value.hint


def test_soft_roce_is_found_by_the_interface_that_it_names(server: Server) -> None:
    host = server("connectx-5-inbox")
    devices = host.root / "sys/class/infiniband"
    shutil.rmtree(host.root / "sys/class/net/eth2/device/infiniband")
    (devices / "mlx5_0").rename(devices / "rxe0")
    (devices / "rxe0/parent").write_text("eth3\n")
    with pytest.raises(SettingsError, match="found no RDMA device of this interface"):
        settings.read(host, {"roce": {"eth2": {"gid_index": None}}})
    (devices / "rxe0/parent").write_text("eth2\n")
    assert settings.read(host, {"roce": {"eth2": {"gid_index": 3}}})["differs"] == []


def test_the_gid_index_is_the_one_that_show_gids_shows(server: Server) -> None:
    host = server("connectx-5-ofed")
    rows = [line.split() for line in host.run("show_gids").splitlines()]
    (index,) = [int(row[2]) for row in rows if row[-2:] == ["v2", "eth2"] and len(row) == 7]
    assert settings.read(host, {"roce": {"eth2": {"gid_index": index}}})["differs"] == []
    with pytest.raises(SettingsError, match="roce eth2 gid_index is read only"):
        settings.apply(host, {"roce": {"eth2": {"gid_index": 1}}}, "run")


def test_configfs_gets_its_folder_for_the_time_that_it_takes(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The kernel fills the folder as it is made and empties it as it goes; values stay with the device."""
    host = server("connectx-5-inbox")
    group = host.root / "sys/kernel/config/rdma_cm/mlx5_0"
    kept = tmp_path / "kept"
    group.rename(kept)
    mkdir, rmdir = Path.mkdir, Path.rmdir
    monkeypatch.setattr(
        Path, "mkdir", lambda path, *a, **k: kept.rename(path) if path == group else mkdir(path, *a, **k)
    )
    monkeypatch.setattr(Path, "rmdir", lambda path: path.rename(kept) if path == group else rmdir(path))
    assert settings.apply(host, {"roce": {"eth2": {"mode": "RoCE v2", "tos": 106}}}, "run")["differs"] == []
    assert not group.exists()
    assert (kept / "ports/1/default_roce_tos").read_text() == "106\n"


def test_interrupts_and_governors_come_back_one_by_one(server: Server, trees: ModuleType) -> None:
    host = server("connectx-5-ofed")
    before = trees.snapshot(host.root)
    document = {"cpu": {"governor": "performance"}, "irq": {"eth2": {"cpus": "0 1 2"}}}
    answer = settings.apply(host, document, "run")
    assert answer["found"]["cpu"]["governor"] == "schedutil powersave powersave powersave"
    assert answer["applied"]["irq"]["eth2"]["cpus"] == "0 1 2 0"
    assert answer["differs"] == []
    settings.restore(host, "run")
    assert trees.snapshot(host.root) == before


def test_a_speed_of_our_own_gives_way_to_autoneg_again(server: Server) -> None:
    host = server("connectx-5-ofed")
    answer = settings.apply(host, {"link": {"eth2": {"speed_mbps": 25000}}}, "run")
    assert answer["applied"] == {"link": {"eth2": {"speed_mbps": 25000}}}
    settings.restore(host, "run")
    assert settings.read(host, {"link": {"eth2": {"speed_mbps": 50000, "autoneg": 1}}})["differs"] == []


@pytest.mark.parametrize("comes_up", [True, False])
def test_a_link_that_was_found_down_gets_its_autoneg_back(server: Server, comes_up: bool) -> None:
    host = server("connectx-5-ofed")._replace(link_timeout_s=0)
    path = host.root / "link-eth2"
    path.write_text(json.dumps({**json.loads(path.read_text()), "down": True}))
    settings.apply(host, {"link": {"eth2": {"speed_mbps": 25000}}}, "run")
    path.write_text(json.dumps({**json.loads(path.read_text()), "down": not comes_up}))
    answer = settings.restore(host, "run")
    assert answer["failed"] == []
    assert [each["setting"] for each in answer["skipped"]] == ["link eth2 speed_mbps"]
    assert json.loads(path.read_text())["autoneg"] == "on"
    assert settings.show_journal(host)["outstanding"] == []


@pytest.mark.parametrize(
    ("document", "said", "hint"),
    [
        ({"dcqcn": {"eth2": {"T": 1}}}, "dcqcn eth2 has no setting 'T'", "known: T_us, byte_counter_bytes, F, "),
        ({"dcqcn": {"eth2": {"T_us": 0.5}}}, "dcqcn eth2 T_us: found 0.5, expected a whole number from 1 to", ""),
        ({"dcqcn": {"eth2": {"g_code": 1024}}}, "dcqcn eth2 g_code: found 1024, expected a whole number from 1 to", ""),
        ({"dcqcn": {"eth9": {"T_us": 1}}}, "eth9: no network interface of a PCI device", ""),
        ({"dcqcn": {"eth2": {"cnp_prio_mode": 1}}}, "cnp_prio_mode: found none of /sys/kernel/debug/mlx5/", "debugfs"),
        ({"qos": {"eth2": {"pfc": "3"}}}, "qos eth2 pfc: found '3', expected eight of 0, 1 and - with", ""),
        ({"qos": {"eth2": {"tc_schedule": "90" + ",strict" * 7}}}, "tc_schedule: found '90,strict,", ""),
        (
            {"qos": {"eth2": {"tc_schedule": "strict" + ",vendor" * 7}}},
            "expected `vendor` eight times, or eight of",
            "",
        ),
        ({"qos": {"eth2": {"cable_length_m": 0}}}, "cable_length_m: found 0, expected a whole number from 1", ""),
        ({"qos": {"eth2": {"cable_length_m": 1000}}}, "cable_length_m: found 1000, expected a whole number from 1", ""),
        (
            {"qos": {"eth2": {"dscp64_prio": 3}}},
            "qos eth2 has no setting 'dscp64_prio'",
            "dscpN_prio, prio_tc, tc_schedule",
        ),
        ({"roce": {"eth2": {"mode": "v2"}}}, "roce eth2 mode: found 'v2', expected RoCE v2 or IB/RoCE v1", ""),
        ({"link": {"eth2": {"pause_rx": "off"}}}, "link eth2 pause_rx: found 'off', expected a whole number", ""),
        ({"nv": {"eth2": {"RPG_TIME_RESET_P1": 5}}}, "found mlxconfig's name, expected T_us", ""),
        ({"nv": {"eth2": {"RPG_TIME_RESET_P2": 5}}}, "found mlxconfig's name, expected T_us", ""),
        ({"nv": {"eth2": {"NOTHING": 5}}}, "doesn't support NOTHING parameter", ""),
        ({"route": {"default": {"congctl": "reno"}}}, "route 'default': expected an IPv4 prefix", ""),
        ({"route": {"10.0.9.0/24": {"congctl": "reno"}}}, "route 10.0.9.0/24: this host has no such route", "ip route"),
        ({"route": {"10.0.2.0/24": {"congctl": "nothing"}}}, "Invalid argument", "available here: reno cubic"),
        ({"link": {"eth2": {"speed_mbps": 40000}}}, "Cannot set new settings: Invalid argument", ""),
        ({"cpu": {"frequency": 1}}, "cpu has no setting 'frequency'", "known: governor"),
    ],
)
def test_mistakes_get_one_message(server: Server, trees: ModuleType, document: Any, said: str, hint: str) -> None:
    host = server("connectx-5-ofed")
    before = trees.snapshot(host.root)
    with pytest.raises(SettingsError) as error:
        settings.apply(host, document, "run")
    assert said in str(error.value)
    assert hint in error.value.hint
    assert trees.snapshot(host.root) == before


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("sys/class/net/eth2/bonding", "eth2 is a bond, expected a NIC's own interface"),
        ("sys/class/net/eth2/master", "eth2 is a port of a bond or bridge"),
        ("sys/class/net/eth2/device/physfn", "eth2 is a virtual function"),
        ("sys/class/net/eth2/uevent", "eth2 is a VLAN"),
        ("sys/class/net/eth2/device/device", "eth2 is a virtual function"),
    ],
)
@pytest.mark.parametrize("kind", [{"qos": {"pfc": "0,0,0,1,0,0,0,0"}}, {"dcqcn": {"T_us": 100}}, {"roce": {"tos": 4}}])
def test_settings_of_a_vlan_device_are_refused_by_name(server: Server, kind: Any, file: str, said: str) -> None:
    host = server("connectx-5-ofed")
    # The device is the virtual function of a ConnectX-6 Dx and later (mlx5_core_pci_table).
    (host.root / file).write_text("0x101e\n" if file.endswith("device/device") else "DEVTYPE=vlan\n")
    with pytest.raises(SettingsError, match=said) as error:
        settings.apply(host, {name: {"eth2": values} for name, values in kind.items()}, "run")
    assert error.value.hint.endswith("(docs/how-to/rack.md)")


@pytest.mark.parametrize(
    ("document", "said", "hint"),
    [
        ({"dcqcn": {"eth2": {"rp_enable_prio3": 1}}}, "rp_enable_prio3: found none of", "ROCE_CC_PRIO_MASK_P1 in nv"),
        ({"qos": {"eth2": {"trust": "dscp"}}}, "trust: with dcb it follows from DSCP entries", "declare dscp26_prio"),
        ({"roce": {"eth2": {"traffic_class": 106}}}, "found no /sys/class/infiniband/mlx5_0/tc/1", "NCCL_IB_TC"),
        ({"nv": {"eth2": {"T_us": 1}}}, "found neither mlxconfig nor mstconfig", "mstflint"),
    ],
)
def test_settings_that_the_inbox_driver_lacks_are_refused_with_a_hint(
    server: Server, document: Any, said: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as error:
        settings.apply(server("connectx-5-inbox"), document, "run")
    assert said in str(error.value)
    assert hint in error.value.hint


def test_the_interface_of_the_default_route_is_left_alone(server: Server) -> None:
    host = server("connectx-5-ofed")
    routes = ["default via 10.0.2.254 dev eth2", "10.0.2.0/24 dev eth2 scope link"]
    (host.root / "routes").write_text(json.dumps(routes))
    with pytest.raises(SettingsError, match="leaves by eth2, which has the active default route"):
        settings.apply(host, {"route": {"10.0.2.0/24": {"congctl": "reno"}}}, "run")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes user nobody")
def test_permission_denied_says_which_setting_and_what_to_do(trees: ModuleType) -> None:
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder) / "root", Path(folder) / "state")
        trees.build("connectx-5-ofed", host.root)
        before = trees.snapshot(host.root)
        host.state.mkdir()
        os.chmod(folder, 0o755)
        os.chown(host.state, 65534, 65534)
        os.seteuid(65534)
        try:
            with pytest.raises(SettingsError, match="cannot set dcqcn eth2 T_us to 100: Permission denied") as error:
                settings.apply(host, {"dcqcn": {"eth2": {"T_us": 100}}}, "run")
            assert error.value.hint == "run as root"
        finally:
            os.seteuid(0)
        assert trees.snapshot(host.root) == before


def test_debugfs_that_is_closed_says_what_may_have_closed_it(
    server: Server, trees: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = server("connectx-5-inbox")
    real_open = os.open

    def closed(path: Path, flags: int, mode: int = 0o777) -> int:
        if "cc_params" in str(path):
            raise PermissionError(1, "Operation not permitted")
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", closed)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SettingsError, match="cannot set dcqcn eth2 T_us to 100: Operation not permitted") as error:
        settings.apply(host, {"dcqcn": {"eth2": {"T_us": 100}}}, "run")
    assert "lockdown" in error.value.hint


def test_the_program_itself_with_tools_as_programs(tmp_path: Path, trees: ModuleType) -> None:
    root = tmp_path / "root"
    trees.build("connectx-5-ofed", root)
    before = trees.snapshot(root)
    command = [sys.executable, "-IS", settings.__file__]
    options = ["--owner", "site", "--root", str(root), "--state", str(tmp_path / "state")]
    document = json.dumps(trees.document("connectx-5-ofed"))
    applied = subprocess.run([*command, "apply", *options], input=document, capture_output=True, text=True)
    assert applied.returncode == 0, applied.stderr
    assert json.loads(applied.stdout)["differs"] == []
    restored = subprocess.run([*command, "restore", *options], capture_output=True, text=True)
    assert restored.returncode == 0, restored.stderr
    assert trees.snapshot(root) == before
