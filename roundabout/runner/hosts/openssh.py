# SPDX-License-Identifier: Apache-2.0
"""Connections whose configuration and host key come from OpenSSH.

Paramiko reads a part of ssh_config alone, and neither certificates of hosts nor marked lines of known_hosts
(`@cert-authority`, `@revoked`). Therefore `ssh -G` resolves the configuration, and a first connection by `ssh` verifies
the host key. The connections for programs then accept that key and no other.
"""

import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from roundabout.runner.hosts.connections import LostHostError

if TYPE_CHECKING:
    from fabric import Connection

CONNECT_TIMEOUT_S = 10
VERIFY_TIMEOUT_S = 30  # time limit of the first connection, which includes jump hosts
# Options of the first connection. It changes no file, and it is a connection of its own, so that it reports the key.
FRESH = {
    "BatchMode": "yes",
    "ConnectTimeout": str(CONNECT_TIMEOUT_S),
    "StrictHostKeyChecking": "yes",
    "UpdateHostKeys": "no",
    "FingerprintHash": "sha256",
    "ControlMaster": "no",
    "ControlPath": "none",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "LogLevel": "DEBUG1",
}
# Beginning of the line of OpenSSH's log (sshconnect.c, verify_host_key) with the type of the host key or certificate,
# and its fingerprint. The fingerprint of a certificate is that of its key.
HOST_KEY = re.compile(r"debug1: Server host (?:key|certificate): (\S+) (SHA256:[A-Za-z0-9+/]+)", re.ASCII)
CERTIFICATE = "-cert-v01@openssh.com"
# Host key algorithms of paramiko (transport.py). It requests none but those of the verified key's type.
ALGORITHMS = (
    "ssh-ed25519",
    *(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521)),
    "rsa-sha2-512",
    "rsa-sha2-256",
    "ssh-rsa",
)
# Fields of `ssh -G` that a connection for programs uses.
USED = ("hostname", "port", "identityfile", "identitiesonly", "proxycommand")


class HostKey(NamedTuple):
    """A host key that OpenSSH verified: its type without a certificate, and its fingerprint."""

    type: str
    fingerprint: str


def connect_host(host: str, config: Path, user: str, alias: str) -> "Connection":
    """Return a Fabric connection to the machine `alias` of the SSH configuration `config`, which is not open yet.

    Its host key is the one that OpenSSH verifies. Raises LostHostError, which names `host`, if OpenSSH cannot connect.
    """
    from fabric import Config, Connection  # noqa: PLC0415 - half a second that most commands need not pay

    key = verify_host_key(host, config, user, alias)
    settings = read_settings(host, config, user, alias)
    own_keys = settings["identitiesonly"] == "no"
    others = [name for name in ALGORITHMS if _family(name) != _family(key.type)]
    connection = Connection(
        settings["hostname"],
        user=user,
        port=int(settings["port"]),
        gateway=settings.get("proxycommand", False),
        connect_timeout=CONNECT_TIMEOUT_S,
        connect_kwargs={
            "key_filename": [name for name in settings["identityfile"] if Path(name).exists()],
            "allow_agent": True,  # as in OpenSSH, which with IdentitiesOnly also lets the agent sign
            "look_for_keys": own_keys,
            "disabled_algorithms": {"keys": others},
        },
        config=Config(overrides={"load_ssh_configs": False}),
    )
    connection.client.set_missing_host_key_policy(_policy(key))
    return connection


def _policy(verified: HostKey) -> Any:
    from paramiko import MissingHostKeyPolicy, SSHException  # noqa: PLC0415 - as above

    class VerifiedKeyPolicy(MissingHostKeyPolicy):
        """Accept the host key that OpenSSH verified. The client has no key of its own."""

        def missing_host_key(self, client: object, hostname: str, key: Any) -> None:  # noqa: ARG002 - paramiko's
            if key.fingerprint != verified.fingerprint:
                raise SSHException(f"found host key {key.fingerprint}, but ssh verified {verified.fingerprint}")

    return VerifiedKeyPolicy()


def _family(name: str) -> str:
    """Return the type of key of an algorithm: RSA keys have several signature algorithms."""
    return "rsa" if name == "ssh-rsa" or name.startswith("rsa-sha2-") else name


@lru_cache(maxsize=4096)
def verify_host_key(host: str, config: Path, user: str, alias: str) -> HostKey:
    """Connect by `ssh` and return the host key that it accepted. Raises LostHostError."""
    with tempfile.NamedTemporaryFile("r", prefix="roundabout-ssh-") as log:
        # The log is a file, because standard error would also have what jump hosts and the host itself print.
        options = ["-n", "-T", "-E", log.name, *(word for pair in FRESH.items() for word in ("-o", "=".join(pair)))]
        done = _run_ssh(host, [*options, *_destination(config, user, alias), "true"])
        lines = log.read().splitlines()
    keys = [found for line in lines if (found := HOST_KEY.match(line))]
    if done.returncode or not keys:
        reported = [line for line in lines if line.strip("@ ") and not line.startswith("debug1: ")]
        raise LostHostError(host, f"cannot connect by ssh: {'; '.join(reported[-2:]) or 'no answer'}")
    kind, fingerprint = keys[-1].groups()
    return HostKey(kind.removesuffix(CERTIFICATE), fingerprint)


@lru_cache(maxsize=4096)
def read_settings(host: str, config: Path, user: str, alias: str) -> Mapping[str, Any]:
    """Return what `ssh -G` reports of a machine, with tokens replaced, and a jump host as a ProxyCommand."""
    from paramiko import SSHConfig  # noqa: PLC0415 - as above

    done = _run_ssh(host, ["-G", *_destination(config, user, alias)])
    lines = done.stdout.splitlines()
    values = dict(line.split(" ", 1) for line in lines if " " in line)
    kept = [line for line in lines if line.split(" ", 1)[0] in USED]
    if "proxyjump" in values:
        kept.append(f"proxycommand {_jump_command(config, values)}")
    settings = SSHConfig.from_text("\n".join(["Host *", f"user {user}", *kept])).lookup(alias)
    return {"identityfile": [], **settings}


def _jump_command(config: Path, values: Mapping[str, str]) -> str:
    """Return the command by which `ssh` itself reaches a machine through its jump hosts."""
    *before, last = values["proxyjump"].split(",")
    hops = ["-J", ",".join(before)] if before else []
    destination = last if last.startswith("ssh://") else f"ssh://{last}"
    target = f"[{values['hostname']}]:{values['port']}"
    return shlex.join(["ssh", "-F", str(config), "-o", "BatchMode=yes", *hops, "-W", target, destination])


def _destination(config: Path, user: str, alias: str) -> list[str]:
    return ["-F", str(config), "-l", user, alias]


def _run_ssh(host: str, words: list[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            ["ssh", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=VERIFY_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LostHostError(host, f"cannot connect by ssh: {error}") from error
