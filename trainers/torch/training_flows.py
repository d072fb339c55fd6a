# SPDX-License-Identifier: Apache-2.0
"""The connections to a job's other workers that a framework made in this process, with the kernel's statistics."""

import fcntl
import os
import socket
import struct

INFO = struct.Struct("=8B24I4Q6I4Q2I2Q")  # the kernel's tcp_info up to bytes_retrans
RETRANSMITTED, ACKED, RECEIVED, DELIVERED, CE, SENT, RESENT = 31, 34, 35, 46, 47, 48, 49
SIOCGIFADDR = 0x8915


def interface(address):
    """Return the name of the interface with an IPv4 address. Raises ValueError if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as socket_:
        for _, name in socket.if_nameindex():
            try:
                found = fcntl.ioctl(socket_, SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:
                continue  # has none
            if socket.inet_ntoa(found[20:24]) == address:
                return name
    raise ValueError(f"found no interface with the address {address}")


def read(connection):
    """Return the fields of the kernel's tcp_info of a connection, in order."""
    return INFO.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO.size))


def copied(descriptor):
    """Return a new socket for the connection of a descriptor; None for a descriptor of no socket, or a closed one."""
    try:
        copy = os.dup(descriptor)
    except OSError:
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return None


class Flows:
    """The connections to other workers, without those by which workers learn each other's addresses."""

    def __init__(self, workers, rank):
        self._sockets, self._workers = [], workers
        peers = {worker["address"]: index for index, worker in enumerate(workers) if index != rank}
        for descriptor in sorted(int(each) for each in os.listdir("/proc/self/fd")):
            # The descriptor by which the list was read is closed, and a copy may have its number now.
            if descriptor in {copy.fileno() for copy, *_ in self._sockets}:
                continue
            own = copied(descriptor)
            if own and not self._takes(own, peers):
                own.close()

    def _takes(self, own, peers):
        if own.family not in (socket.AF_INET, socket.AF_INET6) or own.type != socket.SOCK_STREAM:
            return False
        try:
            local, remote = own.getsockname(), own.getpeername()
        except OSError:
            return False  # listens
        peer = peers.get(remote[0].replace("::ffff:", ""))
        if peer is None or self._workers[0]["port"] in (local[1], remote[1]):
            return False
        self._sockets.append((own, peer, local[1], remote[1]))
        return True

    def close(self):
        """Stop observing the connections; they stay open for their owner."""
        for own, *_ in self._sockets:
            own.close()

    def bytes(self):
        """Return the payload sent and received until now, without retransmissions."""
        found = [read(own) for own, *_ in self._sockets]
        return sum(each[SENT] - each[RESENT] for each in found), sum(each[RECEIVED] for each in found)

    def events(self):
        """Return the fields of one event for each connection."""
        return [self._event(number, *each) for number, each in enumerate(self._sockets)]

    def _event(self, number, own, peer, local, remote):
        info = read(own)
        name = own.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0].decode()
        return {
            "flow": number,
            "peer": self._workers[peer]["name"],
            "peer_rank": peer,
            "local_port": local,
            "remote_port": remote,
            "congestion_control": name,
            "bytes_acked": info[ACKED],
            "retransmitted": info[RETRANSMITTED],
            "delivered": info[DELIVERED],
            "delivered_ce": info[CE],
        }
