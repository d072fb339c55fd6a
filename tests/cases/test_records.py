# SPDX-License-Identifier: Apache-2.0
"""Records after public reports, a folder each: the exchanges that pencil and paper give, or a message."""

from itertools import pairwise
from pathlib import Path

import pytest

from analysis.records.call import RecordError
from analysis.records.collective_groups import sent_bytes
from analysis.records.formats import fabric_of
from analysis.records.job import Job, join_records
from analysis.records.profile import make_profile, read_records
from analysis.records.profile_maker import describe_ranks
from analysis.statistics import phases

pytestmark = pytest.mark.unit

HERE = Path(__file__).parent
MS = 1_000_000


def files_of(case: str) -> list[Path]:
    return sorted((HERE / case).iterdir())


def job_of(case: str) -> Job:
    _, records = read_records(files_of(case))
    return join_records(records)


@pytest.mark.parametrize(
    ("case", "exchanges", "send_ms", "sent_mb"),
    [
        ("kineto-allgather-uneven", 14, 40, 50),  # (n-1)/n of 100 MB
        ("kineto-alltoallv-own-chunk", 14, 4, 4),  # 1,000,000 of 25,000,000 floats go to the other rank
        ("kineto-bom", 14, 50, 100),
        ("kineto-not-utf8", 14, 50, 100),
        ("kineto-ondemand-ranks-text", 14, 50, 100),
        ("kineto-pg-config-names", 14, 50, 100),
        ("kineto-steps-twice", 14, 50, 100),
        ("kineto-groups-within-a-host", 28, 40, 100),  # two groups beside each other
        ("inspector-blank-line", 14, 50, 100),
        ("inspector-clock-step", 7, 50, 100),
    ],
)
def test_a_reported_case_gives_the_exchanges_that_it_records(case, exchanges, send_ms, sent_mb):
    job = job_of(case)
    assert len(job.exchanges) == exchanges
    assert {each.end_ns - each.begin_ns for each in job.exchanges} == {send_ms * MS}
    assert {sent_bytes(each) for each in job.exchanges} == {sent_mb * 1_000_000}
    begins_ns = sorted({each.begin_ns for each in job.exchanges})
    assert {after - before for before, after in pairwise(begins_ns)} == {150 * MS}
    assert job.lost_share == 0


def test_a_step_on_the_cpu_and_the_gpu_is_one_step():
    assert [len(record.steps_ns) for record in job_of("kineto-steps-twice").records] == [14, 14]


def test_all_to_alls_of_unlike_amounts_are_taken_with_their_mean():
    job = job_of("kineto-alltoallv-uneven-ranks")
    assert len(job.exchanges) == 14
    assert sent_bytes(job.exchanges[0]) == 4 * (10142828 + 14222560) // 2  # In split size of call 1 in both files
    uneven = "all-to-alls are uneven: ranks send 656.7 to 666.3 MB in all of them, and the profile has the mean of each"
    assert uneven in job.notes
    assert sum(map(sent_bytes, job.exchanges)) / 1e6 == pytest.approx((656.7 + 666.3) / 2, rel=0.001)


def test_all_kernels_of_nccl_s_symmetric_memory_count():
    sent = [sent_bytes(each) for each in job_of("kineto-symmetric-kernels").exchanges]
    assert sent == [200_000_000, 100_000_000] * 14


def test_groups_within_a_host_are_computing_in_the_profile(monkeypatch):
    monkeypatch.setattr(phases, "RESAMPLINGS", 3)
    found = make_profile(files_of("kineto-groups-within-a-host"), "case")
    computing, sending = found.timeline.found.phases
    assert [each.duration_ms.value for each in (computing, sending)] == pytest.approx([110, 40], rel=0.005)
    assert sending.gbps.value == pytest.approx(20, rel=0.005)
    within = "28 of 56 exchanges are within one host (all-reduce) and count as computing, as no network carries them."
    assert within in found.caveats


def test_the_longer_side_of_a_clock_that_was_set_makes_a_profile(monkeypatch):
    monkeypatch.setattr(phases, "RESAMPLINGS", 3)
    found = make_profile(files_of("inspector-clock-step"), "case")
    assert found.timeline.found.period_ms.value == pytest.approx(150, rel=0.005)
    said = "The clock of gpu1 (h1.log) was set by +3600.0 s after 7 calls"
    assert any(caveat.startswith(said) for caveat in found.caveats)


@pytest.mark.parametrize(
    ("case", "said", "hint"),
    [
        ("kineto-dur-text", "lack 7.1 % of the calls (r0.json: .* (field dur: found '', expected a number", None),
        ("kineto-huge-dur", "field dur: found 1.844674407370955e+16, expected a number", None),
        ("kineto-inf-dur", "field dur: found inf, expected a number", None),
        ("kineto-nan-dur", "field dur: found nan, expected a number", None),
        ("kineto-no-ts", "field ts: found none, expected a number", None),
        ("kineto-zero-times", "lack 50.0 % of the calls (r0.json: .* the event has no time", None),
        ("kineto-hint-old-pytorch", "14 ncclDevKernel_AllReduce_Sum_f32_RING_LL", "record with PyTorch 2.3 or later"),
        ("inspector-alltoall", "sizes are not documented: 14 'AlltoAll'", "record with PyTorch Kineto"),
        ("inspector-one-node", "found calls within one host only, expected calls between hosts", None),
        ("pytorch-execution-trace", "found PyTorch's execution trace", "give the Kineto trace"),
    ],
)
def test_a_reported_case_is_refused_by_its_cause(case, said, hint):
    with pytest.raises(RecordError) as refused:
        job_of(case)
    place = 0
    for part in said.split(".*"):
        place = refused.value.message.index(part, place)
    assert str(HERE / case) in refused.value.message
    assert (refused.value.hint or "").startswith(hint or "")
    assert bool(hint) == bool(refused.value.hint)


def test_groups_of_nccl_tests_are_distinguished_from_all_ranks():
    fabric = fabric_of(HERE / "nccl-tests-split" / "o.json")
    assert fabric is not None
    assert describe_ranks(fabric) == ", 4 groups of 2 ranks at once"
    # doc/PERFORMANCE.md: 2 (n - 1) / n is 1 among 2 ranks, and would be 1.75 among 8.
    assert {each.bus_gbps / each.algorithm_gbps for each in fabric.measured} == {1.0}
