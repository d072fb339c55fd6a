# SPDX-License-Identifier: Apache-2.0
"""The provider of labs on this machine."""

import math
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.core.paths import ROOT
from roundabout.runner.hosts.connections import Connection, LocalConnection, LostHostError, SshConnection
from roundabout.runner.hosts.host_group import Host, HostGroup
from roundabout.runner.hosts.playbooks import run_playbook, temporary_inventory
from roundabout.runner.hosts.programs import call, check_call
from roundabout.runner.machine.undo_journal import Entry, apply_in_parallel, raise_together
from roundabout.runner.session.host_settings import settings_command
from roundabout.runner.testbed import (
    Check,
    ExporterTarget,
    refuse_mixes,
    refuse_modeled_transports,
    refuse_spreading,
    refuse_switch_features,
    refuse_trees,
)
from roundabout.runner.transports import TOOL, object_folder
from roundabout.runner.trial.captures import check_capture_budget
from roundabout.runner.trial.jobs import check_source_ports
from roundabout.runner.trial.ssh_testbed import SshTestbedProvider, check_known
from roundabout.spec.experiment import Experiment
from roundabout.spec.nic_settings import find_nic_setting
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport, registry
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.lab import Lab, LabError
from roundabout.testbeds.lab.calibration.calibration import Calibration, load_calibration
from roundabout.testbeds.lab.checks.doctor import examine_machine
from roundabout.testbeds.lab.exporter_targets import lab_targets
from roundabout.testbeds.lab.lifecycle import trial_settings
from roundabout.testbeds.lab.lifecycle.inventory import lab_inventory
from roundabout.testbeds.lab.network import cc_allowlist, port_queues
from roundabout.testbeds.lab.network.layout import lay_out
from roundabout.testbeds.lab.network.namespaces import remove_namespace

FACTORS = ("scale", "dilation", "transport_dilation")
"""Options of a lab: the divisor of rates, the factor of times, and that of the times of transports and switches."""
EARLY_PACKETS = 5
"""Packets in a port's queue. If marks begin there or before, windows of TCP have sat at two packets, their floor
(docs/explanation/mltcp.md)."""


def create_provider(where: Mapping[str, str]) -> "LabProvider":
    """Return the provider of labs with the numbers of FACTORS in `where`. Raises UsageError if one is invalid."""
    return LabProvider(None, **{name: _number(name, where) for name in FACTORS})


def _number(name: str, where: Mapping[str, str]) -> float | None:
    try:
        found = float(where.get(name, 1))
    except ValueError:
        found = math.nan
    if not 1 <= found < math.inf:
        raise UsageError(f"--{name}: found {where[name]!r}, expected a number of at least 1")
    return found if name in where else None


class LabProvider(SshTestbedProvider):
    """The provider of labs on this machine."""

    sampler = ROOT / "build/bin/sampler"
    program_groups = ("hosts", "controller", "lab")

    def __init__(
        self,
        calibration: Calibration | None = None,
        scale: float | None = None,
        dilation: float | None = None,
        transport_dilation: float | None = None,
    ) -> None:
        """Build labs with `calibration`, or with the stored one, at its scale unless one is given.

        With a `dilation` time is stretched, and nothing is calibrated. Times of transports and switches are stretched
        by `transport_dilation` if it is given.
        """
        self._calibration, self._scale, self._dilation = calibration, scale, dilation
        self._transport_dilation = transport_dilation
        self.dilation = dilation or 1.0
        requested = {"scale": scale, "dilation": dilation, "transport_dilation": transport_dilation}
        self.where = {"testbed": "lab", **{name: f"{value:g}" for name, value in requested.items() if value}}

    @property
    def calibration(self) -> Calibration:
        """Return the calibration of the provider's labs. Raises LabError if scale and dilation do not fit."""
        return (self._calibration or load_calibration()).for_scale(
            self._scale, self._transport_dilation or self._dilation
        )

    def checks(self) -> Iterator[Check]:
        """Yield the results of checking this machine and the built programs."""
        return examine_machine()

    def check_trial(self, trial: TrialSpec, /) -> None:
        """Raise LabError or UsageError if no lab at this scale and dilation can run the trial."""
        refuse_switch_features(
            trial, trial.switch_features, "a lab's port has queues of fixed lengths, which mark as they stand"
        )
        refuse_spreading(trial, "a lab's switches look up the cable of a whole flow")
        refuse_mixes(trial)
        refuse_modeled_transports(trial)
        refuse_trees(trial)
        refuse_hidden_flows(trial)
        refuse_slow_hosts(trial)
        check_source_ports(trial)
        refuse_captures_behind_queues(trial)
        check_capture_budget(trial)
        refuse_images(trial)
        calibration, dilation = self.calibration, self._transport_dilation or self.dilation
        if dilation != self.dilation:
            trial_settings.refuse_times_of_jobs(trial)
        own = {name for name, values in calibration.transports.items() if values}
        if refused := find_nic_setting(trial, own):
            raise LabError(refused, "play it with --testbed packets: a lab has no NICs")
        for host in trial.topology.hosts:
            trial_settings.settings_document(trial, host, calibration, dilation)
        trial_settings.ecn_thresholds(trial, calibration, calibration.scale / dilation)
        port_queues.port_queues(lay_out(trial.topology), calibration, calibration.scale, dilation, trial)

    def find_warnings(self, experiment: Experiment, /) -> list[str]:
        """Return also a warning for TCP over ports that mark when they hold a few packets."""
        calibration, dilation = self.calibration, self._transport_dilation or self.dilation
        bytes_scale = calibration.scale / dilation
        found = (text for cell in experiment.cells for text in _early_marks(cell.spec, calibration, bytes_scale))
        return list(dict.fromkeys([*super().find_warnings(experiment), *found]))

    def create_hosts(self, topology: Topology, name: str) -> HostGroup:
        """Create the lab called `name`."""
        return Lab.create(
            topology,
            name,
            scale=self._scale,
            dilation=self._dilation,
            transport_dilation=self._transport_dilation,
            calibration=self._calibration,
        )

    def provision(self, site: HostGroup) -> None:
        """Install the programs of trials on the lab's hosts."""
        with temporary_inventory(lab_inventory(site)) as inventory:
            run_playbook("site", [inventory])

    def exporter_targets(self) -> Iterator[ExporterTarget]:
        """Yield the exporters' targets of all labs on this machine."""
        for name in Lab.names():
            with suppress(LabError):  # being built, or broken
                yield from lab_targets(Lab.open(name))

    @contextmanager
    def inventories(self, name: str, /) -> Iterator[tuple[Path, ...]]:
        """Yield the path of an Ansible inventory of the lab called `name`."""
        with temporary_inventory(lab_inventory(Lab.open(name))) as path:
            yield (path,)

    def load_transport(self, transport: Transport, owner: str) -> None:
        """Load a transport's program, or allow one of Linux's own. This is machine-wide, and users are counted."""
        folder = object_folder(transport)
        if folder:
            self._transport("load", transport.name, owner, "--objects", str(folder))
        else:
            cc_allowlist.allow(transport.name, owner)

    def connect(self, site: HostGroup, host: str) -> Connection:
        """Return an open connection to a host of the lab."""
        return SshConnection(host, site.connect(host))

    def undo(self, entry: Entry) -> None:
        """Undo the change of a journal entry, even if it was made only in part or not at all."""
        check_known(entry)
        kind = entry["kind"]
        if kind == "testbed" and entry["name"] in Lab.names():
            Lab.remove(entry["name"])
        elif kind == "transport":
            self._unload(entry["name"], entry["owner"])
        elif kind == "settings" and entry["testbed"] in Lab.names():
            self._restore(entry["testbed"], entry["owner"])
        elif kind == "namespace":
            remove_namespace(entry["name"])

    def _unload(self, name: str, owner: str) -> None:
        if name in registry.KERNELS_OWN:
            cc_allowlist.disallow(name, owner)
        else:
            self._transport("unload", name, owner)

    def _transport(self, action: str, name: str, owner: str, *more: str) -> None:
        done = call(LocalConnection(), [str(TOOL), action, name, "--owner", owner, *more])
        if done.status != 0:
            raise RoundaboutError(f"cannot {action} transport {name}: {done.stderr.removeprefix('transport: ')}")

    def _restore(self, lab: str, owner: str) -> None:
        try:
            site = Lab.open(lab)
        except LabError:
            return  # a host died, or all of them: the settings that matter died with them

        def restore(host: Host) -> None:
            # A host that was lost took its settings along.
            with suppress(LostHostError), closing(self.connect(site, host.name)) as connection:
                check_call(connection, [*settings_command(host, site.settings_state), "restore", "--owner", owner])

        raise_together(apply_in_parallel(restore, site.hosts.values()))


def _early_marks(trial: TrialSpec, calibration: Calibration, bytes_scale: float) -> Iterator[str]:
    """Yield a warning for each TCP whose windows marks keep at two packets (docs/results/mltcp-packets.md)."""
    kmin_bytes = trial_settings.ecn_thresholds(trial, calibration, bytes_scale).kmin_bytes
    packets = kmin_bytes / port_queues.mtu_bytes(trial.topology, bytes_scale)
    names = (name for name, each in trial.transports.items() if each.intended_queue == "drop-tail")
    for name in names if trial.queue != "drop-tail" and trial.tcp.ecn is not False and packets <= EARLY_PACKETS else ():
        yield (
            f"queue: found {trial.queue} with {name}: ports mark from {packets:.1f} packets on here, so that windows "
            "may stay at their floor of two packets; expected drop-tail (or auto), or a --dilation"
        )


def refuse_hidden_flows(trial: TrialSpec) -> None:
    """Raise UsageError if flows have routes of their own, and a job's trainer chooses their ports by itself."""
    for name, job in trial.jobs.items() if trial.topology.hashes_flows else ():
        if not job.trainer.binds_source_ports:
            raise UsageError(
                f"jobs.{name}.trainer.name: found {job.trainer.name}, allowed with ecmp routing in a lab is replay: "
                "switches route a flow by its ports, which other trainers choose themselves",
                "use the trainer replay, or --set routing.name=static",
            )


def refuse_slow_hosts(trial: TrialSpec) -> None:
    """Raise UsageError if a link of a host slows down, because a lab limits what leaves switches alone."""
    links = {link.name: link for link in trial.topology.links}
    for place, event in enumerate(trial.events):
        hosts = set(trial.topology.hosts) & set(links[event.link].ends)
        if event.what == "slows" and hosts:
            raise UsageError(
                f"events.{place}.link: found {event.link} of host {hosts.pop()}, allowed in a lab are links between "
                "switches: what a host sends has no limit of its own",
                "play it with --testbed packets, or slow a link between switches",
            )


def refuse_images(trial: TrialSpec) -> None:
    """Raise UsageError if a job runs in an image, because Docker would give it this machine's network, not a host's."""
    for name, job in trial.jobs.items():
        if job.trainer.image_probe:
            raise UsageError(
                f"jobs.{name}.trainer.image: found one, allowed in a lab is none: a container would not be in the "
                "lab's network",
                f"--set jobs.{name}.trainer.image=null",
            )


def refuse_captures_behind_queues(trial: TrialSpec) -> None:
    """Raise UsageError if a captured NIC has a queue that captures cannot see before: only first NICs have a tap."""
    for host in trial.capture.hosts if trial.capture else ():
        for link in trial.topology.links_of(host)[1:]:
            if link.nic_queue:
                raise UsageError(
                    f"capture.hosts: found {host} on topology {trial.topology.name}, allowed in a lab is none with "
                    f"`nic_queue` on a link behind its first, as {link.name}",
                    "leave `capture` out, or choose a topology without `nic_queue` there",
                )
