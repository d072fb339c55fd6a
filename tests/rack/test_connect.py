# SPDX-License-Identifier: Apache-2.0
"""Connections to machines of a rack: real sshd, ssh and ssh-keygen, without a network."""

import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from roundabout.runner.hosts import openssh
from roundabout.runner.hosts.connections import LostHostError, SshConnection
from roundabout.runner.hosts.programs import call
from roundabout.testbeds.lab.lifecycle.ssh import SHADOW, find_sshd

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="sshd of a namespace needs root")]
# Starts sshd with a folder that it needs, and with a root that may log in by key, as in lab hosts.
SSHD = """#!/bin/sh -e
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind "$1/shadow" /etc/shadow
exec "$2" -i -f "$1/sshd_config"
"""
CASES = Path(__file__).parents[1] / "cases/rack"
Write = Callable[..., Path]


def keygen(*words: str) -> None:
    subprocess.run(["ssh-keygen", "-q", *words], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def public(key: Path) -> str:
    return " ".join(key.with_name(f"{key.name}.pub").read_text().split()[:2])


@pytest.fixture(autouse=True)
def forget() -> None:
    """Each test has other machines with the same names."""
    openssh.verify_host_key.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A machine's keys, among them a certificate for gpu0.example.org, and a user's."""
    for name, kind in (("ca", "ed25519"), ("host", "ed25519"), ("host_rsa", "rsa"), ("user", "ed25519")):
        keygen("-t", kind, "-N", "", "-f", str(tmp_path / name))
    keygen("-s", str(tmp_path / "ca"), "-I", "gpu0", "-h", "-n", "gpu0.example.org", str(tmp_path / "host.pub"))
    (tmp_path / "authorized").write_text(public(tmp_path / "user"))
    (tmp_path / "shadow").write_text(SHADOW)
    (tmp_path / "sshd").write_text(SSHD)
    (tmp_path / "sshd").chmod(0o700)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """Write the configurations of sshd and ssh, and known_hosts; return ssh's."""

    def write(known_hosts: str, *more: str, keys: tuple[str, ...] = ("host",), certificate: bool = False) -> Path:
        lines = [f"HostKey {folder / key}" for key in keys]
        lines += [f"HostCertificate {folder}/host-cert.pub"] if certificate else []
        lines += [f"AuthorizedKeysFile {folder}/authorized", "StrictModes no", "UsePAM no", "PidFile none"]
        (folder / "sshd_config").write_text("\n".join(lines) + "\n")
        (folder / "known_hosts").write_text(known_hosts)
        config = [
            *more,
            "Host *",
            f"  UserKnownHostsFile {folder}/known_hosts",
            "  GlobalKnownHostsFile /dev/null",
            f"  IdentityFile {folder}/user",
            "  IdentitiesOnly yes",
            f"  ProxyCommand unshare --mount {folder}/sshd {folder} {find_sshd()}",
        ]
        (folder / "config").write_text("\n".join(config) + "\n")
        return folder / "config"

    return write


def answer_of(config: Path, alias: str = "gpu0.example.org") -> str:
    """Return what a program prints that runs over a connection to the machine."""
    connection = SshConnection("s0", openssh.connect_host("s0", config, "root", alias))
    with closing(connection):
        return call(connection, ["echo", "reached"]).stdout.strip()


def marked_line(folder: Path) -> str:
    """Return the line of a real known_hosts with a certificate authority, with this machine's authority in it."""
    line = (CASES / "known_hosts-ca.txt").read_text()
    return line.replace("AAAAC3Nza... (any key)", public(folder / "ca").split()[1])


def test_a_certificate_authority_vouches_for_a_host(folder: Path, write: Write) -> None:
    assert answer_of(write(marked_line(folder), certificate=True)) == "reached"


def test_a_host_with_a_plain_key_is_reached_beside_marked_lines(folder: Path, write: Write) -> None:
    revoked = f"@revoked * {public(folder / 'user')}\n"
    known = f"gpu0.example.org {public(folder / 'host')}\n"
    assert answer_of(write(marked_line(folder) + revoked + known)) == "reached"


@pytest.mark.parametrize(("known", "certificate", "message"), [
    ("{ca}@revoked * {host}\n", True, "was revoked"),
    ("@revoked * {host}\ngpu0.example.org {host}\n", False, "was revoked"),
    ("{ca}", False, "No ED25519 host key is known"),  # it shows no certificate
    ("@cert-authority *.example.com {ca_key}\n", True, "host key is known"),  # an authority of other machines
    ("gpu0.example.org {user}\n", False, "Host key verification failed"),
    ("", False, "No ED25519 host key is known"),
], ids=["revoked certificate", "revoked key", "no certificate", "other names", "changed", "unknown"])  # fmt: skip
def test_a_host_that_openssh_refuses_is_refused(
    folder: Path, write: Write, known: str, certificate: bool, message: str
) -> None:
    keys = {"ca": marked_line(folder), "ca_key": public(folder / "ca")}
    keys |= {name: public(folder / name) for name in ("host", "user")}
    with pytest.raises(LostHostError, match=f"lost host s0: cannot connect by ssh: .*{message}"):
        answer_of(write(known.format(**keys), certificate=certificate))


def test_a_certificate_is_for_the_names_in_it(folder: Path, write: Write) -> None:
    with pytest.raises(LostHostError, match="cannot connect by ssh"):
        answer_of(write(marked_line(folder), certificate=True), "gpu1.example.org")


def test_a_host_is_known_by_its_key_alias_and_any_type_of_key(folder: Path, write: Write) -> None:
    known = f"machine-7 {public(folder / 'host_rsa')}\n"
    config = write(known, "Host gpu0.example.org", "  HostKeyAlias machine-7", keys=("host", "host_rsa"))
    assert answer_of(config) == "reached"


def test_another_key_than_the_verified_one_is_refused(folder: Path, write: Write) -> None:
    config = write(f"* {public(folder / 'host')}\n")
    connection = openssh.connect_host("s0", config, "root", "gpu0.example.org")
    write("", keys=("user",))  # now another machine answers
    with pytest.raises(LostHostError, match="found host key SHA256:.*, but ssh verified SHA256:"):
        SshConnection("s0", connection)


def test_jump_hosts_are_reached_by_ssh_itself(folder: Path, write: Write) -> None:
    jump = ["Host gpu0.example.org", "  HostName 10.1.2.3", "  Port 2222", "  ProxyJump a,me@b:22"]
    config = write(f"* {public(folder / 'host')}\n", *jump)
    settings = openssh.read_settings("s0", config, "root", "gpu0.example.org")
    words = f"ssh -F {config} -o BatchMode=yes -J a -W '[10.1.2.3]:2222' ssh://me@b:22"
    assert settings["proxycommand"] == words
    assert (settings["hostname"], settings["port"]) == ("10.1.2.3", "2222")
