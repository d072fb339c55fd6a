# SPDX-License-Identifier: Apache-2.0
"""nccl-tests' JSON: each version as the program writes it, and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from analysis.records import profile_maker
from analysis.records.call import RecordError
from analysis.records.readers import nccl_tests

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).with_name("examples") / "nccl-tests"
NAMES = sorted(path.name for path in EXAMPLES.iterdir())


@pytest.fixture
def edited(tmp_path):
    """An example, read after `change` was made to it."""

    def reading(change):
        entry = json.loads((EXAMPLES / "version-3.json").read_bytes())
        change(entry)
        path = tmp_path / "out.json"
        path.write_text(json.dumps(entry))
        return nccl_tests.read(path)

    return reading


@pytest.mark.parametrize("name", NAMES)
def test_each_version_gives_the_same_fabric(name):
    path = EXAMPLES / name
    assert nccl_tests.recognizes(path.read_bytes())
    fabric = nccl_tests.read(path)
    assert (fabric.collective, fabric.nccl, fabric.ranks, fabric.hosts) == ("all_reduce", "2.30.7", 4, ("n1",))
    assert [(each.size_bytes, each.in_place, each.checked) for each in fabric.measured] == [
        (26214400, False, True),
        (26214400, True, True),
        (52428800, False, True),
        (52428800, True, True),
    ]
    first = fabric.measured[0]
    assert first.time_us == 3100.0
    # 8 bits a byte: both rates follow from size and time, the bus's by 2 (n - 1) / n (doc/PERFORMANCE.md).
    assert first.algorithm_gbps == pytest.approx(8 * first.size_bytes / first.time_us / 1e3, rel=1e-6)
    assert first.bus_gbps == pytest.approx(first.algorithm_gbps * 2 * 3 / 4, rel=1e-6)
    assert fabric.average_bus_gbps == pytest.approx(sum(each.bus_gbps for each in fabric.measured) / 4, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_environment_is_kept(name):
    kept = repr(nccl_tests.read(EXAMPLES / name))
    assert "TOKEN" not in kept
    assert "someone" not in kept
    assert "25M" not in kept


def test_threads_and_gpus_of_a_process_are_ranks(edited):
    assert edited(lambda entry: entry["config"].update(nthreads=2, ngpus=4)).ranks == 8


@pytest.mark.parametrize(
    ("groups", "sizes", "said"),
    [
        ([0, 0, 0, 0], (4,), ", 4 ranks"),
        ([0, 1, 0, 1], (2, 2), ", 2 groups of 2 ranks at once"),
        ([5, 5, 5, 9], (3, 1), ", 2 groups of 1 and 3 ranks at once"),
        ([0, 1, 2, 3], (1, 1, 1, 1), ", 4 groups of 1 ranks at once"),
    ],
)
def test_groups_that_run_at_once_are_distinguished(edited, groups, sizes, said):
    def change(entry):
        device = entry["config"]["devices"][0]
        entry["config"].update(nthreads=1, ngpus=1, devices=[{**device, "group": group} for group in groups])

    fabric = edited(change)
    assert (fabric.ranks, fabric.group_sizes) == (4, sizes)
    assert profile_maker.describe_ranks(fabric) == said


def test_threads_and_gpus_count_in_each_group(edited):
    def change(entry):
        device = entry["config"]["devices"][0]
        entry["config"].update(nthreads=2, ngpus=4, devices=[{**device, "group": group} for group in (0, 1)])

    assert edited(change).group_sizes == (8, 8)


def test_results_that_were_not_checked_are_stated(edited):
    fabric = edited(lambda entry: entry["results"][0]["in_place"].update(nwrong=None))
    assert [each.checked for each in fabric.measured] == [True, False, True, True]
    assert fabric.notes == ("Results of 1 of 4 were not checked.",)


def test_a_way_that_was_not_run_is_left_out(edited):
    fabric = edited(lambda entry: entry["results"][0].update(out_of_place=None))
    assert [each.in_place for each in fabric.measured] == [True, False, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda entry: entry.update(version=4), "field version: found 4, expected one of 1, 2, 3"),
        (lambda entry: entry["results"][1]["in_place"].update(nwrong=7.0), "field nwrong: found 7 of size 52428800"),
        (lambda entry: entry["out_of_bounds"].update(count=3, okay="false"), "field out_of_bounds: found 3 wrong"),
        (lambda entry: entry["results"][0]["in_place"].update(cpu_time=3.0), "field cpu_time: found the CPU's time"),
        (lambda entry: entry["results"][0]["in_place"].update(bus_bw="nan"), "field bus_bw: found 'nan'"),
        (lambda entry: entry.update(results=[]), "field results: found no size"),
        (lambda entry: entry.pop("average_bus_bandwidth"), "field average_bus_bandwidth: found none"),
        (lambda entry: entry.update(args=[]), "field args[0]: found none, expected text"),
    ],
)
def test_a_fault_in_nccl_tests_results_is_named(change, said, edited):
    with pytest.raises(RecordError) as refused:
        edited(change)
    assert said in refused.value.message


def test_a_run_that_was_broken_off_is_refused(tmp_path):
    path = tmp_path / "out.json"
    path.write_bytes((EXAMPLES / "version-3.json").read_bytes()[:-40])
    with pytest.raises(RecordError, match="found no JSON, or one that was cut off"):
        nccl_tests.read(path)


RATES = st.floats(0, 1e6).map(lambda value: round(value, 6))


@given(rows=st.lists(st.tuples(st.integers(0, 2**40), RATES, RATES, RATES, st.booleans()), min_size=1, max_size=9))
def test_written_nccl_tests_results_are_read_back(rows, tmp_path_factory):
    entry = json.loads((EXAMPLES / "version-2.json").read_bytes())
    entry["results"] = [
        {"size": size, "in_place" if in_place else "out_of_place": {"time": time, "alg_bw": alg, "bus_bw": bus}}
        for size, time, alg, bus, in_place in rows
    ]
    path = tmp_path_factory.mktemp("tests") / "out.json"
    path.write_text(json.dumps(entry))
    found = nccl_tests.read(path).measured
    assert [(each.size_bytes, each.time_us, each.algorithm_gbps, each.bus_gbps, each.in_place) for each in found] == [
        (size, time, 8 * alg, 8 * bus, in_place) for size, time, alg, bus, in_place in rows
    ]
