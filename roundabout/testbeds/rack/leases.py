# SPDX-License-Identifier: Apache-2.0
"""Leases on a rack's hosts, switches and links, for its several users.

All are locks on files of one machine that every user's inventory names. Root alone can open the files, and so lock
them. A program there holds the locks while it hears from its owner: they end with the owner's connection, and with
silence, and no other program can end them. It answers each message, so that the owner knows, too.

The owner may be stopped or cut off without ending what it started. So a guard on each host learns, after each of the
holder's answers, how long the lease surely lasts, and breaks the host's connection when that time has passed.
"""

from collections.abc import Iterable

from roundabout.testbeds.rack.inventory import Inventory

HEARTBEAT_S = 5
SILENCE_S = 60

# Runs on the lease host: Python 3.8, standard library. Arguments: folder, owner, silence in seconds, names.
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

# Runs on every leased host, over the connection that it guards. Its argument, and then each line, says for how many
# seconds it may hear nothing. Programs end when their connection's sshd does, whose streams they read.
GUARD = r"""
import os, select, signal, sys
left_s = float(sys.argv[1])
while select.select([0], [], [], left_s)[0]:
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
    """Return the names of a topology's leases, by machines and ports, because users may call them differently."""
    servers = [f"host {inventory.servers[host].ansible_host}" for host in hosts]
    machines = {f"switch {inventory.switches[switch].ansible_host}" for switch in switches}
    ports = [
        f"port {switch.ansible_host} {switch.ports[link]}"
        for link in links
        for switch in inventory.switches.values()
        if link in switch.ports
    ]
    return [name.replace("/", "_") for name in (*servers, *sorted(machines), *ports)]
