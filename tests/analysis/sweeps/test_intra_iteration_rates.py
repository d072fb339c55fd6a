# SPDX-License-Identifier: Apache-2.0
"""Rates of two workers while iterations communicate, by counters that are made up."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analysis.papers.salamy import RESNET
from analysis.reading.cross_traffic.intra_iteration_rates import intra_iteration_rates
from analysis.render.page import table_html
from analysis.reports.summary import summarize_run
from analysis.studies.load_sweep.tables import intra_iteration_table as as_table
from tests.analysis.sweeps.sweep_runs import HEADERS, SCALE, SEGMENT, experiment, sweep_run
from tests.analysis.synthetic_runs import as_older

pytestmark = pytest.mark.unit

STEP_NS = 10_000_000
RATE_GBPS = 4.0


def count(run, trial, host, pattern):
    """Replace a host's samples: every 10 ms it sends `pattern` times the rate, over and over."""
    path = run.path / "trials" / trial / "counters.parquet"
    table = pq.read_table(path)
    begin_ns, end_ns = (pick(table["controller_ns"]).as_py() for pick in (pc.min, pc.max))
    at_ns = np.arange(begin_ns, end_ns, STEP_NS)
    payload = np.concatenate([[0], np.cumsum(np.resize(pattern, len(at_ns) - 1))]) * RATE_GBPS * STEP_NS / 8
    packets = np.rint(payload / SCALE / SEGMENT).astype(np.int64)
    own = {
        "controller_ns": at_ns,
        "tx_packets": packets,
        "tx_bytes": packets * int((SEGMENT + HEADERS) * SCALE),
    }
    first = table.filter(pc.field("host") == host).slice(0, 1).to_pylist()[0]
    columns = {name: own.get(name, [first[name]] * len(at_ns)) for name in table.column_names}
    rest = table.filter(pc.field("host") != host)
    pq.write_table(pa.concat_tables([rest, pa.table(columns, schema=table.schema)]), path)


@pytest.fixture
def made(tmp_path):
    """ResNet-50 under consistent traffic; s1 waits half of the time, s0 sends evenly."""
    run = as_older(sweep_run(tmp_path, experiment(tmp_path, loads=[0, 8, 20], profile="resnet50-ring3", repetitions=1)))
    for record in run.trials():
        count(run, record["trial"], "s1", [0, 2])
        count(run, record["trial"], "s0", [1])
    return run


def test_a_flow_that_waits_and_hurries_has_a_higher_mean_over_packets(made):
    light, heavy = intra_iteration_rates(made)
    assert [(each.percent, each.asked_gbps) for each in (light, heavy)] == [(30, 8), (80, 20)]
    for each in (light, heavy):
        assert each.flow_1 == pytest.approx((RATE_GBPS, 2 * RATE_GBPS), rel=0.05)
        assert each.flow_2 == pytest.approx((RATE_GBPS, RATE_GBPS), rel=0.05)


def test_salamys_printed_rates_stand_beside_the_measured_ones(made):
    light, heavy = intra_iteration_rates(made)
    assert light.loaded.model == RESNET
    assert (light.printed, heavy.printed) == ((8.42, 8.40), (7.24, 4.13))
    assert "<td>8.42</td><td>8.40</td>" in table_html(as_table(summarize_run(made).sweeps))


def test_without_samples_within_an_iteration_there_is_nothing(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 8], profile="resnet50-ring3", repetitions=1))
    assert intra_iteration_rates(run) == []
    assert "Nothing was measured" in table_html(as_table(summarize_run(run).sweeps))


def test_cross_traffic_from_a_worker_gives_no_rates_per_flow(tmp_path):
    loads = experiment(
        tmp_path,
        loads=[0, 8],
        profile="resnet50-ring3",
        repetitions=1,
        more="  variant: {own: {cross_traffic: {cross: {from: s1}}}}",
    )
    run = as_older(sweep_run(tmp_path, loads))
    for record in run.trials():
        count(run, record["trial"], "s0", [1])
        count(run, record["trial"], "s1", [1])
    assert intra_iteration_rates(run) == []
