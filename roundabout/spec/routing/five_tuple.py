# SPDX-License-Identifier: Apache-2.0
"""The header fields of flows that switches hash, and the hash."""

import hashlib
from functools import lru_cache
from typing import NamedTuple

ROCE_PORT = 4791
"""UDP destination port of RoCEv2 (IANA). It is the same for all flows, so it does not change how flows spread."""

UDP = 17
"""IP protocol number. It is the same for all flows, too."""

FIRST_PORT, PORTS = 49_152, 16_384
"""Range of source ports (RFC 6335: dynamic ports); RoCEv2 NICs derive a source port from the queue pair's number."""


class FiveTuple(NamedTuple):
    """The header fields of a flow that ECMP hashes. Hosts' names stand for their addresses."""

    sender: str
    receiver: str
    source_port: int = FIRST_PORT
    destination_port: int = ROCE_PORT
    protocol: int = UDP


class Flow(NamedTuple):
    """A flow between two hosts, with the number of the NIC that it uses at each, in the order of the host's links."""

    sender: str
    receiver: str
    source_port: int = FIRST_PORT
    nics: tuple[int, int] = (0, 0)

    @property
    def turned(self) -> "Flow":
        """Return the flow of the packets that come back."""
        return Flow(self.receiver, self.sender, self.source_port, self.nics[::-1])


def source_port(job: str, sender: int, receiver: int, number: int) -> int:
    """Return the source port of a job's flow between two ranks. Flows between the same ranks differ in `number`.

    The port is a hash of the arguments, so a flow has the same port in all variants and on all testbeds.
    """
    return FIRST_PORT + hash_parts("port", job, sender, receiver, number) % PORTS


@lru_cache(maxsize=1 << 16)
def hash_parts(*parts: str | int) -> int:
    """Return a hash of 64 bits, BLAKE2b (RFC 7693), so that neighboring flows spread independently.

    The hashes of real switches are simpler functions.
    """
    text = "\0".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
