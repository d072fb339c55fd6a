# SPDX-License-Identifier: Apache-2.0
"""SSH to lab hosts without a network: the ProxyCommand of each connection starts an sshd inside the host."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from roundabout.runner.hosts.host_group import Host
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.network import paths

SSHD_CONFIG = f"""\
HostKey {paths.SHARE_INSIDE}/host_key
AuthorizedKeysFile {paths.SHARE_INSIDE}/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
PidFile none
LogLevel ERROR
MaxSessions 100
Subsystem sftp internal-sftp
"""

SSH_CONFIG = """\
Host {aliases}
  User root
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  ControlPath {control}/%n
  LogLevel ERROR
  ProxyCommand {enter} {nodes}/%h.pid {sshd} -i -f {inside}/sshd_config
"""

# Pattern that replaces root's login shell, because a shell with start-up files would read them for each command.
PLAIN_SHELL = re.compile(r"^(root:.*):[^:\n]*$", re.MULTILINE)
# Lets root log in by key even if the machine's own entry for root is locked.
SHADOW = "root:*:::::::\nsshd:*:::::::\n"


def find_sshd() -> str:
    """Return the absolute path of sshd. sshd must be started by its absolute path.

    Raises:
        LabError: sshd is not installed.
    """
    found = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if found is None or shutil.which("ssh-keygen") is None:
        raise LabError(
            "sshd and ssh-keygen are needed to reach lab hosts, and were not found",
            "install openssh-server; no daemon has to run",
        )
    return found


def write_files(lab: paths.LabPaths, hosts: Mapping[str, Host], lock: int) -> None:
    """Write the lab's SSH keys and configuration. The caller holds `lock`. Hosts see only the share folder."""
    etc = lab.share / "etc"
    for folder in (etc, lab.control):
        folder.mkdir(parents=True, mode=0o700)
    _make_keys([lab.key, lab.share / "host_key"], lock)
    _write(lab.share / "authorized_keys", _read_public_key(lab.key))
    _write(lab.share / "sshd_config", SSHD_CONFIG)
    _write(
        etc / "hosts",
        "127.0.0.1 localhost\n" + "".join(f"{host.address} {name}\n" for name, host in hosts.items()),
        0o644,
    )
    _write(etc / "shadow", SHADOW)
    _write(etc / "passwd", PLAIN_SHELL.sub(r"\1:/bin/sh", Path("/etc/passwd").read_text()), 0o644)
    _write(lab.known_hosts, "".join(f"{name} {_read_public_key(lab.share / 'host_key')}" for name in hosts))
    config = SSH_CONFIG.format(
        aliases=" ".join(hosts),
        key=lab.key,
        known_hosts=lab.known_hosts,
        control=lab.control,
        enter=paths.program_path("labenter"),
        nodes=lab.pid_file("any").parent,
        sshd=find_sshd(),
        inside=paths.SHARE_INSIDE,
    )
    _write(lab.ssh_config, config)


def _make_keys(targets: list[Path], lock: int) -> None:
    for key in targets:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "roundabout lab", "-f", str(key)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, pass_fds=[lock])
        if done.returncode:
            raise LabError(f"ssh-keygen made no key: {done.stderr.strip()}")


def _read_public_key(key: Path) -> str:
    """Return the public key without its comment."""
    kind, text, *_ = key.with_name(f"{key.name}.pub").read_text().split()
    return f"{kind} {text}\n"


def _write(path: Path, text: str, mode: int = 0o600) -> None:
    path.touch(mode=mode, exist_ok=False)
    path.write_text(text)
