# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of Debian's own daemons: a controller and nodes, each in namespaces of its own, which die with it.

They share a network namespace, which no other process sees, and this machine's kernel and files: but each node has a
name, processes, and places for what a machine remembers (/run, /var/lib) of its own.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60

# Labs take a node for themselves; as these nodes are one machine, a lab also takes the one license there is.
LUA = """
function slurm_job_submit(job, partitions, uid)
  if job.shared == 0 then job.licenses = "machine:1" end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""

CONFIGURATION = """
ClusterName=test
SlurmctldHost={controller}
SlurmctldPort=16817
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser=root
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/controller.pid
SlurmctldLogFile={folder}/controller.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdTimeout=6
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
PartitionName=main Nodes=ALL Default=YES
"""
ONE_MACHINE = "JobSubmitPlugins=lua\nLicenses=machine:1"

NODE = """
hostname {name}
mount -t tmpfs -o mode=755 none /run
mkdir /run/sshd /run/upper /run/work
mount -t overlay none -o lowerdir=/var/lib,upperdir=/run/upper,workdir=/run/work /var/lib
slurmd -D -N {name}
exit  # the shell stays: a namespace's first process must bury orphans, which slurmd does not
"""

OWN = {
    "uts": "--uts",
    "mount": "--mount",
    "pid": "--pid",
    "fork": "--fork",
    "end": "--kill-child",
    "proc": "--mount-proc",
}


class Cluster:
    """It stands as long as the context lasts; its nodes are n1, n2, ..., of two processors each."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.nodes = {f"n{number}": 16820 + number for number in range(1, nodes + 1)}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.folder.mkdir()
        lines = (f"NodeName={name} NodeAddr=127.0.0.1 Port={port} CPUs=2" for name, port in self.nodes.items())
        write(self.folder, "controller(127.0.0.1)", [ONE_MACHINE, *lines])
        (self.folder / "job_submit.lua").write_text(LUA)
        try:
            self._raise()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for name in reversed(list(self._daemons)):
            self.kill(name)

    def _raise(self) -> None:
        self._start("network", ["unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"])
        # Names are resolved only where an interface beside the loopback is up.
        links = "ip link set lo up; ip link add v0 type veth peer v1; ip link set v0 up; ip link set v1 up"
        awaited(lambda: os.readlink("/proc/self/ns/net") != os.readlink(self._network))
        subprocess.run(self.inside(["sh", "-c", f"{links}; ip address add 10.99.0.1/24 dev v0"]), check=True)
        self._start("munge", self.inside(munged(self.folder)))
        awaited((self.folder / "munge.socket").exists)
        own = [*OWN.values()]
        self._start("controller", self.inside(["unshare", *own, "sh", "-c", "hostname controller; exec slurmctld -D"]))
        for name in self.nodes:
            self.add(name)
        awaited(lambda: self.states() == dict.fromkeys(self.nodes, "idle"))

    @property
    def _network(self) -> str:
        return f"/proc/{self._daemons['network'].pid}/ns/net"

    @property
    def environment(self) -> Mapping[str, str]:
        """Of the user who submits."""
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "PYTHONPATH": str(ROOT)}

    def inside(self, words: Sequence[str]) -> list[str]:
        """How a command is called that reaches the controller."""
        return ["nsenter", f"--net={self._network}", *words]

    def said(self, *words: str) -> str:
        """What one of Slurm's programs says."""
        call = self.inside(words)
        return subprocess.run(call, env=self.environment, capture_output=True, text=True).stdout

    def states(self) -> dict[str, str]:
        """Of each node."""
        return dict(line.split() for line in self.said("sinfo", "--Node", "--noheader", "--format=%N %t").splitlines())

    def running(self) -> list[tuple[str, str]]:
        """The node and task number of each job that runs."""
        said = self.said("squeue", "--noheader", "--states=RUNNING", "--format=%N %K").splitlines()
        return [(node, task) for node, task in (line.split() for line in said)]

    def add(self, name: str) -> None:
        """Start a node, for the first time or after its death."""
        script = NODE.format(name=name)
        self._start(name, self.inside(["unshare", *OWN.values(), "sh", "-ec", script]))

    def kill(self, name: str) -> None:
        """End a daemon and all that it started, at once."""
        daemon = self._daemons.pop(name)
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()

    def processes(self, name: str) -> list[str]:
        """What runs on a node, but for its Slurm daemon."""
        space = os.readlink(f"/proc/{self._daemons[name].pid}/ns/pid_for_children")
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.readlink(each / "ns/pid") == space and each.name != self._first(name):
                    found.append((each / "comm").read_text().strip())
        return sorted({*found} - {"slurmd"})

    def _first(self, name: str) -> str:
        """The process id of a node's first process, here."""
        pid = self._daemons[name].pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()

    def remembers(self, name: str) -> list[str]:
        """What labs and runs left on a node."""
        places = (
            Path(f"/proc/{self._first(name)}/root{place}") for place in ("/run/roundabout", "/var/lib/roundabout")
        )
        return [str(place) for place in places if place.exists()]

    def links(self) -> list[str]:
        """Of the network that all share."""
        return [line.split("@")[0].split()[0] for line in self.said("ip", "-brief", "link").splitlines()]

    def roundabout(self, *words: str, user: int = 0) -> "subprocess.Popen[str]":
        """The command line, at work."""
        who = {"user": f"--reuid={user}", "group": f"--regid={user}", "groups": "--clear-groups"}
        ours = [sys.executable, "-m", "roundabout.cli.main", *words]
        call = ["setpriv", *who.values(), *ours]
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        return subprocess.Popen(
            self.inside(call), env=self.environment, cwd=self.folder, stdout=pipe, stderr=both, text=True
        )

    def _start(self, name: str, words: Sequence[str]) -> None:
        with (self.folder / f"{name}.out").open("wb") as out:
            self._daemons[name] = subprocess.Popen(words, env=self.environment, stdout=out, stderr=out)


def write(folder: Path, controller: str, lines: Iterable[str]) -> None:
    """Slurm's configuration, and what else its daemons need in `folder`."""
    text = "\n".join([CONFIGURATION.format(folder=folder, controller=controller).strip(), *lines, ""])
    (folder / "slurm.conf").write_text(text)
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)


def munged(folder: Path) -> list[str]:
    """How the daemon is called that reports to Slurm who is who."""
    places = {"key-file": "munge.key", "socket": "munge.socket", "seed-file": "munge.seed"}
    places |= {"pid-file": "munge.pid", "log-file": "munge.log"}
    return ["munged", "--foreground", "--force", *(f"--{option}={folder / name}" for option, name in places.items())]


def awaited(true: Callable[[], bool]) -> None:
    """Until it is so."""
    end_s = time.monotonic() + TIMEOUT_S
    while True:
        with suppress(OSError):
            if true():
                return
        assert time.monotonic() < end_s, "it never came"
        time.sleep(0.1)


def is_there() -> bool:
    """Whether this machine can have such a cluster."""
    return os.geteuid() == 0 and all(map(shutil.which, ("slurmctld", "slurmd", "munged")))
