# SPDX-License-Identifier: Apache-2.0
"""`roundabout new`: create an experiment file as a starting point."""

import re
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from roundabout.cli.options import check_output
from roundabout.core.errors import UsageError
from roundabout.core.paths import IS_CHECKOUT, ROOT
from roundabout.spec.assembly.library import EXPERIMENTS
from roundabout.spec.base import NAME_RULE, Name
from roundabout.spec.fabrics import FABRICS, Fabric, write_topology
from roundabout.spec.flow_readers import Scene, read_scene
from roundabout.spec.reader.yaml_source import dump
from roundabout.spec.topology import Topology
from roundabout.store.files import write_text
from roundabout.terminal.lines import print_line

REFERENCE = ROOT / "docs" / "reference" / "experiments" / "files.md"
TEMPLATE = Path(__file__).with_name("new.yaml")
SERVERS = 16  # of a fabric, unless --servers has another number
ON_A_DUMBBELL = {
    "HOW_TO_RUN": "# In the lab, as root:   roundabout run NAME.yaml --testbed lab\n"
    "# Packets, then the lab: roundabout run NAME.yaml",
    "ABOUT": "Two jobs share one link, fair and unfair",
    "TOPOLOGY": "dumbbell-2x2",
    "HOSTS": "hosts s0 to s3; s0 and s1 reach s2 and s3 over the link L1, 43 Gbit/s of payload",
    "FIRST_PAIR": "[s0, s2]",
    "SECOND_PAIR": "[s1, s3]",
    "BYTES": "500_000_000",
    "DEMAND": "32",
    "FACTOR": "jobs.j1.jitter: [0, 0.01]",
}


def command(
    name: Annotated[str, typer.Argument(help="Name of the experiment. The file is NAME.yaml in this folder.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FABRIC|FILE",
            help=f"Also create its topology: {', '.join(FABRICS)}, or a file of flows with --topology.",
        ),
    ] = None,
    topology: Annotated[
        Path | None,
        typer.Option(help="Topology of a file of flows: htsim's .topo for a .cm, HPCC's topology.txt for a flow.txt."),
    ] = None,
    servers: Annotated[
        int | None,
        typer.Option(min=2, max=4096, help=f"Servers of the fabric. Default: {SERVERS}.", show_default=False),
    ] = None,
    oversubscription: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="Hosts below a leaf for each of its links to spines. Default: 1.", show_default=False
        ),
    ] = None,
) -> None:
    """Create an experiment file with comments as a starting point. The experiment is valid and can be run.

    With --from, create its topology, too, in topologies/NAME.yaml: of a fabric with several paths at 400 Gbit/s, or of
    another simulator's files. Each flow of such a file is a job that sends once.
    """
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise UsageError(f"found '{name}', expected a name of {NAME_RULE}") from None
    if source not in FABRICS:
        _check_sizes({"--servers": servers, "--oversubscription": oversubscription})
    unused: tuple[str, ...] = ()
    if source is None or source in FABRICS:
        if topology is not None:
            raise UsageError("--topology: found it without a file of flows, expected --from FILE beside it")
        shape = FABRICS[source](servers or SERVERS, oversubscription or 1) if source else None
        built = shape.topology(name) if shape else None
        text = _fill_template(name, _on_a_fabric(shape) if shape else ON_A_DUMBBELL)
        testbed = "fluid"
    else:
        scene = _read_scene(source, topology, name)
        built, text, testbed, unused = scene.topology, scene.experiment(name), "packets", scene.unused
    _write(name, text, built, unused)
    print_line(f"  roundabout run {name}.yaml --testbed {testbed}")


def _check_sizes(options: dict[str, int | None]) -> None:
    """Raise UsageError if there is a size of a fabric, which no fabric would use."""
    for option, size in options.items():
        if size is not None:
            raise UsageError(
                f"{option}: found {size}, expected it beside a fabric alone: --from {' or '.join(FABRICS)}"
            )


def _read_scene(source: str, topology: Path | None, name: str) -> Scene:
    """Return the scene of a file of flows. Raises UsageError, also if there is no such file or no topology."""
    if not Path(source).exists():
        raise UsageError(f"--from: found '{source}', expected one of {', '.join(FABRICS)}, or a file of flows")
    if topology is None:
        raise UsageError(f"--topology: found nothing, expected the topology that the flows of {source} cross")
    return read_scene(Path(source), topology, name)


def _write(name: str, text: str, topology: Topology | None, unused: tuple[str, ...]) -> None:
    """Write an experiment and its topology, and print what is not used of their source.

    Raises UsageError if there is a file of that name.
    """
    path, beside = Path(f"{name}.yaml"), Path("topologies") / f"{name}.yaml"
    _check_new(path, "choose another name, or delete the file")
    if topology:
        beside.parent.mkdir(exist_ok=True)
        _check_new(beside, f"choose another name, or use it: topology: {name}")
    for each in unused:
        print_line(f"not used: {each}")
    if topology:
        write_text(beside, write_topology(topology))
        print_line(beside)
    write_text(path, text)
    print_line(path)


def _on_a_fabric(fabric: Fabric) -> dict[str, str]:
    """Return what the template says on a fabric: two jobs from its first hosts to its last.

    Raises UsageError for a fabric of less than four hosts.
    """
    hosts, nics = list(fabric.nics), max(map(len, fabric.nics.values()))
    if len(hosts) < 4:
        raise UsageError(f"--servers: found {len(hosts)}, expected 4 at least: two for each of two jobs")
    flows = f", flows: {nics}" if nics > 1 else ""
    return {
        "HOW_TO_RUN": "# Packet by packet:      roundabout run NAME.yaml --testbed packets",
        "ABOUT": "Two jobs across a fabric, whose flows may meet on a link, fair and unfair",
        "TOPOLOGY": "NAME",
        "HOSTS": "topologies/NAME.yaml beside this file\n"
        f"routing: {{name: {fabric.routing}, seed: 1}}   # the seed draws which links flows take",
        "FIRST_PAIR": f"[{hosts[0]}, {hosts[-1]}]{flows}",
        "SECOND_PAIR": f"[{hosts[1]}, {hosts[-2]}]{flows}",
        "BYTES": f"{5_000_000_000 * nics:_}",
        "DEMAND": f"{320 * nics}",
        "FACTOR": "routing.seed: [1, 2, 3, 4]",
    }


def _fill_template(name: str, values: dict[str, str]) -> str:
    """Return the commented experiment of that name."""
    schema = EXPERIMENTS / "schema" / "experiment.json"
    fields = {f"{field}: NAME": dump({field: name}).rstrip() for field in ("name", "topology")}  # quotes `null`
    places = {**fields, "NAME": name, "SCHEMA": str(schema), "FIELDS": str(REFERENCE if IS_CHECKOUT else schema)}
    return _fill(_fill(TEMPLATE.read_text(), values), places)


def _fill(template: str, values: dict[str, str]) -> str:
    return re.sub("|".join(values), lambda found: values[found[0]], template)


def _check_new(path: Path, hint: str) -> None:
    """Raise UsageError if there is such a file, or if none can be written."""
    if path.exists():
        raise UsageError(f"found a file {path}, expected none of that name", hint)
    check_output("NAME", path)
