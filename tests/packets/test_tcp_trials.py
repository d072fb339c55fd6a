# SPDX-License-Identifier: Apache-2.0
"""Trials over TCP: every transport with a form for hosts plays, and MLTCP moves two jobs apart over each base."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.packets import PS_PER_MS, Fabric, PlayedTrial, UnsupportedError, play_trial
from roundabout.models.packets.tcp import NAMES, connection_plan, tcp_settings
from roundabout.models.packets.transports import transport_values
from roundabout.spec import TrialSpec
from roundabout.spec.patterns import PATTERNS
from roundabout.spec.transports import Transport
from tests.packets.random_trials import play, sent_bytes, trials
from tests.trials import build_trial
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

COMPUTE_MS, ALONE_MS = 20.0, 37.5
BYTES = 90_000_000
"""At 41 Gbit/s, a little less than the link carries."""


def trial(
    transport: dict[str, Any], jobs: int = 2, queue_bytes: int | None = None, pattern: str = "ring", **fields: Any
) -> TrialSpec:
    """Jobs of two flows that want nearly all of the link while they send, each 6 ms after the one before."""
    profile = two_phases(COMPUTE_MS, BYTES, ALONE_MS - COMPUTE_MS, pattern=pattern)
    own = {
        "profiles": {"p": profile},
        "jobs": {
            f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 2}"], "flows": 2, "start_offset_ms": 6 * k}
            for k in range(jobs)
        },
        "transport": transport,
        "queue": "auto",
        "iterations": 1,
    }
    found = build_trial(**own | fields)
    if queue_bytes is None:
        return found
    return found.model_copy(
        update={"topology": found.topology.model_copy(update={"queue": "lossy", "queue_bytes": queue_bytes})}
    )


def iteration_ms(played: PlayedTrial) -> list[float]:
    """Return the mean of the jobs' iterations, one after the other."""
    spans = [(each["end_ps"] - each["start_ps"])[0] / PS_PER_MS for each in played.iterations.values()]
    return np.mean(spans, axis=0).tolist()


GIVEN = {"iteration_bytes": BYTES, "gap_us": 5000}
STEP = {"ecn": {"Kmin_bytes": 80_000, "Kmax_bytes": 80_000, "Pmax": 1.0}}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("base", "fields", "learned", "queue_bytes"),
    [("reno", {}, GIVEN, 300_000), ("cubic", {}, GIVEN, 300_000), ("dctcp", STEP, {}, None)],
)
def test_jobs_move_apart_over_mltcp_and_not_over_its_base(
    base: str, fields: dict[str, Any], learned: dict[str, Any], queue_bytes: int | None, seed: int
) -> None:
    apart = trial({"name": f"mltcp_{base}", **fields, **learned}, queue_bytes=queue_bytes, iterations=8)
    assert np.mean(iteration_ms(play_trial(apart, seed, Fabric()))[-2:]) < 1.08 * ALONE_MS
    if seed == 1:
        together = trial({"name": base, **fields}, queue_bytes=queue_bytes, iterations=6)
        assert np.mean(iteration_ms(play_trial(together, seed, Fabric()))[-2:]) > 1.38 * ALONE_MS


@pytest.mark.parametrize("name", NAMES)
def test_an_iteration_alone_takes_what_its_profile_says(name: str) -> None:
    played = play_trial(trial({"name": name}, jobs=1, iterations=2), 1, Fabric())
    assert max(iteration_ms(played)) < ALONE_MS * 1.02
    assert played.samples.ports["drops"][-1].sum() == 0


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_every_pattern_is_played(pattern: str) -> None:
    spec = trial({"name": "dctcp"}, pattern=pattern, iterations=1)
    played = play_trial(spec, 1, Fabric())
    for name, job in spec.jobs.items():
        sent = sum(each.bytes for phase in job.profile.phases for each in job.transfers(phase))
        assert sum(pair.acked for pair in played.pairs[name].values()) == sent


@settings(max_examples=25, deadline=None)
@given(trials(), st.sampled_from(NAMES), st.integers(4_000, 2_000_000), st.integers(0, 2**62))
def test_random_jobs_end_with_all_their_bytes(spec: TrialSpec, name: str, queue_bytes: int, seed: int) -> None:
    transport = Transport.model_validate({"name": name})
    jobs = {key: job.model_copy(update={"transport": transport}) for key, job in spec.jobs.items()}
    topology = spec.topology.model_copy(update={"queue": "lossy", "queue_bytes": queue_bytes})
    over_tcp = spec.model_copy(update={"jobs": jobs, "topology": topology})
    played = play(over_tcp, seed)
    pairs = [pair for each in played.pairs.values() for pair in each.values()]
    for key, job in spec.jobs.items():
        assert played.iterations[key].shape == (len(job.workers), spec.iterations)
        assert sum(pair.acked for pair in played.pairs[key].values()) == sent_bytes(spec, key)
    lost = sum(pair.packets - pair.delivered for pair in pairs)
    assert lost == played.samples.ports["drops"][-1].sum()
    assert sum(pair.resent for pair in pairs) >= lost


def test_queues_and_settings_choose_what_linux_does() -> None:
    drops, marks = (trial({"name": name}) for name in ("reno", "dctcp"))
    hosts = Fabric().tcp
    assert tcp_settings(drops, hosts).items() >= {"is_ecn": 0, "has_tail_loss_probe": 1, "ack_segments": 2}.items()
    assert tcp_settings(marks, hosts).items() >= {"is_ecn": 1, "has_tail_loss_probe": 0}.items()
    requested = trial({"name": "cubic"}, tcp={"ecn": True, "tail_loss_probes": False, "delayed_acks": False})
    assert tcp_settings(requested, hosts).items() >= {"is_ecn": 1, "has_tail_loss_probe": 0, "ack_segments": 1}.items()


def test_dctcp_is_marked_in_any_queue() -> None:
    transport = Transport.model_validate({"name": "dctcp", "g": 0.25})
    spec = trial({"name": "reno"}, queue="drop-tail")
    plan = connection_plan(tcp_settings(spec, Fabric().tcp), transport, transport_values(transport, 43))
    assert plan.is_ecn == 1
    assert plan.congestion.g_q24 == 1 << 22


def test_a_transport_without_a_form_for_hosts_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"'bbr', which has no form for hosts, allowed is dcqcn, .*mltcp_dctcp"):
        play_trial(trial({"name": "bbr"}), 1, Fabric())
