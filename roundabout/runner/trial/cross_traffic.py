# SPDX-License-Identifier: Apache-2.0
"""Cross traffic of a trial: its sinks and generators start before the jobs and end after them."""

import base64
import json
import math
import secrets
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from roundabout.plan import PlannedTrial, content_hash
from roundabout.runner.hosts.connections import Connection, LostHostError
from roundabout.runner.hosts.deadlines import take_within, time_slices
from roundabout.runner.hosts.host_group import Host, HostGroup, Scaling
from roundabout.runner.hosts.programs import Program
from roundabout.runner.session.host_session import HostSession
from roundabout.spec.cross_traffic import UNIT_KINDS, CrossTraffic

READY_TIMEOUT_S = 30  # loads are planned, sinks listen and connections stand within this
LEAD_MS = 1000  # from the start of cross traffic to that of jobs, so that cross traffic has settled
LASTS, LASTS_S = 3.0, 60.0  # a load's duration, as a factor of the expected one plus a constant, for slow jobs
FLUSH_TIMEOUT_S = 60.0  # time limit of a generator to print all its flows
FIRST_PORT = 29400
MAX_PARALLEL = 10
LOAD_FILE = "/dev/fd/3"  # file of a planned load, open in the shell that plans and sends it
PROBE_MS = 2000  # time after which iperf.py compares its rate with the load
MAX_FRESH = 1024  # connections at once, so that one that waits for a lost packet delays no other flow
BURST_WIDTH_MS, BURST_PERIOD_MS, BURST_HEIGHT = 1, 10, 3  # shape of bursts: Salamy, section 2.5

Stop = Callable[[Sequence[Program]], None]


class CrossTrafficError(Exception):
    """Error for cross traffic that did not start, or that ended before the jobs. The message is the reason."""


@dataclass(frozen=True)
class Generator:
    """A running generator of cross traffic. Its sender prints a summary, `ready`, and at the end all flows."""

    name: str
    spec: CrossTraffic
    sender: Program


class TrafficEndpoint(NamedTuple):
    """The port of one cross traffic, and the secret by which its sinks recognize its sender."""

    name: str
    spec: CrossTraffic
    port: int
    secret: str


def start_cross_traffic(session: HostSession, trial: PlannedTrial, stack: ExitStack, stop: Stop) -> list[Generator]:
    """Start sinks and generators of all cross traffic, and wait until all generators are ready to send.

    `stack` stops the programs by `stop`. Raises CrossTrafficError, LostHostError.
    """
    crossing = traffic_endpoints(trial)
    sinks = [
        _StartingProgram(
            f"sink of {part.name}", session.connections[receiver], sink_command(session.site, receiver, part), part
        )
        for part in crossing
        for receiver in part.spec.receivers
    ]
    stack.callback(stop, [sink.program for sink in sinks])
    for sink in sinks:
        sink.ready()
    senders = [
        _StartingProgram(
            part.name, session.connections[part.spec.sender], sender_command(session.site, trial, part), part
        )
        for part in crossing
    ]
    stack.callback(stop, [sender.program for sender in senders])
    for sender in senders:
        sender.ready()
    return [Generator(part.name, part.spec, sender.program) for part, sender in zip(crossing, senders, strict=True)]


def check_generators(generators: Sequence[Generator]) -> None:
    """Raise CrossTrafficError if a generator has ended. It must not end before the jobs."""
    for each in generators:
        if each.sender.has_ended:
            why = "its load was sent" if each.sender.status == 0 else each.sender.describe_end()
            raise CrossTrafficError(f"cross traffic {each.name} ended on {each.sender.host} before the jobs did: {why}")


def lead_time_s(site: HostGroup) -> float:
    """Return the time from the start of cross traffic to that of the jobs, in seconds on the hosts' clocks."""
    return site.ms_on_host(LEAD_MS) / 1e3


def traffic_endpoints(trial: PlannedTrial) -> list[TrafficEndpoint]:
    """Return an endpoint, with its own secret, for each cross traffic of `trial` with a load above 0."""
    return [
        TrafficEndpoint(name, spec, FIRST_PORT + number, make_secret(spec))
        for number, (name, spec) in enumerate(trial.spec.cross_traffic.items())
        if spec.load_gbps > 0
    ]


def make_secret(spec: CrossTraffic) -> str:
    """Return a new secret for the sender and the sinks of a load.

    For crossgen it is 32 hexadecimal digits. For iperf.py it is base64 of JSON: a password, and the key pair with which
    iperf3 encrypts the password.
    """
    if spec.kind != "iperf":
        return secrets.token_hex(16)
    pair = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = pair.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = pair.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    reported = {"password": secrets.token_hex(16), "private_key": private.decode(), "public_key": public.decode()}
    return base64.b64encode(json.dumps(reported).encode()).decode()


def sink_command(site: HostGroup, receiver: str, part: TrafficEndpoint) -> list[str]:
    """Return the command of the sink on the host `receiver`."""
    host, address = site.hosts[receiver], _address(site, receiver, part.spec)
    if part.spec.kind == "iperf":
        congestion = part.spec.transport.kernel_name
        return [
            *_iperf(host),
            "server",
            "--bind",
            address,
            "--port",
            str(part.port),
            "--congestion",
            congestion,
            "--secret",
        ]
    crossgen = str(host.prefix / "bin" / "crossgen")
    dscp = _dscp(site, part)
    return [crossgen, "sink", "--bind", f"{address}:{part.port}", *(["--dscp", str(dscp)] if dscp else [])]


def sender_command(site: HostGroup, trial: PlannedTrial, part: TrafficEndpoint) -> list[str]:
    """Return the command of the sender, which plans a load and sends it."""
    if part.spec.kind == "iperf":
        return _iperf_load(site, trial, part)
    crossgen = str(site.hosts[part.spec.sender].prefix / "bin" / "crossgen")
    plan = [crossgen, "plan", "--json", *plan_arguments(site, trial, part.name), "--output", LOAD_FILE]
    return plan_and_send(plan, [crossgen, "send", "--load", LOAD_FILE, *_way(site, part)])


def plan_and_send(plan: Sequence[str], send: Sequence[str]) -> list[str]:
    """Return a command that runs `plan`, which writes LOAD_FILE, and then `send`, which reads it.

    The file is unlinked before it is written, so that no failure leaves it behind.
    """
    script = f'f=$(mktemp) && exec 3<>"$f" && rm "$f" && {shlex.join(plan)} && exec {shlex.join(send)}'
    return ["sh", "-c", script]


def plan_arguments(pace: Scaling, trial: PlannedTrial, name: str) -> list[str]:
    """Return the arguments of `crossgen plan` for the cross traffic `name` of the trial.

    The trial's seed determines the flows. Cross traffics of a group have the same seed, so the same instants.
    """
    spec = trial.spec.cross_traffic[name]
    lasts_s = LASTS * trial.expected_s + LASTS_S
    second_s = pace.ms_on_host(1000) / 1e3  # whole bursts, however long a second takes there
    words = {
        "load-gbps": pace.rate_on_host_bps(spec.load_gbps) / 1e9,
        "duration-s": round(math.ceil(lasts_s / second_s) * second_s, 9),
        "destinations": ",".join(spec.receivers),
        "scale-sizes": pace.dilation / pace.scale,
        "seed": int(content_hash([trial.seed, spec.group or name]), 16) >> 1,
        "gaps": spec.gaps,
    }
    if spec.kind in UNIT_KINDS:
        words["kind"] = spec.kind
        if spec.unit_bytes is not None:
            words["unit-bytes"] = spec.unit_bytes
    else:
        words["sizes-between"] = spec.sizes_between
    if spec.kind == "burst":
        width_us, period_ms = pace.ms_on_host(BURST_WIDTH_MS) * 1e3, pace.ms_on_host(BURST_PERIOD_MS)
        words |= {"burst-width-us": width_us, "burst-period-ms": period_ms, "burst-height": BURST_HEIGHT}
        words["volumes"] = spec.volumes
    return [word for option, value in words.items() for word in (f"--{option}", str(value))]


def _iperf(host: Host) -> list[str]:
    return ["python3", "-IS", str(host.prefix / "bin" / "iperf.py")]


def _iperf_load(site: HostGroup, trial: PlannedTrial, part: TrafficEndpoint) -> list[str]:
    spec = part.spec
    (flow,) = spec.flows
    link_gbps = trial.spec.topology.path_payload_gbps(*flow)
    words = {
        "to": _address(site, flow.receiver, spec),
        "port": part.port,
        "load-gbps": site.rate_on_host_bps(spec.load_gbps) / 1e9,
        "parallel": parallel_connections(spec.load_gbps, link_gbps),
        "congestion": spec.transport.kernel_name,
        "probe-s": round(site.ms_on_host(PROBE_MS) / 1e3),
    }
    if dscp := _dscp(site, part):
        words["dscp"] = dscp
    if source := _source(site, spec):
        words["bind"] = source
    given = [word for name, value in words.items() for word in (f"--{name}", str(value))]
    return [*_iperf(site.hosts[spec.sender]), "load", *given, "--secret"]


def _address(site: HostGroup, host: str, spec: CrossTraffic) -> str:
    """Return the address of a host's NIC on the rail of the traffic."""
    return site.hosts[host].nics[spec.rail].address


def _source(site: HostGroup, spec: CrossTraffic) -> str | None:
    """Return the address to send from, or None for that of the first NIC, which routes choose."""
    return _address(site, spec.sender, spec) if spec.rail else None


def _dscp(site: HostGroup, part: TrafficEndpoint) -> int:
    """Return the DSCP of its packets: its own, or that of jobs without a priority."""
    return site.dscps.cross_traffic if part.spec.traffic_class == "own" else site.dscps.jobs


def parallel_connections(load_gbps: float, link_gbps: float) -> int:
    """Return the initial number of iperf's connections, at most 10.

    It is the number whose fair shares of the link, beside one saturating flow, reach the load. Salamy increased -P, to
    at most 10, until the load was reached (section 3.2). iperf.py does this while the jobs run. Beginning with 1 would
    take a large part of a short trial.
    """
    share = load_gbps / link_gbps
    return MAX_PARALLEL if share >= 1 else min(max(math.ceil(share / (1 - share)), 1), MAX_PARALLEL)


def _way(site: HostGroup, part: TrafficEndpoint) -> list[str]:
    spec = part.spec
    to = ",".join(f"{receiver}={_address(site, receiver, spec)}:{part.port}" for receiver in spec.receivers)
    dscp = _dscp(site, part)
    options = [*([f"dscp={dscp}"] if dscp else []), f"cc={spec.transport.kernel_name}"]
    classes = ("burst", "quiet") if spec.kind == "burst" else (spec.kind,)
    words = ["--to", to, "--warm-up-s", str(lead_time_s(site))]
    if source := _source(site, spec):
        words += ["--bind", f"{source}:0"]
    if spec.connections == "fresh":
        words += ["--fresh-connections", "--most-connections", str(MAX_FRESH)]
    return words + [word for name in classes for word in ("--class", ":".join([name, *options]))]


class _StartingProgram:
    """A starting program that reports when it is ready."""

    def __init__(self, name: str, connection: Connection, argv: list[str], part: TrafficEndpoint) -> None:
        self._ready: SimpleQueue[bool] = SimpleQueue()
        self.program = Program(name, connection, argv, self._take, part.secret)

    def ready(self) -> None:
        """Wait for the program's report. Raises CrossTrafficError, LostHostError."""
        label = f"cross traffic: {self.program.name} on {self.program.host}"
        try:
            if take_within(self._ready, time_slices(READY_TIMEOUT_S)):
                return
        except Empty:
            raise CrossTrafficError(f"{label} was not ready after {READY_TIMEOUT_S} s") from None
        if self.program.status is None:
            raise LostHostError(self.program.host, f"the connection broke while {self.program.name} was started")
        raise CrossTrafficError(f"{label} did not start: {self.program.describe_end()}")

    def _take(self, _program: Program, line: str | None) -> None:
        if line is None or line.startswith('{"event":"ready"'):
            self._ready.put(line is not None)
