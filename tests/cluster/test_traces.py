# SPDX-License-Identifier: Apache-2.0
"""Jobs over time: drawn by a seed within what the trace says, and as many as its load."""

from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, strategies as st
from pydantic import TypeAdapter, ValidationError

from roundabout.models.cluster.models import ModelError, expand_sets, find_model, make_profile
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.traces import TraceError, initial_placements, trace_requests
from roundabout.spec import load_topology
from roundabout.spec.trace import SubmittedJob, Trace

pytestmark = pytest.mark.unit

GPUS = 24


def trace(kind, **fields):
    return TypeAdapter(Trace).validate_python({"kind": kind, **fields})


def alone_s(request):
    return request.iterations * make_profile(request.model, request.workers, request.batch).alone_ms / 1000


@given(
    seed=st.integers(0, 2**63),
    models=st.lists(st.sampled_from(["mixed", "model-parallel", "BERT", "DLRM"]), min_size=1, max_size=3),
    load=st.floats(0.1, 2),
    jobs=st.integers(1, 50),
)
def test_poisson_jobs_are_within_what_the_trace_says(seed, models, load, jobs):
    requested = trace("poisson", load=load, jobs=jobs, models=models)
    found = trace_requests(requested, GPUS, seed)
    assert len(found) == jobs == len({each.name for each in found})
    assert [each.arrives_s for each in found] == sorted(each.arrives_s for each in found)
    for each in found:
        least, most = find_model(each.model).batch
        assert each.model in expand_sets(tuple(models))
        assert least <= each.batch <= most
        assert 1 <= each.workers <= 12
        assert 200 <= each.iterations <= 1000
    assert trace_requests(requested, GPUS, seed) == found


@pytest.mark.parametrize("load", [0.8, 0.9, 1.0])
@pytest.mark.parametrize("models", ["mixed", "model-parallel"])
def test_poisson_jobs_alone_would_use_the_load_of_the_gpus(load, models):
    """Each from its arrival on, were there GPUs for all: what comes in ten hours, over ten hours."""
    requested = trace("poisson", load=load, minutes=600, models=[models])
    used = [
        sum(each.workers * alone_s(each) for each in found) / (600 * 60 * GPUS)
        for found in (trace_requests(requested, GPUS, seed) for seed in range(30))
    ]
    assert fmean(used) == pytest.approx(load, rel=0.05)


def test_the_load_holds_whatever_the_guesses_are():
    requested = trace("poisson", load=0.9, jobs=100)
    stated, drawn = (trace_requests(requested, GPUS, 1, guesses=guesses)[-1].arrives_s for guesses in (None, 3))
    assert stated != drawn
    assert [each.batch for each in trace_requests(requested, GPUS, 1)] == [
        each.batch for each in trace_requests(requested, GPUS, 1, guesses=3)
    ]


def test_more_jobs_leave_the_first_as_they_are():
    few, many = (trace_requests(trace("poisson", load=0.9, jobs=jobs), GPUS, 4) for jobs in (5, 50))
    assert many[:5] == few


def test_given_batches_change_nothing_else_of_the_jobs():
    drawn = trace_requests(trace("poisson", load=0.9, jobs=200), GPUS, 4)
    given = trace_requests(trace("poisson", load=0.9, jobs=200, batches={"BERT": 8, "VGG16": 1400}), GPUS, 4)
    assert {each.batch for each in given if each.model == "BERT"} == {8}
    others = [
        [replace(each, arrives_s=0, batch=0 if each.model in ("BERT", "VGG16") else each.batch) for each in jobs]
        for jobs in (drawn, given)
    ]
    assert others[0] == others[1]
    stretch = {round(one.arrives_s / other.arrives_s, 9) for one, other in zip(given, drawn, strict=True)}
    assert len(stretch) == 1 and stretch != {1}  # the load stays as requested


def test_batches_of_an_unknown_model_are_refused():
    with pytest.raises(ModelError, match="'VGG12'"):
        trace_requests(trace("poisson", load=0.9, jobs=3, batches={"VGG12": 8}), GPUS, 1)


def test_models_are_equally_likely():
    found = [each.model for each in trace_requests(trace("poisson", load=0.9, jobs=2600), GPUS, 1)]
    assert all(150 <= found.count(name) <= 250 for name in expand_sets(("mixed",)))


def test_dynamic_jobs_are_there_or_arrive_together():
    listed = {"present": [{"model": "VGG16", "workers": 4}, {}], "arriving": [{"model": "DLRM"}, {"model": "ResNet50"}]}
    found = trace_requests(trace("dynamic", **listed, arrive_s=90), GPUS, 1)
    assert [each.arrives_s for each in found] == [0, 0, 90, 90]
    assert (found[0].model, found[0].workers) == ("VGG16", 4)
    assert [each.name for each in found[2:]] == ["dlrm-3", "resnet50-4"]


@given(st.integers(0, 2**63), st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_a_fragmented_state_gives_each_gpu_once_and_is_the_seeds(seed, workers):
    fabric = load_topology("cluster-24")
    listed = {"present": [{"workers": each} for each in workers], "arriving": [{"workers": 3}]}
    requested = trace("dynamic", **listed, state="fragmented")
    requests = trace_requests(requested, GPUS, seed)
    found = initial_placements(requested, requests, fabric, seed)
    hosts = [host for placement in found.values() for host in placement]
    assert len(hosts) == len(set(hosts)) and set(hosts) <= set(fabric.hosts)
    free = GPUS
    for request in requests[:-1]:
        if request.workers <= free:
            assert len(found[request.name]) == request.workers
            free -= request.workers
    assert free == GPUS - len(hosts) and requests[-1].name not in found
    assert initial_placements(requested, requests, fabric, seed) == found


def test_fragmented_states_differ_by_seed_and_are_spread_over_racks():
    fabric = load_topology("cluster-24")
    listed = {"present": [{"model": "VGG16", "workers": 5}], "arriving": [{}]}
    requested, empty = (trace("dynamic", **listed, state=state) for state in ("fragmented", "empty"))
    requests = trace_requests(requested, GPUS, 1)
    drawn = [initial_placements(requested, requests, fabric, seed)["vgg16-1"] for seed in range(20)]
    assert len(set(drawn)) == 20
    assert fmean(len({host_tree_of(fabric).racks[host] for host in each}) for each in drawn) > 2
    assert initial_placements(empty, requests, fabric, 1) == {}


def test_an_empty_state_is_stored_as_before_the_field_existed():
    assert "state" not in trace("dynamic", present=[{}], arriving=[{}]).model_dump()
    assert trace("dynamic", present=[{}], arriving=[{}], state="fragmented").model_dump()["state"] == "fragmented"


def test_a_snapshot_is_table_4_3s():
    jobs = [{"model": "WideResNet101", "batch": 800, "workers": 2}, {"model": "VGG16", "batch": 1400, "workers": 2}]
    found = trace_requests(trace("snapshot", jobs=jobs), GPUS, 1)
    assert [(each.arrives_s, each.batch) for each in found] == [(0, 800), (0, 1400)]


def test_a_real_trace_keeps_its_arrivals_gpus_and_durations():
    rows = [
        SubmittedJob(name="late", at_s=100.0, gpus=4, ran_s=600.0),
        SubmittedJob(name="early", at_s=40.0, gpus=2, ran_s=None),
        SubmittedJob(name="wide", at_s=50.0, gpus=64, ran_s=60.0),
    ]
    found = trace_requests(trace("philly", file="log"), GPUS, 1, submitted=rows)
    assert [(each.name, each.arrives_s, each.workers) for each in found] == [("early-1", 0, 2), ("late-2", 60, 4)]
    assert alone_s(found[1]) == pytest.approx(600, rel=0.01)
    assert 200 <= found[0].iterations <= 1000
    assert len(trace_requests(trace("philly", file="log", jobs=1), GPUS, 1, submitted=rows)) == 1


@pytest.mark.parametrize(
    "requested",
    [
        trace("snapshot", jobs=[{"model": "BERT"}, {"model": "BERT", "workers": 25}]),
        trace("philly", file="log", workers={"least": 1, "most": 64}),
    ],
)
def test_a_job_that_never_fits_is_said(requested):
    rows = [SubmittedJob(name="wide", at_s=0.0, gpus=25)]
    with pytest.raises(
        TraceError, match=r"(snapshot trace, job bert-2|philly trace, job wide-1): found 25 workers, expe"
    ):
        trace_requests(requested, GPUS, 1, submitted=rows)


def test_a_trace_without_jobs_is_said():
    with pytest.raises(TraceError, match="lingjun trace: found no job"):
        trace_requests(trace("lingjun", file="job.csv"), GPUS, 1)


def test_an_unknown_model_is_said():
    with pytest.raises(ModelError, match="'VGG12'"):
        trace_requests(trace("snapshot", jobs=[{"model": "VGG12"}]), GPUS, 1)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("poisson", {"load": 0.9}),
        ("poisson", {"load": 0.9, "jobs": 3, "minutes": 3}),
        ("poisson", {"load": 0, "jobs": 3}),
        ("poisson", {"load": 0.9, "jobs": 3, "workers": {"least": 3, "most": 2}}),
        ("snapshot", {"jobs": []}),
        ("dynamic", {"present": [{}]}),
        ("other", {}),
    ],
)
def test_an_invalid_trace_is_refused(kind, fields):
    with pytest.raises(ValidationError):
        trace(kind, **fields)
