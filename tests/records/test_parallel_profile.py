# SPDX-License-Identifier: Apache-2.0
"""Profiles of jobs that are divided among servers: bytes by hand, groups by rails, and what is refused."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from analysis.records.call import RecordError
from analysis.records.gpu_record import GpuRecord, read_gpu_record
from analysis.records.parallel_profile import job_of_words, measurement_of, profile_of_parallel_job
from roundabout.cli.main import main
from roundabout.spec import EXPERIMENTS, Profile, load_profile
from roundabout.spec.training.parallel_job import GPUS_PER_SERVER, read_parallel_jobs

pytestmark = pytest.mark.unit

PATH = EXPERIMENTS / "gpu-records" / "h200.jsonl.gz"
PAYLOAD_GBPS = 391.0
OF_A_GPU = 4 * 3 * 7168 * 2048
"""Parameters of a GPU's four of 256 experts of DeepSeek-V3, three matrices each. Mixtral's one expert has as many."""


@pytest.fixture(scope="module")
def record() -> GpuRecord:
    return read_gpu_record(PATH)


def made(record: GpuRecord, *words: str) -> Profile:
    job = job_of_words(words)
    return profile_of_parallel_job(job, measurement_of(job, record), words[0], PAYLOAD_GBPS)


def sent(profile: Profile) -> dict[str, int]:
    return {phase.name: phase.bytes for phase in profile.phases if phase.bytes and phase.name != "norm"}


@pytest.mark.parametrize("name", read_parallel_jobs())
def test_a_shipped_profile_is_what_the_shipped_record_makes(name, record):
    assert load_profile(name) == made(record, name)


def test_a_nic_reduces_an_eighth_of_the_servers_parameters(record):
    parameters = 80 * 855_654_400 / 8
    expected = {"parameters": 3 / 4 * parameters * 2, "gradients": 3 / 4 * parameters * 4}
    assert sent(made(record, "llama3-70b")) == pytest.approx(expected)


def test_a_stage_sends_activations_on_and_their_gradients_back(record):
    profile = made(record, "llama3-405b")
    phases = {phase.name: phase for phase in profile.phases}
    one_way, back = phases["activations"], phases["activation-gradients"]
    assert one_way.bytes == back.bytes == 16 * 4 * 8192 * 16384 * 2 / 8
    assert one_way.groups[0] == tuple(range(0, 128, 16))
    assert back.groups == tuple(group[::-1] for group in one_way.groups)


def test_parameters_of_experts_follow_from_the_layer_and_the_measured_share(record):
    within = sent(made(record, "mixtral-8x7b", "data=2"))
    shared = (1_451_270_144 - 8 * OF_A_GPU) / 8
    assert within["gradients"] == pytest.approx(32 * (OF_A_GPU + shared) * 4 / 2)
    across = sent(made(record, "deepseek-v3-stage", "data=2"))
    shared = (11_507_286_016 - 64 * OF_A_GPU) / 8
    assert across["expert-gradients"] == pytest.approx(3.625 * OF_A_GPU * 4 / 2)
    assert across["dense-gradients"] == pytest.approx(3.625 * shared * 4 * 15 / 16)


def test_a_token_goes_to_as_many_servers_as_it_has_experts_unless_the_job_says_fewer(record):
    few, many = (sent(made(record, "deepseek-v3-stage", *words))["tokens"] for words in ((), ("copies=8",)))
    assert few == pytest.approx(8 * 3.625 * 4096 * 4 * 7 / 8 * 7168 * 3)
    assert many == 2 * few


def test_without_overlap_a_worker_computes_and_then_sends_at_the_links_rate(record):
    hidden, shown = made(record, "llama3-70b"), made(record, "llama3-70b", "overlap=0")
    assert sent(hidden) == sent(shown)
    gradients = next(phase for phase in shown.phases if phase.name == "gradients")
    assert gradients.demand_gbps == pytest.approx(PAYLOAD_GBPS)
    assert shown.alone_ms == pytest.approx(hidden.alone_ms + sum(sent(shown).values()) * 8 / PAYLOAD_GBPS / 1e6)


def test_collectives_within_a_server_are_computing(record):
    slow, fast = (made(record, "llama3-70b", f"nvlink_gbps={rate}", "overlap=0") for rate in (1500, 3000))
    all_reduce = 2 * 7 / 8 * 8192 * 8192 * 2 * 8 / 1500 / 1e6
    assert slow.compute_ms - fast.compute_ms == pytest.approx(2 * 80 * 4 * all_reduce / 2, abs=0.01)
    assert sent(slow) == sent(fast)


@settings(max_examples=30)
@given(
    name=st.sampled_from(sorted(read_parallel_jobs())),
    counts=st.tuples(st.integers(1, 3), st.integers(2, 3), st.integers(1, 9)),
    overlap=st.floats(0, 1),
)
def test_phases_keep_to_rails_and_to_the_links_rate(name, counts, overlap, record):
    fields = zip(("pipeline", "data", "micro_batches", "overlap"), (*counts, round(overlap, 3)), strict=True)
    profile = made(record, name, *(f"{field}={value}" for field, value in fields))
    for phase in profile.phases:
        assert phase.demand_gbps <= PAYLOAD_GBPS * (1 + 1e-9)
        for group in phase.groups or ():
            assert len({rank % GPUS_PER_SERVER for rank in group}) == 1
        if phase.groups:
            assert sorted(rank for group in phase.groups for rank in group) == list(range(profile.workers or 0))


def test_the_command_shows_a_job_with_other_fields(capsys):
    assert main(["profile", "gpu", str(PATH), "llama3-70b", "data=8", "--json"]) == 0
    captured = capsys.readouterr()
    reported = json.loads(captured.out)["profile"]
    assert reported["workers"] == 64
    assert "data=8" in reported["source"]
    assert "64 workers at 391 Gbit/s" in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("llama3-70b", "replicas=2"), "replicas: Extra inputs are not permitted"),
        (("llama3-70b", "data=0"), "data: Input should be greater than or equal to 1"),
        (("llama3-70b", "data"), "found 'data' after the model, expected FIELD=VALUE"),
        (("llama3-70b", "data=1"), "two servers at least"),
        (("llama3-70b", "share={tensors: 4}"), "tensors divided by 8, or experts by a multiple of 8"),
    ],
)
def test_fields_that_do_not_suit_a_job_are_refused(words, message):
    with pytest.raises(RecordError, match=message):
        job_of_words(words)


def test_a_share_that_was_not_measured_is_refused(record):
    with pytest.raises(RecordError, match="0 measurements of DeepSeek-V3"):
        measurement_of(job_of_words(("deepseek-v3-stage", "share={experts: 32}")), record)
