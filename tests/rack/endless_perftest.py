# SPDX-License-Identifier: Apache-2.0
"""A test of perftest that does not end, and `roundabout acceptance` as a process in which such tests run.

    FABRIC=FOLDER python -m tests.rack.endless_perftest INVENTORY

Servers are this machine: the inventory's addresses are of its loopback interface.
"""

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roundabout.checks.acceptance import run
from roundabout.cli.main import main
from roundabout.runner.hosts.connections import Channel, LocalConnection, LostHostError
from roundabout.runner.hosts.host_group import Host
from roundabout.testbeds.rack import provider, rack
from roundabout.testbeds.rack.examination import DEVICE, GID, SSH, WRITE, Finding
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.provider import RackProvider

ENDLESS = f"""#!{sys.executable} -SE
import os, socket, sys, time
from pathlib import Path
if "--help" in sys.argv:
    sys.exit()
Path(os.environ["FABRIC"], f"started-{{os.getpid()}}").touch()
if sys.argv[-1].startswith("-"):
    listener = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("-p") + 1])), reuse_port=True)
time.sleep(300)
"""


class ClosableConnection(LocalConnection):
    """A connection that starts nothing once it is closed, as that of SSH."""

    is_closed = False

    def start(self, argv: Sequence[str]) -> Channel:
        if self.is_closed:
            raise LostHostError(self.host, "closed")
        return super().start(argv)

    def close(self) -> None:
        self.is_closed = True
        super().close()


def findings(_: Any, names: Collection[str]) -> Mapping[str, list[Finding]]:
    """Every NIC has RDMA."""
    found = {SSH: "answers", DEVICE: "mlx5_0", GID: "3 is its address by RoCE v2", WRITE: "found"}
    return {nic: [Finding(name, True, text, "") for name, text in found.items()] for nic in names}


def pose(inventory: Path, folder: Path) -> None:
    """Let this machine be all servers, whose settings are as requested."""

    @contextmanager
    def session(*_: Any) -> Iterator[dict[Host, LocalConnection]]:
        servers = read_inventory(inventory)
        yield {rack.host_of(servers, name): ClosableConnection(name) for name in servers.servers}

    run.settings_verdicts = lambda _: []
    provider.query_capabilities = findings
    provider.STATE = folder / "state"  # no lab waits for this
    RackProvider.read_only_session = session
    RackProvider.check_traffic = lambda *_: iter(())


if __name__ == "__main__":
    pose(Path(sys.argv[1]), Path(os.environ["FABRIC"]))
    sys.exit(main(["acceptance", "--inventory", sys.argv[1], "--only", "bandwidth"]))
