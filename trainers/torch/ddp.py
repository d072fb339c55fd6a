#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one worker of a job with PyTorch's DistributedDataParallel, over gloo: trainers/PROTOCOL.md.

A small network learns what a fixed random one says of synthetic examples. It is as large as an all-reduce of its
gradients sends the bytes that the job's profile says. Where `--paced`, backpropagation hands over the first gradient
no earlier than the profile's computing is over: what really computes stands for an accelerator that takes so long.
"""

import argparse
import contextlib
import datetime
import fcntl
import json
import math
import os
import queue
import socket
import struct
import sys
import threading
import time
import zlib

INFO = struct.Struct("=8B24I4Q6I4Q2I2Q")  # the kernel's tcp_info, as far as bytes_retrans
RETRANSMITTED, ACKED, RECEIVED, DELIVERED, CE, SENT, RESENT = 31, 34, 35, 46, 47, 48, 49
SIOCGIFADDR = 0x8915
PATIENCE_S = 20  # workers meet within this, or say that they did not
DAY_S = 86400
LEARNING_RATE, MOMENTUM = 0.05, 0.9
FEATURES, CLASSES = 64, 10


def say(event, **fields):
    """One line on standard output."""
    print(json.dumps({"event": event, **fields}, separators=(",", ":")), flush=True)


def gradient_numbers(job):
    """How many 32-bit numbers a ring of the job's workers all-reduces, each sending the profile's bytes.

    Source: Salamy, equation 3.1. Raises ValueError where the profile says another exchange than rings of all workers.
    """
    count = len(job["workers"])
    sent = 0
    for phase in job["phases"]:
        transfers = phase.get("transfers", [])
        ring = {(rank, (rank + 1) % count) for rank in range(count)}
        if transfers and {tuple(each[:2]) for each in transfers} != ring:
            raise ValueError(f"found phase {phase['name']!r}, expected a ring of all workers: DDP all-reduces")
        sent += transfers[0][2] if transfers else 0
    return sent * count // (8 * (count - 1))


def width(numbers):
    """Of the two hidden layers of a network with at most so many parameters. Raises ValueError for too few."""
    linear, fixed = FEATURES + CLASSES + 2, CLASSES
    found = int((math.sqrt(linear**2 + 4 * (numbers - fixed)) - linear) / 2) if numbers > fixed else 0
    if found < 1:
        raise ValueError(f"found gradients of {numbers} numbers, expected {linear + 1 + fixed} or more")
    return found


def interface(address):
    """The name of the interface that has an IPv4 address. Raises ValueError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                found = fcntl.ioctl(asking, SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:
                continue  # has none
            if socket.inet_ntoa(found[20:24]) == address:
                return name
    raise ValueError(f"found no interface with the address {address}")


def read(connection):
    """The kernel's figures of a connection, in the order of its tcp_info."""
    return INFO.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO.size))


class Flows:
    """The connections to other workers that gloo made in this process, and what the kernel says of them."""

    def __init__(self, workers, rank):
        self._sockets = []
        peers = {worker["address"]: index for index, worker in enumerate(workers) if index != rank}
        for descriptor in sorted(int(each) for each in os.listdir("/proc/self/fd")):
            try:
                own = socket.socket(fileno=os.dup(descriptor))
            except OSError:
                continue  # no socket, or closed since
            if not self._takes(own, peers, workers[0]["port"]):
                own.close()

    def _takes(self, own, peers, store_port):
        """Whether it is a connection to a worker, and not the one by which workers learn each other's addresses."""
        if own.family not in (socket.AF_INET, socket.AF_INET6) or own.type != socket.SOCK_STREAM:
            return False
        try:
            local, remote = own.getsockname(), own.getpeername()
        except OSError:
            return False  # listens
        peer = peers.get(remote[0].replace("::ffff:", ""))
        if peer is None or store_port in (local[1], remote[1]):
            return False
        self._sockets.append((own, peer, local[1], remote[1]))
        return True

    def close(self):
        """Look at them no more; they stay open for who made them."""
        for own, *_ in self._sockets:
            own.close()

    def bytes(self):
        """Payload sent and received until now, without what was sent again."""
        found = [read(own) for own, *_ in self._sockets]
        return sum(each[SENT] - each[RESENT] for each in found), sum(each[RECEIVED] for each in found)

    def report(self, workers):
        """One event a connection."""
        for number, (own, peer, local, remote) in enumerate(self._sockets):
            info = read(own)
            name = own.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0].decode()
            say(
                "flow",
                flow=number,
                peer=workers[peer]["name"],
                peer_rank=peer,
                local_port=local,
                remote_port=remote,
                congestion_control=name,
                bytes_acked=info[ACKED],
                retransmitted=info[RETRANSMITTED],
                delivered=info[DELIVERED],
                delivered_ce=info[CE],
            )


class Pace:
    """When the first gradient may leave: it is told by the hook that backpropagation calls with it."""

    def __init__(self, computing_ns):
        self._computing_ns = computing_ns
        self.begin_ns = self.ready_ns = self.late_ns = 0

    def begin(self, begin_ns):
        """An iteration begins, or began."""
        self.begin_ns, self.ready_ns, self.late_ns = begin_ns, 0, 0

    def hold(self, gradient):
        """Wait until computing is over, where it is paced."""
        if not self.ready_ns:
            self.late_ns = sleep_until(self.begin_ns + self._computing_ns)
            self.ready_ns = time.monotonic_ns()
        return gradient


def sleep_until(at_ns):
    """Sleep; by how much later than `at_ns` it woke, 0 where that had passed."""
    left_ns = at_ns - time.monotonic_ns()
    if left_ns <= 0:
        return 0
    time.sleep(left_ns / 1e9)
    return max(0, time.monotonic_ns() - at_ns)


class Training:
    """A network, its synthetic examples, and one step of learning."""

    def __init__(self, torch, job, rank, batch, pace):
        torch.set_num_threads(1)
        seed = (job["seed"] + zlib.crc32(job["name"].encode())) % 2**62
        torch.manual_seed(seed)
        hidden = width(gradient_numbers(job))
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        network = torch.nn.Sequential(
            linear(FEATURES, hidden), relu(), linear(hidden, hidden), relu(), linear(hidden, CLASSES)
        )
        self._teacher = torch.randn(FEATURES, CLASSES)
        self._examples = torch.Generator().manual_seed(seed + 1 + rank)
        self._torch, self._batch = torch, batch
        network[-1].bias.register_hook(pace.hold)
        self._network = torch.nn.parallel.DistributedDataParallel(network)
        self._optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)

    def step(self):
        """Go forward and back; gradients are everybody's mean when this returns. The loss of this worker's batch."""
        torch = self._torch
        self._optimizer.zero_grad()
        examples = torch.randn(self._batch, FEATURES, generator=self._examples)
        classes = (examples @ self._teacher).argmax(1)
        loss = torch.nn.functional.cross_entropy(self._network(examples), classes)
        loss.backward()
        return loss

    def learn(self):
        """Take what the step found into the network."""
        self._optimizer.step()


def connect(torch, job, rank):
    """Meet the job's other workers at the first one's port; where torchrun holds that, it says so."""
    workers, first = job["workers"], job["workers"][0]
    os.environ["GLOO_SOCKET_IFNAME"] = interface(workers[rank]["address"])
    holds = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    patience = datetime.timedelta(seconds=PATIENCE_S)
    store = torch.distributed.TCPStore(first["address"], first["port"], len(workers), holds, patience)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=len(workers))


def train(job, training, pace, flows, start_ns, ended):  # noqa: PLR0913, PLR0917 - what takes part in an iteration
    """All iterations, each said as it ends; then `ended` is called."""
    end_ns = start_ns + round(job["begins_ms"] * 1e6)
    late_ns = sleep_until(end_ns)
    before = flows.bytes()
    for number in range(job["iterations"]):
        pace.begin(end_ns)
        begin_ns = end_ns
        loss = training.step()
        end_ns = time.monotonic_ns()
        after = flows.bytes()
        say(
            "iteration",
            iteration=number,
            start_ns=begin_ns,
            compute_end_ns=pace.ready_ns,
            comm_end_ns=end_ns,
            sent_bytes=after[0] - before[0],
            received_bytes=after[1] - before[1],
            late_ns=max(late_ns, pace.late_ns),
            loss=float(loss),
        )
        before, late_ns = after, 0
        training.learn()
        ended()


def told():
    """The lines of standard input as they come. Nothing is left when it closes, whatever this process is at."""
    lines = queue.SimpleQueue()

    def listen():
        for line in sys.stdin:
            lines.put(line)
        say("stopped", reason="standard input was closed")
        os._exit(3)

    threading.Thread(target=listen, daemon=True).start()
    return lines


def start_of(line):
    """The agreed start, of the host's monotonic clock. Raises ValueError for another line, and where it has passed."""
    word, _, at = line.strip().partition(" ")
    if word != "start" or not at.isdigit():
        raise ValueError(f"found {line.strip()!r} on standard input, expected: start MONOTONIC_NS")
    ahead_s = (int(at) - time.monotonic_ns()) / 1e9
    if not 0 < ahead_s < DAY_S:
        raise ValueError(f"found a start {ahead_s:.3f} s ahead, expected one to come, within a day")
    return int(at)


def hurry():
    """Wake as soon as replay does: the lowest real-time priority, where this process may; its threads have it, too."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))


def refuse(job):
    """Raise ValueError for what only a job that is played can do."""
    if job["departs_ms"] is not None or "timetable" in job:
        raise ValueError("found a departure or a timetable, expected a job that trains to its end: ddp knows neither")


def main():
    """See the module."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--rank", type=int, required=True)
    options.add_argument("--job", type=json.loads, required=True, help="its description, JSON")
    options.add_argument("--batch", type=int, required=True, help="examples a worker and iteration")
    options.add_argument("--record", choices=["kineto"], help="record the iterations, too")
    options.add_argument("--paced", action="store_true", help="compute no faster than the profile says")
    asked = options.parse_args()
    job, lines = asked.job, told()
    try:
        refuse(job)
        hurry()
        import torch  # noqa: PLC0415 - whether it is there is for this process to say
        import torch.distributed  # noqa: PLC0415
        from training_recording import recorded  # noqa: PLC0415 - lies beside this one on hosts

        connect(torch, job, asked.rank)
        computing_ms = sum(phase.get("compute_ms", 0) for phase in job["phases"]) if asked.paced else 0
        pace = Pace(round(computing_ms * 1e6))
        training = Training(torch, job, asked.rank, asked.batch, pace)
        with contextlib.closing(Flows(job["workers"], asked.rank)) as flows:
            say("ready")
            start_ns = start_of(lines.get())
            with recorded(asked.record, job["iterations"]) as ended:
                train(job, training, pace, flows, start_ns, ended)
            flows.report(job["workers"])
        say("done", iterations=job["iterations"])
    except ImportError as error:
        remedy = "./bootstrap training, or name an interpreter that has it by the trainer's `python`"
        say("error", message=f"{sys.executable} has no PyTorch ({error}): {remedy}")
        return 1
    except (ValueError, RuntimeError, OSError) as error:
        say("error", message=str(error))
        return 1
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may wait for peers that have ended


if __name__ == "__main__":
    sys.exit(main())
