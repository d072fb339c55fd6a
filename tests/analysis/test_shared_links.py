# SPDX-License-Identifier: Apache-2.0
"""Interleaving by link: jobs count as sending at once only where they share a link."""

import math
import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from analysis.quantities import CachedReading, QuantityRequest, find_quantity
from analysis.reading.cells import cells_of
from analysis.reading.phase_overlap import compute_overlaps, select_jobs
from analysis.reading.traces import read_traces, shared_share_of_spans
from analysis.render.link_use import draw_link_use
from analysis.reports.summary import summarize_run
from analysis.studies.interleaving import figures, tables
from roundabout.spec import load_experiment
from tests.computed_runs import compute_run

pytestmark = pytest.mark.unit

CHAIN = """
schema: 1
name: chain
about: test
jobs:
  j1: {{profile: p, workers: [a0, b0]{j1}}}
  j2: {{profile: p, workers: [a1, c0]{j2}}}
  j3: {{profile: p, workers: [b1, c1]}}
iterations: 12
transport: {{name: dcqcn}}
repetitions: 1
study: interleaving
topology: chain
topologies:
  chain:
    about: two links in a row
    source: test
    line_rate_gbps: 50
    payload_rate_gbps: 43
    queue: lossless
    hosts: [a0, a1, b0, b1, c0, c1]
    switches: [t0, t1, t2]
    links:
      - {{name: a0, ends: [a0, t0]}}
      - {{name: a1, ends: [a1, t0]}}
      - {{name: b0, ends: [b0, t1]}}
      - {{name: b1, ends: [b1, t1]}}
      - {{name: c0, ends: [c0, t2]}}
      - {{name: c1, ends: [c1, t2]}}
      - {{name: L1, ends: [t0, t1], bottleneck: true}}
      - {{name: L2, ends: [t1, t2], bottleneck: true}}
profiles:
  p:
    model: test
    phases:
      - {{name: compute, compute_ms: 130, guess: test}}
      - {{name: send, bytes: 430000000, alone_ms: 100, guess: test}}
"""
INTERLEAVED = ", start_offset_ms: 115"


def experiment(tmp_path, *, j1="", j2="", **words):
    text = CHAIN.format(j1=j1, j2=j2)
    for word, other in words.items():
        assert word in text
        text = text.replace(word, other)
    path = tmp_path / "chain.yaml"
    path.write_text(text)
    return path


def sharing(spec):
    return spec.shared_bottlenecks(tuple(spec.jobs))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """j2 crosses both links and sends while j1 and j3 compute, which send at once on a link each."""
    return compute_run(experiment(tmp_path_factory.mktemp("chain"), j2=INTERLEAVED))


def values(run, name):
    return [case.value for case in find_quantity(name).measure(QuantityRequest(CachedReading(run)))]


def test_jobs_of_two_links_are_interleaved_if_those_of_each_link_are(run):
    # By hand: each computes 130 ms and sends 100 of 230 ms alone; j2 begins 115 ms after j1 and j3.
    assert [np.median(cell.repetitions(job)[0]) for cell in cells_of(run) for job in cell.jobs] == [230] * 3
    assert values(run, "iteration from which jobs stay interleaved") == [1]
    assert values(run, "sending at once") == [0]
    results = summarize_run(run)
    assert [(each.name, each.first, each.last_half) for each in results.overlaps] == [
        ("base · L1", 0, 0),
        ("base · L2", 0, 0),
    ]
    assert [name for name, _ in tables.describe_overlaps(results)] == ["base · L1", "base · L2"]


def test_the_worst_link_is_the_figure_of_several(tmp_path):
    # j3 meets j2 on L2 all the time; j1 is apart from j2 on L1.
    run = compute_run(experiment(tmp_path, j1=INTERLEAVED))
    assert values(run, "sending at once")[0] > 50
    assert values(run, "iteration from which jobs stay interleaved") == [math.inf]
    first, second = summarize_run(run).overlaps
    assert (first.link, second.link) == ("L1", "L2")
    assert first.first < 0.3 < second.first


def test_offsets_are_from_the_first_job_of_the_same_link(run):
    curves = find_quantity("offset between jobs by iteration").measure(QuantityRequest(CachedReading(run)))
    assert [curve.name for curve in curves] == ["base, j2, L1", "base, j3, L2"]
    assert all(y == pytest.approx(115, abs=0.5) for curve in curves for _, y in curve.points)


def test_every_shared_link_is_drawn_with_its_own_jobs(run):
    traces = [each[0] for each in read_traces(run, cells_of(run))]
    assert [(each.link.name, list(each.spans)) for each in traces] == [("L1", ["j1", "j2"]), ("L2", ["j2", "j3"])]
    for draw in (draw_link_use, figures.draw_sliding):
        assert [panel.get_title("left") for panel in draw(traces).axes] == ["base · L1", "base · L2"]
    first = figures.draw_first_iterations([[each] for each in traces])
    assert [panel.get_title("left") for panel in first.axes] == ["base · L1", "base · L2"]
    notes = {text.get_text() for panel in first.axes for text in panel.texts}
    assert {"L1 carries 43", "L2 carries 43"} <= notes


def test_figures_without_two_points_are_left_out(tmp_path):
    short = {"iterations: 12": "iterations: 1", "compute_ms: 130": "compute_ms: 0.1", "alone_ms: 100": "alone_ms: 0.1"}
    run = compute_run(experiment(tmp_path, **short, **{"bytes: 430000000": "bytes: 430000"}))
    cells, traces = cells_of(run), read_traces(run, cells_of(run))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figures.draw_first_iterations(traces) is None
        assert draw_link_use([each[0] for each in traces]) is None
        assert figures.draw_sliding([each[0] for each in traces]) is None
        assert figures.draw_over_iterations(cells, summarize_run(run).cells) is None
        assert figures.draw_distributions(cells, [{} for _ in cells], summarize_run(run).cells) is None


def test_the_lowest_panel_of_each_column_has_the_labels_of_its_axis(run):
    traces = [each[0] for each in read_traces(run, cells_of(run))]
    drawn = figures.draw_sliding([*traces, *traces])
    labeled = [any(tick.label1.get_visible() for tick in panel.xaxis.get_major_ticks()) for panel in drawn.axes]
    assert labeled == [False, True, True, True]


@pytest.mark.parametrize(("offset", "noted"), [("", True), (", start_offset_ms: 3", False)])
def test_a_symmetric_start_explains_a_speed_up_of_1_in_the_fluid_model(tmp_path, offset, noted):
    mltcp = "factors: {{variant: {{fair: {{}}, mltcp: {{transport: {{name: mltcp_dcqcn}}}}}}}}\nrepetitions"
    text = experiment(tmp_path, j2=offset, repetitions=mltcp.replace("{{", "{").replace("}}", "}"))
    caption = tables.time_table(summarize_run(compute_run(text))).caption
    assert ("alike jobs of mltcp · L1, mltcp · L2 that begin together stay together" in caption) is noted
    assert "fair" not in caption


def test_links_that_the_same_jobs_cross_count_once(tmp_path):
    spec = load_experiment(experiment(tmp_path, **{"[a0, b0]": "[a0, c1]", "[b1, c1]": "[b1, b0]"})).cells[0].spec
    assert spec.jobs_by_link == {"L1": ("j1", "j2"), "L2": ("j1", "j2")}
    assert sharing(spec) == {"L1": ("j1", "j2")}


def test_a_job_at_a_time_shares_no_link(tmp_path):
    spec = load_experiment(experiment(tmp_path, repetitions="one_job_at_a_time: true\nrepetitions")).cells[0].spec
    assert sharing(spec) == {}


def test_jobs_without_a_shared_link_have_no_figure_of_interleaving(tmp_path):
    run = compute_run(experiment(tmp_path, **{"[a1, c0]": "[a1, a0]", "[b1, c1]": "[c0, c1]", "[a0, b0]": "[b1, b0]"}))
    assert values(run, "sending at once") == []
    assert values(run, "iteration from which jobs stay interleaved") == []
    assert summarize_run(run).overlaps == ()
    (trials,) = read_traces(run, cells_of(run))
    assert list(trials[0].spans) == ["j1", "j2", "j3"]


SWITCHES = 4
HOSTS = [f"h{switch}{number}" for switch in range(SWITCHES) for number in range(3)]
ROW = [
    "schema: 1\nname: row\nabout: test\niterations: 2\ntransport: {name: dcqcn}\nrepetitions: 1\ntopology: row",
    "jobs:",
    *(f"  j{each}: {{profile: p, workers: [{HOSTS[2 * each]}, {HOSTS[2 * each + 1]}]}}" for each in range(6)),
    CHAIN[CHAIN.index("profiles:") :].replace("{{", "{").replace("}}", "}"),
    "topologies:\n  row:\n    about: test\n    source: test\n    line_rate_gbps: 50\n    payload_rate_gbps: 43",
    f"    queue: lossless\n    hosts: [{', '.join(HOSTS)}]",
    f"    switches: [{', '.join(f't{number}' for number in range(SWITCHES))}]",
    "    links:",
    *(f"      - {{name: {host}, ends: [{host}, t{host[1]}]}}" for host in HOSTS),
    *(f"      - {{name: L{each}, ends: [t{each}, t{each + 1}]}}" for each in range(SWITCHES - 1)),
]


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    """Six jobs of two hosts each on four switches in a row."""
    path = tmp_path_factory.mktemp("row") / "row.yaml"
    path.write_text("\n".join(ROW))
    return load_experiment(path).cells[0].spec


def with_workers(spec, workers):
    jobs = {job: own.model_copy(update={"workers": workers[job]}) for job, own in spec.jobs.items()}
    return spec.model_copy(update={"jobs": jobs})


def test_some_of_the_jobs_of_a_link_are_no_link_of_their_own(row):
    hosts = ["h00", "h30", "h01", "h20", "h02", "h10", "h11", "h12", "h21", "h22", "h31", "h32"]
    spec = with_workers(row, {job: tuple(hosts[2 * place : 2 * place + 2]) for place, job in enumerate(row.jobs)})
    assert spec.jobs_by_link == {"L0": ("j0", "j1", "j2"), "L1": ("j0", "j1")}
    assert sharing(spec) == {"L0": ("j0", "j1", "j2")}


@settings(max_examples=50)
@given(hosts=st.permutations(HOSTS), seed=st.integers(0, 2**32 - 1))
def test_jobs_that_share_no_link_never_count_as_sending_at_once(row, hosts, seed):
    workers = {job: tuple(hosts[2 * place : 2 * place + 2]) for place, job in enumerate(row.jobs)}
    found = sharing(with_workers(row, workers))
    ends = {job: sorted(int(host[1]) for host in own) for job, own in workers.items()}
    for one, other in combinations(workers, 2):
        shares = max(ends[one][0], ends[other][0]) < min(ends[one][1], ends[other][1])
        assert any({one, other} <= {*own} for own in found.values()) == shares
    generator = np.random.default_rng(seed)
    begins = np.cumsum(generator.uniform(20, 60, (len(workers), 12)), axis=1)
    spans = {job: np.column_stack([own, own + 15]) for job, own in zip(workers, begins, strict=True)}
    for own in found.values():
        # Jobs of other links change nothing, wherever they are; jobs of the link that are apart do not meet.
        moved = {job: each + (0 if job in own else 7.0) for job, each in spans.items()}
        assert (compute_overlaps(select_jobs(moved, own)) == compute_overlaps(select_jobs(spans, own))).all()
        apart = [spans[job] + 1e4 * place for place, job in enumerate(own)]
        assert shared_share_of_spans(apart, 0, math.inf) == 0
