# SPDX-License-Identifier: Apache-2.0
"""The life cycle of a lab: creation with measurement, opening, use and removal."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.host_group import Capability, DscpClasses, EchoTimes, Host, Port, QueueReader, Scaling
from roundabout.runner.machine.state import ROOT_STATE
from roundabout.runner.trial.sampler import COUNTERS_MS
from roundabout.spec.link_events import LinkState
from roundabout.spec.topology import Topology
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.lab.calibration.calibration import Calibration, Ecn, load_calibration
from roundabout.testbeds.lab.checks import host_requirements, kernel_features
from roundabout.testbeds.lab.checks.fidelity import lab_fidelity
from roundabout.testbeds.lab.ecn import bpffs, marking
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.faults import link_faults
from roundabout.testbeds.lab.forwarding import switch_routes
from roundabout.testbeds.lab.lifecycle import lab_record as record, ssh, trial_settings
from roundabout.testbeds.lab.lifecycle.locks import lock_folder
from roundabout.testbeds.lab.network import link_measurement, network, nodes, paths, port_queues
from roundabout.testbeds.lab.network.layout import Layout, lay_out

if TYPE_CHECKING:
    from fabric import Connection

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
STATE_LOCK_TIMEOUT_S = 30.0  # time limit for the machine's lock, which other processes hold only briefly
DYING_S = 5.0  # time limit for the last child of a killed builder to end


@dataclass(frozen=True)
class Lab(Scaling):
    """An existing lab. It is a HostGroup."""

    record: record.LabRecord

    kind = "lab"
    settings_state = paths.SETTINGS_INSIDE
    dscps = DscpClasses()
    switch_addresses = None

    @classmethod
    def create(  # noqa: PLR0913 - each of the named ones may be left out
        cls,
        topology: Topology,
        name: str | None = None,
        *,
        scale: float | None = None,
        dilation: float | None = None,
        transport_dilation: float | None = None,
        calibration: Calibration | None = None,
        clock_shift_ns: Mapping[str, int] | None = None,
        verify: bool = True,
    ) -> "Lab":
        """Build a lab with `topology`, and measure its links if `verify`. After a failure, remove all parts.

        With `dilation`, times are dilated and published parameters are used; those of the transport are dilated by
        `transport_dilation` if it is given. Hosts in `clock_shift_ns` get a monotonic clock of their own, which is
        ahead of the machine's by this time.

        Raises:
            LabError: a requirement is missing, the name exists, the kernel refuses, or a link misses its rate.
        """
        host_requirements.require_all()
        shifts = dict(clock_shift_ns or {})
        if shifts:
            kernel_features.require_time_namespaces()
            _refuse_unknown_hosts(shifts, topology)
        calibration = (calibration or load_calibration()).for_scale(scale, transport_dilation or dilation)
        lab = paths.LabPaths(_check_name(name or topology.name))
        plan = record.LabRecord(
            name=lab.name,
            state="building",
            created_utc=datetime.now(UTC),
            scale=calibration.scale,
            dilation=dilation or 1.0,
            transport_dilation=transport_dilation,
            calibration=calibration,
            topology=topology,
            clock_shift_ns=shifts,
        )
        with _begin(lab) as lock:
            return cls(_build(lab, plan, lock, verify=verify))

    @classmethod
    def find(cls, name: str) -> "Lab":
        """Return the lab called `name`, even if one of its nodes has died.

        Raises:
            LabError: the lab does not exist, or its creation was not finished.
        """
        return cls(record.read(paths.LabPaths(_check_name(name))))

    @classmethod
    def open(cls, name: str) -> "Lab":
        """Return the lab called `name`, which must be complete.

        Raises:
            LabError: the lab does not exist, or one of its nodes has died.
        """
        lab = cls.find(name)
        lab.live_pids()
        return lab

    @staticmethod
    def names() -> tuple[str, ...]:
        """Return the names of all labs on this machine, including incomplete ones.

        Raises:
            LabError: this process does not run as root.
        """
        try:
            return tuple(sorted(folder.name for folder in paths.LABS.iterdir()))
        except FileNotFoundError:
            return ()
        except PermissionError:
            raise LabError(f"labs belong to root: {paths.LABS} may not be read", "run this with sudo") from None

    @staticmethod
    def remove(name: str) -> None:
        """Remove all parts of the lab `name`, even if its builder was killed at any point.

        Raises:
            LabError: the lab does not exist, or another process is building or removing it.
        """
        host_requirements.require_root()
        lab = paths.LabPaths(_check_name(name))
        try:
            with lock_folder(lab.root, wait_s=DYING_S):
                remove_all_parts(lab)
        except FileNotFoundError:
            raise LabError(f"there is no lab {name!r}", "`roundabout lab status` lists labs") from None
        except BlockingIOError:
            raise LabError(
                f"lab {name!r} is being built or taken down by someone else", "wait for them, or stop them first"
            ) from None

    @property
    def name(self) -> str:
        """Return the lab's name."""
        return self.record.name

    @property
    def scale(self) -> float:
        """Return the divisor of rates."""
        return self.record.scale

    @property
    def dilation(self) -> float:
        """Return the factor of times."""
        return self.record.dilation

    @property
    def transport_dilation(self) -> float:
        """Return the factor of the times of transports and switches."""
        return self.record.dilation_of_transports

    @property
    def fidelity(self) -> Fidelity:
        """Return the statement of fidelity: emulated, at the lab's scale."""
        calibration = self.record.calibration
        replaced = trial_settings.replaced_sets(calibration)
        return lab_fidelity(calibration, self.dilation, replaced, self.transport_dilation)

    @property
    def topology(self) -> Topology:
        """Return the topology that the lab was built from."""
        return self.record.topology

    @property
    def files(self) -> paths.LabPaths:
        """Return the paths of the lab's files."""
        return paths.LabPaths(self.name)

    @cached_property
    def layout(self) -> Layout:
        """Return the lab's addresses and ports."""
        return lay_out(self.topology)

    @property
    def hosts(self) -> Mapping[str, Host]:
        """Return the hosts by name, in the topology's order."""
        return self.layout.hosts

    @property
    def ports(self) -> tuple[Port, ...]:
        """Return all switch ports."""
        return self.layout.ports

    def pids(self) -> dict[str, int | None]:
        """Return the pid of each node's init process, by node. It is None for a dead node."""
        return {
            node: nodes.alive_pid(self.files.pid_file(node)) for node in (*self.topology.hosts, *self.topology.switches)
        }

    def live_pids(self) -> dict[str, int]:
        """Return the pid of each node's init process, by node. Raises LabError if a node has died."""
        pids = self.pids()
        if dead := [node for node, pid in pids.items() if pid is None]:
            raise LabError(
                f"lab {self.name!r} is broken: {', '.join(dead)} died",
                f"`roundabout lab down {self.name}`, then up again",
            )
        return {node: pid for node, pid in pids.items() if pid is not None}

    def identity(self) -> dict[str, Any]:
        """Return all properties that can make results of two labs differ."""
        calibration = self.record.calibration.model_dump_json(by_alias=True)
        return {
            "kind": self.kind,
            "scale": self.scale,
            "dilation": self.dilation,
            # Not otherwise, so that keys of trials without it stay valid.
            **({"transport_dilation": own} if (own := self.record.transport_dilation) else {}),
            "calibration_version": self.record.calibration.version,
            "calibration_sha256": hashlib.sha256(calibration.encode()).hexdigest(),
            "marking": self.record.marking,
            "kernel": os.uname().release,
        }

    def capabilities(self) -> frozenset[Capability]:
        """Return the capabilities: priorities at switch ports, and separate clocks if hosts have them."""
        return frozenset({"priorities", "own clock"} if self.record.clock_shift_ns else {"priorities"})

    def ssh_config(self) -> Path:
        """Return the path of the lab's SSH configuration, for `ssh -F`."""
        return self.files.ssh_config

    def connect(self, host: str) -> "Connection":
        """Return a Fabric connection to `host` that is not open yet. The user's SSH configuration is ignored."""
        from fabric import Config, Connection  # noqa: PLC0415 - half a second that most commands need not pay

        config = Config(runtime_ssh_path=str(self.ssh_config()))
        return Connection(host, config=config, connect_kwargs={"allow_agent": False, "look_for_keys": False})

    def settings_document(self, trial: TrialSpec, host: str) -> dict[str, Any]:
        """Return the input of `settings.py apply` on `host` for `trial`, in the lab's units."""
        return trial_settings.settings_document(trial, host, self.record.calibration, self.transport_dilation)

    def prepare(self, trial: TrialSpec) -> None:
        """Set the queues and marking thresholds of ports for the trial and its transports, and the routes of its flows.

        No link loses packets, and each drains at its rate, also if a killed run left it otherwise.

        Raises LabError if transports request different thresholds or classes, or if a node has died.
        """
        if apart := [name for name, traffic in trial.cross_traffic.items() if traffic.traffic_class == "own"]:
            raise LabError(
                f"cross_traffic.{apart[0]}.traffic_class: found own, expected jobs: a lab's ports have one class "
                "for all that have no priority",
                "give jobs a `priority`, or run it on a rack",
            )
        ecn, queues = self._requested_queues(trial)
        port_queues.update_queues(queues, self.live_pids(), self.record.calibration.burst_bytes)
        packets = self._packets_per_segment(trial)
        marking.set_thresholds(self.files, queues, ecn, trial.queue_of_priority, packets)
        if not self.topology.is_tree:
            switch_routes.set_routes(self.files, self.layout, trial)
        if trial.loses_packets:
            link_faults.attach(self.files, self.layout, self.live_pids())
        link_faults.clear(self.files, self.layout)

    def set_link(self, trial: TrialSpec, link: str, state: LinkState) -> None:
        """Set the losses and the rate of a link of `trial`, whose ports are as `prepare` left them."""
        if trial.loses_packets:
            link_faults.set_loss(self.files, self.layout, link, state.loss if state.is_up else 1.0)
        if not any(event.what == "slows" and event.link == link for event in trial.events):
            return
        ecn, queues = self._requested_queues(trial)
        slowed = {
            port: replace(queue, drain_bytes_per_s=round(queue.drain_bytes_per_s * state.rate))
            for port, queue in queues.items()
            if port.link == link
        }
        port_queues.update_queues(slowed, self.live_pids(), self.record.calibration.burst_bytes)
        marking.set_thresholds(self.files, slowed, ecn, trial.queue_of_priority, self._packets_per_segment(trial))

    def set_routes(self, trial: TrialSpec, failed: frozenset[str]) -> None:
        """Let the routes of `trial` avoid failed links."""
        if not self.topology.is_tree:
            switch_routes.set_routes(self.files, self.layout, trial, failed)

    def count_lost(self, links: Iterable[str]) -> dict[str, int]:
        """Return how many wire segments each of these links has lost by events since the lab was built."""
        if not self.files.faults_map.exists():
            return {}
        return {link: link_faults.count_lost(self.files, self.layout, link) for link in links}

    def read_back(self, trial: TrialSpec) -> list[str]:
        """Return a line for each port or route that differs from what `prepare` set."""
        ecn, queues = self._requested_queues(trial)
        routed = not self.topology.is_tree
        return [
            *(switch_routes.find_differences(self.files, self.layout, trial) if routed else ()),
            *marking.find_differences(self.files, queues, ecn, self._packets_per_segment(trial)),
            *port_queues.find_differences(queues, self.live_pids()),
        ]

    def _requested_queues(self, trial: TrialSpec) -> tuple[Ecn, dict[Port, port_queues.Queue]]:
        """Return the marking and queues of ports in a trial."""
        calibration = self.record.calibration
        ecn = trial_settings.ecn_thresholds(trial, calibration, self.scale / self.transport_dilation)
        return ecn, port_queues.port_queues(self.layout, calibration, self.scale, self.transport_dilation, trial)

    def _packets_per_segment(self, trial: TrialSpec) -> int:
        return trial_settings.packets_per_segment(trial, self.record.calibration, self.scale / self.transport_dilation)

    def echo_times(self) -> EchoTimes:
        """Return how long marks took from the ports to the devices of their senders."""
        ports = self.counters().values()
        return EchoTimes(sum(port.echoes for port in ports), sum(port.echo_ns for port in ports) / 1e3)

    def switch_samplers(self) -> list[list[str]]:
        """Return a command for each switch, which runs on this machine and samples the switch's ports."""
        return [self.switch_sampler(switch, self.ms_on_host(COUNTERS_MS)) for switch in self.topology.switches]

    def queue_readers(self) -> dict[str, QueueReader | str]:
        """Return no reader, because `switch_samplers` sample all ports."""
        return {}

    def switch_sampler(self, switch: str, period_ms: float) -> list[str]:
        """Return the command that samples a switch's ports every `period_ms`, without dilation."""
        return [
            str(paths.program_path("sampler")),
            *("--name", switch),
            *("--period-ms", str(round(period_ms))),
            *("--netns-of-pid", str(self.pids()[switch])),
            *("--interfaces", ",".join(port.interface for port in self.ports if port.switch == switch)),
            "--queues",
            *("--ecn-maps", str(self.files.pins)),
        ]

    def counters(self) -> dict[int, marking.PortCounters]:
        """Return the counters of every port since the lab was built, by interface index."""
        return marking.counters(self.files)

    def set_thresholds(self, ecn: Ecn, packets_per_segment: int = 0) -> None:
        """Change the marking thresholds of every port. The lab's record keeps the original thresholds."""
        queues = port_queues.port_queues(self.layout, self.record.calibration, self.scale, self.transport_dilation)
        marking.set_thresholds(self.files, queues, ecn, packets_per_segment=packets_per_segment)


def _check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise LabError(
            f"a lab cannot be called {name!r}",
            "use up to 40 letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    return name


def _refuse_unknown_hosts(shifts: Mapping[str, int], topology: Topology) -> None:
    strangers = [host for host in shifts if host not in topology.hosts]
    if strangers:
        raise LabError(
            f"topology {topology.name!r} has no host {strangers[0]!r} whose clock could be shifted",
            f"its hosts: {', '.join(topology.hosts)}",
        )


@contextmanager
def _begin(lab: paths.LabPaths) -> Iterator[int]:
    """Make the lab's folders, and hold the lab's lock; if the context fails, the lab is removed again."""
    with ExitStack() as held:
        with lock_folder(ROOT_STATE, wait_s=STATE_LOCK_TIMEOUT_S, create=True):
            paths.LABS.mkdir(mode=0o700, exist_ok=True)
            try:
                lab.root.mkdir(mode=0o700)
            except FileExistsError:
                raise LabError(
                    f"lab {lab.name!r} exists already",
                    f"`roundabout lab down {lab.name}`, or give this one another --name",
                ) from None
            lock = held.enter_context(lock_folder(lab.root))
        try:
            yield lock
        except BaseException:
            held.close()  # children that inherited the lock hold it still, and may be writing to the lab
            Lab.remove(lab.name)
            raise


def _build(lab: paths.LabPaths, plan: record.LabRecord, lock: int, *, verify: bool) -> record.LabRecord:
    """Build the lab. Children that write to it inherit its lock.

    They may outlive this process, and must be waited for.
    """
    record.write(lab, plan)
    topology = plan.topology
    layout = lay_out(topology)
    with lock_folder(ROOT_STATE, wait_s=STATE_LOCK_TIMEOUT_S):
        bpffs.mount()
        lab.pins.mkdir(mode=0o700, parents=True)
    lab.pid_file("any").parent.mkdir(mode=0o700)
    ssh.write_files(lab, layout.hosts, lock)
    pids = nodes.start_all(lab, topology.hosts, topology.switches, plan.clock_shift_ns)
    dilation = plan.dilation_of_transports
    queues = port_queues.port_queues(layout, plan.calibration, plan.scale, dilation)
    nic_queues = port_queues.nic_queues(layout, plan.calibration, plan.scale, dilation)
    mtu = port_queues.mtu_bytes(topology, plan.scale / dilation)
    network.build(layout, queues, nic_queues, pids, burst_bytes=plan.calibration.burst_bytes, mtu=mtu)
    marker = marking.attach(lab, layout, queues, pids, plan.calibration.ecn, lock)
    if not topology.is_tree:
        switch_routes.attach(lab, layout, pids, lock)
        switch_routes.set_routes(lab, layout)
    measured = link_measurement.measure_links(layout, queues, pids, plan.scale) if verify else ()
    done = plan.model_copy(update={"state": "up", "marking": marker.program, "measured": measured})
    record.write(lab, done)
    return done


def remove_all_parts(lab: paths.LabPaths) -> None:
    """Remove the lab's programs, pins and files, in reverse order of creation. The caller must hold the lab's lock.

    Stopping the nodes' init processes ends their namespaces, and with these the devices, queues and attached programs.
    """
    nodes.stop_all(sorted(lab.pid_file("any").parent.glob("*.pid")))
    marking.release(lab)
    with lock_folder(ROOT_STATE, wait_s=STATE_LOCK_TIMEOUT_S):
        if lab.pins.is_dir():
            shutil.rmtree(lab.pins)
        bpffs.unmount_if_unused()
        shutil.rmtree(lab.root)
        for folder in (paths.LABS, ROOT_STATE):
            with suppress(OSError):  # not empty: others are using it
                folder.rmdir()
