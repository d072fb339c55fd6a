# SPDX-License-Identifier: Apache-2.0
"""Public cases of programs for the kernel: invalid programs, kernels without types, and forbidden bpf(2)."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.checks.judge import kernel_requirements
from roundabout.checks.judge.kernel_requirements import check_kernels
from roundabout.cli.main import main
from roundabout.core import bpf
from roundabout.core.errors import UsageError
from roundabout.testbeds.lab.checks.kernel_features import examine_bpf

pytestmark = pytest.mark.unit

CASES = Path(__file__).parent
BUILT = CASES.parents[1] / "build/bpf/dcqcn.bpf.o"


@pytest.mark.parametrize("text", ["/* all of it is switched off */\n", "// nothing\n", "\n", "#if 0\nint x;\n#endif\n"])
def test_an_empty_program_has_no_congestion_control(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert (CASES / "cc-empty-file/none.bpf.c").read_text() == "/* all of it is switched off */\n"
    (tmp_path / "none.bpf.c").write_text(text)
    assert main(["judge", str(tmp_path / "none.bpf.c"), "--only", "alone", "--runs", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "none.bpf.c: found no struct tcp_congestion_ops" in said.err
    assert "needs of a kernel" not in said.out


@pytest.mark.parametrize("name", ["averylongprogramname", "thirteen_char", "_begins", "Capital"])
def test_a_name_that_the_kernel_cannot_have_is_reported_of_the_users_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / f"{name}.bpf.c"
    path.write_bytes((CASES / "cc-long-name/averylongprogramname.bpf.c").read_bytes())
    assert main(["judge", str(path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{name}.bpf.c: found the name '{name}', expected a file called NAME.bpf.c, NAME at most 12" in said
    assert "jobs.yaml" not in said


def elf_of_sections(*names: str) -> bytes:
    """Return an ELF file of 64 bits with empty sections of these names, as a kernel without BTF has many."""
    text = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    places = [0, *(text.index(name.encode()) for name in names)]
    header = b"\x7fELF\x02\x01".ljust(0x28, b"\0") + struct.pack("<QIHHHHHH", 0x40, 0, 64, 0, 0, 64, len(places), 0)
    names_at = 0x40 + 64 * len(places)
    first = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, names_at, len(text), 0, 0, 0, 0)
    others = (struct.pack("<IIQQQQIIQQ", place, 1, 0, 0, names_at, 0, 0, 0, 0, 0) for place in places[1:])
    return header + first + b"".join(others) + text


@pytest.mark.parametrize(
    "kernel", [Path(sys.executable).read_bytes(), elf_of_sections(), elf_of_sections(".text"), elf_of_sections(".BTF")]
)
def test_a_kernel_without_types_is_distinguished_from_damaged_types(tmp_path: Path, kernel: bytes) -> None:
    """Tetragon's issue 911, libbpf-bootstrap's 174, bcc's 2872: kernels without CONFIG_DEBUG_INFO_BTF."""
    (tmp_path / "vmlinux").write_bytes(kernel)
    with pytest.raises(UsageError, match=r"vmlinux has no types \(no section .BTF\)") as error:
        check_kernels(BUILT, (tmp_path / "vmlinux",))
    assert error.value.hint == "if it is a kernel, build the kernel with CONFIG_DEBUG_INFO_BTF=y"


def test_a_running_kernel_without_types_is_distinguished_from_a_missing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_requirements, "RUNNING", tmp_path / "btf")
    with pytest.raises(UsageError, match="this kernel has no types: .*: No such file") as error:
        check_kernels(BUILT, (tmp_path / "btf",))
    assert error.value.hint == "build the kernel with CONFIG_DEBUG_INFO_BTF=y"
    with pytest.raises(UsageError, match="other: No such file or directory, expected a kernel's BTF") as error:
        check_kernels(BUILT, (tmp_path / "other",))
    assert error.value.hint is None


def test_doctor_goes_on_where_the_number_of_bpf_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(bpf, "SYSCALL", {"elsewhere": 1})
    check = examine_bpf()
    assert check.good is False
    assert check.found == f"found a machine of kind {os.uname().machine}, expected one of elsewhere"


CHECK = """
from roundabout.testbeds.lab.checks.kernel_features import examine_bpf
check = examine_bpf()
print(check.good, check.found, sep="\\n")
"""
FORBIDDEN = "False\nis not permitted here\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to give up")
@pytest.mark.parametrize(
    ("lost", "found"),
    [
        ("-sys_admin,-bpf,-net_admin,-perfmon", FORBIDDEN),
        ("-sys_admin,-bpf", FORBIDDEN),
        ("-all", FORBIDDEN),
        ("-perfmon,-mknod", "True\nworks\n"),
    ],
)
def test_doctor_says_that_bpf_is_not_permitted(lost: str, found: str) -> None:
    """Pull request 681 of ecapture: root in a container, without CAP_BPF."""
    words = ["setpriv", f"--bounding-set={lost}", "--inh-caps=-all", sys.executable, "-c", CHECK]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == found


@pytest.mark.parametrize("words", [["list"], ["judge"], ["--help"], ["validate", "--help"]])
def test_a_full_disk_behind_stdout_is_named(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "roundabout.cli.main", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "error: cannot write: the disk is full\n")
