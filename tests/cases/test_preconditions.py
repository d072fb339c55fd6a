# SPDX-License-Identifier: Apache-2.0
"""Experiments whose congestion controls get no signal, and lossless links that drop or pause each other for good."""

import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from roundabout import build_experiment
from roundabout.cli.main import main
from roundabout.models.packets import Fabric, PlayedTrial, play_trial
from roundabout.settings.settings_nic import PARAMETERS
from roundabout.spec import SpecError, TrialSpec
from roundabout.spec.pfc import find_cycle, largest_required_headroom
from roundabout.spec.preconditions import WITHOUT_SIGNALS, find_warnings, port_signals
from roundabout.spec.transports import registry
from roundabout.testbeds.packets.pfc_faults import pfc_faults
from roundabout.testbeds.packets.support import find_unreached_rates

pytestmark = pytest.mark.unit

HERE = Path(__file__).parent


def document(case: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((HERE / case / "t.yaml").read_text())
    return found


def changed(case: str, **fields: Any) -> dict[str, Any]:
    """Return a case with other fields; those of its topology have the key `topology`."""
    found = document(case)
    found["topologies"]["mine"] |= fields.pop("topology", {})
    return found | fields


def spec_of(fields: Mapping[str, Any]) -> TrialSpec:
    return build_experiment(fields).cells[0].spec


def warnings_of(fields: Mapping[str, Any]) -> list[str]:
    return find_warnings([spec_of(fields)])


def test_dctcp_over_drop_tail_is_a_warning_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(HERE / "packets-dctcp-without-ecn" / "t.yaml")
    text = "transport of j1, j2: dctcp over lossy ports with the queue drop-tail, which give it no marks"
    for words in (["validate", path], ["plan", path, "--testbed", "packets"], ["plan", path, "--testbed", "fluid"]):
        assert main(words) == 0
        assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("case", "refusal"),
    [
        ("packets-kmax-below-kmin", "expected Kmin_bytes no higher than Kmax_bytes"),
        ("packets-rate-minimum-above-line", "R_min_mbps: found 100000, with R_max_mbps 43000"),
        ("host-called-lo", "found 'lo', expected another name: the kernel gives no device this name"),
    ],
)
def test_validate_finds_what_every_testbed_refuses(case: str, refusal: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(HERE / case / "t.yaml")]) == 2
    assert refusal in capsys.readouterr().err


NEVER = {"Kmin_bytes": 1000, "Kmax_bytes": 1000, "Pmax": 0}
HIGH = {"Kmin_bytes": 10_000_000, "Kmax_bytes": 20_000_000, "Pmax": 1}
DCQCN = {"name": "dcqcn", "T_us": 125}
LOSSLESS = {"queue": "lossless", "queue_bytes": None}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"transport": DCQCN}, "dcqcn over lossy ports with the queue drop-tail, which give it no marks"),
        ({"transport": {"name": "mltcp_dcqcn"}}, "mltcp_dcqcn over lossy ports with the queue drop-tail"),
        (
            {"transport": {"name": "cubic", "ecn": NEVER}, "queue": "thresholds", "topology": LOSSLESS},
            "cubic over lossless ports with the queue thresholds, which give it no marks and no drops",
        ),
        (
            {
                "transport": {"name": "mltcp_reno", "ecn": HIGH},
                "queue": "thresholds",
                "topology": {**LOSSLESS, "buffer": {"bytes": 2_000_000, "alpha": 1}},
            },
            "mltcp_reno over lossless ports with the queue thresholds",
        ),
        (
            {"transport": {**DCQCN, "ecn": {"Kmin_bytes": 600_000, "Kmax_bytes": 700_000, "Pmax": 1}}, "queue": "red"},
            "dcqcn over lossy ports with the queue red, which give it no marks",
        ),
    ],
)
def test_a_congestion_control_without_any_signal_is_refused(fields: dict[str, Any], found: str) -> None:
    with pytest.raises(SpecError) as refused:
        build_experiment(changed("packets-dctcp-without-ecn", **fields))
    assert found in refused.value.message
    assert refused.value.field == "transport"


@given(
    name=st.sampled_from(registry.transport_names()),
    queue=st.sampled_from(["thresholds", "step", "red", "drop-tail", "auto"]),
    lossless=st.booleans(),
    kmin=st.sampled_from([None, 1000, 400_000, 600_000]),
)
@settings(max_examples=30, deadline=None)
def test_what_is_accepted_has_a_signal(name: str, queue: str, lossless: bool, kmin: int | None) -> None:
    ecn = {} if kmin is None else {"ecn": {"Kmin_bytes": kmin, "Kmax_bytes": kmin, "Pmax": 1}}
    topology = LOSSLESS if lossless else {}
    fields = changed("packets-dctcp-without-ecn", transport={"name": name, **ecn}, queue=queue, topology=topology)
    try:
        spec = spec_of(fields)
    except SpecError:
        return
    signals = port_signals(spec)
    transport = spec.jobs["j1"].transport
    assert signals or not {"reno", "cubic"} & {name.removeprefix("mltcp_")}
    assert "marks" in signals or transport.stands_for != "RDMA" or transport.name in WITHOUT_SIGNALS
    assert "marks" in signals or "dctcp" not in name or "which give it no marks" in find_warnings([spec])[0]


@pytest.mark.parametrize(
    ("transport", "warning"),
    [
        ({**DCQCN, "T_us": 80_000}, "T_us of j1, j2: found 80000, so that the timer raises a rate less than 2 times"),
        ({**DCQCN, "T_us": 10_000_000}, "T_us: found 1e+07, which no NIC has: rpg_time_reset of NVIDIA's NICs takes 1"),
        ({**DCQCN, "F": 50}, "F: found 50, which no NIC has: rpg_threshold of NVIDIA's NICs takes 1 to 31"),
        ({**DCQCN, "R_AI_mbps": 200_000}, "R_AI_mbps: found 200000, which no NIC has: rpg_ai_rate"),
        ({**DCQCN, "byte_counter_bytes": 10_000_000}, "byte_counter_bytes: found 1e+07, which no NIC has"),
    ],
)
def test_parameters_beyond_hardware_are_warnings(transport: dict[str, Any], warning: str) -> None:
    found = warnings_of(changed("packets-headroom-over-buffer", transport=transport))
    assert any(warning in text for text in found)


def test_published_sets_give_no_warning() -> None:
    for name in ("conext16", "hotnets22", "hpcc", "hpcc-config", "hpcc-paper", "nvidia", "sigcomm15"):
        assert not warnings_of(changed("packets-headroom-over-buffer", transport={"name": "dcqcn", "set": name}))


def test_declared_ranges_are_those_that_a_rack_sets() -> None:
    declared = registry.find_declaration("dcqcn")
    assert declared
    for each in declared.hardware:
        rule = PARAMETERS[each.parameter].unit.rule
        assert PARAMETERS[each.parameter].ofed == each.register
        assert rule.accepts(each.least), each
        assert rule.accepts(each.most), each
        assert not rule.accepts(each.most + 1), each


def played(fields: Mapping[str, Any]) -> tuple[TrialSpec, PlayedTrial]:
    spec = spec_of(fields)
    return spec, play_trial(spec, 1, Fabric())


# A phase of 1 ms, which fills buffers just as well.
SHORT = {
    "profile": "short",
    "iterations": 1,
    "profiles": {
        "short": {
            "model": "x",
            "phases": [
                {"name": "compute", "compute_ms": 0.1, "guess": "x"},
                {"name": "send", "bytes": 5_300_000, "alone_ms": 1, "guess": "x"},
            ],
        }
    },
}


@pytest.mark.parametrize("headroom_bytes", [0, 2000, 5000])
def test_drops_of_a_lossless_queue_are_counted_and_explained(headroom_bytes: int) -> None:
    buffer = {"bytes": 400_000, "alpha": 1, "headroom_bytes": headroom_bytes}
    fields = changed("packets-headroom-too-small", topology={"buffer": buffer}, **SHORT)
    assert any(f"headroom_bytes: found {headroom_bytes}" in text for text in warnings_of(fields))
    spec, trial = played(fields)
    dropped = int(trial.samples.ports["drops"][-1].sum())
    needed, link = largest_required_headroom(spec.topology)
    faults = pfc_faults(spec, trial)
    assert dropped
    assert sum(int(text.split("dropped ")[1].split()[0]) for text in faults) == dropped
    why = f": the headroom of {headroom_bytes} bytes is less than the {needed} that {link} needs"
    assert all(text.startswith("the lossless queue of L1 dropped") and text.endswith(why) for text in faults)


def test_the_required_headroom_drops_nothing_and_half_of_it_does() -> None:
    def drops(headroom_bytes: int) -> int:
        buffer = {"bytes": 400_000, "alpha": 1, "headroom_bytes": headroom_bytes}
        _, trial = played(changed("packets-headroom-too-small", topology={"buffer": buffer}, **SHORT))
        return int(trial.samples.ports["drops"][-1].sum())

    needed, _ = largest_required_headroom(spec_of(changed("packets-headroom-too-small", **SHORT)).topology)
    # Twice 0.6 us at 50 Gbit/s, and four frames of 1514 bytes, three of them with 24 around, and a control frame.
    assert needed == round(1.2e-6 * 50e9 / 8) + 4 * 1514 + 3 * 24 + 74 + 24
    assert drops(needed) == 0
    assert drops(7000) > 0


def test_a_small_buffer_with_its_default_headroom_passes() -> None:
    assert not warnings_of(document("packets-headroom-over-buffer"))
    spec, trial = played(changed("packets-headroom-over-buffer", **SHORT))
    assert not pfc_faults(spec, trial)


def test_a_pfc_deadlock_is_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.yaml"
    shutil.copy(HERE / "packets-pfc-deadlock" / "t.yaml", path)
    assert main(["validate", str(path)]) == 0
    assert "routes go around ab, bc, cd and da, lossless links that can pause each other" in capsys.readouterr().err
    experiment = build_experiment(document("packets-pfc-deadlock"))
    spec = experiment.cells[0].spec
    trial = play_trial(spec, 1, Fabric())
    assert trial.deadlock
    assert set(trial.deadlock.links) == {"ab", "bc", "cd", "da"}
    (fault,) = pfc_faults(spec, trial)
    assert fault == f"PFC deadlock: ab, bc, cd and da pause each other since {trial.deadlock.since_ms:.0f} ms"
    assert 150 < trial.deadlock.since_ms < 160  # computing takes 150 ms; the last sample is at 160


@pytest.mark.parametrize(
    "topology",
    [
        {"routing": {"name": "static", "seed": 1}},
        {"buffer": {"bytes": 400_000, "alpha": 1}},
        {"queue": "lossy", "buffer": None},
    ],
)
def test_no_deadlock_without_a_cycle_of_lossless_links(topology: dict[str, Any]) -> None:
    spec = spec_of(changed("packets-pfc-deadlock", topology=topology, **SHORT))
    cycle = find_cycle(route for job in spec.jobs for route in spec.routes_of(job))
    expected = bool(cycle) and not spec.may_drop
    assert bool([text for text in find_warnings([spec]) if "deadlock" in text]) == expected


@given(st.lists(st.permutations(range(6)).map(lambda order: tuple(order[:4])), max_size=5))
@settings(max_examples=50, deadline=None)
def test_cycles_are_those_of_a_depth_first_search(walks: list[tuple[int, ...]]) -> None:
    class Step:
        """A hop that is known by its number."""

        def __init__(self, number: int) -> None:
            self.link = type("Named", (), {"name": f"{number}"})

    steps = [Step(number) for number in range(6)]
    follows = {(one, other) for walk in walks for one, other in pairwise(walk)}

    def reaches(start: int, goal: int, seen: frozenset[int] = frozenset()) -> bool:
        onward = {other for one, other in follows if one == start} - seen
        return goal in onward or any(reaches(each, goal, seen | onward) for each in onward)

    found = find_cycle(tuple(steps[number] for number in walk) for walk in walks)  # type: ignore[misc]
    assert bool(found) == any(reaches(number, number) for number in range(6))
    numbers = [steps.index(each) for each in found]  # type: ignore[arg-type]
    assert all(pair in follows for pair in zip(numbers, numbers[1:] + numbers[:1], strict=True))


@pytest.mark.parametrize(
    ("transport", "payload_gbps", "mtu_bytes", "found"),
    [
        (DCQCN, 47.0, 1500, "of 1024 bytes, the most at an MTU of 1500, carry 46.29 of 50"),  # 1024 of 1106 bytes
        (DCQCN, 49.2, 9000, "of 4096 bytes, the most at an MTU of 9000, carry 49.02 of 50"),  # 4096 of 4178
        (DCQCN, 46.2, 1500, None),
        ({"name": "reno"}, 47.0, 1500, None),  # 1448 of 1538
    ],
)
def test_a_payload_rate_that_headers_of_roce_do_not_leave_is_a_warning(transport, payload_gbps, mtu_bytes, found):
    topology = {"payload_rate_gbps": payload_gbps, "mtu_bytes": mtu_bytes}
    trial = spec_of(changed("packets-kmax-below-kmin", topology=topology, transport=transport))
    texts = list(find_unreached_rates(trial))
    assert len(texts) == (found is not None)
    assert all(found in text for text in texts)
