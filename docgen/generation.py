# SPDX-License-Identifier: Apache-2.0
"""The generated files of docs/, which are committed so that a git host shows them too."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from docgen import commands, experiment_fields, gallery, published_runs, python_interface, quantities, transports
from docgen.pictures import diagram, main_result, models, network, routing_gains, terminal, testbeds
from roundabout.core.paths import ROOT

DOCS = ROOT / "docs"
FILES: dict[str, Callable[[], str]] = {
    "explanation/architecture.svg": diagram.draw,
    "explanation/degradation.svg": models.draw_degradation,
    "explanation/expectation-basis.svg": testbeds.draw_bases,
    "explanation/flow-level-engine.svg": models.draw_flow_level,
    "explanation/mltcp-theory.svg": models.draw_mltcp_shift,
    "explanation/mltcp.svg": models.draw_aggressiveness,
    "explanation/packet-level-model.svg": models.draw_packets,
    "explanation/testbeds.svg": testbeds.draw_durations,
    "explanation/time-dilation.svg": testbeds.draw_dilation,
    "explanation/trial-validity.svg": testbeds.draw_effect,
    "reference/commands.md": commands.format_page,
    "reference/experiments/cluster-24.svg": partial(network.draw, "cluster-24"),
    "reference/experiment-fields.md": experiment_fields.format_page,
    "reference/python.md": python_interface.format_page,
    "reference/quantities.md": quantities.format_page,
    "reference/transports.md": transports.format_page,
    "results/gallery.md": partial(gallery.format_page, "papers"),
    "results/gallery/published.md": published_runs.format_page,
    "results/main-result.svg": main_result.draw,
    "results/others.md": partial(gallery.format_page, "others"),
    "results/spraying.svg": routing_gains.draw,
    "tutorials/testbeds.svg": terminal.draw,
}


def write_all() -> Iterator[Path]:
    """Write the generated files that are not current, and yield their paths."""
    pictures = gallery.draw_pictures()
    for path in (DOCS / gallery.PICTURES).glob("*/*.svg"):
        if str(path.relative_to(DOCS)) not in pictures:
            path.unlink()
            yield path
    for name, text in (*((name, generate()) for name, generate in FILES.items()), *pictures.items()):
        path = DOCS / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            yield path
