# SPDX-License-Identifier: Apache-2.0
"""Lab hosts are reached like servers: by OpenSSH, Fabric and Ansible, with one ssh_config."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roundabout.testbeds.lab.network import paths

pytestmark = [pytest.mark.lab, pytest.mark.quiet]


def run(lab, host: str, command: str) -> subprocess.CompletedProcess[str]:
    words = ["ssh", "-F", str(lab.ssh_config()), host, command]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=20)


def test_a_host_has_its_own_name_processes_and_folders(lab):
    shown = run(
        lab,
        "s1",
        "hostname; ps -eo args; ls -A /tmp; ls /run /sys/class/net; cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6",
    )
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "s1"
    processes = lines[2 : lines.index("/run:")]
    assert any("labinit host s1" in line for line in processes)
    assert not any("labinit host s0" in line or "pytest" in line for line in processes)
    assert len(processes) < 8
    assert lines[lines.index("/run:") + 1 :] == ["roundabout", "sshd", "", "/sys/class/net:", "eth0", "lo", "1"]


def test_hosts_reach_each_other_by_name(lab):
    assert run(lab, "s0", "getent ahostsv4 s3").stdout.split()[0] == lab.hosts["s3"].address


def test_exit_status_and_streams_come_through(lab):
    done = run(lab, "s2", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_lab_hosts_have_separate_temporary_folders(lab):
    run(lab, "s0", "echo secret > /tmp/note; echo secret > /run/note")
    assert run(lab, "s1", "cat /tmp/note /run/note").returncode == 1
    assert not os.path.exists("/run/note")


def test_lab_hosts_lack_capabilities_that_they_do_not_need(lab):
    """It is no boundary: root may undo it. But no one does by mistake."""
    kept = int(run(lab, "s0", "awk '/CapEff/ { print $2 }' /proc/self/status").stdout, 16)
    given_up = ("SYS_MODULE", 16), ("SYS_RAWIO", 17), ("SYS_BOOT", 22), ("SYS_TIME", 25), ("MKNOD", 27)
    assert [name for name, number in given_up if kept >> number & 1] == []


def test_capabilities_that_a_container_made_inheritable_do_not_come_back(lab):
    enter = [paths.program_path("labenter"), lab.files.pid_file("s0"), "grep", "^Cap[IPEB]", "/proc/self/status"]
    inherit = ["setpriv", "--inh-caps=+mknod,+sys_time,+net_admin"]
    done = subprocess.run([*inherit, *enter], check=True, capture_output=True, text=True)
    sets = {name: int(mask, 16) for name, mask in map(str.split, done.stdout.splitlines())}
    assert sets.keys() == {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:"}
    assert [mask >> 25 & 1 | mask >> 27 & 1 for mask in sets.values()] == [0, 0, 0, 0]  # SYS_TIME, MKNOD
    assert [mask >> 12 & 1 for mask in sets.values()] == [1, 1, 1, 1]  # NET_ADMIN


def test_a_host_cannot_read_the_labs_client_key(lab):
    assert run(lab, "s0", f"cat {lab.files.key}").returncode == 1
    assert lab.files.key.stat().st_mode & 0o777 == 0o600
    assert lab.files.root.stat().st_mode & 0o777 == 0o700


def test_a_killed_client_leaves_nothing_that_watches_its_stdin(lab):
    client = subprocess.Popen(["ssh", "-F", str(lab.ssh_config()), "s0", "exec cat"], stdin=subprocess.PIPE)
    deadline = time.monotonic() + 10
    while run(lab, "s0", "pgrep -x cat").returncode and time.monotonic() < deadline:
        time.sleep(0.05)
    client.kill()
    client.wait()
    assert client.stdin is not None
    client.stdin.close()
    while not run(lab, "s0", "pgrep -x cat").returncode and time.monotonic() < deadline:
        time.sleep(0.05)
    assert run(lab, "s0", "pgrep -x cat").returncode == 1


def test_logins_are_not_recorded_on_the_machine(lab):
    before = os.stat("/var/log/wtmp").st_size if os.path.exists("/var/log/wtmp") else None
    subprocess.run(["ssh", "-tt", "-F", str(lab.ssh_config()), "s0", "true"], capture_output=True, check=True)
    assert (os.stat("/var/log/wtmp").st_size if os.path.exists("/var/log/wtmp") else None) == before


def test_fabric_runs_and_copies(lab, tmp_path):
    """In a process of its own: paramiko leaves its ProxyCommand to the garbage collector."""
    source = tmp_path / "file"
    source.write_text("content")
    script = f"""
from roundabout.testbeds.lab import Lab
with Lab.open({lab.name!r}).connect("s3") as connection:
    connection.put({str(source)!r}, "/run/roundabout/file")
    connection.run("hostname; cat /run/roundabout/file")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=20)
    assert done.stdout == "s3\ncontent", done.stderr


def test_ansible_reaches_every_host(lab, tmp_path):
    inventory = tmp_path / "inventory"
    inventory.write_text("".join(f"{host}\n" for host in lab.hosts))
    environment = {
        **os.environ,
        "ANSIBLE_SSH_ARGS": f"-F {lab.ssh_config()} -o ControlMaster=auto -o ControlPersist=10",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(lab.files.control),
        "ANSIBLE_REMOTE_TEMP": "/tmp/ansible",
    }
    command = [str(Path(sys.executable).with_name("ansible")), "all", "-i", str(inventory), "-m", "ping"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert done.stdout.count('"ping": "pong"') == 4, done.stdout + done.stderr
