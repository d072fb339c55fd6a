# SPDX-License-Identifier: Apache-2.0
"""Samplers of a lab, as trials start them, against what the kernel itself has counted."""

import subprocess
import time
from pathlib import Path

import pytest

from roundabout.runner.tables.rows import Samples
from roundabout.runner.trial.sampler import host_sampler
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.network import paths
from roundabout.testbeds.lab.network.namespaces import run_inside

from .test_links import greedy

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

# /proc/net/dev: eight columns of what was received, then those of what was sent.
COLUMNS = {"rx_bytes": 0, "rx_packets": 1, "rx_dropped": 3, "tx_bytes": 8, "tx_packets": 9, "tx_dropped": 11}


def kernel_totals(lab):
    """Every node's interfaces but loopback, as the kernel counts them."""
    found = {}
    for node, pid in lab.pids().items():
        text = run_inside(pid, lambda: Path("/proc/thread-self/net/dev").read_text())
        for line in text.splitlines()[2:]:
            interface, numbers = line.split(":")
            values = [int(number) for number in numbers.split()]
            found[node, interface.strip()] = {name: values[place] for name, place in COLUMNS.items()}
    return found


def sampler(lab, host):
    """A trial's command for a host, run from here."""
    words = host_sampler(host, lab.capabilities())
    return [str(paths.program_path("sampler")), "--netns-of-pid", str(lab.pids()[host.name]), *words[1:]]


def gained(last, first):
    return {key: {name: last[key][name] - first[key][name] for name in COLUMNS} for key in first}


def test_samples_hold_every_byte_that_the_kernel_counted(topology, lab_name):
    lab = Lab.create(topology, lab_name(), verify=False)  # silent: nothing of its measuring is still under way
    commands = {host.name: sampler(lab, host) for host in lab.hosts.values()}
    commands |= dict(zip(lab.topology.switches, lab.switch_samplers(), strict=True))
    before = kernel_totals(lab)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = {node: subprocess.Popen(command, **pipes) for node, command in commands.items()}
    time.sleep(0.3)
    with greedy(lab, ("s0", "s2"), ("s1", "s3"), ("s2", "s0")):
        time.sleep(1)
    time.sleep(0.2)  # the last acknowledgements
    printed = {node: process.communicate()[0].splitlines() for node, process in running.items()}
    truth = gained(kernel_totals(lab), before)
    found = {}
    for node, lines in printed.items():
        port = Samples(lines, node).columns["port"]
        assert all((port[name] >= 0).all() for name in COLUMNS)
        for interface in set(port["interface"]):
            here = port["interface"] == interface
            found[node, interface] = {name: int(port[name][here][-1] - port[name][here][0]) for name in COLUMNS}
    assert len(found) == 10
    assert found == {key: truth[key] for key in found}
    assert all(each["tx_bytes"] > 1_000_000 for (node, _), each in found.items() if node in ("s0", "s1", "s2"))


def test_samples_come_at_their_period_and_none_is_lost(lab):
    with subprocess.Popen(
        sampler(lab, lab.hosts["s0"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        time.sleep(1.2)
        samples = Samples(process.communicate()[0].splitlines(), "s0").columns
    own = samples["sampler"]
    assert own["dropped_lines"][-1] == 0
    assert own["samples"][-1] == len(samples["port"]["before_ns"])
    periods = (samples["port"]["before_ns"][-2] - samples["port"]["before_ns"][0]) / 10e6
    # All but the last sample, which comes when it is requested, are on the grid or counted as missed.
    assert abs(own["samples"][-1] - 1 + own["missed"][-1] - (periods + 1)) < 1
