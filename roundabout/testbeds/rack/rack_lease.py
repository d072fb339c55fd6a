# SPDX-License-Identifier: Apache-2.0
"""Leases on a rack's hosts, switches and links, which several users share.

Leases are locks on files of one machine, which every user's inventory names. Only root can open the files. A program on
that machine, the holder, keeps the locks while it receives messages from the owner. The locks end with the owner's
connection or after a time without messages. The holder answers each message, so that the owner has the lease's state.

The owner may be stopped or disconnected while its programs on hosts continue. Therefore each host has a guard. After
each answer of the holder, the owner sends the guards the least remaining time of the lease. When this time has passed,
the guard breaks the host's connection.
"""

from collections.abc import Iterable

from roundabout.testbeds.rack.inventory import Inventory

HEARTBEAT_S = 5
SILENCE_S = 60

# Program of the holder on the lease host: Python 3.8, standard library. Arguments: folder, owner, seconds without a
# message after which it ends, and names of leases.
HOLDER = r"""
import fcntl, json, os, select, sys, time
folder, owner, silence_s, names = sys.argv[1], sys.argv[2], float(sys.argv[3]), sorted(sys.argv[4:])
os.umask(0o077)
os.makedirs(folder, exist_ok=True)
os.chmod(folder, 0o700)
held = []
def content():
    utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"owner": owner, "since_utc": since, "heard_utc": utc}).encode()
since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
for name in names:
    handle = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("busy " + name + " " + os.read(handle, 4096).decode(errors="replace"), flush=True)
        sys.exit(0)
    held.append(handle)
heard = b""
while True:
    for handle in held:
        now = content()
        os.pwrite(handle, now, 0)
        os.ftruncate(handle, len(now))
    print("held", *heard.decode().split()[-1:], flush=True)
    if not select.select([0], [], [], silence_s)[0]:
        break
    heard = os.read(0, 4096)
    if not heard:
        break
for handle in held:
    os.ftruncate(handle, 0)
"""

# Program of the guard on every leased host, over the guarded connection. Its argument, and then each line of stdin, is
# the number of seconds until it kills the connection's sshd. The number is negative if the lease has expired already.
# Programs over the connection end with their stdin.
GUARD = r"""
import os, select, signal, sys
left_s = float(sys.argv[1])
while select.select([0], [], [], max(0, left_s))[0]:
    heard = os.read(0, 4096).split()
    if not heard:
        sys.exit(0)
    left_s = float(heard[-1])
process = os.getppid()
while process > 1:
    name, fields = open("/proc/%d/stat" % process).read().split("(", 1)[1].rsplit(")", 1)
    if name.startswith("sshd"):
        os.kill(process, signal.SIGKILL)
        break
    process = int(fields.split()[1])
"""


def lease_names(inventory: Inventory, hosts: Iterable[str], links: Iterable[str], switches: Iterable[str]) -> list[str]:
    """Return the names of the leases for these hosts, links and switches.

    The names consist of machines and ports, because inventories of different users may name hosts differently.
    """
    servers = [f"host {inventory.servers[host].ansible_host}" for host in hosts]
    machines = {f"switch {inventory.switches[switch].ansible_host}" for switch in switches}
    ports = [
        f"port {switch.ansible_host} {switch.ports[link]}"
        for link in links
        for switch in inventory.switches.values()
        if link in switch.ports
    ]
    return [name.replace("/", "_") for name in (*servers, *sorted(machines), *ports)]
