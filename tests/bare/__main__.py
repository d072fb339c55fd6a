# SPDX-License-Identifier: Apache-2.0
"""`make bare`: README's commands on bare systems, as a stranger would run them, and how long each part takes.

    python3 -m tests.bare [--system SYSTEM] [--user root|stranger] [COMMAND...]

Without arguments: every stay of STAYS. A folder gets the least that a system consists of, with what the README requires
(git, make, sudo), a clean copy of HEAD, and this machine's way to packages. Everything in there runs in namespaces of
its own for mounts and processes: when their first process ends, however it ends, the kernel undoes the mounts and ends
what is left. Only the folder remains to be removed. The kernel is this machine's.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine import machine_lease
from roundabout.runner.machine.state import STATE
from roundabout.terminal.lines import print_notice

REPOSITORY = Path(__file__).parents[2]
KEYRINGS = Path("/usr/share/keyrings")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# Below the home of the caller.
PIP_FILES = (".config/pip/pip.conf", ".pip/pip.conf")
# What in a command's output begins another part of it.
MARKS = re.compile(
    r"(?:Setting up: (.*)|\d of \d: (\w+)|TASK \[(.*?)\].*|(PLAY RECAP).*|"
    r"(Test project).*|=+ (test session) starts.*)\n"
)
# The folder becomes the root of its mounts: a chroot is left by a process that enters a lab host's namespaces.
MOUNTS = """
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/run"
cd "$1"
pivot_root . mnt
umount --lazy /mnt
"""
# As a user; groups and all. Then what is given.
BECOME = 'cd "$2/roundabout"; exec setpriv --reuid "$3" --regid "$3" --init-groups /bin/sh -c "$4"'
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class System:
    """A system that the README names, and where its packages are from if this machine has no better source."""

    title: str
    origin: str  # as its archive calls itself
    release: str
    sources: tuple[str, ...]  # lines of a sources.list
    script: str  # debootstrap's, for what is like it
    keyring: str


SYSTEMS = {
    "debian12": System(
        "Debian 12",
        "Debian",
        "bookworm",
        (
            "deb http://deb.debian.org/debian bookworm main",
            "deb http://deb.debian.org/debian bookworm-updates main",
            "deb http://deb.debian.org/debian-security bookworm-security main",
        ),
        "sid",
        "debian-archive-keyring.gpg",
    ),
    "ubuntu24.04": System(
        "Ubuntu 24.04",
        "Ubuntu",
        "noble",
        (
            "deb http://archive.ubuntu.com/ubuntu noble main universe",
            "deb http://archive.ubuntu.com/ubuntu noble-updates main universe",
            "deb http://security.ubuntu.com/ubuntu noble-security main universe",
        ),
        "gutsy",
        "ubuntu-archive-keyring.gpg",
    ),
}
# Debian has no package of Ubuntu's keys: they are in this one of Ubuntu's, which the hash stands for.
UBUNTU_KEYS = (
    "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
    "SHA256:36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8",
)


@dataclass(frozen=True)
class Stay:
    """Commands that a stranger runs on a bare system, one after the other; `user` is root, or has sudo."""

    system: str
    user: str
    commands: Sequence[str]

    @property
    def home(self) -> str:
        return "/root" if self.user == "root" else f"/home/{self.user}"

    def __str__(self) -> str:
        system = SYSTEMS[self.system].title
        return f"{system}, as root" if self.user == "root" else f"{system}, as a user with sudo"


STRANGER = "stranger"
README = ("make experiment NAME=unfair-vgg19", "make test")
# An experiment over loads, and tests of what differs between systems: set-up, eBPF, namespaces, sudo.
SLICE = (
    "make sweep NAME=websearch-bert LENGTH=quick",
    "make test TESTS='tests/ansible/test_setup.py tests/ansible/test_programs.py tests/lab tests/transports'",
)
STAYS = (Stay("debian12", "root", README), Stay("ubuntu24.04", "root", SLICE), Stay("ubuntu24.04", STRANGER, SLICE))


@dataclass
class Parts:
    """How long each part took; parts of a part have a greater depth."""

    taken: list[tuple[int, str, float]] = field(default_factory=list)

    @contextmanager
    def part(self, name: str) -> Iterator[Callable[[str], None]]:
        """Time a part; what it yields is called with the name of each part of it as that begins."""
        begun = [(name, time.monotonic())]
        try:
            yield lambda inner: begun.append((inner, time.monotonic()))
        finally:
            ends = [*(at for _, at in begun[2:]), time.monotonic()]
            self.taken.append((0, name, ends[-1] - begun[0][1]))
            if inner := begun[1:]:
                self.taken += [(1, each, end - at) for (each, at), end in zip(inner, ends, strict=True)]

    def __str__(self) -> str:
        shown = ((depth, name, s) for depth, name, s in self.taken if depth == 0 or s >= 1)
        return "\n".join(f"{'  ' * depth}{s:6.0f} s  {name}" for depth, name, s in shown)


def main(stays: Sequence[Stay]) -> int:
    """Make one stay after the other until a command fails; the exit status of the last."""
    parts = Parts()
    status = 0
    try:
        with machine_lease.hold("machine", "make bare", STATE, wait_s=machine_lease.QUEUE_S, report=print_notice):
            for stay in stays:
                status = status or make(stay, parts)
    except RoundaboutError as error:
        print(f"error: {error}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    print(f"\n{parts}")
    return status


def make(stay: Stay, parts: Parts) -> int:
    """Build the system and run the commands in it until one fails; the exit status of the last."""
    with tempfile.TemporaryDirectory(prefix="roundabout-bare-", dir="/var/tmp") as folder:
        root = Path(folder) / "system"
        with parts.part(f"a bare {stay}"):
            build(root, stay)
        for command in stay.commands:
            with parts.part(command) as begin:
                status = run(root, stay, command, begin)
            if status:
                return status
    return 0


def build(root: Path, stay: Stay) -> None:
    """A bare system in `root`, with a copy of HEAD in the stranger's home."""
    system = SYSTEMS[stay.system]
    install_debootstrap()
    sources = apt_sources(system)
    mirror = next(words[1] for words in map(str.split, sources) if words[2] == system.release)
    packages = ["git", "make", *(["sudo"] if stay.user != "root" else [])]
    words = ["--variant=minbase", f"--include={','.join(packages)}", f"--keyring={keyring(system, root.parent)}"]
    script = f"/usr/share/debootstrap/scripts/{system.script}"
    # In namespaces too: what it mounts must not outlive it.
    isolated("debootstrap", *words, system.release, str(root), mirror, script)
    if stay.user != "root":
        add_user(root, stay.user)
    pass_on_ways(root, stay, sources)
    home = root / stay.home[1:]
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", REPOSITORY, home / "roundabout"], check=True)
    owner = home.stat()
    isolated("chown", "--recursive", f"{owner.st_uid}:{owner.st_gid}", str(home))


def add_user(root: Path, name: str) -> None:
    """A user who may become root without a password."""
    isolated("chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", name)
    rule = root / "etc/sudoers.d" / name
    rule.write_text(f"{name} ALL=(ALL:ALL) NOPASSWD: ALL\n")
    rule.chmod(0o440)


def install_debootstrap() -> None:
    """From the packages of this machine's own system; on Ubuntu with Debian's keys."""
    if shutil.which("debootstrap") is None:
        words = ["install", "--yes", "--no-install-recommends", "debootstrap", "debian-archive-keyring"]
        subprocess.run(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", *words], check=True)


def keyring(system: System, folder: Path) -> Path:
    """The keys that sign the system's packages; those that this machine lacks go into `folder`."""
    if (KEYRINGS / system.keyring).exists():
        return KEYRINGS / system.keyring
    address, digest = UBUNTU_KEYS
    package = folder / "keys.deb"
    isolated("/usr/lib/apt/apt-helper", "download-file", address, str(package), digest)
    isolated("dpkg-deb", "--extract", str(package), str(folder / "keys"))
    return folder / "keys" / KEYRINGS.relative_to("/") / system.keyring


def apt_sources(system: System) -> Sequence[str]:
    """Where packages of the system are from: this machine's own ways where it is such a system itself."""
    words = ["--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages", f"Origin: {system.origin}"]
    done = subprocess.run(["apt-get", "indextargets", *words], capture_output=True, text=True, check=True)
    found = sorted({line for line in done.stdout.splitlines() if line.split()[2].startswith(system.release)})
    return found or system.sources


def pass_on_ways(root: Path, stay: Stay, sources: Sequence[str]) -> None:
    """Give the system this machine's way to packages: mirrors, proxies, names, certificates, pip's settings."""
    apt = root / "etc/apt"
    (apt / "sources.list").write_text("".join(f"{line}\n" for line in sources))
    acquire = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
    (apt / "apt.conf.d/90machine").write_text(acquire)
    ways = {f"/{name}": f"/{name}" for name in ("etc/resolv.conf", "etc/hosts", "etc/pip.conf")}
    ways |= {str(Path.home() / name): f"{stay.home}/{name}" for name in PIP_FILES}
    for found, place in ways.items():
        if Path(found).is_file():
            target = root / place[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, target)
    if CERTIFICATES.is_file():
        shutil.copy(CERTIFICATES, root / "etc/machine.crt")


def environment(root: Path, stay: Stay) -> dict[str, str]:
    """A stranger's, with this machine's settings for proxies and pip; those that are paths would lead nowhere."""
    ways = {name: value for name, value in os.environ.items() if re.fullmatch(r"PIP_.*|.*_proxy|.*_PROXY", name)}
    ways = {name: value for name, value in ways.items() if not value.startswith("/")}
    if (root / "etc/machine.crt").exists():
        ways["PIP_CERT"] = "/etc/machine.crt"
    return {"PATH": PATH, "HOME": stay.home, "TERM": "dumb", **ways}


def run(root: Path, stay: Stay, command: str, begin: Callable[[str], None]) -> int:
    """Run a command in the copy and pass on what it prints; its exit status."""
    print(f"\n== {stay}: {command}", flush=True)
    argv = [*isolation(), "sh", "-c", f"set -e; {MOUNTS} {BECOME}", "sh", str(root), stay.home, stay.user, command]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(argv, env=environment(root, stay), text=True, start_new_session=True, **pipes) as process:
        try:
            _pass_on(process, begin)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)  # it undoes what it did; a second Ctrl-C does not wait for that
            try:
                _pass_on(process, begin)
            finally:
                process.kill()
            raise
    return process.returncode


def _pass_on(process: "subprocess.Popen[str]", begin: Callable[[str], None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        if mark := MARKS.fullmatch(line):
            begin(next(group for group in mark.groups() if group))


def isolated(*argv: str) -> None:
    """Run a program in namespaces of its own. Raises RoundaboutError where it fails."""
    done = subprocess.run([*isolation(), *argv], stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RoundaboutError(f"{argv[0]} failed", "its reason is above")


def isolation() -> tuple[str, ...]:
    """Namespaces that end with us: for mounts, and for processes, which all end with the first one in there."""
    return (
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc"),
    )


def parse_stays(words: Sequence[str]) -> Sequence[Stay]:
    """Return the stay that the command line chooses, or all usual ones if the command line is empty."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.bare", description="README's commands on bare systems")
    parser.add_argument("--system", choices=SYSTEMS, default="debian12")
    parser.add_argument("--user", choices=["root", STRANGER], default="root")
    parser.add_argument("commands", nargs="*", metavar="COMMAND", default=README)
    options = parser.parse_args(words)
    return [Stay(options.system, options.user, options.commands)] if words else STAYS


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(parse_stays(sys.argv[1:])))
