# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for ib_write_bw, ib_write_lat and ethtool, of a fabric that is a folder with hosts in `fabric.json`.

Constructed, not recorded, from perftest's sources (src/perftest_parameters.c, perftest_communication.c, write_bw.c of
4.4 to 26.04): its options, what it prints with --output=bandwidth or --output=latency, that a server takes one client,
waits for it as long as it must, and prints what the client measured; that both ends exchange versions, and the newer
one refuses any older than 5.70 by exiting; that a traffic class is used with a GID's index only. Counters are called
as in mlx5.
"""

import fcntl
import getopt
import json
import os
import socket
import sys
from pathlib import Path
from typing import IO

GBPS, SECONDS, LATENCY_US = 90.0, 3, 2.5
CNPS = 1000


def fail(*lines: str) -> None:
    sys.exit("\n".join(lines))


class Fabric:
    """The folder: hosts by RDMA device, their counters, and who listens where."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts = json.loads((folder / "fabric.json").read_text())

    def count(self, device: str, **risen: int) -> None:
        """Add to counters; several programs do so at once."""
        with (self.folder / f"{device}.counters").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            values = json.loads(file.read() or "{}")
            for name, value in risen.items():
                values[name] = values.get(name, 0) + value
            file.truncate(0)
            file.write(json.dumps(values))
            file.flush()
            for name in [each for each in values if "_cnp_" in each]:
                folder = self.folder / "infiniband" / device / "ports/1/hw_counters"
                (folder / name).write_text(f"{values[name]}\n")

    def crowded(self, device: str) -> bool:
        """Whether several were to write to it at once."""
        return len(list(self.folder.glob(f"{device}.port-*"))) > 1

    def gbps(self, device: str, pairs: int = 1) -> float:
        """A NIC whose host has a file of T, and applies it, is slow with a long one. Others need some queue pairs."""
        host = self.hosts[device]
        if pairs < host.get("needs_pairs", 1):
            return GBPS / 2
        is_slow = "t_file" in host and host["applies"] and int(Path(host["t_file"]).read_text()) > 1000
        return GBPS / 10 if is_slow else GBPS

    def priority(self, device: str, tclass: int) -> int:
        return int(self.hosts[device]["dscp_to_prio"].get(str(tclass >> 2), 0))


def ib_write_lat(fabric: Fabric, words: list[str]) -> None:
    """Average of half the round trips in us, after a line of the figures that full verbosity has."""
    options, rest = getopt.gnu_getopt(words, "d:x:p:n:s:F", ["tclass=", "output=", "bind_source_ip="])
    given = dict(options)
    if given.get("--output") != "latency":
        fail("this stand-in prints a latency alone")
    device, port = given["-d"], int(given["-p"])
    if not rest:
        serve(fabric, device, port)
        return
    measured_us = fabric.hosts[device].get("latency_us", LATENCY_US)
    client(fabric, device, (rest[0], port), int(given["--tclass"]), measured_us)


def ib_write_bw(fabric: Fabric, words: list[str]) -> None:
    if words == ["--help"]:
        fail("      --bind_source_ip  Source IP of the interface used for connection establishment.")
    with (fabric.folder / "calls").open("a") as calls:
        calls.write(f"ib_write_bw {' '.join(words)}\n")
    try:
        long = ["tclass=", "report_gbits", "output=", "bind_source_ip="]
        given, rest = getopt.gnu_getopt(words, "d:x:p:D:q:F", long)
    except getopt.GetoptError as error:
        fail(f"ib_write_bw: {error}", " Parser function exited with Error")
    options = dict(given)
    device, port = options["-d"], int(options.get("-p", 18515))
    if device not in fabric.hosts:
        fail(f" IB device {device} not found", " Unable to find the Infiniband/RoCE device")
    if options.get("--output") != "bandwidth" or "-F" not in options or "--report_gbits" not in options:
        fail("this stand-in prints a bandwidth in Gbit/s alone")
    tclass = int(options.get("--tclass", 0)) if "-x" in options else 0
    if not rest:
        serve(fabric, device, port)
        return
    client(fabric, device, (rest[0], port), tclass, fabric.gbps(device, int(options.get("-q", 1))))


def exchange(lines: IO[str], version: str, said: str) -> str:
    """Both say their version, and something. Older ones were refused by the newer end, which exits."""
    lines.write(f"{version} {said}\n")
    lines.flush()
    theirs, _, rest = lines.readline().strip().partition(" ")
    if not theirs:
        fail(" Failed to exchange data between server and clients")
    if float(theirs) < 5.7 <= float(version):
        fail("Current implementation is not compatible with versions older than 5.70")
    return rest


def serve(fabric: Fabric, device: str, port: int) -> None:
    host = fabric.hosts[device]
    if host.get("broken"):
        fail("Couldn't allocate context")
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host["address"], port))
        except OSError:
            fail(f"Couldn't listen to port {port}", " Unable to init the socket connection")
        (fabric.folder / f"{device}.port-{port}").touch()
        server.listen(1)
        connection, _ = server.accept()
    with connection, connection.makefile("rw") as lines:
        tclass = exchange(lines, host["version"], device)
        if not tclass:
            fail(" Failed to exchange data between server and clients")
        written = int(GBPS * 1e9 / 8 * SECONDS)
        fabric.count(device, **{f"rx_prio{fabric.priority(device, int(tclass))}_bytes": written}, tx_prio0_bytes=9000)
        if fabric.crowded(device) and host["marked"]:
            fabric.count(device, **{"np_cnp_sent": CNPS, f"tx_prio{host['cnp_prio']}_packets": CNPS})
        lines.write("done\n")
    print(f"{GBPS:f}")


def client(fabric: Fabric, device: str, server: tuple[str, int], tclass: int, figure: float) -> None:
    connection = socket.socket()
    if connection.connect_ex(server):
        fail(f"Couldn't connect to {server[0]}:{server[1]}", " Unable to init the socket connection")
    with connection, connection.makefile("rw") as lines:
        to = exchange(lines, fabric.hosts[device]["version"], str(tclass))
        if lines.readline() != "done\n":
            fail(" Failed to exchange data between server and clients")
    written = int(GBPS * 1e9 / 8 * SECONDS)
    fabric.count(device, tx_prio0_bytes=9000)
    fabric.count(device, **{f"tx_prio{fabric.priority(device, tclass)}_bytes": written})
    if fabric.crowded(to) and fabric.hosts[to]["marked"] and fabric.hosts[device]["reacts"]:
        fabric.count(device, rp_cnp_handled=CNPS)
    print(" WARNING: BW peak won't be measured in this run.")
    print(f"{figure:f}")


def ethtool(fabric: Fabric, words: list[str]) -> None:
    device = {host["nic"]: device for device, host in fabric.hosts.items()}[words[-1]]
    if words[:2] == ["-I", "--show-fec"]:
        print(f"FEC parameters for {words[-1]}:", "Active FEC encoding: RS", "Statistics:", sep="\n")
        print("  corrected_blocks: 256", "    Lane 0: 255", "    Lane 1: 1", sep="\n")
        print(f"  uncorrectable_blocks: {fabric.hosts[device].get('uncorrectable', 0)}", "    Lane 0: 0", sep="\n")
        return
    file = fabric.folder / f"{device}.counters"
    values = json.loads(file.read_text()) if file.exists() else {}
    names = [f"{side}_prio{each}_{what}" for side in ("rx", "tx") for each in range(8) for what in ("bytes", "packets")]
    print("NIC statistics:", *(f"     {name}: {values.get(name, 0)}" for name in names), sep="\n")


if __name__ == "__main__":
    program = {each.__name__: each for each in (ib_write_bw, ib_write_lat, ethtool)}[Path(sys.argv[0]).name]
    program(Fabric(Path(os.environ["FABRIC"])), sys.argv[1:])
