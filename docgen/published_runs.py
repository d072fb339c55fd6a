# SPDX-License-Identifier: Apache-2.0
"""The page of all experiments of the catalog, with what `results/` has of each on each testbed."""

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from analysis.reports.publishing.publication import Facts, publications
from analysis.reports.scoreboard import heading_of
from docgen.line_width import wrap
from docgen.markdown import notice, plain, prose, table
from roundabout.spec.assembly.library import EXPERIMENTS
from roundabout.spec.loader import read_catalog
from roundabout.terminal.lines import format_duration

TESTBEDS = ("packets", "lab", "fluid")
TITLES = {
    "calibration": "Calibration",
    "cassini": "Cassini",
    "cluster": "Clusters",
    "fabrics": "Fabrics",
    "hardware": "Others' hardware",
    "hotnets22": "HotNets'22",
    "mltcp": "MLTCP",
    "pods": "Pods",
    "programs": "Programs",
    "salamy": "Salamy",
}
_ABOUT = (
    "Every experiment of the catalog, with the runs that `results/` has: the day, the length if it is not the default "
    "one, how long the run took, and whether other programs disturbed it. A testbed without an entry cannot show what "
    "the experiment is about, or takes long: `roundabout plan NAME --testbed TESTBED` says which, and how long. "
    "[Publish results](../../contributing/publishing.md) says how a run comes here, and the [gallery](../gallery.md) "
    "shows what the papers print beside them."
)
_LONG = (
    "These take long, by `roundabout plan` on a machine of two cores, and have no run: `unfair-table1-off --quick`, "
    "16 min in packets or in the lab; in the lab `bursts-tcp --quick`, 19 min, "
    "`mltcp-rates --quick`, 3 h 14 min, `jumbo-frames`, 2 h 19 min, and `compare-all`, 79 min; in packets "
    "`pod-collisions --quick`, 3 h 27 min, and `cluster-slices`, 1 h 32 min."
)

Found = Mapping[tuple[str, str], Facts]
"""Published facts by experiment and testbed."""


def format_page() -> str:
    """Return the page, with a table for each folder of the catalog."""
    found = {(each.facts.experiment, each.facts.testbed): each.facts for each in publications()}
    abouts = {each.name: each.about for each in read_catalog()}
    parts = [notice("results/"), "# Published runs\n\n", prose(_ABOUT), prose(_LONG)]
    paths = sorted((EXPERIMENTS / "catalog").glob("*/*.yaml"))
    for folder, files in groupby(paths, key=lambda path: path.parent.name):
        rows = [_row(path, abouts[path.stem], found) for path in files]
        headings = ["experiment", *(heading_of(each) for each in TESTBEDS), "about"]
        parts += [f"## {TITLES[folder]}\n\n", table(headings, rows)]
    return wrap("".join(parts).rstrip("\n") + "\n")


def _row(path: Path, about: str, found: Found) -> list[str]:
    cells = [_cell(found.get((path.stem, testbed))) for testbed in TESTBEDS]
    return [f"[{path.stem}](../../../experiments/catalog/{path.parent.name}/{path.name})", *cells, plain(about)]


def _cell(facts: Facts | None) -> str:
    """Return a publication's link with its length and duration, or nothing without one."""
    if facts is None:
        return ""
    length = f" {facts.length}," if facts.length else ""
    duration = format_duration(facts.wall_s) if facts.wall_s >= 1 else "1 s"
    where = f"../../../results/{facts.experiment}/{facts.testbed}/publication.json"
    return f"[{facts.start_time:%Y-%m-%d}]({where}),{length} {duration}{', disturbed' if facts.disturbed else ''}"
