# SPDX-License-Identifier: Apache-2.0
"""The tables of iterations' flows beside Salamy's figures (Table 3.11)."""

from collections.abc import Iterable, Sequence

from rich.console import RenderableType

from analysis.render import screen as on_screen
from analysis.render.tables import REPETITIONS, Cell, Column, Table, group_by_name
from analysis.studies.iteration_flows.study import CellFlowsResult, FlowResult, Results

EMPTY = (
    "Nothing was measured for this: it takes a ring of which one worker receives cross traffic, from a host that does "
    "not train, and another sends to a third."
)


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal."""
    return [on_screen.table_renderable(bandwidth_table(results)), on_screen.table_renderable(difference_table(results))]


def bandwidth_table(results: Results) -> Table:
    """Return a table of the rates of flows 1 to 3, as means of readings and over time (Table 3.11)."""
    columns = (
        Column(kind="names"),
        Column("flow", kind="words"),
        REPETITIONS,
        Column("Salamy", ".2f"),
        Column("mean of\nreadings", ".2f"),
        Column("over all\nthe time", ".2f", only="page"),
        Column("would\nsuffice", ".2f"),
        Column("readings\nover that", ".2f"),
    )
    rows = [(each, flow) for each in results.flows for flow in each.flows]
    sections = group_by_name(rows, lambda row: cell_name(row[0]), lambda row: _flow(*row))
    return Table(columns, sections, "Bandwidth inside an iteration, Gbit/s, with 95 % intervals", empty=EMPTY)


def difference_table(results: Results) -> Table:
    """Return a table of flow 1's rate less flow 2's, and of the shares that both keep at heavy load."""
    columns = (Column(kind="names"), Column(kind="words"), Column("Salamy", ".2f"), Column("here", ".2f"))
    sections = group_by_name(list(_differences(results)), lambda row: row[0], lambda row: row[1:])
    return Table(columns, sections, "Whether nodes elsewhere back off", empty=EMPTY)


def cell_name(cell: CellFlowsResult) -> str:
    """Return a cell's name in tables and figures."""
    return f"{cell.model}, {cell.asked_gbps:g} Gbit/s"


def _flow(cell: CellFlowsResult, flow: FlowResult) -> Sequence[Cell]:
    return (
        Cell(f"{flow.flow} from {flow.host}"),
        Cell(cell.repetitions),
        Cell(flow.paper_gbps),
        Cell(flow.over_packets_gbps, flow.over_packets_ci95_gbps),
        Cell(flow.over_iterations_gbps, flow.over_iterations_ci95_gbps),
        Cell(flow.sufficient_gbps, flow.sufficient_ci95_gbps),
        Cell(flow.beyond, flow.beyond_ci95),
    )


def _differences(results: Results) -> Iterable[tuple[str, Cell, Cell, Cell]]:
    for cell in results.flows:
        here = Cell(cell.above_gbps, cell.above_ci95_gbps)
        yield cell_name(cell), Cell("flow 1 less flow 2, Gbit/s"), Cell(cell.paper_above_gbps), here
    for each in results.kept:
        what = f"flow {each.flow} at 80 % load over 30 %"
        yield each.model, Cell(what), Cell(each.paper), Cell(each.kept, each.ci95)
