#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one worker of a job with Horovod's DistributedOptimizer, over its gloo or NCCL: trainers/PROTOCOL.md.

Horovod's own launcher is not used: the first worker has the rendezvous by which workers find each other, and PyTorch's
store at its port names it.
"""

import os
import socket
import sys

import training


def check_found(address):
    """Raise ValueError if the host's name does not resolve to the job's address.

    Horovod 0.28 ignores its interface option for the connections that carry gradients, and uses the address of the
    host's name (GlooContext::InitializeForProcessSet). worker_launcher.py renames the host for this process as root.
    """
    if resolved_address() != address:
        found = f"{resolved_address()} for the host's name {socket.gethostname()!r}"
        raise ValueError(f"found {found}, expected {address}, where Horovod listens: change /etc/hosts, or run as root")


def resolved_address():
    """Return the IPv4 address to which the host's name resolves, or the text `nothing`."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "nothing"


def gather(worker):
    """Start Horovod among the job's workers."""
    import horovod.torch as horovod  # noqa: PLC0415 - whether it is there is for this process to say

    store, first = worker.meet(), worker.job["workers"][0]
    check_found(worker.job["workers"][worker.rank]["address"])
    if worker.rank == 0:
        store.set("rendezvous", str(rendezvous(worker)))
    places = {"RANK": worker.rank, "SIZE": worker.count, "LOCAL_RANK": 0, "LOCAL_SIZE": 1}
    places.update(CROSS_RANK=worker.rank, CROSS_SIZE=worker.count, HOSTNAME=str(worker.rank))
    gloo = {"GLOO_RENDEZVOUS_ADDR": first["address"], "GLOO_RENDEZVOUS_PORT": store.get("rendezvous").decode()}
    words = {**places, **gloo, "CONTROLLER": "gloo", "CPU_OPERATIONS": "gloo"}
    os.environ.update({f"HOROVOD_{name}": str(value) for name, value in words.items()})
    horovod.init()
    return horovod


def rendezvous(worker):
    """Start Horovod's rendezvous in this process, and return its port.

    Each worker counts as a host of its own, so Horovod uses no shortcut within a host.
    """
    from horovod.runner.common.util.hosts import SlotInfo  # noqa: PLC0415
    from horovod.runner.http.http_server import RendezvousServer  # noqa: PLC0415

    count = worker.count
    server = RendezvousServer()
    port = server.start()
    server.init([SlotInfo(str(rank), rank, 0, rank, count, 1, count) for rank in range(count)])
    return port


class Horovod(training.Whole):
    """A trainer whose gradients are collected in buffers, which are all-reduced."""

    def __init__(self, worker):
        horovod = gather(worker)
        super().__init__(worker)
        list(self.network.parameters())[-1].register_hook(worker.pace.hold)  # each is sent as it comes
        self.optimizer = horovod.DistributedOptimizer(self.optimizer, self.network.named_parameters())

    def step(self):
        """Do the common step, and wait until gradients are averaged over workers."""
        loss = super().step()
        self.optimizer.synchronize()
        return loss

    def learn(self):
        """Apply the step's gradients to the network."""
        with self.optimizer.skip_synchronize():
            super().learn()


if __name__ == "__main__":
    sys.exit(training.main(Horovod, training.options(__doc__)))
