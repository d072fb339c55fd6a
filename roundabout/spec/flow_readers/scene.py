# SPDX-License-Identifier: Apache-2.0
"""Scenes of other simulators as experiments: each flow is a job that sends once, and ends when all is acknowledged."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from roundabout.spec.base import Name
from roundabout.spec.errors import SpecError
from roundabout.spec.flow_readers import hpcc, htsim
from roundabout.spec.flow_readers.lines import FlowList, Line, ListedFlow, drop_comments, read_lines
from roundabout.spec.frames import payload_share, roce_payload_share
from roundabout.spec.reader.yaml_source import dump, shown_path
from roundabout.spec.topology import Topology
from roundabout.spec.trace_readers.rows import row_error

NS_PER_MS = 10**6
WIDTH = 10_000  # of written lines: jobs and profiles stand in one line each
MAX_FLOWS = 4096  # of a host, as many as a topology may have GPUs of a host

TopologyReader = Callable[[Path, list[Line]], tuple[dict[str, Any], list[Line | None], tuple[str, ...]]]


class _Format(NamedTuple):
    """A simulator's readers, and the MTU that its programs have by default."""

    simulator: str
    read_flows: Callable[[Path, list[Line]], FlowList]
    read_topology: TopologyReader
    mtu_bytes: int


HTSIM = _Format("htsim", htsim.read_flows, htsim.read_topology, 4200)  # packets of 4,150 bytes, -mtu
HPCC = _Format("HPCC's ns-3", hpcc.read_flows, hpcc.read_topology, 1280)  # PACKET_PAYLOAD_SIZE 1000, config.txt


class Scene(NamedTuple):
    """Flows on a topology, and what is not used of their files, in words."""

    simulator: str
    topology: Topology
    flows: tuple[ListedFlow, ...]
    unused: tuple[str, ...]
    files: tuple[str, str]

    def experiment(self, name: str) -> str:
        """Return the experiment `name` as YAML. Job f3 is the third flow of the file."""
        flows_file, topology_file = self.files
        profiles: dict[tuple[int, float], str] = {}
        jobs = []
        for number, flow in enumerate(self.flows, start=1):
            workers = [f"h{flow.sender}", f"h{flow.receiver}"]
            kind = (flow.size, self.topology.path_payload_gbps(workers[0], workers[1]))
            profile = profiles.setdefault(kind, f"flow{len(profiles) + 1}")
            start = {"arrives_ms": round(flow.start_ms, 9)} if flow.start_ms else {}
            jobs.append(f"  f{number}: {_flow({'profile': profile, 'workers': workers, **start})}")
        about = f"The flows of {flows_file} over {topology_file}"
        notes = "".join(f"# Not used: {each}.\n" for each in self.unused)
        return "".join(
            (
                f"# Flows of {flows_file}, as {self.simulator} lists them: job f1 is the first one, and the time of\n"
                "# its iteration is that flow's completion time, with the last acknowledgement.\n",
                notes,
                "schema: 1\n",
                dump({"name": name, "about": about, "topology": name}, WIDTH),
                "profiles:\n",
                *(_profile(label, kind, flows_file) for kind, label in profiles.items()),
                "jobs:\n",
                *jobs,
                "iterations: 1\n",
                "transport: {name: dcqcn}   # `roundabout judge` lists transports and their parameters\n",
            )
        )


def read_scene(flows: Path, topology: Path, name: Name) -> Scene:
    """Return the scene of two files of one simulator. `name` is the topology's.

    Raises SpecError for the first fault in either file.
    """
    flow_lines, topology_lines = read_lines(flows), read_lines(topology)
    form, other = _form(flow_lines), _form(topology_lines)
    if other != form:
        found = f"a file of {other.simulator}"
        raise SpecError(shown_path(topology), found, f"one of {form.simulator}, as {shown_path(flows)} is")
    listed = form.read_flows(flows, flow_lines)
    fields, lines, unused = form.read_topology(topology, topology_lines)
    if listed.hosts not in (None, len(fields["hosts"])):
        expected = f"{len(fields['hosts'])}, as {shown_path(topology)} has"
        raise SpecError(shown_path(flows), f"{listed.hosts}", expected, field="Nodes")
    hosts = set(fields["hosts"])
    for flow in listed.flows:
        for end in (flow.sender, flow.receiver):
            if f"h{end}" not in hosts:
                raise flow.line.error("flow", f"{end}", f"a host of {shown_path(topology)}")
    files = (flows.name, topology.name)
    ((host, most),) = Counter(end for flow in listed.flows for end in flow[:2]).most_common(1)
    if most > MAX_FLOWS:
        raise SpecError(shown_path(flows), f"{most} flows at host {host}", f"{MAX_FLOWS} at most of a host")
    rates = {"name": name, "mtu_bytes": form.mtu_bytes, "gpus_per_host": most}
    built = _topology(topology, fields | rates, lines, form.simulator)
    return Scene(form.simulator, built, listed.flows, (*listed.unused, *unused), files)


def _form(lines: list[Line]) -> _Format:
    """Return the format of a file, which htsim's heading decides."""
    words = [line.words[0].lower() for line in drop_comments(lines)]
    return HTSIM if words and words[0] in ("nodes", "connections", "tiers", "podsize") else HPCC


def _topology(path: Path, fields: dict[str, Any], lines: list[Line | None], simulator: str) -> Topology:
    """Return the topology of a file. Its rates and delay are those that most links have. Raises SpecError."""
    mtu_bytes = fields["mtu_bytes"]
    share = min(payload_share(mtu_bytes), roce_payload_share(mtu_bytes))  # TCP's is the most that a topology allows
    links = [{**link, "payload_rate_gbps": _payload_gbps(link["line_rate_gbps"], share)} for link in fields["links"]]
    ((rate, _),) = Counter(link["line_rate_gbps"] for link in links).most_common(1)
    ((delay_us, _),) = Counter(link["delay_us"] for link in links).most_common(1)
    nodes = len(fields["hosts"]) + len(fields["switches"])
    document = {
        **fields,
        "about": f"{len(fields['hosts'])} hosts of {path.name}, as {simulator} describes them",
        "source": path.name,
        "line_rate_gbps": rate,
        "payload_rate_gbps": _payload_gbps(rate, share),
        "queue": "lossless",
        "delays": fields["delays"] | {"link_us": delay_us},
        "links": [
            {name: value for name, value in link.items() if (name, value) != ("delay_us", delay_us)} for link in links
        ],
    }
    if len(links) >= nodes:
        document["routing"] = {"name": "ecmp"}
    try:
        return Topology.model_validate(document)
    except ValidationError as error:
        raise row_error(path, error, _faulty_line(error, lines)) from None


def _faulty_line(error: ValidationError, lines: list[Line | None]) -> int | None:
    """Return the number of the line whose link has the first fault, or None if no line has it alone."""
    details = error.errors(include_url=False)[0]
    part, *place = (*details["loc"], *details.get("ctx", {}).get("location", ())) or ("",)
    line = lines[int(place[0])] if part == "links" and place else None
    return line.number if line else None


def _payload_gbps(rate_gbps: float, share: float) -> float:
    """Return what headers leave of a rate, rounded down to 10 bit/s."""
    return int(rate_gbps * share * 1e8) / 1e8


def _profile(label: str, kind: tuple[int, float], source: str) -> str:
    size, gbps = kind
    alone_ns = -(-size * 8 // gbps)
    phase = {"name": "send", "bytes": size, "alone_ms": alone_ns / NS_PER_MS, "pattern": "pipeline", "source": source}
    return f"  {label}: {{model: a flow, phases: [{_flow(phase).rstrip()}]}}\n"


def _flow(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=WIDTH, default_flow_style=True)
