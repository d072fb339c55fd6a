# SPDX-License-Identifier: Apache-2.0
"""NICs whose firmware runs another congestion control than DCQCN: doctor and settings name it, and do not trust DCQCN.

Witnesses: NVIDIA's blog "Scaling Zero Touch RoCE Technology with Round Trip Time Congestion Control" (disabling slot
15 of PPCC forces ZTR-RTTCC), mstflint's register_access_table.adb (ppcc_reg_ext), NVIDIA's own collectors (PPCC's
commands, and that doca_spcx_cc needs USER_PROGRAMMABLE_CC). The form of the answers is that of ROCE_ACCL in NVIDIA's
"Adaptive Retransmission". PCC_INT_EN does not decide: a public script reports False where doca_spcx_cc controls.
"""

from pathlib import Path

import pytest

from roundabout.settings import settings
from roundabout.settings.settings_host import Host, SettingsError
from roundabout.testbeds.rack.examination import parse
from tests.rack.examined_hosts import add_new_nic, add_tool, examine
from tests.running import load_program

pytestmark = pytest.mark.unit

TREES = load_program(Path(__file__).parents[1] / "settings/stand_ins/trees.py")
# The algorithm in slot 15 and whether it is enabled; None for a tool that fails.
REGISTERS = [
    (("0x00010100", "0x00000000"), True),
    (("0x00010100", "0x00000001"), False),
    (("0x00000000", "0x00000000"), False),
    (None, False),
]


def add_register_tool(path: Path, register: tuple[str, str] | None) -> None:
    if register is None:
        add_tool(path, "echo '-E- Failed to send access register: Register is not supported' >&2; exit 1")
        return
    present, enabled = register
    heading = "Sending access register...\n\nField Name            | Data\n==========================="
    answers = f'*cmd_type=0x10*) echo "text[15]              | {present}";;'
    answers += f' *cmd_type=0x3*) echo "value                 | {enabled}";;'
    add_tool(path, f'echo "{heading}"; case "$*" in {answers} esac')


@pytest.mark.parametrize("process", ["doca_spcx_cc", "doca_pcc"])
def test_doctor_names_a_running_program_of_programmable_congestion_control(
    inventory_file: Path, tmp_path: Path, process: str
) -> None:
    add_new_nic(tmp_path / "root", tmp_path / "tools", user="False(0) False(0)")
    comm = tmp_path / "root/proc/77/comm"
    comm.parent.mkdir(parents=True)
    comm.write_text(f"{process}\n")
    said = parse(examine(inventory_file, tmp_path / "root", str(tmp_path / "tools")).stdout)
    (line,) = (each for each in said if each.name == "DCQCN in firmware")
    assert (line.good, line.found.split(",")[0]) == (False, f"ignored: {process} runs")


@pytest.mark.parametrize(("legacy", "user", "other"), [
    ("False(0) False(0)", "", "ZTR-RTTCC"), ("", "True(1) True(1)", "programmable congestion control"),
])  # fmt: skip
def test_doctor_names_what_is_in_dcqcns_place(
    inventory_file: Path, tmp_path: Path, legacy: str, user: str, other: str
) -> None:
    add_new_nic(tmp_path / "root", tmp_path / "tools", legacy, user)
    said = parse(examine(inventory_file, tmp_path / "root", str(tmp_path / "tools")).stdout)
    (line,) = (each for each in said if each.name == "DCQCN in firmware")
    assert f"; {other} is in its place" in line.found


@pytest.mark.parametrize(("register", "forced"), REGISTERS)
def test_doctor_does_not_take_forced_rttcc_for_dcqcn(
    inventory_file: Path, tmp_path: Path, register: tuple[str, str] | None, forced: bool
) -> None:
    add_new_nic(tmp_path / "root", tmp_path / "tools")
    add_register_tool(tmp_path / "tools/mlxreg", register)
    said = parse(examine(inventory_file, tmp_path / "root", str(tmp_path / "tools")).stdout)
    (line,) = (each for each in said if each.name == "DCQCN in firmware")
    assert line.found == ("ignored: ZTR-RTTCC is forced (register PPCC)" if forced else "acts")
    assert ("mlxreg -d 0000:3b:00.0 --reg_name PPCC --set cmd_type=1" in line.mend) is forced


@pytest.mark.parametrize(("register", "forced"), REGISTERS)
def test_settings_refuse_dcqcn_beside_forced_rttcc(
    tmp_path: Path, register: tuple[str, str] | None, forced: bool
) -> None:
    host = Host(tmp_path / "root", tmp_path / "state")
    TREES.build("connectx-6-dx", host.root)
    TREES.write(host.root, TREES.nv(ROCE_CC_LEGACY_DCQCN=1, USER_PROGRAMMABLE_CC=0))
    add_register_tool(host.root / "bin/mstreg", register)
    document = {"dcqcn": {"eth2": {"T_us": 300}}}
    if forced:
        with pytest.raises(SettingsError, match="ZTR-RTTCC is forced") as error:
            settings.read(host, document)
        assert error.value.hint.startswith("mstreg -d 0000:3b:00.0 --reg_name PPCC --set cmd_type=1")
    else:
        assert settings.read(host, document)["differs"] == []
