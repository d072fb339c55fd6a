# SPDX-License-Identifier: Apache-2.0
"""`make bare`: README's two commands on a bare Debian 12, as a stranger would run them, and how long each part takes.

A folder gets Debian's least system with what the README asks for (git, make), a clean copy of HEAD, and this machine's
way to packages. Everything in there runs in namespaces of its own for mounts and processes: when their first process
ends, however it ends, the kernel undoes the mounts and ends what is left. Only the folder remains to be removed.
"""

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

from roundabout.errors import RoundaboutError
from roundabout.runner.machine import lease
from roundabout.runner.machine.state import STATE

REPOSITORY = Path(__file__).parents[2]
RELEASE = "bookworm"
COMMANDS = ("make experiment NAME=unfair-vgg19", "make test")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PIP_FILES = ("etc/pip.conf", "root/.config/pip/pip.conf", "root/.pip/pip.conf")
# What in a command's output begins another part of it.
MARKS = re.compile(
    r"(?:Setting up: (.*)|TASK \[(.*?)\].*|(PLAY RECAP).*|(Test project).*|=+ (test session) starts.*)\n"
)
# The folder becomes the root of its mounts: a chroot is left by whoever enters a lab host's namespaces.
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
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


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


def main(commands: Sequence[str]) -> int:
    """Run the commands one after the other until one fails; the exit status of the last."""
    parts = Parts()
    try:
        with (
            lease.hold("machine", "make bare", STATE),
            tempfile.TemporaryDirectory(prefix="roundabout-bare-", dir="/var/tmp") as folder,
        ):
            root = Path(folder) / "system"
            with parts.part("a bare Debian 12, which a stranger has"):
                build(root)
            for command in commands:
                with parts.part(command) as begin:
                    status = run(root, command, begin)
                if status:
                    break
    except RoundaboutError as error:
        print(f"error: {error}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    print(f"\n{parts}")
    return status


def build(root: Path) -> None:
    """A bare system in `root`, with a copy of HEAD in /root/roundabout."""
    install_debootstrap()
    sources = apt_sources()
    mirror = [words[1] for words in map(str.split, sources) if words[2] == RELEASE][:1]
    # In namespaces too: what it mounts must not outlive it.
    isolated("debootstrap", "--variant=minbase", "--include=git,make", RELEASE, str(root), *mirror)
    pass_on_ways(root, sources)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", REPOSITORY, root / "root/roundabout"], check=True)


def install_debootstrap() -> None:
    """From the packages of this machine's own system; on Ubuntu with Debian's keys."""
    if shutil.which("debootstrap") is None:
        words = ["install", "--yes", "--no-install-recommends", "debootstrap", "debian-archive-keyring"]
        subprocess.run(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", *words], check=True)


def apt_sources() -> list[str]:
    """Where this machine gets Debian 12 from, as lines of a sources.list; empty if it is another system."""
    words = ["--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages", "Origin: Debian"]
    done = subprocess.run(["apt-get", "indextargets", *words], capture_output=True, text=True, check=True)
    return sorted({line for line in done.stdout.splitlines() if line.split()[2].startswith(RELEASE)})


def pass_on_ways(root: Path, sources: Sequence[str]) -> None:
    """Give the system this machine's way to packages: mirrors, proxies, names, certificates, pip's settings."""
    apt = root / "etc/apt"
    if sources:
        (apt / "sources.list").write_text("".join(f"{line}\n" for line in sources))
    acquire = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
    (apt / "apt.conf.d/90machine").write_text(acquire)
    for path in ("etc/resolv.conf", "etc/hosts", *PIP_FILES):
        if (found := Path("/") / path).is_file():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, root / path)
    if CERTIFICATES.is_file():
        shutil.copy(CERTIFICATES, root / "etc/machine.crt")


def environment(root: Path) -> dict[str, str]:
    """A stranger's, with this machine's settings for proxies and pip; those that are paths would lead nowhere."""
    ways = {name: value for name, value in os.environ.items() if re.fullmatch(r"PIP_.*|.*_proxy|.*_PROXY", name)}
    ways = {name: value for name, value in ways.items() if not value.startswith("/")}
    if (root / "etc/machine.crt").exists():
        ways["PIP_CERT"] = "/etc/machine.crt"
    return {"PATH": PATH, "HOME": "/root", "TERM": "dumb", **ways}


def run(root: Path, command: str, begin: Callable[[str], None]) -> int:
    """Run a command in the copy and pass on what it prints; its exit status."""
    print(f"\n== {command}", flush=True)
    script = f'set -e; {MOUNTS} cd /root/roundabout && exec /bin/sh -c "$2"'
    argv = [*isolation(), "sh", "-c", script, "sh", str(root), command]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(argv, env=environment(root), text=True, start_new_session=True, **pipes) as process:
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
        *("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"),
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:] or COMMANDS))
