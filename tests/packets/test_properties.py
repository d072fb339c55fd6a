# SPDX-License-Identifier: Apache-2.0
"""Properties of every trial that is played packet by packet, on random jobs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.packets import PS_PER_MS, Fabric, count_packet_hops, play_trial
from roundabout.models.packets.hardware_defaults import frame_bytes, payload_bytes
from roundabout.spec import TrialSpec
from tests.packets.random_trials import FILE, HOSTS, RATE, SAMPLE_MS, play, profile, sent_bytes, trials
from tests.trials import build_trial

pytestmark = pytest.mark.unit

PAYLOAD = payload_bytes(1500)


@settings(max_examples=40, deadline=None)
@given(trials())
def test_bytes_are_conserved_and_every_job_ends(spec: TrialSpec) -> None:
    played = play(spec)
    ports = played.samples.ports
    pairs = [pair for name in spec.jobs for pair in played.pairs[name].values()]
    assert sum(pair.packets - pair.delivered for pair in pairs) == ports["drops"][-1].sum()
    for name, job in spec.jobs.items():
        assert played.iterations[name].shape == (len(job.workers), spec.iterations)
        assert sum(pair.acked for pair in played.pairs[name].values()) == sent_bytes(spec, name)
    # Frames into hosts are those of data that arrived, and of ACKs, NACKs and CNPs.
    into = [place for place, (ends, _) in enumerate(played.ports.directions) if ends[1] in HOSTS]
    control = ports["tx_packets"][-1, into].sum() - sum(pair.delivered for pair in pairs)
    assert control >= len(pairs)
    assert (ports["backlog_bytes"][-1] == 0).all()


@settings(max_examples=25, deadline=None)
@given(trials())
def test_no_link_carries_more_than_its_rate(spec: TrialSpec) -> None:
    carried = np.diff(play(spec).samples.ports["tx_bytes"], axis=0)
    frames = RATE * SAMPLE_MS / 1e3 * frame_bytes(PAYLOAD) / PAYLOAD
    # Control frames are quicker by the byte, and few; a frame is counted as its first bit leaves.
    assert carried.max(initial=0) <= 1.02 * frames + frame_bytes(PAYLOAD)


@settings(max_examples=25, deadline=None)
@given(trials(queues=("thresholds", "step")))
def test_lossless_queues_drop_nothing_and_keep_the_order(spec: TrialSpec) -> None:
    played = play(spec)
    assert played.samples.ports["drops"][-1].sum() == 0
    assert played.samples.hosts["out_of_sequence"][-1].sum() == 0
    assert all(pair.resent == 0 for name in spec.jobs for pair in played.pairs[name].values())


@settings(max_examples=15, deadline=None)
@given(trials(), st.integers(0, 2**62))
def test_a_seed_gives_the_same_bytes(spec: TrialSpec, seed: int) -> None:
    one, again = (play(spec, seed) for _ in range(2))
    for name in spec.jobs:
        assert one.iterations[name].tobytes() == again.iterations[name].tobytes()
    for column, counts in one.samples.ports.items():
        assert counts.tobytes() == again.samples.ports[column].tobytes()


def dumbbell(profiles: dict[str, Any], jobs: dict[str, Any], **fields: Any) -> TrialSpec:
    return build_trial(**FILE | {"profiles": profiles, "jobs": jobs, **fields})


def test_equal_flows_get_equal_shares_over_time() -> None:
    jobs = {f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 3}"], "jitter": 0} for k in range(3)}
    transport = {"name": "dcqcn", "set": "sigcomm15"}
    spec = dumbbell({"p": profile("ring", 20_000_000, 4)}, jobs, iterations=6, transport=transport)
    sent = play_trial(spec, 1, Fabric(), 1.0).samples.ports["tx_bytes"][:, [0, 2, 4]]
    until = 55
    shares = sent[until] / sent[until].sum()
    assert shares == pytest.approx([1 / 3] * 3, rel=0.1)


def test_an_isolated_iteration_takes_what_its_profile_says() -> None:
    jobs = {"a": {"profile": "p", "workers": ["s0", "s3"], "jitter": 0, "flows": 2}}
    spec = dumbbell({"p": profile("ring", 10_000_000, 3)}, jobs, iterations=3)
    [found] = play(spec).iterations.values()
    ms = (found["end_ps"] - found["start_ps"]) / PS_PER_MS
    assert ms.min() >= 3.5
    assert ms.max() < 3.5 + 0.02  # the last packet's way there and its ACK's back
    assert ((found["compute_end_ps"] - found["start_ps"]) / PS_PER_MS == 0.5).all()


def test_a_plan_counts_the_packets_that_are_sent() -> None:
    jobs = {"a": {"profile": "p", "workers": ["s0", "s1", "s3"], "jitter": 0, "flows": 2}}
    spec = dumbbell({"p": profile("ring", 1_000_000, 1)}, jobs, iterations=3)
    played = play(spec)
    control = 0.01 * played.packet_hops  # ACKs
    assert count_packet_hops(spec) == pytest.approx(played.packet_hops, abs=control)


def test_jitter_is_drawn_by_the_seed() -> None:
    jobs = {"a": {"profile": "p", "workers": ["s0", "s3"], "jitter": 0.1}}
    spec = dumbbell({"p": profile("ring", 100_000, 1)}, jobs, iterations=20)

    def computed_ms(seed: int) -> list[float]:
        found = play(spec, seed).iterations["a"][0]
        return ((found["compute_end_ps"] - found["start_ps"]) / PS_PER_MS).tolist()

    assert computed_ms(1) != computed_ms(2)
    assert np.std(computed_ms(1)) == pytest.approx(0.05, rel=0.6)
