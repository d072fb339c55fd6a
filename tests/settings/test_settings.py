# SPDX-License-Identifier: Apache-2.0
import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.settings import settings
from roundabout.settings.settings import Host

pytestmark = pytest.mark.unit

TRIAL = {
    "sysctl": {"net.ipv4.tcp_ecn": 1, "net.ipv4.tcp_rmem": "4096 65536 1000000"},
    "link": {"eth0": {"gso_max_size": 4600, "mtu": 9000}},
    "transport": {"dcqcn": {"T_us": 100, "F": 5}},
}


def sysctl(host: Host, name: str) -> Path:
    return host.root / "proc/sys" / name.replace(".", "/")


def call(host: Host, *arguments: str, document: object = None) -> subprocess.CompletedProcess[str]:
    """The program as a host runs it."""
    options = ["--root", str(host.root), "--state", str(host.state)]
    return subprocess.run(
        [sys.executable, settings.__file__, *arguments, *options],
        input=json.dumps(document),
        capture_output=True,
        text=True,
    )


def test_apply_writes_reads_back_and_restore_brings_back(host: Host) -> None:
    before = settings.read(host, TRIAL)["found"]
    answer = settings.apply(host, TRIAL, "run-1")
    assert answer["found"] == before
    assert answer["applied"] == TRIAL
    assert answer["differs"] == []
    assert settings.read(host, TRIAL)["differs"] == []
    report = settings.restore(host, "run-1")
    assert settings.read(host, TRIAL)["found"] == before
    assert report["overridden"] == report["skipped"] == []
    assert len(report["restored"]) == 6


def test_a_second_apply_changes_nothing_and_journals_nothing(host: Host) -> None:
    settings.apply(host, TRIAL, "run-1")
    journal = (host.state / "journal.jsonl").read_bytes()
    assert settings.apply(host, TRIAL, "run-1")["changed"] == []
    assert (host.state / "journal.jsonl").read_bytes() == journal


def test_a_setting_changed_after_apply_is_reported_as_drift(host: Host) -> None:
    assert settings.drifted(host) == {"differs": []}
    assert not (host.state / "journal.jsonl").exists()
    settings.apply(host, TRIAL, "run-1")
    assert settings.drifted(host) == {"differs": []}
    sysctl(host, "net.ipv4.tcp_ecn").write_text("2\n")
    assert settings.drifted(host) == {"differs": [{"setting": "sysctl net.ipv4.tcp_ecn", "expected": 1, "found": 2}]}
    assert json.loads(call(host, "drifted").stdout) == settings.drifted(host)
    settings.restore(host, "run-1")
    assert settings.drifted(host) == {"differs": []}


def test_restore_twice_is_restore_once(host: Host) -> None:
    settings.apply(host, TRIAL, "run-1")
    settings.restore(host, "run-1")
    sysctl(host, "net.ipv4.tcp_ecn").write_text("0\n")
    assert settings.restore(host, "run-1")["restored"] == []
    assert sysctl(host, "net.ipv4.tcp_ecn").read_text() == "0\n"


def test_an_owner_finds_what_was_there_before_its_first_apply(host: Host) -> None:
    for t_us in (100, 55, 300):
        settings.apply(host, {"transport": {"dcqcn": {"T_us": t_us}}}, "run-1")
    settings.restore(host, "run-1")
    assert settings.read(host, {"transport": {"dcqcn": {"T_us": 125}}})["differs"] == []


def test_owners_may_leave_in_any_order(host: Host) -> None:
    ecn = {"sysctl": {"net.ipv4.tcp_ecn": 0}}
    settings.apply(host, ecn, "provision")
    settings.apply(host, TRIAL, "run-1")
    report = settings.restore(host, "provision")
    assert "run-1" in report["skipped"][0]["reason"]
    assert settings.read(host, TRIAL)["differs"] == []
    settings.restore(host, "run-1")
    assert sysctl(host, "net.ipv4.tcp_ecn").read_text() == "2\n"
    assert settings.show_journal(host)["outstanding"] == []


def test_a_change_by_somebody_else_is_restored_and_named(host: Host) -> None:
    settings.apply(host, TRIAL, "run-1")
    sysctl(host, "net.ipv4.tcp_ecn").write_text("0\n")
    assert settings.read(host, TRIAL)["differs"] == [{"setting": "sysctl net.ipv4.tcp_ecn", "expected": 1, "found": 0}]
    report = settings.restore(host, "run-1")
    assert report["overridden"] == [{"setting": "sysctl net.ipv4.tcp_ecn", "wrote": 1, "found": 0}]
    assert sysctl(host, "net.ipv4.tcp_ecn").read_text() == "2\n"


def test_after_a_reboot_nothing_is_written(host: Host) -> None:
    settings.apply(host, TRIAL, "run-1")
    sysctl(host, "kernel.random.boot_id").write_text("b002\n")
    sysctl(host, "net.ipv4.tcp_ecn").write_text("7\n")
    report = settings.restore(host, "run-1")
    assert report["restored"] == []
    assert {skip["reason"] for skip in report["skipped"]} == {"gone with an earlier boot"}
    assert sysctl(host, "net.ipv4.tcp_ecn").read_text() == "7\n"
    assert settings.show_journal(host)["outstanding"] == []


def test_restore_skips_settings_whose_device_is_gone(host: Host) -> None:
    settings.apply(host, TRIAL, "run-1")
    (host.root / "link-eth0").unlink()
    (host.root / "transport-dcqcn").unlink()
    report = settings.restore(host, "run-1")
    assert len(report["skipped"]) == 4
    assert all("does not exist" in skip["reason"] for skip in report["skipped"])
    assert settings.read(host, {"sysctl": {"net.ipv4.tcp_ecn": 2}})["differs"] == []


def test_a_failed_restore_keeps_the_journal_and_does_the_rest(host: Host) -> None:
    settings.apply(host, TRIAL, "run-1")
    tool = host.root / "bin/ip"
    tool.rename(tool.with_name("hidden"))
    failed = call(host, "restore", "--owner", "run-1")
    assert failed.returncode == 1
    assert "could not restore link eth0 gso_max_size to 65536: cannot run" in failed.stderr
    assert {each["setting"] for each in json.loads(failed.stdout)["failed"]} == {
        "link eth0 mtu",
        "link eth0 gso_max_size",
    }
    assert settings.read(host, {"sysctl": {"net.ipv4.tcp_ecn": 2}})["differs"] == []
    tool.with_name("hidden").rename(tool)
    settings.restore(host, "run-1")
    assert settings.read(host, {"link": {"eth0": {"mtu": 1500, "gso_max_size": 65536}}})["differs"] == []


def test_a_torn_last_line_is_dropped(host: Host) -> None:
    settings.apply(host, TRIAL, "run-1")
    with (host.state / "journal.jsonl").open("a") as journal:
        journal.write('{"entry": "found", "own')
    assert len(settings.show_journal(host)["outstanding"]) == 6
    settings.apply(host, {"sysctl": {"net.ipv4.tcp_ecn": 0}}, "run-2")
    assert len(settings.show_journal(host)["outstanding"]) == 7


def test_a_broken_journal_is_named_with_its_line(host: Host) -> None:
    settings.apply(host, TRIAL, "run-1")
    (host.state / "journal.jsonl").write_text("garbage\n")
    failed = call(host, "restore", "--owner", "run-1")
    assert failed.returncode == 1
    assert "journal.jsonl: line 1 is not JSON: 'garbage'" in failed.stderr


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"sysctl": {"net.ipv4.nothing": 1}}, "cannot read sysctl net.ipv4.nothing: No such file or directory"),
        ({"sysctl": {"../../etc/passwd": 1}}, "sysctl '../../etc/passwd' is not a sysctl's name"),
        ({"sysctl": {"net.ipv4.tcp_ecn": True}}, "found true, expected a number or text"),
        ({"sysctl": 3}, "sysctl: found 3, expected a JSON object"),
        ([], "the document: found [], expected a JSON object"),
        ({"color": {}}, "unknown kind of setting 'color'\n  known: sysctl, cpu, link, irq, route, transport, qos"),
        ({"link": {"eth9": {"mtu": 1500}}}, "eth9 does not exist"),
        ({"link": {"eth0": {"speed": 1}}}, "link eth0 has no setting 'speed'\n  known: gso_max_size, mtu"),
        ({"transport": {"dcqcn": {"T": 1}}}, "transport dcqcn has no parameter 'T'\n  known: T_us, F, g"),
    ],
)
def test_bad_documents_get_one_message_and_change_nothing(host: Host, document: object, said: str) -> None:
    failed = call(host, "apply", "--owner", "run-1", document=document)
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.startswith("error: ")
    assert said in failed.stderr
    assert json.loads(call(host, "journal").stdout) == {"outstanding": []}


def test_input_that_is_not_json(host: Host) -> None:
    options = ["--root", str(host.root), "--state", str(host.state)]
    command = [sys.executable, settings.__file__, "read", *options]
    failed = subprocess.run(command, input="{", capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: standard input is not JSON")


def test_the_program_speaks_json(host: Host) -> None:
    applied = json.loads(call(host, "apply", "--owner", "run-1", document=TRIAL).stdout)
    assert applied["differs"] == []
    assert json.loads(call(host, "read", document={"link": {"eth0": {"mtu": None}}}).stdout) == {
        "found": {"link": {"eth0": {"mtu": 9000}}},
        "differs": [],
    }
    assert {entry["owner"] for entry in json.loads(call(host, "journal").stdout)["outstanding"]} == {"run-1"}
    assert len(json.loads(call(host, "restore", "--owner", "run-1").stdout)["restored"]) == 6


def test_apply_needs_an_owner(host: Host) -> None:
    assert call(host, "apply", document={}).returncode == 2


def test_settings_use_python_3_8_and_the_standard_library_only() -> None:
    for file in Path(settings.__file__).parent.glob("settings*.py"):
        tree = ast.parse(file.read_text(), feature_version=(3, 8))
        imported = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        others = {name for name in imported if not name.startswith("roundabout.settings")}
        assert others <= sys.stdlib_module_names


def test_settings_run_from_a_folder_of_their_own_and_leave_no_files(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    parts = [Path(shutil.copy(file, folder)).name for file in Path(settings.__file__).parent.glob("settings*.py")]
    command = [sys.executable, "-IS", folder / "settings.py", "journal", "--state", host.state]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={})
    assert json.loads(done.stdout) == {"outstanding": []}, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == sorted(parts)


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="writes real sysctls in a namespace of its own"
)
@pytest.mark.parametrize("rto_min_ms", [250, 3480])
def test_on_a_real_kernel_in_a_network_namespace(tmp_path: Path, rto_min_ms: int) -> None:
    document = {
        "sysctl": {"net.ipv4.tcp_congestion_control": "reno", "net.ipv4.tcp_ecn": 1},
        "link": {"t0": {"gso_max_size": 4600, "mtu": 9000}},
        "route": {"10.9.0.0/24": {"congctl": "reno", "rto_min_ms": rto_min_ms, "quickack": 1}},
    }
    state = f"--state {tmp_path}/state"
    script = f"""
        set -e
        ip link add t0 type veth peer t1
        ip link set t0 up
        ip addr add 10.9.0.1/24 dev t0
        settings="{sys.executable} {settings.__file__}"
        $settings read < document; $settings apply --owner t {state} < document
        $settings restore --owner t {state}; $settings read < document
    """
    (tmp_path / "document").write_text(json.dumps(document))
    done = subprocess.run(["unshare", "--net", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, applied, _, after = map(json.loads, done.stdout.splitlines())
    assert applied["applied"] == document
    assert before == after != applied


@pytest.mark.skipif(os.geteuid() != 0, reason="changes a real route")
def test_other_attributes_of_a_route_stay(tmp_path: Path) -> None:
    document = json.dumps({"route": {"10.9.0.0/24": {"congctl": "reno"}}})
    script = f"""
        set -e
        ip link add t0 type veth peer t1
        ip link set t0 up
        ip route add 10.9.0.0/24 dev t0 rto_min 300ms
        {sys.executable} {settings.__file__} apply --owner t --state {tmp_path}/state >/dev/null
        ip route show exact 10.9.0.0/24
    """
    command = ["unshare", "--net", "sh", "-c", script]
    done = subprocess.run(command, input=document, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "300ms" in done.stdout
    assert "congctl reno" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="writes a real sysctl")
def test_an_unknown_congestion_control_says_what_there_is(tmp_path: Path) -> None:
    document = json.dumps({"sysctl": {"net.ipv4.tcp_congestion_control": "nothing"}})
    command = ["unshare", "--net", sys.executable, settings.__file__, "apply", "--owner", "t", "--state", str(tmp_path)]
    failed = subprocess.run(command, input=document, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "cannot set sysctl net.ipv4.tcp_congestion_control to nothing" in failed.stderr
    assert "available here: " in failed.stderr
