# SPDX-License-Identifier: Apache-2.0
"""From records of a job's ranks to its profile: what is found, and what is refused."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from analysis.records.call import Call, Record, RecordError
from analysis.records.collective_groups import sent_bytes
from analysis.records.job import Exchange, join_records
from analysis.records.profile import RecordedProfile, profile_of_records
from roundabout.store import Units
from tests.records.synthetic_records import MS, Made, data_parallel

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]

SIZE = 100_000_000


def profile_of(records: list[Record]) -> RecordedProfile:
    return profile_of_records("made up", records, "made-up")


@given(
    ranks=st.integers(2, 5),
    period_ms=st.integers(60, 3000),
    share=st.floats(0.2, 0.7),
    ahead_s=st.lists(st.integers(-(10**9), 10**9), min_size=5, max_size=5),
    late_us=st.lists(st.integers(0, 1500), min_size=5, max_size=5),
)
@settings(max_examples=8, deadline=None)
def test_period_and_bytes_are_found_whatever_clocks_say(ranks, period_ms, share, ahead_s, late_us):
    made = Made(ranks, [each * 10**9 for each in ahead_s], [each * 1000 for each in late_us])
    send_ms = max(round(share * period_ms), 10)
    found = profile_of(data_parallel(ranks, SIZE, period_ms, send_ms, made=made).records())
    assert found.timeline.found.period_ms.value == pytest.approx(period_ms, rel=0.005)
    assert found.profile.comm_bytes == pytest.approx(2 * (ranks - 1) / ranks * SIZE, rel=0.01)
    # Waiting for who comes late is no transfer.
    assert found.profile.comm_ms == pytest.approx(send_ms + min(late_us[:ranks]) / 1000, rel=0.02, abs=1.5)
    assert [each - found.job.ahead_ns[0] for each in found.job.ahead_ns] == [
        (each - ahead_s[0]) * 10**9 for each in ahead_s[:ranks]
    ]


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.proof) for each in range(1, 10))])
def test_no_bytes_are_lost_where_iterations_are_uneven(seed):
    """One all-reduce each, which smears over several phases as its edges vary: each of them holds some of its bytes."""
    made, uneven, at_ms = Made(2), random.Random(seed), 0.0
    for number in range(30):
        at_ms += max(uneven.gauss(100, 4), 80)
        last_ms = max(uneven.gauss(70, 6), 40)
        made.took("all-reduce", (0, 1), number, SIZE, round(at_ms * MS), round(last_ms * MS))
        at_ms += last_ms
    found = profile_of(made.records())
    kept = sum(phase.bytes.value for phase in found.timeline.found.phases if phase.sends)
    assert found.profile.comm_bytes == pytest.approx(kept, rel=0.001)
    assert kept == pytest.approx(SIZE, rel=0.02)


def test_ranks_of_one_group_of_all_make_no_groups():
    found = profile_of(data_parallel(4, SIZE).records())
    assert found.profile.workers is None
    assert [(phase.name, phase.pattern) for phase in found.profile.phases] == [("compute", "ring"), ("send", "ring")]
    assert "all-reduce in rings" in found.profile.phases[1].source
    assert found.caveats[0].startswith("Whether the job had the network to itself is not recorded")


def test_an_all_reduce_along_trees_has_the_whole_vector_and_its_pattern():
    made = Made(4)
    for number in range(12):
        made.took("all-reduce", range(4), 2 * number, 40_000_000, 100 * number * MS, 20 * MS, is_tree=True)
        made.took("all-reduce", range(4), 2 * number + 1, 40_000_000, (100 * number + 20) * MS, 20 * MS)
    found = profile_of(made.records())
    sends = {phase.pattern: phase for phase in found.profile.phases if phase.bytes}
    assert sends["tree"].bytes == pytest.approx(40_000_000, rel=0.01)
    assert sends["ring"].bytes == pytest.approx(60_000_000, rel=0.01)
    assert "all-reduce along trees" in sends["tree"].source
    assert any(caveat.startswith("Trees are taken to be of all ranks") for caveat in found.caveats)


def test_groups_side_by_side_are_one_phase_each():
    made = Made(4)
    for number in range(12):
        begin_ns = 100 * number * MS
        for group in ((0, 1), (2, 3)):
            made.took("all-gather", group, number, 40_000_000, begin_ns, 10 * MS)
        for group in ((0, 2), (1, 3)):
            made.took("all-reduce", group, number, 90_000_000, begin_ns + 50 * MS, 30 * MS)
    found = profile_of(made.records()).profile
    sends = [(phase.groups, phase.bytes) for phase in found.phases if phase.bytes]
    assert found.workers == 4
    assert {groups for groups, _ in sends} == {((0, 1), (2, 3)), ((0, 2), (1, 3))}
    assert dict(sends)[(0, 1), (2, 3)] == pytest.approx(20_000_000, rel=0.01)
    assert dict(sends)[(0, 2), (1, 3)] == pytest.approx(90_000_000, rel=0.01)


def test_simultaneous_collectives_are_put_in_sequence_and_named():
    made = Made(4)
    for number in range(12):
        begin_ns = 100 * number * MS
        for group in ((0, 1), (2, 3)):
            made.took("all-reduce", group, number, 40_000_000, begin_ns, 20 * MS)
        for group in ((0, 2), (1, 3)):
            made.took("all-reduce", group, number, 40_000_000, begin_ns, 20 * MS)
    found = profile_of(made.records()).profile
    assert [phase.name for phase in found.phases] == ["compute", "send-1", "send-2"]
    assert found.comm_ms == pytest.approx(20, rel=0.02)
    assert "one of 2 parts" in found.phases[1].source


def test_messages_along_a_chain_are_a_pipeline():
    made = Made(3)
    for number in range(12):
        begin_ns = 100 * number * MS
        for stage in (0, 1):
            made.message(stage, stage + 1, 30_000_000, begin_ns + stage * 10 * MS, 10 * MS)
            made.message(2 - stage, 1 - stage, 30_000_000, begin_ns + (60 + stage * 10) * MS, 10 * MS)
    sends = [phase for phase in profile_of(made.records()).profile.phases if phase.bytes]
    assert {phase.pattern for phase in sends} == {"pipeline"}
    assert {phase.groups for phase in sends} == {None, ((2, 1, 0),)}
    assert [phase.bytes for phase in sends] == [pytest.approx(30_000_000, rel=0.02)] * 2


def test_messages_that_are_no_chain_are_refused():
    made = Made(3)
    for number in range(12):
        for receiver in (1, 2):
            made.message(0, receiver, 30_000_000, 100 * number * MS, 10 * MS)
    with pytest.raises(RecordError, match="a rank sends to, or receives from, several"):
        profile_of(made.records())


def test_small_exchanges_are_left_out_and_named():
    made = data_parallel(2, SIZE)
    for number in range(20):
        made.took("broadcast", (0, 1), number, 1000, 100 * number * MS, MS, peer=0)
    found = profile_of(made.records())
    assert len(found.profile.phases) == 2
    assert any(each.startswith("Small exchanges are left out (broadcast)") for each in found.caveats)


@pytest.mark.parametrize(
    ("kind", "ranks", "sent"),
    [
        ("all-reduce", 4, 150),
        ("all-gather", 4, 75),
        ("reduce-scatter", 4, 75),
        ("all-to-all", 4, 75),
        ("broadcast", 4, 100),
        ("reduce", 4, 100),
        ("send", 2, 100),
    ],
)
def test_the_bytes_that_each_collective_makes_a_worker_send(kind, ranks, sent):
    assert sent_bytes(Exchange(kind, tuple(range(ranks)), 100, 0, 1)) == sent


def test_ranks_are_those_of_a_group_of_all_where_records_lack_them():
    records = [replace(each, rank=None, world=None) for each in data_parallel(3, SIZE).records()]
    assert [each.path.name for each in join_records(records[::-1]).records] == [
        "rank0.json",
        "rank1.json",
        "rank2.json",
    ]


def test_a_rank_that_is_missing_is_named():
    with pytest.raises(RecordError, match="found no record of rank 1, expected all 3"):
        join_records([each for each in data_parallel(3, SIZE).records() if each.rank != 1])


def test_a_member_of_a_group_that_is_missing_is_named():
    records = [replace(each, rank=None, world=None) for each in data_parallel(3, SIZE).records()]
    with pytest.raises(RecordError, match="without the records of its rank 1, expected those of all"):
        join_records([records[0], records[2]])


def test_a_rank_that_comes_twice_is_named():
    records = data_parallel(2, SIZE).records()
    with pytest.raises(RecordError, match="other.json: found rank 0, which rank0.json is, too"):
        join_records([*records, replace(records[0], path=records[0].path.with_name("other.json"))])


def test_records_of_different_worlds_are_refused():
    one, other = data_parallel(2, SIZE).records()
    with pytest.raises(RecordError, match="rank1.json: found rank 1 of 4, expected one of 2, as rank0.json"):
        join_records([one, replace(other, world=4)])


def test_a_few_lost_calls_are_stated_and_many_refused():
    few = profile_of(data_parallel(2, SIZE, iterations=40).records(lost={1: 2}))
    assert any("2.4 % of the calls are lost" in each for each in few.caveats)
    with pytest.raises(RecordError, match="found records that lack 4.8 % of the calls, expected 3 % at most"):
        join_records(data_parallel(2, SIZE, iterations=40).records(lost={1: 4}))


def test_calls_that_not_all_took_part_in_are_lost():
    one, other = data_parallel(2, SIZE, iterations=40).records()
    assert join_records([one, replace(other, calls=other.calls[1:])]).lost_share == pytest.approx(1 / 80)


def test_clocks_that_nothing_ties_together_are_refused():
    made = Made(4)
    for group in ((0, 1), (2, 3)):
        for number in range(12):
            made.took("all-reduce", group, number, SIZE, 100 * number * MS, 30 * MS)
    with pytest.raises(RecordError, match=r"found rank 2 \(rank2.json\) in no group with rank 0"):
        join_records(made.records())


def test_steps_that_are_no_iterations_are_said():
    steps = [(200 * number * MS, (200 * number + 200) * MS) for number in range(10)]
    found = profile_of(data_parallel(2, SIZE).records(steps))
    assert found.steps_ms == pytest.approx(200)
    assert any("Steps that the record names last 200.0 ms" in each for each in found.caveats)


def test_records_without_iterations_are_refused():
    made = Made(2)
    made.took("all-reduce", (0, 1), 0, SIZE, 0, 50 * MS)
    with pytest.raises(RecordError, match="rank0.json, rank1.json: found "):
        profile_of(made.records())


def test_iterations_are_found_in_a_long_record():
    found = profile_of(data_parallel(2, SIZE, iterations=2000).records())
    assert found.timeline.found.period_ms.value == pytest.approx(100, rel=0.005)
    assert found.timeline.used_ms < 20_000


@pytest.mark.parametrize("place", [0, 1, 19, 38, 39])
def test_calls_without_numbers_are_matched_by_time_if_a_rank_lacks_one(place):
    made = data_parallel(2, 60_000_000, iterations=40, made=Made(2, [10**18, 10**18 + 5 * 10**9]))
    records = [replace(each, calls=tuple(replace(call, number=None) for call in each.calls)) for each in made.records()]
    whole = join_records(records)
    short = [records[0], replace(records[1], calls=records[1].calls[:place] + records[1].calls[place + 1 :])]
    found = join_records(short)
    assert found.ahead_ns == whole.ahead_ns
    assert set(found.exchanges) == set(whole.exchanges) - {whole.exchanges[place]}
    assert found.lost_share == pytest.approx(1 / 80)


def test_a_call_that_ends_at_quite_another_time_on_one_host_is_lost():
    records = data_parallel(2, 60_000_000, iterations=40).records()
    first, *others = records[1].calls
    late = replace(first, end_ns=first.end_ns + 3600 * 10**9)
    found = join_records([records[0], replace(records[1], calls=(late, *others))])
    assert set(found.exchanges) == set(join_records(records).exchanges[1:])
    assert found.lost_share == pytest.approx(1 / 80)


def test_a_collective_that_stands_twice_in_a_file_counts_once():
    records = data_parallel(2, 60_000_000, iterations=40).records()
    again = replace(records[0], calls=records[0].calls + records[0].calls[7:9])
    found = join_records([again, records[1]])
    assert found.exchanges == join_records(records).exchanges
    assert found.lost_share == 0
    assert found.records[0].notes == ("2 calls of rank0.json stand in it twice, and count once",)


def test_messages_at_the_same_time_are_several():
    made = Made(2)
    for number in range(40):
        made.took("all-reduce", (0, 1), number, SIZE, 100 * number * MS, 10 * MS)
        for _ in range(2):
            made.message(0, 1, 1000, 100 * number * MS, MS)
    assert len(join_records(made.records()).exchanges) == 120


@pytest.mark.parametrize("numbered", [True, False])
def test_all_to_alls_of_unlike_amounts_have_the_mean_of_their_ranks(numbered):
    """Three ranks send 10, 20 and 60 MB each time: as much in all as 30 MB of each."""
    made = Made(3)
    for number in range(12):
        made.took("all-to-all", (0, 1, 2), number if numbered else None, 90_000_000, 100 * number * MS, 30 * MS)
    records = [
        replace(
            each,
            calls=tuple(
                replace(call, payload_bytes=call.payload_bytes + rank, sent_bytes=[10, 20, 60][rank] * 1_000_000)
                for call in each.calls
            ),
        )
        for rank, each in enumerate(made.records())
    ]
    found = join_records(records)
    assert {sent_bytes(each) for each in found.exchanges} == {30_000_000}
    assert any("ranks send 120.0 to 720.0 MB in all of them" in note for note in found.notes)
    assert not any("taken for even" in note for note in found.notes)
    even = join_records(made.records())
    assert {sent_bytes(each) for each in even.exchanges} == {60_000_000}
    assert any("all-to-alls without split sizes are taken for even" in note for note in even.notes)


def on_hosts(records: list[Record], *hosts: str | None) -> list[Record]:
    return [replace(each, host=host) for each, host in zip(records, hosts, strict=True)]


@pytest.mark.parametrize(
    ("hosts", "kept", "said"),
    [
        (["a", "a", "b", "b"], {(0, 2), (1, 3)}, "12 of 24 exchanges are within one host (all-gather)"),
        (["a", "b", "a", "b"], {(0, 1), (2, 3)}, "12 of 24 exchanges are within one host (all-reduce)"),
        (["a", "b", "c", "d"], {(0, 1), (2, 3), (0, 2), (1, 3)}, None),
        ([None] * 4, {(0, 1), (2, 3), (0, 2), (1, 3)}, "hosts are not recorded"),
        (["a", "a", "b", None], {(2, 3), (0, 2), (1, 3)}, "6 of 24 exchanges are within one host (all-gather)"),
    ],
)
def test_exchanges_within_a_host_are_no_traffic(hosts, kept, said):
    made = Made(4)
    for number in range(6):
        begin_ns = 100 * number * MS
        for kind, groups in (("all-gather", ((0, 1), (2, 3))), ("all-reduce", ((0, 2), (1, 3)))):
            for group in groups:
                made.took(kind, group, number, 40_000_000, begin_ns, 10 * MS)
    found = join_records(on_hosts(made.records(), *hosts))
    assert {each.members for each in found.exchanges} == kept
    assert any(note.startswith(said) for note in found.notes) if said else not found.notes


def test_several_ranks_on_a_host_are_said():
    found = join_records(on_hosts(data_parallel(4, SIZE).records(), "a", "a", "b", "b"))
    assert len(found.exchanges) == 40
    assert found.notes[0].startswith("some groups have several ranks on a host")


def test_messages_within_a_host_are_no_traffic():
    made = data_parallel(3, SIZE)
    for stage in (0, 1):
        made.message(stage, stage + 1, 30_000_000, stage * 10 * MS, 10 * MS)
    found = join_records(on_hosts(made.records(), "a", "a", "b"))
    assert [each.members for each in found.exchanges if each.kind == "send"] == [(1, 2)]


@pytest.mark.parametrize(("hosts", "is_refused"), [(1, True), (2, False), (3, False)])
def test_a_group_s_number_of_hosts_goes_before_their_names(hosts, is_refused):
    records = [
        replace(each, host="same", calls=tuple(replace(call, hosts=hosts) for call in each.calls))
        for each in data_parallel(3, SIZE).records()
    ]
    if is_refused:
        with pytest.raises(RecordError, match="found calls within one host only"):
            join_records(records)
    else:
        assert len(join_records(records).exchanges) == 40


def test_ranks_of_a_run_of_ours_are_hosts_of_their_own():
    records = on_hosts(data_parallel(2, SIZE).records(), "same", "same")
    found = profile_of_records("Kineto", records, "seen", Units())
    assert not any("host" in note for note in found.job.notes)


def set_clock(record: Record, from_call: int, by_s: float) -> Record:
    """The record of a rank whose clock is set before a call; readers put calls in the order of their times."""

    def moved(place, call):
        by_ns = round(by_s * 1e9) if place >= from_call else 0
        return replace(call, begin_ns=call.begin_ns + by_ns, end_ns=call.end_ns + by_ns)

    calls = [moved(place, call) for place, call in enumerate(record.calls)]
    return replace(record, host=record.path.stem, calls=tuple(sorted(calls, key=lambda call: call.begin_ns)))


def without_numbers(call: Call, place: int) -> Call:
    return replace(call, number=None)


def of_two_kinds(call: Call, place: int) -> Call:
    return replace(call, kind=("all-reduce", "all-gather")[place % 2], number=place // 2)


def of_two_sizes(call: Call, place: int) -> Call:
    return replace(call, payload_bytes=SIZE // (1 + place % 2), number=None)


@pytest.mark.parametrize(
    ("change", "by_s"),
    [
        *itertools.product([lambda call, _: call, of_two_kinds], [3600.0, -3600.0, 1.0, -0.8]),
        # A step back puts calls without numbers in an order that nothing distinguishes from that of a step ahead.
        *itertools.product([without_numbers, of_two_sizes], [3600.0, 1.0]),
    ],
)
@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("from_call", [8, 9, 26])
def test_the_longer_side_of_a_clock_that_was_set_is_used(rank, by_s, from_call, change):
    records = [
        replace(each, calls=tuple(change(call, place) for place, call in enumerate(each.calls)))
        for each in data_parallel(3, SIZE).records()
    ]
    whole = join_records(records)
    records[rank] = set_clock(records[rank], from_call, by_s)
    found = join_records(records)
    expected = whole.exchanges[from_call:] if from_call < 20 else whole.exchanges[:from_call]
    moved_ns = round(by_s * 1e9) if rank == 0 and from_call < 20 else 0
    assert [each.begin_ns - moved_ns for each in found.exchanges] == [each.begin_ns for each in expected]
    assert found.lost_share == 0
    said = [note for note in found.notes if "clock" in note]
    assert len(said) == 1
    assert said[0].startswith(f"the clock of rank{rank} (rank{rank}.json) was set by {by_s:+.1f} s after {from_call} c")


@given(drift_ms=st.lists(st.integers(0, 20), min_size=40, max_size=40))
@settings(max_examples=10)
def test_a_clock_that_drifts_was_not_set(drift_ms):
    records = data_parallel(2, SIZE).records()
    ahead = [sum(drift_ms[:place]) * MS for place in range(40)]
    calls = tuple(
        replace(call, begin_ns=call.begin_ns + by_ns, end_ns=call.end_ns + by_ns)
        for call, by_ns in zip(records[1].calls, ahead, strict=True)
    )
    found = join_records([records[0], replace(records[1], calls=calls)])
    assert len(found.exchanges) == 40
    assert not any("clock" in note for note in found.notes)


def test_the_hint_for_lost_calls_is_that_of_their_reader():
    records = data_parallel(2, SIZE, iterations=40).records(lost={1: 9})
    with pytest.raises(RecordError) as refused:
        join_records([records[0], replace(records[1], hint="buffers")])
    assert refused.value.hint == "buffers"
    one, other = data_parallel(2, SIZE, iterations=40).records()
    with pytest.raises(RecordError) as refused:
        join_records([one, replace(other, calls=other.calls[20:])])
    assert "record all ranks from the same iteration on" in str(refused.value.hint)


def in_unit(records: list[Record], factor: float) -> list[Record]:
    def call_in_unit(call):
        return replace(call, begin_ns=round(call.begin_ns * factor), end_ns=round(call.end_ns * factor))

    return [replace(each, calls=tuple(map(call_in_unit, each.calls))) for each in records]


def late_by_its_number(call):
    by_ns = (call.number or 0) * 30 * 10**9
    return replace(call, begin_ns=call.begin_ns + by_ns, end_ns=call.end_ns + by_ns)


def test_times_in_another_unit_are_refused():
    records = data_parallel(2, SIZE, iterations=40).records()
    with pytest.raises(RecordError, match=r"found a phase of \d+ ns, expected 1000 at least") as refused:
        profile_of(in_unit(records, 1e-6))
    assert refused.value.hint == "are its times in another unit?"
    with pytest.raises(RecordError, match="found ends of each call that are more than 10 s apart") as refused:
        profile_of([records[0], *in_unit(records[1:], 1000)])
    assert refused.value.hint == "are the times of one file in another unit?"
    with pytest.raises(RecordError, match="found ends of each call that are more than 10 s apart") as refused:
        profile_of([records[0], replace(records[1], calls=tuple(map(late_by_its_number, records[1].calls)))])
    assert refused.value.hint is None


def test_records_without_calls_after_the_first_step_are_refused():
    late = ((10**13, 10**13 + MS), (10**13 + MS, 10**13 + 2 * MS))
    with pytest.raises(RecordError, match="found no call that ends after the first step"):
        profile_of(data_parallel(2, SIZE, iterations=40).records(late))
