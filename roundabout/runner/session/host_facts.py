# SPDX-License-Identifier: Apache-2.0
"""Facts about hosts that a manifest records: kernels, settings and tools."""

from pathlib import Path

from roundabout.runner.hosts.programs import call
from roundabout.runner.session.host_session import HostSession

HOST_SCRIPT = Path(__file__).with_suffix(".sh").read_text()


def read_host_facts(session: HostSession) -> dict[str, dict[str, str]]:
    """Return the facts of every host, by host and name: kernel, CPU, settings, offloads and versions of tools."""
    answers = session.on_each_host(
        lambda host: call(
            session.connections[host.name], ["sh", "-c", HOST_SCRIPT, "facts", *(nic.interface for nic in host.nics)]
        )
    )
    return {
        host: dict(line.split("\t", 1) for line in answer.stdout.splitlines() if "\t" in line)
        for host, answer in answers.items()
    }
