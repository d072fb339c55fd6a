# SPDX-License-Identifier: Apache-2.0
"""Queues of jobs on a leaf-spine: their flows, their spines, their places, and how long they take."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import yaml
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from analysis.studies.job_queue.figures import draw_slowdowns
from analysis.studies.job_queue.study import study
from roundabout.core.errors import UsageError
from roundabout.models.cluster.job_queue.fabric import Racks
from roundabout.models.cluster.job_queue.fragments import limit_fragments
from roundabout.models.cluster.job_queue.job_shape import BACKWARD, JobShape
from roundabout.models.cluster.job_queue.requests import draw_jobs
from roundabout.models.cluster.job_queue.rules import RULES
from roundabout.models.cluster.job_queue.simulator import QueueCluster, simulate_queue
from roundabout.models.cluster.job_queue.spines import Flows
from roundabout.models.cluster.state import Request
from roundabout.plan.clusters import check_cluster_trial
from roundabout.runner.testbed import refuse_mixes
from roundabout.spec import Topology, load_experiment
from roundabout.spec.job_mix import JobMix, JobType
from tests.computed_runs import compute_run

pytestmark = pytest.mark.unit

BYTES_PER_MS = 5e7  # of 400 Gbit/s
STRIDED = JobType(gpus=(16, 32), compute_ms=341, rings=8, ring_bytes=17.18e9)
RING = JobType(gpus=(16,), compute_ms=113, ring_bytes=13e9)
PIPELINE = JobType(
    gpus=(64,), compute_ms=86, stages=4, microbatches=8, activation_bytes=8.39e6, rings=8, ring_bytes=4.295e9
)
EXCHANGING = JobType(gpus=(16,), compute_ms=133, exchanges=24, exchange_bytes=376e6, ring_bytes=8.8e9)


def shape(kind, gpus):
    return JobShape(kind, gpus, BYTES_PER_MS)


def leaf_spine(leaves, servers, spines):
    """Return a leaf-spine of servers with 8 NICs of 400 Gbit/s, and uplinks as fast as one of them."""
    hosts = {f"s{number}": f"leaf{number // servers}" for number in range(leaves * servers)}
    below = [
        {"name": host, "ends": [host, leaf], "line_rate_gbps": 3280, "payload_rate_gbps": 3200}
        for host, leaf in hosts.items()
    ]
    ups = [(f"leaf{leaf}", f"spine{spine}") for leaf in range(leaves) for spine in range(spines)]
    return Topology.model_validate(
        {
            "name": "small",
            "about": "a leaf-spine",
            "line_rate_gbps": 410,
            "payload_rate_gbps": 400,
            "mtu_bytes": 4200,
            "queue": "lossless",
            "routing": {"name": "ecmp"},
            "hosts": list(hosts),
            "switches": [*dict.fromkeys(hosts.values()), *(f"spine{spine}" for spine in range(spines))],
            "gpus_per_host": 8,
            "links": [*below, *({"name": f"{leaf}-{spine}", "ends": [leaf, spine]} for leaf, spine in ups)],
        }
    )


def rails(pods, servers, spines=1):
    """Return pods of servers whose eight NICs of 400 Gbit/s are each below a switch of their own."""
    hosts = {f"s{number}": number // servers for number in range(pods * servers)}
    below = [(host, f"rail{pod}-{nic}") for host, pod in hosts.items() for nic in range(8)]
    leaves = list(dict.fromkeys(leaf for _, leaf in below))
    ends = [*below, *((leaf, f"spine{spine}") for leaf in leaves for spine in range(spines))]
    return Topology.model_validate(
        leaf_spine(1, 2, 1).model_dump(by_alias=True)
        | {
            "hosts": list(hosts),
            "switches": [*leaves, *(f"spine{spine}" for spine in range(spines))],
            "routing": {"name": "rail"},
            "links": [{"name": "-".join(each), "ends": each} for each in ends],
        }
    )


def play(jobs, topology, rule="hash", fragments=None):
    """Play jobs, each a type, GPUs, iterations and an arrival, and return their histories."""
    requests = [Request(f"j{place}", "a", 1, gpus, count, at) for place, (_, gpus, count, at) in enumerate(jobs)]
    cluster = QueueCluster(topology, RULES[rule], fragments, seed=1)
    return simulate_queue(requests, [shape(kind, gpus) for kind, gpus, *_ in jobs], cluster).histories


def slowdowns(histories):
    return [(each.ended_s - each.started_s) / each.dedicated_s for each in histories]


@pytest.mark.parametrize(
    ("kind", "gpus", "expected_ms"),
    [
        (STRIDED, 16, 684.6),
        (STRIDED, 32, 856.4),
        (RING, 16, 600.5),
        (EXCHANGING, 16, 3533.28),
        (PIPELINE, 64, 776.5848),
    ],
)
def test_iterations_alone_take_as_long_as_in_the_published_generator(kind, gpus, expected_ms):
    """Times by the formulas of compute_job_duration_us: MonkeyTreeArtifact, scripts/generate_trace.py, 1e58d6b."""
    assert shape(kind, gpus).full_ms == pytest.approx(expected_ms)


def test_a_pipeline_waits_for_its_first_microbatch_to_reach_the_last_stage():
    activations_ms = 2 * 2 * 8.39e6 / BYTES_PER_MS
    assert shape(PIPELINE, 64).alone_ms == pytest.approx(776.5848 + 3 * 86 + activations_ms)


def test_rings_of_the_last_stage_begin_a_backward_pass_earlier():
    """Both stages' rings, of 16 flows, share an uplink that is busy from the last stage's backward passes on."""
    kind = PIPELINE.model_copy(update={"stages": 2})
    job = Request("j", "a", 1, 32, 10, 0.0)
    cluster = QueueCluster(leaf_spine(2, 2, 1), RULES["hash"], None, 1, {"j": np.array([0, 2, 1, 3])})
    (found,) = simulate_queue([job], [shape(kind, 32)], cluster).histories
    ring_ms, activations_ms = 4.295e9 / BYTES_PER_MS, 2 * 8 * 8.39e6 / BYTES_PER_MS
    assert 100 * found.ended_s == pytest.approx(9 * 86 - BACKWARD * 86 + activations_ms + 16 * ring_ms, rel=1e-6)


def test_rings_join_every_eighth_worker_of_a_stage():
    found = dict(shape(PIPELINE, 64).rings.T.tolist())
    assert found[0] == 8
    assert found[8] == 0
    assert found[16] == 24
    assert len(found) == 64


def test_workers_of_stages_send_to_the_next_one_and_back():
    assert Counter(np.diff(shape(PIPELINE, 64).others, axis=0).ravel().tolist()) == {16: 48, -16: 48}


def test_jobs_within_a_leaf_take_as_long_as_alone():
    jobs = [(STRIDED, 16, 10, 0.0), (EXCHANGING, 16, 3, 0.0), (PIPELINE, 64, 5, 0.0)]
    assert slowdowns(play(jobs, leaf_spine(2, 8, 1))) == pytest.approx([1, 1, 1])
    assert slowdowns(play(jobs, leaf_spine(2, 8, 1), "sglb")) == pytest.approx([1, 1, 1])


def test_an_all_to_all_has_rounds_in_which_each_worker_sends_once():
    job = shape(EXCHANGING, 16)
    rounds = job.steps[1:16]
    assert [len(step.flows) for step in rounds] == [16] * 15
    for step in rounds:
        for ranks in job.flows[:, step.flows]:
            assert sorted(ranks) == list(range(16))


def test_rings_of_a_rail_meet_only_flows_of_their_own_rail():
    """Each of eight rings has its rail's only uplink for itself; in one pod below the rails no flow needs a spine."""
    jobs = [(STRIDED, 16, 10, 0.0)]
    assert slowdowns(play(jobs, rails(2, 1))) == pytest.approx([1])
    assert slowdowns(play([(RING, 16, 10, 0.0)], rails(1, 2))) == pytest.approx([1])


def test_rings_that_share_an_uplink_share_its_rate():
    """Eight rings between two leaves share one uplink: 8 times 343.6 ms beside 341 ms of computing."""
    found = slowdowns(play([(STRIDED, 16, 10, 0.0)], leaf_spine(2, 1, 1)))
    assert found == pytest.approx([(341 + 8 * 343.6) / (341 + 343.6)])


def test_a_spine_a_ring_is_as_good_as_alone_if_it_is_chosen():
    jobs, fabric = [(STRIDED, 16, 10, 0.0)], leaf_spine(2, 1, 8)
    assert slowdowns(play(jobs, fabric, "perfect")) == pytest.approx([1])
    assert slowdowns(play(jobs, fabric, "crux")) == pytest.approx([1])
    assert 1 < slowdowns(play(jobs, fabric, "sglb"))[0] < 1.4
    assert slowdowns(play(jobs, fabric, "hash"))[0] > 1.4


def test_the_first_job_that_does_not_fit_holds_up_all_others():
    big, small = (STRIDED, 32, 10, 1.0), (STRIDED, 16, 10, 2.0)
    first, second, third = play([(STRIDED, 16, 10, 0.0), big, small], leaf_spine(1, 4, 1))
    assert second.started_s == pytest.approx(first.ended_s)
    assert third.started_s == pytest.approx(second.ended_s)


def test_a_job_is_placed_on_the_fullest_leaf_that_has_room():
    """The second job joins the first, so the third, which needs a whole leaf, shares no uplink."""
    jobs = [(STRIDED, 16, 20, 0.0), (STRIDED, 16, 20, 0.0), (STRIDED, 32, 20, 0.0)]
    assert slowdowns(play(jobs, leaf_spine(2, 4, 1))) == pytest.approx([1, 1, 1])


ROOM = [
    (JobType(gpus=(24,), compute_ms=500, ring_bytes=1e9), 24, 100, 0.0),
    (JobType(gpus=(24,), compute_ms=100, ring_bytes=1e9), 24, 50, 0.0),
    (STRIDED, 16, 20, 0.0),
]
"""Two jobs that leave one server free on each of two leaves of four, where the third is split until the second ends."""


def test_a_fragment_moves_as_soon_as_there_is_room():
    split = (341 + 8 * 343.6) / (341 + 343.6)
    fabric = leaf_spine(2, 4, 1)
    stays, moves = play(ROOM, fabric), play(ROOM, fabric, fragments=7)
    assert [each.moves for each in stays] == [0, 0, 0]
    assert [each.moves for each in moves] == [0, 0, 1]
    assert slowdowns(stays) == pytest.approx([1, 1, split])
    assert slowdowns(moves)[:2] == pytest.approx([1, 1])
    assert 1 < slowdowns(moves)[2] < 0.5 * split
    assert play(ROOM, fabric, fragments=8) == stays


def test_groups_exchange_servers_where_none_is_free():
    groups, racks = [np.array([0, 2]), np.array([1, 3])], Racks(np.array([0, 0, 1, 1]))
    found = limit_fragments(groups, np.array([8, 8]), racks, 7)
    assert sorted(own.tolist() for own in found.values()) == [[0, 1], [2, 3]]
    assert limit_fragments(groups, np.array([8, 8]), racks, 16) == {}


def test_groups_move_until_their_fragments_in_a_pod_are_few():
    groups, rings = [np.array([0, 2]), np.array([1, 3])], np.array([8, 8])
    assert limit_fragments(groups, rings, Racks(np.arange(4)), 15) == {}
    found = limit_fragments(groups, rings, Racks(np.arange(4), np.array([0, 0, 1, 1])), 15)
    assert sorted(own.tolist() for own in found.values()) == [[0, 1], [2, 3]]


@st.composite
def flows(draw):
    """Flows of rings between leaves, at most as many of a leaf as spines in either direction."""
    count, leaves = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    orders = draw(
        st.lists(st.lists(st.integers(0, leaves - 1), min_size=2, unique=True), min_size=count, max_size=count)
    )
    ends = np.array([(at, other) for order in orders for at, other in pairwise((*order, order[0]))]).T
    numbers = np.arange(ends.shape[1])
    return count, Flows(
        np.array([numbers, numbers]), ends, numbers, np.ones(ends.shape[1], bool), np.zeros(ends.shape[1], int)
    )


@settings(max_examples=50)
@given(flows())
def test_as_many_rings_as_spines_share_no_link(drawn):
    spines, found = drawn
    chosen = RULES["perfect"].choose(found, spines, 1).tolist()
    for side in found.leaves.tolist():
        assert max(Counter(zip(side, chosen, strict=True)).values()) == 1


@settings(max_examples=30)
@given(flows())
def test_rules_choose_spines_that_there_are(drawn):
    spines, found = drawn
    for rule in RULES.values():
        assert set(rule.choose(found, spines, 1).tolist()) <= set(range(spines))


def test_flows_of_no_ring_take_turns_by_pair_of_nics():
    nics, zeros = np.array([[0, 1, 0, 2], [8, 9, 8, 10]]), np.zeros(4, int)
    found = Flows(nics, np.array([zeros, zeros + 1]), zeros, zeros > 0, zeros)
    assert RULES["perfect"].choose(found, 4, 1).tolist() == [0, 1, 0, 2]


def test_hashes_spread_flows_evenly():
    numbers = np.arange(16_000)
    found = Flows(
        np.array([numbers, numbers[::-1]]), np.array([numbers % 7, numbers % 5]), numbers // 8, numbers < 0, numbers * 0
    )
    counts = np.bincount(RULES["hash"].choose(found, 16, 1))
    assert len(counts) == 16
    assert (abs(counts - 1000) < 150).all()  # 5 standard deviations


MIX = JobMix(kind="mix", types={"a": STRIDED, "b": RING}, load=0.8, jobs=4000, iterations=(10, 90))


def test_a_mix_keeps_as_many_gpus_busy_as_its_load_says():
    fabric = leaf_spine(4, 8, 16)
    requests, shapes = draw_jobs(MIX, fabric, 1)
    work_s = sum(each.gpus * own.iterations * each.full_ms / 1e3 for own, each in zip(requests, shapes, strict=True))
    assert work_s / requests[-1].arrives_s / 256 == pytest.approx(0.8, rel=0.06)
    assert draw_jobs(MIX, fabric, 1)[0] == requests
    assert draw_jobs(MIX, fabric, 2)[0] != requests


@pytest.mark.parametrize("gpus", [(12,), (1024,)])
def test_gpus_that_are_no_whole_servers_or_too_many_are_refused(gpus):
    mix = MIX.model_copy(update={"types": {"a": RING.model_copy(update={"gpus": gpus})}})
    with pytest.raises(UsageError, match=f"type a: found {gpus[0]} GPUs"):
        draw_jobs(mix, leaf_spine(4, 8, 16), 1)


@pytest.mark.parametrize(
    ("field", "changes", "type_changes"),
    [
        ("iterations", {"iterations": [90, 10]}, {}),
        ("exchanges", {}, {"exchanges": 2, "stages": 2}),
        ("exchanges", {}, {"exchanges": 2, "gpus": [1]}),
    ],
)
def test_a_mix_that_cannot_be_drawn_or_played_is_refused(field, changes, type_changes):
    fields = MIX.model_dump() | {"types": {"a": RING.model_dump() | type_changes}} | changes
    with pytest.raises(ValidationError) as refused:
        JobMix.model_validate(fields)
    assert refused.value.errors()[0]["ctx"]["location"] == (field,)


RUN = """\
schema: 1
name: queue
about: Four jobs on two leaves
topology: small
transport: {name: dcqcn, T_us: 125}
cluster:
  scheduler: fifo
  trace:
    kind: mix
    load: 1.0
    jobs: 4
    iterations: [5, 5]
    types: {a: {gpus: [16], compute_ms: 341, rings: 8, ring_bytes: 17_180_000_000}}
factors:
  variant: {ecmp: {}, perfect: {cluster: {paths: perfect}}}
study: job-queue
expect:
  - {what: mean slowdown of jobs, row: {ecmp: 1.5, perfect: 1.0}, within: 0.001, basis: predicted}
"""


@pytest.fixture
def queue(tmp_path):
    """The path of an experiment in whose fabric each job is split between two leaves."""
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies/small.yaml").write_text(
        yaml.safe_dump({"schema": 1} | leaf_spine(2, 1, 8).model_dump(mode="json", exclude_defaults=True))
    )
    path = tmp_path / "queue.yaml"
    path.write_text(RUN)
    return path


def test_a_run_reports_slowdowns_and_holds_them_against_print(queue):
    run = compute_run(queue)
    results = study(run, load_experiment(queue).study)
    ecmp, perfect = results.slowdowns
    assert (perfect.name, perfect.jobs, perfect.mean.value) == ("perfect", 4, pytest.approx(1))
    assert ecmp.mean.value > 1.4
    assert perfect.p99 is None
    (verdict,) = results.expectations
    assert "2.004" in verdict.found


def test_the_figure_has_neither_empty_panels_nor_rounding_errors(queue):
    by_load = RUN.replace("ecmp: {}, ", "").replace("study:", "  cluster.trace.load: [0.5, 1.0]\nstudy:")
    queue.write_text(by_load[: by_load.index("expect:")])
    results = study(compute_run(queue), load_experiment(queue).study)
    first, *others = results.slowdowns
    off = first.model_copy(update={"p90": first.p90.model_copy(update={"value": first.p90.value + 1e-12})})
    drawn = draw_slowdowns(results.model_copy(update={"slowdowns": (off, *others)}), "cluster.trace.load")
    assert [panel.get_title("left") for panel in drawn.axes] == ["mean", "p90"]
    drawn.draw_without_rendering()
    for panel in drawn.axes:
        assert panel.yaxis.get_offset_text().get_text() == ""
        assert max(len(tick.get_text()) for tick in panel.get_yticklabels()) < len("1.00000")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"paths": "foresight"}, "paths: foresight"),
        ({"cassini": {}}, "cassini"),
        ({"scheduler": {"name": "random"}}, "scheduler random"),
    ],
)
def test_what_a_queue_of_jobs_lacks_is_refused(queue, changes, found):
    spec = load_experiment(queue).cells[0].spec
    cluster = spec.cluster.model_validate(spec.cluster.model_dump() | changes)
    with pytest.raises(UsageError, match=f"found {found}, allowed are scheduler fifo"):
        check_cluster_trial(spec.model_copy(update={"cluster": cluster}), 1)


def test_only_the_flow_level_model_takes_a_mix(queue):
    with pytest.raises(UsageError, match="found mix"):
        refuse_mixes(load_experiment(queue).cells[0].spec)


def test_another_fabric_than_a_leaf_spine_is_refused():
    fabric = leaf_spine(2, 2, 2)
    broken = fabric.model_copy(update={"links": fabric.links[:-1]})
    with pytest.raises(UsageError, match="found no leaf-spine"):
        draw_jobs(MIX, broken, 1)
