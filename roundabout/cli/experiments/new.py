# SPDX-License-Identifier: Apache-2.0
"""`roundabout new`: create an experiment file as a starting point."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from pydantic import TypeAdapter, ValidationError

from roundabout.cli.options import check_output
from roundabout.core.errors import UsageError
from roundabout.core.paths import IS_CHECKOUT, ROOT
from roundabout.spec.assembly.library import EXPERIMENTS
from roundabout.spec.base import NAME_RULE, Name
from roundabout.spec.fabrics import FABRICS, Fabric, write_topology
from roundabout.spec.flow_readers import read_scene
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


class _Draft(NamedTuple):
    """An experiment's text, its topology if that is new, a testbed to run it on, and notes on its source."""

    text: str
    topology: Topology | None
    testbed: str
    notes: Sequence[str] = ()


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    name: Annotated[str, typer.Argument(help="Name of the experiment. The file is NAME.yaml in this folder.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FABRIC|FILE|FOLDER",
            help=f"Also create its topology: {', '.join(FABRICS)}, or a file of flows with --topology, or Chakra's "
            "execution traces.",
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
    tflops: Annotated[
        float | None,
        typer.Option(
            min=1e-6,
            max=1e9,
            help="Rate at which a rank computes nodes of execution traces that have no duration, TFLOP/s.",
        ),
    ] = None,
) -> None:
    """Create an experiment file with comments as a starting point. The experiment is valid and can be run.

    With --from, create its topology, too, in topologies/NAME.yaml: of a fabric with several paths at 400 Gbit/s, or of
    another simulator's files. Each flow of such a file is a job that sends once. From a folder of execution traces,
    each prefix of <prefix>.<rank>.et is a job, on a leaf-spine (docs/how-to/execution-traces.md).
    """
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise UsageError(f"found '{name}', expected a name of {NAME_RULE}") from None
    is_fabric, is_traced = source in FABRICS, source not in FABRICS and _is_trace_source(source)
    if not is_traced:
        _refuse_option("--tflops", tflops, "it beside execution traces alone: --from FOLDER")
    if not is_traced and not is_fabric:
        for option, size in (("--servers", servers), ("--oversubscription", oversubscription)):
            _refuse_option(option, size, f"it beside a fabric or traces alone: --from {' or '.join(FABRICS)}")
    if source is None or is_fabric or is_traced:
        _refuse_option("--topology", topology, "it beside a file of flows alone: --from FILE")
    if source is None or is_fabric:
        draft = _draft_of_fabric(name, source, servers or SERVERS, oversubscription or 1)
    elif is_traced:
        draft = _draft_of_traces(name, Path(source), tflops, servers, oversubscription or 1)
    else:
        draft = _draft_of_flows(name, source, topology)
    _write(name, draft)


def _is_trace_source(source: str | None) -> bool:
    """Return True for a folder, and for a file of a trace."""
    path = Path(source or "")
    return source is not None and (path.is_dir() or (path.is_file() and ".et" in path.suffixes))


def _refuse_option(option: str, value: object, expected: str) -> None:
    """Raise UsageError if the option has a value, which nothing would use."""
    if value is not None:
        raise UsageError(f"{option}: found {value}, expected {expected}")


def _draft_of_fabric(name: str, source: str | None, servers: int, oversubscription: int) -> _Draft:
    """Return two jobs on a fabric, or on a dumbbell without a `source`."""
    fabric = FABRICS[source](servers, oversubscription) if source else None
    text = _fill_template(name, _on_a_fabric(fabric) if fabric else ON_A_DUMBBELL)
    return _Draft(text, fabric.topology(name) if fabric else None, "fluid")


def _draft_of_traces(
    name: str, source: Path, tflops: float | None, servers: int | None, oversubscription: int
) -> _Draft:
    """Return the jobs of execution traces. Raises UsageError and RecordError."""
    from analysis.records.traced_experiment import make_traced_experiment  # noqa: PLC0415 - `--help` need not wait

    traced = make_traced_experiment(name, source, tflops, servers, oversubscription)
    return _Draft(traced.text, traced.topology, "fluid", traced.caveats)


def _draft_of_flows(name: str, source: str, topology: Path | None) -> _Draft:
    """Return the flows of a file. Raises UsageError, also if there is no such file or no topology."""
    if not Path(source).exists():
        kinds = f"one of {', '.join(FABRICS)}, a file of flows, or a folder of traces"
        raise UsageError(f"--from: found '{source}', expected {kinds}")
    if topology is None:
        raise UsageError(f"--topology: found nothing, expected the topology that the flows of {source} cross")
    scene = read_scene(Path(source), topology, name)
    return _Draft(scene.experiment(name), scene.topology, "packets", [f"not used: {each}" for each in scene.unused])


def _write(name: str, draft: _Draft) -> None:
    """Write an experiment and its topology, and print notes on their source, and how to run it.

    Raises UsageError if there is a file of that name.
    """
    path, beside = Path(f"{name}.yaml"), Path("topologies") / f"{name}.yaml"
    _check_new(path, "choose another name, or delete the file")
    if draft.topology:
        beside.parent.mkdir(exist_ok=True)
        _check_new(beside, f"choose another name, or use it: topology: {name}")
    for each in draft.notes:
        print_line(each)
    if draft.topology:
        write_text(beside, write_topology(draft.topology))
        print_line(beside)
    write_text(path, draft.text)
    print_line(path)
    print_line(f"  roundabout run {name}.yaml --testbed {draft.testbed}")


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
