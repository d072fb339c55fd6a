# SPDX-License-Identifier: Apache-2.0
import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.cli.tools.doctor import format_check
from roundabout.core.btf import Btf
from roundabout.testbeds.lab.checks import doctor, kernel_features

pytestmark = pytest.mark.unit

NAMES = b"\0ops\0callback\0arg\0"
OPS, CALLBACK, ARG = NAMES.index(b"ops"), NAMES.index(b"callback"), NAMES.index(b"arg")


def made_of(*types: bytes) -> bytes:
    """A BTF blob with these types, numbered from 1."""
    body = b"".join(types)
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(body), len(body), len(NAMES)) + body + NAMES


def header(name: int, kind: int, count: int, refers_to: int) -> bytes:
    return struct.pack("<III", name, kind << 24 | count, refers_to)


def test_btf_counts_the_arguments_of_a_callback() -> None:
    integer = header(0, 1, 0, 4) + struct.pack("<I", 32)
    prototype = header(0, 13, 3, 1) + struct.pack("<II", ARG, 1) * 3
    pointer = header(0, 2, 0, 2)
    constant = header(0, 10, 0, 3)
    structure = header(OPS, 4, 2, 16) + struct.pack("<III", ARG, 1, 0) + struct.pack("<III", CALLBACK, 4, 64)
    types = Btf(made_of(integer, prototype, pointer, constant, structure))
    assert types.callback_arguments("ops", "callback") == 3
    assert types.callback_arguments("ops", "absent") is None
    assert types.has_name("callback")
    assert not types.has_name("call")


def test_bytes_without_btf_magic_are_refused() -> None:
    with pytest.raises(ValueError, match="found magic 0x0, expected 0xeb9f"):
        Btf(bytes(24))


@pytest.mark.skipif(not kernel_features.KERNEL_BTF.exists(), reason="this kernel has no BTF")
def test_this_kernels_btf_is_read() -> None:
    assert Btf(kernel_features.KERNEL_BTF.read_bytes()).callback_arguments("tcp_congestion_ops", "cong_control") in (
        2,
        4,
    )


def test_doctors_status_is_1_if_a_required_check_fails() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "roundabout.cli.main", "doctor", "--json"], capture_output=True, text=True
    )
    checks = json.loads(done.stdout)
    assert {"root", "kernel", "BTF", "qdisc htb", "clang", "sshd"} <= {check["name"] for check in checks}
    assert done.returncode == any(check["needed"] and check["good"] is False for check in checks)


def test_a_missing_tool_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PATH", str(tmp_path))
    clang = next(check for check in doctor.examine_machine() if check.name == "clang")
    assert not clang.good
    assert format_check(clang).startswith("MISSING  clang")
    assert "bootstrap" in format_check(clang)


def test_a_kernel_without_btf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_features, "KERNEL_BTF", tmp_path / "vmlinux")
    btf = next(check for check in doctor.examine_machine() if check.name == "BTF")
    assert not btf.good
    assert "CONFIG_DEBUG_INFO_BTF=y" in format_check(btf)
