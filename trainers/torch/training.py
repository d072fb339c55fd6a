# SPDX-License-Identifier: Apache-2.0
"""The common part of trainers with PyTorch: a worker's instructions, rendezvous and events.

See trainers/PROTOCOL.md. A framework is a class that is made of a Worker; its `step()` returns the loss of this
worker's batch (a tensor) once all communication of an iteration is over, or queued on a GPU; its `learn()` does the
rest. With `--paced` the first communication begins no earlier than the profile's computing is over: real computing
stands for an accelerator that takes so long.
"""

import argparse
import contextlib
import datetime
import json
import os
import queue
import sys
import threading
import time
import zlib

import profiler_trace
import rendezvous_store
import training_flows
import training_sizes
import training_times
from worker_protocol import refuse, say, start_of

RENDEZVOUS_TIMEOUT_S = 20  # time within which workers must meet, else they report an error
LEARNING_RATE, MOMENTUM = 0.05, 0.9


class Worker:
    """One worker of a job: its instructions, and its rendezvous with the others.

    `shape` is the shape of the network (training_networks.py), or None for a network whose size follows from the
    profile. `device` is the device that computes.
    """

    def __init__(self, torch, requested):
        self.torch, self.request = torch, requested
        self.job, self.rank, self.batch, self.shape = requested.job, requested.rank, requested.batch, requested.model
        self.count = len(self.job["workers"])
        self.backend = requested.backend or ("nccl" if torch.cuda.is_available() else "gloo")
        self.device = torch.device(f"cuda:{self._place()}" if self.backend == "nccl" else "cpu")
        self.clock = self._clock()
        computing_ms = sum(phase.get("compute_ms", 0) for phase in self.job["phases"]) if requested.paced else 0
        self.pace = training_times.Pace(self.clock, round(computing_ms * 1e6))
        # The same networks in all workers, and other examples in each.
        self.seed = (self.job["seed"] + zlib.crc32(self.job["name"].encode())) % 2**62
        torch.set_num_threads(1)
        torch.manual_seed(self.seed)

    def _place(self):
        """Return the number of workers before this one on its host."""
        names = [worker["name"] for worker in self.job["workers"]]
        return names[: self.rank].count(names[self.rank])

    def _clock(self):
        if self.device.type == "cpu":
            return training_times.HostClock()
        self.torch.cuda.set_device(self.device)
        return training_times.DeviceClock(lambda: self.torch.cuda.Event(enable_timing=True))

    def meet(self):
        """Return the store by which workers find each other, at the first worker's port or torchrun's own."""
        workers, first = self.job["workers"], self.job["workers"][0]
        name = training_flows.interface(workers[self.rank]["address"])
        os.environ.update(GLOO_SOCKET_IFNAME=name, HOROVOD_GLOO_IFACE=name)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", f"={name}")  # an inventory may have said it
        holds = self.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        timeout = datetime.timedelta(seconds=RENDEZVOUS_TIMEOUT_S)
        place = (first["address"], first["port"], self.count, holds, timeout)
        hosts = [worker["address"] for worker in workers]
        return rendezvous_store.create_store(self.torch.distributed.TCPStore, *place, hosts)

    def finish_queue(self):
        """Wait until a GPU has finished its queue, so that the initial parameters' bytes count in no iteration."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def connect(self):
        """Create PyTorch's default process group of all workers."""
        group = {"store": self.meet(), "rank": self.rank, "world_size": self.count}
        self.torch.distributed.init_process_group(self.backend, **group)


def optimizer(torch, network, momentum=MOMENTUM, rate=LEARNING_RATE):
    """Return the optimizer that all trainers use, for these parameters."""
    return torch.optim.SGD(network.parameters(), lr=rate, momentum=momentum)


def rate_of(network):
    """Return the learning rate for a network, which is lower for wider layers."""
    widest = max(each.shape[-1] for each in network.parameters())
    return LEARNING_RATE * min(1, training_sizes.FEATURES / widest)


class Whole:
    """A trainer with the whole network on each worker, and with its examples.

    Subclasses add a framework's communication.
    """

    def __init__(self, worker):
        import training_networks  # noqa: PLC0415 - loads PyTorch

        self.network = training_networks.network(worker.shape, worker.job).to(worker.device)
        self.optimizer = optimizer(worker.torch, self.network)
        self._examples = training_networks.Examples(worker.shape, worker.batch, worker.seed, worker.rank, worker.device)
        self._loss_of = training_networks.loss_of

    def step(self):
        """Do the forward and backward pass, after which gradients are averaged over workers.

        Return the loss of this worker's batch.
        """
        self.optimizer.zero_grad()
        examples, said = self._examples.draw()
        loss = self._loss_of(self.network(examples), said)
        loss.backward()
        return loss.detach()

    def learn(self):
        """Apply the step's gradients to the network."""
        self.optimizer.step()


def train(worker, training, flows, start_ns, ended):
    """Run all iterations, and report each once it has ended, which on a GPU may be some iterations later.

    `ended` is called after each step. Iterations begin at `start_ns`.
    """
    pace = worker.pace
    said = {"ns": start_ns + round(worker.job["begins_ms"] * 1e6), "bytes": flows.bytes()}
    late_ns = training_times.sleep_until(said["ns"])

    def report(ready_ns, end_ns, number, loss, late_ns):
        sent, received = flows.bytes()
        say(
            "iteration",
            iteration=number,
            start_ns=said["ns"],
            compute_end_ns=ready_ns,
            comm_end_ns=end_ns,
            sent_bytes=sent - said["bytes"][0],
            received_bytes=received - said["bytes"][1],
            late_ns=late_ns,
            loss=float(loss),
        )
        said.update(ns=end_ns, bytes=(sent, received))

    steps = training_times.Steps(worker.clock, report)
    pace.begin(said["ns"])
    for number in range(worker.job["iterations"]):
        loss = training.step()
        end = worker.clock.mark()
        begin_ns = time.monotonic_ns()
        steps.ended(pace.ready, end, number=number, loss=loss, late_ns=max(late_ns, pace.late_ns))
        pace.begin(begin_ns, after=end)
        late_ns = 0
        training.learn()
        ended()
    steps.finish()


def keep_output():
    """Reserve standard output for events, by sending all other output, also of native code, to standard error."""
    sys.__stdout__ = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr


def read_lines():
    """Return a queue of standard input's lines. A thread reports the end of standard input and ends the process."""
    lines = queue.SimpleQueue()

    def listen():
        for line in sys.stdin:
            lines.put(line)
        say("stopped", reason="standard input was closed")
        os._exit(3)

    threading.Thread(target=listen, daemon=True).start()
    return lines


def options(about):
    """Return the parser of the options that all trainers have; `about` describes the trainer."""
    parser = argparse.ArgumentParser(description=about.split("\n", maxsplit=1)[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--job", type=json.loads, required=True, help="its description, JSON")
    parser.add_argument("--batch", type=int, required=True, help="examples a worker and iteration")
    parser.add_argument("--model", type=json.loads, help="shape of the network, JSON; else as the profile's bytes say")
    parser.add_argument("--backend", choices=["gloo", "nccl"], help="nccl where there is a GPU, else gloo")
    parser.add_argument("--record", choices=["kineto"], help="record the iterations, too")
    parser.add_argument("--paced", action="store_true", help="compute no faster than the profile says")
    return parser


def run(framework, requested, lines):
    """Train as the command line requests.

    Raises ImportError for a missing module, and ValueError, RuntimeError and OSError for failures.
    """
    refuse(requested.job)
    import torch  # noqa: PLC0415 - whether it is there is for this process to say
    import torch.distributed  # noqa: PLC0415

    worker = Worker(torch, requested)
    training = framework(worker)
    worker.finish_queue()
    with contextlib.closing(training_flows.Flows(worker.job["workers"], worker.rank)) as flows:
        say("ready")
        start_ns = start_of(lines.get())
        with profiler_trace.recorded(requested.record, worker.job["iterations"], say) as ended:
            train(worker, training, flows, start_ns, ended)
        for event in flows.events():
            say("flow", **event)


def main(framework, parser):
    """Run a worker from its command line to its end, and return the exit status."""
    requested = parser.parse_args()
    keep_output()
    lines = read_lines()
    try:
        run(framework, requested, lines)
    except ImportError as error:
        say("error", message=f"{sys.executable} cannot train so ({error}): docs/how-to/training.md says what it needs")
        return 1
    except (ValueError, RuntimeError, OSError) as error:
        say("error", message=str(error))
        return 1
    say("done", iterations=requested.job["iterations"])
    os._exit(0)  # threads of frameworks may wait for peers that have ended
