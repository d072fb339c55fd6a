# SPDX-License-Identifier: Apache-2.0
"""What nodes of a ring send inside iterations, by packets that are made up."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from analysis.reading.cross_traffic.iteration_flows import iteration_flows
from analysis.render.page import table_html
from analysis.reports.summary import summarize_run
from analysis.studies import find_study, study_of
from analysis.studies.iteration_flows import figures, tables
from roundabout.store import Identity, Units, build_table
from tests.analysis.sweeps.sweep_runs import BOOT_NS, SCALE, SEGMENT, experiment, sweep_run
from tests.analysis.synthetic_runs import as_older

pytestmark = pytest.mark.unit

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/summary.schema.json").read_text())
FAST_GBPS = 20.0
"""While a worker runs ahead; the rest waits for the congested link."""
REPLIES = 300
"""That the worker which receives cross traffic sends back."""
AHEAD = {"s1": 0.5, "s0": 0.25, "s2": 0.0}
"""Of what a host sends: the node of the ring that meets nothing hurries for twice as long."""


def planned(folder, loads=(8, 20)):
    """ResNet-50 in a ring of three, of which s0 meets cross traffic."""
    more = "study: iteration-flows"
    return experiment(folder, loads=list(loads), profile="resnet50-ring3", transport="cubic", iterations=4, more=more)


def leave(host, share, begin_ns, end_ns):
    """When packets of a trial leave: so many of them fast, then the others evenly in what time is left."""
    count = 2000
    fast_ns = SEGMENT * SCALE * 8 / FAST_GBPS
    ahead = begin_ns + fast_ns * np.arange(round(share * count))
    rest = np.linspace(ahead[-1] if len(ahead) else begin_ns, end_ns, count - len(ahead), endpoint=False)
    at_ns = np.concatenate([ahead, rest]).astype(np.int64)
    return sent(host, "10.0.0.2", at_ns, SEGMENT)


def sent(host, destination, at_ns, payload_bytes):
    """Packets as captured."""
    same = {"host": host, "destination": destination, "payload_bytes": payload_bytes, "direction": "out", "flow": 0}
    own = {"host_ns": at_ns - BOOT_NS, "controller_ns": at_ns, "time_ns": at_ns, "offset_bound_ns": [0] * len(at_ns)}
    return {**{name: [value] * len(at_ns) for name, value in same.items()}, **own}


def capture(run):
    """Give each trial the packets of three hosts."""
    for record in run.trials():
        folder = run.path / "trials" / record["trial"]
        ran = pq.read_table(folder / "iterations.parquet")
        begin_ns, end_ns = (int(pick(ran[name].to_numpy())) for pick, name in ((min, "start_ns"), (max, "comm_end_ns")))
        parts = [leave(host, share, begin_ns, end_ns) for host, share in AHEAD.items()]
        parts.append(sent("s0", "10.0.0.3", np.linspace(begin_ns, end_ns, REPLIES).astype(np.int64), 8))
        columns = {name: [value for part in parts for value in part[name]] for name in parts[0]}
        who = Identity(run.id, *(record[name] for name in ("trial", "variant", "levels", "repetition", "attempt")))
        pq.write_table(build_table("packets", who, columns, Units(SCALE)), folder / "packets.parquet")
        pq.write_table(build_table("captures", who, {"host": []}, Units(SCALE)), folder / "captures.parquet")
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flows")
    return capture(as_older(sweep_run(folder, planned(folder))))


def test_a_ring_conserves_bytes_and_who_runs_ahead_reads_faster(run):
    for each in iteration_flows(run):
        assert each.captured
        assert [flow.host for flow in next(iter(each.flows.values()))] == ["s1", "s0", "s2"]
        (one, _), (other, _) = each.over_iterations(1), each.over_iterations(2)
        assert one == pytest.approx(other)
        assert set(each.repetitions_of(2)[0].payload_bytes.tolist()) == {
            SEGMENT * SCALE
        }  # and none that answers cross traffic
        assert one < each.over_packets(2)[0] < each.over_packets(1)[0]


def test_the_mean_of_readings_weighs_packets_and_not_time(run):
    heavy = iteration_flows(run)[1]
    for flow, host in ((1, "s1"), (2, "s0")):
        for found in heavy.repetitions_of(flow):
            share, fast = AHEAD[host], np.median(found.gbps[:200])
            slow = np.median(found.gbps[-200:])
            assert fast == pytest.approx(FAST_GBPS, rel=0.01)
            assert found.over_packets_gbps == pytest.approx(share * fast + (1 - share) * slow, rel=0.1)


def test_salamys_figures_stand_beside_with_intervals(run):
    results = summarize_run(run)
    Draft202012Validator(SCHEMA).validate(results.record())
    light, heavy = results.flows
    assert [(each.load_percent, each.width, each.repetitions) for each in (light, heavy)] == [(30, 30, 4), (80, 50, 4)]
    assert [flow.paper_gbps for each in (light, heavy) for flow in each.flows] == [8.42, 8.40, None, 7.24, 4.13, None]
    low_gbps, high_gbps = heavy.above_ci95_gbps
    assert 0 < low_gbps < heavy.above_gbps < high_gbps
    assert heavy.paper_above_gbps == pytest.approx(3.11)
    assert [(each.flow, round(each.paper, 2)) for each in results.kept] == [(1, 0.86), (2, 0.49)]
    assert "<td>7.24</td>" in table_html(tables.bandwidth_table(results))
    assert len(tables.difference_table(results).sections) == 3


def test_the_page_draws_each_flow_about_an_iterations_beginning(run):
    assert study_of(planned(run.path)).kind == "iteration-flows"
    ((model, cells),) = figures.by_model(iteration_flows(run)).items()
    panels = figures.draw_rates(cells).axes
    assert model == "ResNet-50"
    assert [panel.get_title(loc="left") for panel in panels] == ["ResNet-50, 8 Gbit/s", "ResNet-50, 20 Gbit/s"]
    for panel in panels:
        drawn = [line for line in panel.lines if len(line.get_xdata()) > 2]
        assert len(drawn) == 3
        assert all(abs(line.get_xdata()).max() <= figures.EXCERPT_MS / 2 for line in drawn)
    notebook = find_study("iteration-flows").notebook.read_text()
    exec(compile(notebook.replace('"last"', repr(str(run.path))), "notebook", "exec"), {})


def test_without_captures_counters_are_read(tmp_path):
    found = iteration_flows(sweep_run(tmp_path, planned(tmp_path)))
    assert [each.captured for each in found] == [False, False]


def test_cross_traffic_from_a_worker_gives_no_iteration_flows(tmp_path):
    more = "  variant: {own: {cross_traffic: {cross: {from: s1}}}}\nstudy: iteration-flows"
    own = experiment(tmp_path, loads=[8], profile="resnet50-ring3", repetitions=1, iterations=2, more=more)
    run = sweep_run(tmp_path, own)
    assert iteration_flows(run) == []
    assert "Nothing was measured" in table_html(tables.bandwidth_table(summarize_run(run)))
