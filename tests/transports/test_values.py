# SPDX-License-Identifier: Apache-2.0
"""Parameters belong to a network namespace, in the papers' units, and can be read back."""

import json
from pathlib import Path
from typing import Any

import pytest

from roundabout.spec.transports import Parameter, registry

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

WANTED = {
    "T_us": 100,
    "F": 5,
    "byte_counter_bytes": 10_000_000,
    "R_AI_mbps": 0.8,
    "R_HAI_mbps": 8,
    "R_min_mbps": 0.1,
    "R_max_mbps": 1000,
    "g": 0.0625,
    "alpha_timer_us": 55,
    "cnp_gap_us": 50,
    "cnp_delay_us": 700,
    "clamp_target": 1,
    "clamp_target_after_timer": 0,
    "hyper_by_stage": 0,
    "alpha_by_timer": 0,
    "alpha_initial": 0.5,
    "rate_on_first_cnp_mbps": 400,
}


def test_every_parameter_is_set_and_read_back(pair: Any, dcqcn: str) -> None:
    host, other = pair
    answer = host.transport("set", "dcqcn", *(f"{name}={value}" for name, value in WANTED.items()))
    assert answer["own_entry"]
    assert answer["params"] == pytest.approx(WANTED, rel=1e-6)
    assert host.transport("get", "dcqcn")["params"] == answer["params"]
    assert not other.transport("get", "dcqcn")["own_entry"]


def test_parameters_that_are_set_at_once_are_all_set(pair: Any, dcqcn: str, tools: Any) -> None:
    host, _ = pair
    script = 'for each in "$@"; do "$0" set dcqcn "$each" > /dev/null & done; wait'
    for number in range(1, 21):
        wanted = {"T_us": number, "F": number, "cnp_gap_us": number, "alpha_timer_us": number}
        assignments = [f"{each}={number}" for each in wanted]
        host.run("sh", "-c", script, str(tools.build / "bin/transport"), *assignments)
        params = host.transport("get", "dcqcn")["params"]
        assert {each: params[each] for each in wanted} == wanted


def test_unset_restores_the_default(pair: Any, dcqcn: str) -> None:
    host, _ = pair
    before = host.transport("get", "dcqcn")
    host.transport("set", "dcqcn", "T_us=7")
    assert host.transport("unset", "dcqcn")["params"] == before["params"]


@pytest.mark.parametrize("wrong", ["T_us=abc", "T_us=0", "T_us=-1", "T_us=", "T_us", "t_us=1", "T_us=nan", "T_us=1e99"])
def test_bad_values_name_what_was_expected(pair: Any, dcqcn: str, tools: Any, wrong: str) -> None:
    host, _ = pair
    before = host.transport("get", "dcqcn")["params"]
    answer = host.run(str(tools.build / "bin/transport"), "set", "dcqcn", wrong, check=False)
    assert answer.returncode == 2
    assert "expected" in answer.stderr and wrong.partition("=")[2] in answer.stderr
    assert host.transport("get", "dcqcn")["params"] == before


def test_rates_that_are_out_of_order_are_refused(pair: Any, dcqcn: str, tools: Any) -> None:
    host, _ = pair
    words = ["set", "dcqcn", "R_min_mbps=7", "R_max_mbps=5"]
    answer = host.run(str(tools.build / "bin/transport"), *words, check=False)
    assert answer.returncode == 2
    assert "R_min_mbps: found 7, with R_max_mbps 5, expected R_min_mbps no higher than R_max_mbps" in answer.stderr


def test_parameters_change_a_running_flow(pair: Any, dcqcn: str, tools: Any) -> None:
    """Without marks a flow runs at R_max; half of it gives half the bytes."""
    sender, receiver = pair
    for host in pair:
        host.run("sysctl", "-qw", "net.ipv4.tcp_congestion_control=rb_dcqcn")
    taken = []
    for rate_mbps in (80, 40):
        sender.transport("set", "dcqcn", f"R_max_mbps={rate_mbps}", "R_HAI_mbps=1000", "T_us=100", "F=1")
        taken.append(tools.transfer(sender, receiver, 1.0) * 8 / 1e6 / rate_mbps)
    assert taken == pytest.approx([1.0, 1.0], rel=0.15)
    counters = sender.transport("get", "dcqcn")["counters"]
    assert counters["acks"] > 0 and counters["cnps"] == 0 and counters["segments_marked"] == 0
    assert counters["rate_mbps"] == pytest.approx(40, rel=0.01)


def test_a_flow_is_active_however_long_the_timers_period_is(pair: Any, dcqcn: str, tools: Any) -> None:
    """Let 64 periods of 2^26 us be 2^32 us."""
    sender, receiver = pair
    for host in pair:
        host.run("sysctl", "-qw", "net.ipv4.tcp_congestion_control=rb_dcqcn")
    sender.transport("set", "dcqcn", f"T_us={2**26}")
    tools.transfer(sender, receiver, 0.3)
    counters = sender.transport("get", "dcqcn")["counters"]
    assert counters["active_us"] > 0 and counters["feedback_per_T"] > 0


def test_the_program_declares_what_its_source_does(tools: Any) -> None:
    """Python reads a header's lines, the tool and the sampler the program's BTF: of every transport of the tree."""
    for name in registry.program_names():
        declared = registry.find_declaration(name)
        assert declared
        for variant in ("", ".before_6_10"):
            path = tools.build / "bpf" / f"{name}{variant}.bpf.o"
            found = json.loads(tools.transport("describe", str(path)).stdout)
            assert found["parameters"] == [declared_as(each) for each in declared.parameters if each.chosen_by != "nic"]
            units = {each["name"]: each.get("unit") or each["formula"] for each in found["counters"]}
            assert units == {
                **{each.name: each.unit for each in declared.counters},
                **{each.name: each.formula for each in declared.derived},
            }


def declared_as(parameter: Parameter) -> dict[str, Any]:
    """What the tool prints of a parameter."""
    if parameter.names:
        return {"name": parameter.name, "names": " ".join(parameter.names), "value": parameter.value}
    return {name: getattr(parameter, name) for name in ("name", "unit", "value", "least", "most")}


def test_a_file_that_is_no_program_is_refused(tools: Any, tmp_path: Path) -> None:
    (tmp_path / "none.bpf.o").write_text("nothing")
    refused = tools.transport("describe", str(tmp_path / "none.bpf.o"))
    assert refused.returncode == 1
    assert "cannot read" in refused.stderr
