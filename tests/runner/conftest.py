# SPDX-License-Identifier: Apache-2.0
"""A testbed without a network: each host is a folder, its programs are scripts, and its faults are what a test says."""

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest

from roundabout.core.errors import RoundaboutError
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.hosts.host_group import DscpClasses, Host, Port
from roundabout.runner.machine import journal, lease, temporary
from roundabout.runner.run import Runner
from roundabout.runner.trial.ssh_testbed import SshTestbedProvider
from roundabout.spec.load import load_experiment
from roundabout.store import Run

PYTHON = f"#!{sys.executable} -IS\n"
SCALE = 50

# Every script finds its host's folder beside itself, and there what should go wrong, once each: a file for each fault.
COMMON = r"""
import json, os, sys, time
from pathlib import Path
from typing import ClassVar
home = Path(__file__).resolve().parent.parent
words = sys.argv[1:]
def option(name):
    return words[words.index(f"--{name}") + 1]
def fault(name):
    path = home / "faults" / name
    try:
        taken = path.rename(path.with_suffix(f".{os.getpid()}"))  # of a host's programs that ask at once, one has it
    except FileNotFoundError:
        return None
    return json.loads(taken.read_text())
def say(**event):
    print(json.dumps(event), flush=True)
"""

REPLAY = r"""
import threading
if fault("never ready"):
    time.sleep(60)
say(event="ready")
sys.stdin.readline()  # the secret
line = sys.stdin.readline()
if not line:
    sys.exit(3)
def watch():
    sys.stdin.read()
    os._exit(3)
threading.Thread(target=watch, daemon=True).start()
start, pace = int(line.split()[1]), fault("iteration_ms") or 4
missing, lost, late_ms = fault("missing iterations") or 0, fault("lost"), fault("late_ms") or 0.1
while time.monotonic_ns() < start:
    time.sleep(0.0005)
job = json.loads(option("job"))
iterations = job["iterations"]
for number in range(iterations - missing):
    begin = time.monotonic_ns() if number else start  # whenever a busy machine wakes it
    time.sleep(pace / 1e3)
    if lost and number == 1:
        sys.exit(99)
    if fault("peer"):
        say(event="error", message="peer s2 (10.0.0.3) closed the connection in iteration 1")
        sys.exit(1)
    end = time.monotonic_ns()
    say(event="iteration", iteration=number, start_ns=begin, compute_end_ns=(begin + end) // 2, comm_end_ns=end,
        sent_bytes=1000, received_bytes=1000, late_ns=int(late_ms * 1e6))
say(event="flow", job=job["name"], rank=int(option("rank")), flow=0, peer="x", peer_rank=1, local_port=1, remote_port=2,
    congestion_control="rb_dcqcn", bytes_acked=1000 * iterations, retransmitted=fault("retransmitted") or 0,
    delivered=10, delivered_ce=1)
if exports_s := fault("exports_s"):
    say(event="recording")
    time.sleep(exports_s)
    say(event="record", format="kineto", gzip_base64="e30=")
say(event="done", iterations=iterations)
"""

SAMPLER = r"""
import select
of_network = "--interfaces" in words or "--ifindex" in words
if "--cpu" in words:
    print("#cpu,before_ns,after_ns,busy_ticks,idle_ticks,steal_ticks,softirq_ticks,"
          "softnet_processed,softnet_dropped,softnet_squeezed")
    busy, steal = fault("busy") or 0.3, fault("steal") or 0
    dropped = fault("softnet_dropped") or 0
if of_network:
    print("#port,before_ns,after_ns,interface,ifindex,up,tx_bytes,tx_packets,rx_bytes,rx_packets,tx_dropped,rx_dropped,"
          "qdisc_backlog_bytes,qdisc_drops,qdisc_bytes,marks,ecn_packets")
    print("#sampler,before_ns,after_ns,samples,missed,dropped_lines")
    lost, dies = fault("lost lines") or 0, fault("sampler dies")
    print("#marks,before_ns,after_ns,ifindex,source,marks")
    print("#counter,set,field,device,source,counter,unit,width_bits")
    print("counter,set0,0,mlx5_0/1,rdma port,port_xmit_data,bytes,64")
    print("#set0,before_ns,after_ns,0")
    # Of a link, which the switches' samplers see: whichever sampler of this folder begins first may ask.
    of_link = "--ifindex" in words
    drops, stalls = (of_link and fault("drops")) or 0, of_link and fault("stalls")
step = 0
while not select.select([sys.stdin], [], [], 0.005)[0]:
    now = time.monotonic_ns()
    if "--cpu" in words:
        ticks = [int(step * 100 * share) for share in (busy, 1 - busy - steal, steal)]
        print("cpu", now, now, *ticks, 0, step, dropped if step else 0, 0, sep=",", flush=True)
    if of_network:
        ifindex = option("ifindex") if "--ifindex" in words else 2
        marks = 3 * step if "--ifindex" in words else ""
        moved = 0 if stalls else step
        sent = [100 * moved, moved, 100 * moved, moved]
        waiting = 40 if stalls else 0
        row = ["port", now, now, "eth0", ifindex, 1, *sent, 0, 0, waiting, drops if step else 0, 0, marks, 0]
        print(*row, sep=",", flush=True)
    if "--ifindex" in words:
        print("marks", now, now, ifindex, "10.0.0.1", 3 * step, sep=",", flush=True)
    elif of_network:
        print("set0", now, now, 100 * step if step % 2 else "", sep=",", flush=True)
    if of_network:
        print("sampler", now, now, step, 0, lost, sep=",", flush=True)
    step += 1
    if of_network and dies and step > 3:
        sys.exit("sampler: the kernel refused to give counters")
"""

SETTINGS = r"""
path, command = home / "settings.json", words[2]
if fault("freezes in " + command):
    time.sleep(60)
if fault("settings fail"):
    sys.exit("error: sysctl net.ipv4.tcp_ecn cannot be written")
if command == "restore":
    path.unlink(missing_ok=True)
    sys.exit()
asked = json.load(sys.stdin)
if command == "apply":
    path.write_text(json.dumps(asked))
if command == "read" and fault("drift"):
    now = json.loads(path.read_text())
    now["sysctl"]["net.ipv4.tcp_ecn"] = 0
    path.write_text(json.dumps(now))
now = json.loads(path.read_text())
wrong = [{"setting": f"sysctl {name}", "expected": value, "found": now["sysctl"].get(name)}
         for name, value in asked["sysctl"].items() if now["sysctl"].get(name) != value]
print(json.dumps({"found": now, "applied": now, "changed": [], "differs": wrong}))
"""

TRANSPORT = r"""
print(json.dumps({"params": {}, "counters": {"cnps": time.monotonic_ns() % 1000, "alpha": 0.5}}))
"""

SCRIPTS = {"replay": REPLAY, "sampler": SAMPLER, "settings.py": SETTINGS, "transport": TRANSPORT}
LOST = 99  # a program that ends with this stands for a connection that broke


class FakeSite:
    kind, scale, dilation = "fake", SCALE, 1.0
    fidelity = Fidelity("emulated", "emulated: fake", "Nothing here is real.")
    dscps = DscpClasses()

    def __init__(self, folder, topology, name):
        self.name, self._folder = name, folder
        self.hosts = {
            host: Host(host, host, f"10.0.0.{number}", 24, "eth0", folder / "hosts" / host)
            for number, host in enumerate(topology.hosts, start=1)
        }
        self.ports = (Port("tor0", "L1", "p1", 7, "tor1", 50, 43), Port("tor1", "L1", "p2", 8, "tor0", 50, 43))
        self.settings_state = folder / "settings"

    def identity(self):
        return {"kind": self.kind, "scale": self.scale, "generation": os.environ.get("FAKE_GENERATION", "1")}

    def capabilities(self):
        return frozenset({"own clock"})

    def settings_document(self, trial, host):
        return {"sysctl": {"net.ipv4.tcp_ecn": 1}, "transport": {"dcqcn": {"T_us": 125}}}

    def prepare(self, trial):
        pass

    def read_back(self, trial):
        return []

    def ms_on_host(self, paper_ms):
        return paper_ms * self.dilation

    def bytes_on_host(self, paper_bytes):
        return paper_bytes // SCALE

    def switch_samplers(self):
        sampler = str(self._folder / "hosts" / "s0" / "bin" / "sampler")
        return [[sampler, "--ifindex", str(port.ifindex)] for port in self.ports]


class FakeConnection(LocalConnection):
    def start(self, argv):
        channel = super().start(argv)
        result = channel.result

        def maybe_lost():
            status, said = result()
            return (None if status == LOST else status), said

        channel.result = maybe_lost
        return channel


class FakeProvider(SshTestbedProvider):
    """Keeps what it made as files under `folder`, so that tests see what is left."""

    where: ClassVar = {"testbed": "fake"}
    sampler = None

    def __init__(self, folder):
        self.folder = Path(folder)
        self.sampler = self.folder / "hosts" / "s0" / "bin" / "sampler"
        self.raised = 0
        self.lease_lost = False

    @property
    def left(self):
        """What was made and not undone."""
        return sorted(str(path.relative_to(self.folder / "made")) for path in (self.folder / "made").glob("*"))

    def fault(self, host, **faults):
        """Let `host` go wrong, once."""
        home = self.folder / "hosts" / host / "faults"
        home.mkdir(parents=True, exist_ok=True)
        for name, value in faults.items():
            (home / name.replace("_O_", " ")).write_text(json.dumps(value))

    def artifacts(self, _transports):
        return {"replay": "1"}

    def create_hosts(self, topology, name):
        self._make(f"testbed {name}")
        self.raised += 1
        return FakeSite(self.folder, topology, name)

    def load_transport(self, transport, owner):
        self._make(f"transport {transport.name}")

    def provision(self, site):
        for host in site.hosts.values():
            (host.prefix / "bin").mkdir(parents=True, exist_ok=True)
            for name, text in SCRIPTS.items():
                path = host.prefix / "bin" / name
                path.write_text(PYTHON + COMMON + text)
                path.chmod(0o755)
            clocks = [self.folder / "clock.py", Path(__file__).parents[2] / "collectors" / "clock.py"]
            shutil.copy(next(filter(Path.exists, clocks)), host.prefix / "bin")

    def connect(self, site, host):
        return FakeConnection(host)

    def check_held(self):
        if self.lease_lost:
            raise RoundaboutError("the lease was lost")

    def undo(self, entry):
        while (self.folder / "frozen").exists():  # what is to be undone does not answer
            (self.folder / "undoing").touch()
            time.sleep(0.01)
        if entry["kind"] in ("testbed", "transport"):
            (self.folder / "made" / f"{entry['kind']} {entry['name']}").unlink(missing_ok=True)

    def _make(self, name):
        (self.folder / "made").mkdir(parents=True, exist_ok=True)
        (self.folder / "made" / name).touch()


class Notes:
    """An observer that writes down what it is told."""

    def __init__(self):
        self.steps, self.iterations, self.links, self.ended = [], [], [], []

    def run_started(self, run, plan, done):
        self.plan, self.done = plan, done

    def step(self, what):
        self.steps.append(what)

    def trial_started(self, trial, attempt):
        pass

    def phase(self, what):
        pass

    def iteration(self, job, number, ms):
        self.iterations.append((job, number))

    def traffic(self, links, crossing):
        self.links += links.items()

    def leaves(self, owed):
        print("left:", *owed, file=sys.stderr)

    def trial_ended(self, trial, reasons, again):
        self.ended.append((trial.variant, reasons, again))


def experiment(iterations=3, variants="fair: {}", repetitions=1):
    """A small experiment, in a file of its own beside nothing."""
    return f"""
schema: 1
name: tiny
about: Two jobs for a moment
topology: dumbbell-2x2
jobs:
  j1: {{profile: vgg19-fig1, workers: [s0, s2]}}
  j2: {{profile: vgg19-fig1, workers: [s1, s3]}}
iterations: {iterations}
transport: {{name: dcqcn}}
factors:
  variant: {{{variants}}}
repetitions: {repetitions}
"""


class Workplace:
    """A folder with a fake testbed, runs, and the machine's state."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.provider = FakeProvider(self.folder / "fake")
        self.notes = Notes()
        self.state = self.folder / "run" / "roundabout"
        self.journals = self.folder / "lib" / "roundabout" / "runs"
        self.runs = self.folder / "runs"

    def write(self, text):
        """The experiment's file."""
        path = self.folder / "tiny.yaml"
        path.write_text(text)
        return path

    @property
    def runner(self):
        return Runner(self.provider, self.notes, self.undo, self.state, self.journals)

    def start(self, text=None):
        path = self.write(text or experiment())
        return self.runner.start(load_experiment(path), str(path), self.runs)

    def undo(self, entry):
        """What dead runs owe."""
        (temporary.remove if entry["kind"] == temporary.KIND else self.provider.undo)(entry)

    def clean(self):
        """What `roundabout clean` does."""
        with lease.hold("machine", "clean", self.state):
            journal.raise_together(journal.replay(self.journals, self.undo, self.notes.step))

    @property
    def owed(self):
        """Whether anything of a run is left on the machine."""
        return self.provider.left or self.state.exists() or self.journals.parent.exists()

    def resume(self):
        run = Run.open("last", self.runs)
        return self.runner.resume(run, load_experiment(run.manifest["which"]))


@pytest.fixture
def work(tmp_path):
    return Workplace(tmp_path)


@pytest.fixture
def tiny():
    return experiment


def command(*words):
    """How a test starts a runner in a process of its own."""
    return [sys.executable, str(Path(__file__).with_name("runner_process.py")), *map(str, words)]


@pytest.fixture
def drive():
    return command
