# SPDX-License-Identifier: Apache-2.0
"""Models as functions of workers and batch: they agree with the shipped profiles, and their guesses have ranges."""

import math

import pytest
from hypothesis import given, strategies as st

from roundabout.models.cluster.models import (
    ModelError,
    divide_model,
    examples_per_s,
    expand_sets,
    find_model,
    make_profile,
    noise_examples,
    read_models,
)
from roundabout.spec import load_profile

pytestmark = pytest.mark.unit

NAMES = sorted(read_models().models)
WORKERS = range(1, 13)


@pytest.mark.parametrize(
    ("shipped", "name", "batch"),
    [
        ("vgg16-1200-v2", "VGG16", 1200),
        ("vgg16-1400-v2", "VGG16", 1400),
        ("vgg19-1024-v2", "VGG19", 1024),
        ("vgg19-1400-v2", "VGG19", 1400),
        ("wideresnet101-800-v2", "WideResNet101", 800),
        ("resnet50-1600-v2", "ResNet50", 1600),
        ("bert-8-v2", "BERT", 8),
        ("roberta-12-v2", "RoBERTa", 12),
        ("dlrm-2000", "DLRM", 2000),
    ],
)
def test_two_workers_have_the_shipped_profiles(shipped, name, batch):
    ours, theirs = make_profile(name, 2, batch), load_profile(shipped)
    assert ours.compute_ms == pytest.approx(theirs.compute_ms, rel=0.001)
    assert ours.comm_ms == pytest.approx(theirs.comm_ms, abs=0.1)
    assert ours.comm_bytes == pytest.approx(theirs.comm_bytes, rel=1e-5)


@pytest.mark.parametrize(
    ("shipped", "name", "workers", "batch", "within"),
    [("gpt2-pipeline", "GPT2-A", 2, 24, 0.1), ("gpt3-hybrid", "GPT3", 8, 32, 0.06)],
)
def test_the_shipped_hybrids_have_the_same_phases_among_the_same_workers(shipped, name, workers, batch, within):
    ours, theirs = make_profile(name, workers, batch).phases, load_profile(shipped).phases
    assert len(ours) == len(theirs)
    for mine, one in zip(ours, theirs, strict=True):
        assert [(each.sender, each.receiver) for each in mine.transfers(workers)] == [
            (each.sender, each.receiver) for each in one.transfers(workers)
        ]
        # gradients of a round 2 GB, all AllReduces at one rate
        assert mine.duration_ms == pytest.approx(one.duration_ms, rel=0.25, abs=0.1)
    total_ms = (sum(phase.duration_ms for phase in phases) for phases in (ours, theirs))
    assert math.isclose(*total_ms, rel_tol=within)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workers", WORKERS)
def test_every_model_runs_on_any_number_of_workers(name, workers):
    for guesses in (None, 1):
        for batch in find_model(name).batch:
            found = make_profile(name, workers, batch, guesses)
            assert bool(found.comm_bytes) == (workers > 1)
            assert found.compute_ms == pytest.approx(batch * find_model(name, guesses).compute_ms.value)
            assert all(phase.demand_gbps <= 43 * (1 + 1e-6) for phase in found.phases)
            touched = {end for phase in found.phases for each in phase.transfers(workers) for end in each[:2]}
            assert touched == (set(range(workers)) if workers > 1 else set())


def test_rings_send_by_their_length():
    two = make_profile("VGG16", 2, 1400).comm_bytes
    for workers in WORKERS[1:]:
        assert make_profile("VGG16", workers, 1400).comm_bytes == pytest.approx(
            2 * (workers - 1) / workers * two, abs=1
        )


def test_the_figures_ways_to_divide_a_model():
    plans = read_models().plans
    assert divide_model(plans["pipeline"], 2) == (1, 2, 1)  # Figure 4.1(b)
    assert divide_model(plans["hybrid"], 2) == (1, 1, 2)  # Figure 4.1(c)
    assert divide_model(plans["hybrid"], 8) == (2, 2, 2)  # Figure 4.1(d)
    assert divide_model(plans["hybrid"], 5) == (1, 5, 1)
    assert divide_model(plans["data"], 12) == (12, 1, 1)
    for plan in plans.values():
        for workers in WORKERS:
            assert math.prod(divide_model(plan, workers)) == workers


@given(seed=st.integers(0, 2**32))
def test_guesses_stay_in_their_ranges_and_what_has_a_source_stays(seed):
    stated, drawn = read_models(), read_models(seed)
    for name, found in drawn.models.items():
        one = stated.models[name]
        for figure, before in [
            (found.compute_ms, one.compute_ms),
            *((found.bytes[each], one.bytes[each]) for each in one.bytes),
            *((found.bytes_per_example[each], one.bytes_per_example[each]) for each in one.bytes_per_example),
        ]:
            if before.guess is None:
                assert figure == before
            else:
                assert before.least <= figure.value <= before.most
    assert read_models(seed) == drawn


def test_guesses_of_one_seed_are_drawn_one_by_one():
    drawn = read_models(5)
    assert drawn != read_models(6)
    assert drawn.models["RoBERTa"].compute_ms == drawn.models["BERT"].compute_ms  # one guess, not two
    places = [
        (figure.value - figure.least) / (figure.most - figure.least)
        for figure in (each.compute_ms for each in drawn.models.values())
    ]
    assert len({round(place, 6) for place in places}) == len(places) - 2  # RoBERTa and CamemBERT are like BERT


def test_every_guess_states_its_effect():
    found = read_models()
    figures = [*found.gbps.values(), *found.noise_examples.values()]
    for each in found.models.values():
        figures += [each.compute_ms, *each.bytes.values(), *each.bytes_per_example.values()]
    for figure in figures:
        assert figure.source or "Effect: " in (figure.guess or ""), figure


def test_throughput_is_what_all_workers_process_by_the_iteration_alone():
    assert examples_per_s("VGG16", 2, 1400) == pytest.approx(2 * 1400 / 0.274, rel=0.001)
    assert examples_per_s("VGG16", 1, 1400) == pytest.approx(1400 / 0.160, rel=0.001)
    assert noise_examples("VGG16") > noise_examples("BERT")


def test_sets_name_their_models_once():
    assert len(expand_sets(("mixed",))) == 13
    assert expand_sets(("data-parallel", "DLRM")) == expand_sets(("mixed",))
    assert expand_sets(("DLRM", "DLRM")) == ("DLRM",)


def test_a_model_that_there_is_none_of_is_said_with_those_near():
    with pytest.raises(ModelError, match="found the model 'VGG17', expected one of") as raised:
        expand_sets(("VGG17",))
    assert "VGG1" in raised.value.hint
    with pytest.raises(ModelError, match="found 0 workers"):
        make_profile("VGG16", 0, 32)
