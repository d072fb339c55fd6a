# SPDX-License-Identifier: Apache-2.0
"""A lab's hosts as the servers of an ordinary user, who has no root there and none on this machine."""

import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from roundabout.core.paths import ROOT
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.lifecycle import ssh
from roundabout.testbeds.lab.network import paths

USER, UID, GID = "alice", 12345, 65534
ENTRY = f"{USER}:x:{UID}:{GID}::{{home}}:/bin/sh\n"
HOST_HOME, KEYS = f"/tmp/{USER}", "/tmp/authorized_keys"
# Runs a command as the user, who is in /etc/passwd and may read the checkout, in a mount namespace of its own.
AS_USER = f"""
mount --bind "$1" /mnt && mount --bind "$2/passwd" /etc/passwd && cd "$2" && shift 2 &&
exec setpriv --reuid={UID} --regid={GID} --clear-groups "$@"
"""
CONFIG = """\
Host {host}
  HostName 127.0.0.1
  Port {port}
  HostKeyAlias {host}
  IdentityFile {key}
  UserKnownHostsFile {known}
  LogLevel ERROR
"""


class Account(NamedTuple):
    """The user's folder on this machine, which is the home, and the SSH configuration in there."""

    home: Path
    ssh_config: Path

    def run(self, *words: object, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run `roundabout` as this user."""
        python = Path("/mnt", Path(sys.executable).relative_to(ROOT))
        private = ["unshare", "--mount", "--propagation=private", "sh", "-c", AS_USER, "sh", ROOT, self.home]
        command = [*private, python, "-m", "roundabout.cli.main", *words]
        kept = {name: value for name, value in os.environ.items() if name != "ROUNDABOUT_LEASE"}
        own = {"HOME": str(self.home), "PYTHONPATH": "/mnt", "PYTHONDONTWRITEBYTECODE": "1", **environment}
        return subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=240, env={**kept, **own}, check=False
        )


@contextmanager
def account(lab: Lab) -> Iterator[Account]:
    """Give the user an account on the lab's hosts, which listen for SSH at ports of this machine."""
    passwd = lab.files.share / "etc/passwd"
    passwd.write_text(passwd.read_text() + ENTRY.format(home=HOST_HOME))  # the same file, as hosts see it
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="user-", dir="/tmp"))
        stack.callback(shutil.rmtree, home)
        key, known, config = home / "key", home / "known_hosts", home / "ssh_config"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        shutil.copy(lab.files.known_hosts, known)
        (home / "passwd").write_text(Path("/etc/passwd").read_text() + ENTRY.format(home=home))
        ports = {host: stack.enter_context(_listening(lab, host)) for host in lab.hosts}
        config.write_text(_ssh_config(ports, key, known))
        for host in lab.hosts:
            make = f"mkdir -p {HOST_HOME} && chown {UID} {HOST_HOME} && cat > {KEYS} && chmod 644 {KEYS}"
            public = key.with_suffix(".pub").read_text()
            subprocess.run(["ssh", "-F", lab.ssh_config(), host, make], input=public, text=True, check=True)
        for each in (home, *home.iterdir()):
            os.chown(each, UID, GID)
        yield Account(home, config)


def _ssh_config(ports: Mapping[str, int], key: Path, known: Path) -> str:
    return "".join(CONFIG.format(host=host, port=port, key=key, known=known) for host, port in ports.items())


@contextmanager
def _listening(lab: Lab, host: str) -> Iterator[int]:
    """Start an sshd in the host for each connection to a port, and yield the port."""
    enter = [paths.program_path("labenter"), lab.files.pid_file(host), ssh.find_sshd(), "-i"]
    options = ["-f", f"{paths.SHARE_INSIDE}/sshd_config", "-o", f"AuthorizedKeysFile={KEYS}", "-o", "StrictModes=no"]

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            subprocess.run([*enter, *options], stdin=self.request, stdout=self.request, check=False)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
