#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a model's computing on this host's GPU: forward and backward pass, buckets of gradients, optimizer's step.

`roundabout profile gpu-plan` prints the plan that it reads, a JSON file. It prints one line of JSON for each model,
batch and precision (docs/reference/gpu-computing.md). Parameters and examples are random, and nothing is downloaded or
sent. A measurement that fails is a line, too, and the others go on.
"""

import argparse
import contextlib
import datetime
import gc
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(FOLDER))  # of the networks that trainers train

FORMAT, SCHEMA = "roundabout gpu computing", 1
PRECISIONS = ("tf32", "bf16-autocast", "fp32", "bf16")
"""32-bit numbers with matrix products in TF32, with PyTorch's autocast to bfloat16, and as they are; and all 16-bit."""
MIN_ITERATIONS = 5  # iterations of a measurement, however long they take
SEED = 1
SMI_FIELDS = {
    "name": "name",
    "driver": "driver_version",
    "power_limit_w": "power.limit",
    "clock_mhz": "clocks.sm",
    "clock_limit_mhz": "clocks.max.sm",
    "memory_clock_mhz": "clocks.mem",
    "memory_mib": "memory.total",
    "temperature_c": "temperature.gpu",
    "bus_id": "pci.bus_id",
}


class Network:
    """A network of a plan's case on a device, with its examples; `batch` may be less than the case's.

    `outputs()` does the forward pass; the outputs' gradients are random, or None for a loss.
    """

    def __init__(self, torch, case, batch, precision, device):
        self._torch, self._precision, self._device = torch, precision, device
        torch.manual_seed(SEED)
        with torch.device(device) if hasattr(torch.device, "__enter__") else contextlib.nullcontext():
            self.parts = self._build(case)
        number = torch.bfloat16 if precision == "bf16" else torch.float32
        self.parts.to(device=device, dtype=number)
        given = self._draw(case, batch)
        self._given = [each.to(device=device, dtype=number if each.is_floating_point() else None) for each in given]
        self.parameters = list(self.parts.parameters())

    def _build(self, case):
        raise NotImplementedError

    def _draw(self, case, batch):
        raise NotImplementedError

    def _outputs(self):
        raise NotImplementedError

    def in_buckets(self):
        """Return the parameters whose gradients are all-reduced."""
        return self.parameters

    def optimizer(self):
        """Return the optimizer's name, and a function that does its step."""
        import training  # noqa: PLC0415 - the trainers' optimizer

        return f"SGD, momentum {training.MOMENTUM}", training.optimizer(self._torch, self.parts).step

    def outputs(self):
        """Do the forward pass, and return outputs and their gradients."""
        if self._precision != "bf16-autocast":
            return self._outputs()
        with self._torch.autocast(self._torch.device(self._device).type, dtype=self._torch.bfloat16):
            return self._outputs()

    def forget_gradients(self):
        """Drop all gradients, as PyTorch's optimizers do by default since 2.0."""
        for each in (*self.parameters, *self._given):
            each.grad = None


class TableNetwork(Network):
    """A network of Table 4.2 whose gradients are all-reduced."""

    def _build(self, case):
        import training_networks  # noqa: PLC0415 - loads PyTorch

        self._loss_of = training_networks.loss_of
        return training_networks.network(case["shape"], None)

    def _draw(self, case, batch):
        import training_networks  # noqa: PLC0415

        return training_networks.Examples(case["shape"], batch, SEED, 0, **case["input"]).draw()

    def _outputs(self):
        examples, said = self._given
        return self._loss_of(self.parts(examples), said), None


class TablesNetwork(Network):
    """DLRM on one worker: as many rows are looked up as by each of several workers, and none is exchanged."""

    def _build(self, case):
        import training_dlrm  # noqa: PLC0415 - loads PyTorch

        shape = case["shape"]
        return self._torch.nn.ModuleList([training_dlrm.Tables(shape, 1, 0), training_dlrm.Above(shape, 1)])

    def _draw(self, case, batch):
        import training_dlrm  # noqa: PLC0415

        return training_dlrm.Examples(case["shape"], batch, 1, 0, SEED).draw()

    def _outputs(self):
        numbers, rows, clicks = self._given
        tables, above = self.parts
        found = above(numbers, tables(rows).reshape(-1))
        return self._torch.nn.functional.binary_cross_entropy_with_logits(found, clicks), None

    def in_buckets(self):
        """Return the parameters above the tables: tables are divided among workers."""
        return list(self.parts[1].parameters())

    def optimizer(self):
        """Return the optimizer's name, and its step: without momentum for tables, as the trainer has it."""
        import training  # noqa: PLC0415

        steps = [training.optimizer(self._torch, part, momentum).step for part, momentum in zip(self.parts, (0, 0.9))]
        return "SGD, momentum 0.9, of tables 0", lambda: [step() for step in steps]


class LayerNetwork(Network):
    """A worker's share of one layer of a language model, for one text."""

    def _build(self, case):
        import computing_layers  # noqa: PLC0415 - loads PyTorch

        return computing_layers.layer(case["shape"], case["share"], case["input"]["tokens"])

    def _draw(self, case, batch):
        shape = batch, case["input"]["tokens"], case["shape"]["hidden"]
        return [self._torch.randn(shape, device=self._device) for _ in range(2)]

    def _outputs(self):
        given, gradient = self._given
        found = self.parts(given.requires_grad_())
        return found, gradient.to(found.dtype)

    def optimizer(self):
        """Return the optimizer's name, and a function that does its step."""
        fused = {"fused": True} if self._torch.device(self._device).type == "cuda" else {}
        return "AdamW", self._torch.optim.AdamW(self.parameters, lr=1e-5, **fused).step


NETWORKS = {"dlrm": TablesNetwork, "layer": LayerNetwork}


class Passes:
    """Iterations of one network, and the marks at which their parts end."""

    def __init__(self, torch, network, clock):
        from computing_buckets import BucketClock  # noqa: PLC0415

        self._torch, self._network, self._clock = torch, network, clock
        self._buckets = BucketClock(network.in_buckets(), clock.mark)
        self.optimizer, self._step = network.optimizer()

    def close(self):
        """Let go of the network's parameters."""
        self._buckets.close()

    def iterate(self):
        """Queue one iteration, and return its marks: begin, forward, backward, step; and one a bucket."""
        self._network.forget_gradients()
        self._buckets.begin()
        marks = [self._clock.mark()]
        outputs, gradients = self._network.outputs()
        marks.append(self._clock.mark())
        outputs.backward(gradients)
        marks.append(self._clock.mark())
        self._step()
        marks.append(self._clock.mark())
        return marks, self._buckets.marks

    def warm_up(self, count):
        """Do `count` iterations, at least two, and return how long the last one took, s."""
        self._clock_mhz()  # its first call takes long, and lies within a measurement else
        for number in range(max(count, 2)):
            begin_s = time.monotonic()
            marks, _ = self.iterate()
            self._clock.wait(marks[-1])
            if not number:
                self._buckets.make_buckets()
        return time.monotonic() - begin_s

    def measure(self, count):
        """Queue `count` iterations one after another, and return the times of their parts, ms.

        `drain_ms` is how long the device still works once all are queued: next to nothing where the host is slower.
        """
        queued = [self.iterate() for _ in range(count)]
        queued_s = time.monotonic()
        clock_mhz = self._clock_mhz()
        self._clock.wait(queued[-1][0][-1])
        drain_ms = (time.monotonic() - queued_s) * 1e3
        parts, ready = [], []
        for marks, bucket_marks in queued:
            begin, forward, backward, step = map(self._clock.host_ns, marks)
            parts.append(((forward - begin) / 1e6, (backward - forward) / 1e6, (step - backward) / 1e6))
            ready.append([(self._clock.host_ns(mark) - forward) / 1e6 for mark in bucket_marks])
            self._clock.rebase(marks[-1])
        forward, backward, step = zip(*parts)
        return {
            "forward_ms": spread(forward),
            "backward_ms": spread(backward),
            "optimizer_ms": spread(step),
            "iteration_ms": spread([sum(each) for each in parts]),
            "buckets": [
                {"bytes": size, "ready_ms": spread(instants)}
                for size, instants in zip(self._buckets.sizes(), zip(*ready))
            ],
            "drain_ms": round(drain_ms, 4),
            "clock_mhz_under_load": clock_mhz,
        }

    def _clock_mhz(self):
        """Return the GPU's clock while it works, MHz; None if PyTorch does not report it."""
        try:
            return self._torch.cuda.clock_rate()
        except Exception:  # noqa: BLE001 - of several libraries, and no reason to lose a measurement
            return None


def spread(times):
    """Return median, least and most of some times."""
    return {"median": round(statistics.median(times), 4), "min": round(min(times), 4), "max": round(max(times), 4)}


def set_tf32(torch, allowed):
    """Allow matrix products and convolutions in TF32, or forbid them."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def measure(torch, case, batch, precision, requested):
    """Return the measurement of a case with this batch."""
    import training_times  # noqa: PLC0415

    set_tf32(torch, precision == "tf32")
    is_gpu = requested.device != "cpu"
    allocated_bytes = None
    if is_gpu:
        torch.cuda.reset_peak_memory_stats()
        allocated_bytes = torch.cuda.memory_allocated()
        clock = training_times.DeviceClock(lambda: torch.cuda.Event(enable_timing=True))
    else:
        clock = training_times.HostClock()
    network = NETWORKS.get(case["shape"]["kind"], TableNetwork)(torch, case, batch, precision, requested.device)
    with contextlib.closing(Passes(torch, network, clock)) as passes:
        took_s = passes.warm_up(requested.warm_up)
        count = int(min(max(requested.seconds / took_s, MIN_ITERATIONS), requested.iterations))
        found = passes.measure(count)
    return {
        "batch": batch,
        "parameters": sum(each.numel() for each in network.parameters),
        "gradient_bytes": sum(bucket["bytes"] for bucket in found["buckets"]),
        "optimizer": passes.optimizer,
        "warm_up": max(requested.warm_up, 2),
        "iterations": count,
        **found,
        "memory_before_bytes": allocated_bytes,
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if is_gpu else None,
    }


def release(torch, device):
    """Give the memory of networks that are no longer used back to the GPU."""
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


def measure_fitting(torch, case, precision, requested):
    """Return the measurement of a case with its batch, halved until it fits the GPU's memory.

    Raises RuntimeError if not even one example fits, and for whatever else fails.
    """
    batch = case["batch"]
    while True:
        try:
            return measure(torch, case, batch, precision, requested)
        except RuntimeError as error:
            if "out of memory" not in str(error) or batch == 1:
                raise
        batch //= 2
        release(torch, requested.device)


def smi():
    """Return nvidia-smi's report on the first GPU; None without it."""
    command = ["nvidia-smi", "--id=0", f"--query-gpu={','.join(SMI_FIELDS.values())}", "--format=csv,noheader,nounits"]
    try:
        reported = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=20).stdout.decode()
    except (OSError, subprocess.SubprocessError):
        return None
    return {name: number_or_text(each.strip()) for name, each in zip(SMI_FIELDS, reported.split(","))}


def number_or_text(text):
    """Return a number where the text is one."""
    try:
        return float(text)
    except ValueError:
        return text


def stamp(torch, revision):
    """Return what all measurements of this process share: host, GPU, versions, and the program's revision."""
    digest = hashlib.sha256()
    sources = ("computing/measurement.py", "computing/computing_buckets.py", "computing/computing_layers.py")
    for name in (*sources, "training_networks.py", "training_dlrm.py", "training_times.py"):
        with open(os.path.join(os.path.dirname(FOLDER), name), "rb") as source:
            digest.update(source.read())
    return {
        "gpu": smi() if torch.cuda.is_available() else None,
        "processor": platform.machine(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "python": platform.python_version(),
        "revision": revision,
        "program_sha256": digest.hexdigest(),
    }


def say(**fields):
    """Print a measurement's line."""
    at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    print(json.dumps({"format": FORMAT, "schema": SCHEMA, "at": at, **fields}, separators=(",", ":")), flush=True)


def chosen(plan, requested):
    """Return pairs of case and precision in the plan's order."""
    cases = [
        case for case in plan if not requested.only or case["set"] in requested.only or case["model"] in requested.only
    ]
    return [(case, precision) for case in cases for precision in requested.precision]


def options():
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("plan", type=argparse.FileType("r"), help="the plan, JSON; - for standard input")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="models or sets of the plan; default: all")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--iterations", type=int, default=20, help="measured iterations, at most")
    parser.add_argument("--seconds", type=float, default=1.0, help="time of measured iterations, of which 5 are done")
    parser.add_argument("--warm-up", type=int, default=3, help="iterations before that, at least 2")
    parser.add_argument("--deadline-s", type=float, default=float("inf"), help="begin no measurement later than that")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--revision", help="revision of this program, for the record")
    return parser


def main():
    """Measure what the command line requests, and return the exit status: 0 if anything was measured."""
    begin_s = time.monotonic()
    requested = options().parse_args()
    import torch  # noqa: PLC0415 - `--help` needs none

    common = stamp(torch, requested.revision)
    measured = 0
    for case, precision in chosen(json.load(requested.plan), requested):
        if time.monotonic() - begin_s > requested.deadline_s:
            print("deadline reached:", case["model"], case["batch"], precision, file=sys.stderr, flush=True)
            continue
        reported = {**case, "precision": precision, "planned_batch": case["batch"], **common}
        try:
            say(**{**reported, **measure_fitting(torch, case, precision, requested)})
            measured += 1
        except Exception as error:  # noqa: BLE001 - the others shall be measured whatever fails here
            say(**reported, error=f"{type(error).__name__}: {error}"[:500])
        release(torch, requested.device)
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
