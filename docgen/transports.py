# SPDX-License-Identifier: Apache-2.0
"""The reference page of transports and their parameters, made from the declarations in their programs."""

import textwrap
from collections.abc import Iterator

from docgen.markdown import WIDTH, code, notice, plain, table
from roundabout.spec.transports import registry
from roundabout.spec.transports.declarations import Declaration, Parameter
from roundabout.spec.transports.sets import set_names

HEAD = """# Transports and their parameters

`transport: {name: NAME, PARAMETER: VALUE}` in an experiment chooses one of these, for all jobs or
for one. The declarations stand in the transports' own headers (`transports/`). "Chosen by" says
where a value comes from that the experiment does not give. To add a transport:
[add a transport](../how-to/add/transport.md). A congestion control whose ports give it no signal is
refused: [preconditions](experiments/files.md#preconditions).

"""
CHOSEN_BY = {
    "experiment": "the default here",
    "testbed": "the testbed",
    "line_rate": "the link's rate",
    "network": "the network, always",
    "nic": "the NIC",
}
UNITS = {"bytes/s": "Mbit/s", "2^-24": ""}  # what users see of the programs' units


def format_page() -> str:
    """Return the page: a section for each transport of the tree, and the names of Linux's own."""
    parts = [notice("transports"), HEAD]
    for name in registry.transport_names():
        if found := registry.find_declaration(name):
            parts += _describe(found)
    own = ", ".join(map(code, registry.KERNELS_OWN))
    parts += [
        "## Linux's own\n\n",
        textwrap.fill(f"These have no parameters here, and a host's kernel must have them: {own}.", WIDTH) + "\n",
    ]
    return "".join(parts)


def _describe(each: Declaration) -> Iterator[str]:
    yield f"## {each.name}\n\n"
    sets = ", ".join(map(code, set_names(each)))
    if each.is_model:
        yield "Models alone play it: no host has a program of it.\n"
    yield f"It stands for the papers' {each.stands_for}, and needs ports with the queue {code(each.meant_for)}.\n"
    yield textwrap.fill(f"Published sets (`set`): {sets}.", WIDTH) + "\n\n" if sets else "\n"
    yield table(("parameter", "unit", "default", "allowed", "chosen by", "meaning"), map(_row, each.parameters))
    if each.hardware:
        ranges = "; ".join(f"{code(of.parameter)} {of.least:g} to {of.most:g} ({of.register})" for of in each.hardware)
        yield textwrap.fill(f"NVIDIA's NICs take: {ranges}. Other values give a warning.", WIDTH) + "\n\n"
    counters = [[code(one.name), one.unit, plain(one.meaning)] for one in each.counters]
    if counters and not each.is_model:
        yield "It counts on each host:\n\n"
        yield table(("counter", "unit", "meaning"), counters)


def _row(each: Parameter) -> list[str]:
    allowed = ", ".join(map(code, each.names)) or f"{each.least:g} to {each.most:g}"
    unit = UNITS.get(each.unit, each.unit)
    return [code(each.name), unit, code(str(each.default)), allowed, CHOSEN_BY[each.chosen_by], plain(each.meaning)]
