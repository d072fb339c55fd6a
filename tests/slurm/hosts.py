# SPDX-License-Identifier: Apache-2.0
"""A lab's hosts as nodes of Debian's Slurm, each with a daemon of its own name; the first one has the controller, too.

Their network is the lab's. All die with the lab, but for the daemon that says who is who, which dies with the context.
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from roundabout.testbeds.lab import Lab
from tests.slurm.cluster import awaited, munged, write

PORT = 16820


class Nodes:
    """They stand as long as the context lasts. `folder` is one that hosts see: not in /tmp."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self._raise()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _raise(self) -> None:
        hosts = self.lab.hosts.values()
        lines = [f"NodeName={host.name} NodeAddr={host.address} Port={PORT} CPUs=2" for host in hosts]
        first = next(iter(hosts))
        write(self.folder, f"{first.name}({first.address})", lines)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # which hosts have none of
        with (self.lab.files.share / "sshd_config").open("a") as config:
            config.write(f"SetEnv SLURM_CONF={self.folder / 'slurm.conf'}\n")
        self._start("munged", munged(self.folder))
        awaited((self.folder / "munge.socket").exists)
        self._start("slurmctld", self._inside(first.name, "slurmctld", "-D"))
        for host in hosts:
            self._start(f"slurmd-{host.name}", self._inside(host.name, "slurmd", "-D", "-N", host.name))
        awaited(lambda: self.said("sinfo", "--noheader", "--format=%D %t").split() == [str(len(lines)), "idle"])

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for each in self._started:
            each.kill()
            each.wait()

    def said(self, *words: str) -> str:
        """What one of Slurm's programs says on the first host."""
        host = next(iter(self.lab.hosts))
        call = ["ssh", "-F", str(self.lab.ssh_config()), host, *map(repr, words)]
        return subprocess.run(call, capture_output=True, text=True, check=True).stdout

    @property
    def queue(self) -> list[str]:
        """The numbers of all jobs that there are."""
        return self.said("squeue", "--noheader", "--format=%i").split()

    def processes(self) -> list[str]:
        """What runs on hosts that a trial may have started, by Slurm or without."""
        spaces = {os.readlink(f"/proc/{self.lab.pids()[host]}/ns/pid") for host in self.lab.hosts}
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.readlink(each / "ns/pid") in spaces:
                    found.append((each / "comm").read_text().strip())
        return sorted({*found} - {"labinit", "slurmd", "slurmctld", "slurmscriptd"})

    def _inside(self, host: str, *words: str) -> list[str]:
        return ["nsenter", f"--target={self.lab.pids()[host]}", "--all", *words]

    def _start(self, name: str, words: Sequence[str]) -> None:
        environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        with (self.folder / f"{name}.out").open("wb") as out:
            none = subprocess.DEVNULL
            self._started.append(subprocess.Popen(words, env=environment, stdin=none, stdout=out, stderr=out))
