# SPDX-License-Identifier: Apache-2.0
"""Clocks: readings, their bounds, drift and steps."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from roundabout.runner.hosts import clocks
from roundabout.runner.hosts.clocks import (
    CONTROLLER,
    ClockLog,
    HostClock,
    Reading,
    RunClock,
    SharedClock,
    call_repeatedly,
)
from roundabout.runner.hosts.connections import LocalConnection, LostHostError
from roundabout.runner.trial import captures

pytestmark = pytest.mark.unit

CLOCK = Path(__file__).parents[3] / "collectors" / "clock.py"
UTC_NS = 1_800_000_000 * 10**9
SECOND_NS = 10**9

# As chronyd 4.3 and ptp4l 3.1.1 answered, the latter here as a follower.
CHRONY = """\
7F000001,127.0.0.1,6,1795267250.214124062,-0.000000424,0.000000007,0.000000644,-0.052,0.000,0.299,0.000002978,\
0.000002310,0.3,Normal
"""
PTP = """\
sending: GET TIME_STATUS_NP
sending: GET PORT_DATA_SET
\t1ac976.fffe.65070b-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP
\t\tmaster_offset              -37
\t\tingress_time               0
\t\tgmPresent                  true
\t\tgmIdentity                 d68998.fffe.856c25
\t1ac976.fffe.65070b-1 seq 1 RESPONSE MANAGEMENT PORT_DATA_SET
\t\tportIdentity            1ac976.fffe.65070b-1
\t\tportState               SLAVE
"""


def reading(at_ns, offset_ns, bound_ns=10, utc_ns=None):
    return Reading(at_ns, at_ns + offset_ns if utc_ns is None else utc_ns, offset_ns, bound_ns, "during")


def clock_log(*readings, host="s0"):
    entered = ClockLog()
    for each in readings:
        entered.add(host, each)
    return entered


def test_a_clock_of_this_machine_is_found_within_its_bound():
    run_clock = RunClock.start()
    clock = HostClock(LocalConnection(), CLOCK, run_clock)
    found = clock.read("before")
    clock.stop()
    assert abs(found.offset_ns - run_clock.offset_ns) <= found.bound_ns < 20e6
    assert abs(found.utc_ns - found.run_ns) <= found.bound_ns + clocks.UTC_STEP_NS


def test_a_shared_clock_is_known_exactly():
    run_clock = RunClock.start()
    entered = clock_log(*(SharedClock(run_clock).read("during") for _ in range(3)))
    at = np.array([0, run_clock.anchor_monotonic_ns, 10**18])
    assert entered.on_run("s0", at).tolist() == (at + run_clock.offset_ns).tolist()
    assert entered.bound_ns("s0", at).tolist() == [0, 0, 0]
    assert entered.steps() == []


def test_a_clock_is_carried_on_within_a_boot_only():
    clock = RunClock.start()
    assert RunClock.resume(vars(clock)) == clock
    assert RunClock.resume({**vars(clock), "boot": "another"}) != clock


@given(
    base=st.integers(1_700_000_000 * 10**9, 2_000_000_000 * 10**9),
    drift=st.integers(-(10**6), 10**6),
    at=st.lists(st.integers(0, 10**11), min_size=1, max_size=20),
)
def test_times_between_two_readings_are_exact_to_the_nanosecond(base, drift, at):
    entered = clock_log(reading(0, base), reading(10**11, base + drift))
    found = entered.on_run("s0", np.array(at, dtype=np.int64))
    for each, host_ns in zip(found.tolist(), at, strict=True):
        assert abs(each - (host_ns + base + drift * host_ns / 1e11)) <= 1024  # what a float of this test can hold
        assert min(0, drift) - 1 <= each - host_ns - base <= max(0, drift) + 1
    assert entered.on_host("s0", base + drift + 7) == 7


@st.composite
def drifting(draw):
    """A clock that drifts as it likes within 500 ppm: its offset at many instants, and readings at some of them."""
    gaps = draw(st.lists(st.integers(1, 5 * SECOND_NS), min_size=2, max_size=12))
    at, offset = [draw(st.integers(0, 10**15))], [UTC_NS]
    for gap in gaps:
        at.append(at[-1] + gap)
        offset.append(offset[-1] + int(gap * draw(st.integers(-500, 500)) / 1e6))
    readings = []
    for index in draw(st.sets(st.integers(0, len(at) - 1), min_size=1)):
        bound = draw(st.integers(2, 10**6))
        error = draw(st.integers(2 - bound, bound - 2))
        readings.append(reading(at[index], offset[index] + error, bound, at[index] + UTC_NS))
    return np.array(at), np.array(offset), sorted(readings, key=lambda each: each.host_ns)


@given(drifting())
def test_bounds_hold_at_every_instant(clock):
    at, offset, readings = clock
    entered = clock_log(*readings)
    error = np.abs(entered.on_run("s0", at) - (at + offset))
    assert (error <= entered.bound_ns("s0", at)).all()
    assert entered.steps() == []


def test_readings_that_the_run_sees_in_the_wrong_order_are_no_step():
    first, then = reading(0, UTC_NS + 472_447, 472_670, UTC_NS), reading(1, UTC_NS, 2)
    assert first.run_ns > then.run_ns
    assert clock_log(first, then).steps() == []


@given(
    before=st.integers(2, 10**6),
    after=st.integers(2, 10**6),
    gap=st.integers(1, 5 * SECOND_NS),
    more=st.integers(2, 10**13),
    forward=st.booleans(),
    share=st.floats(0, 1),
)
def test_a_step_is_found_with_its_size_and_its_bound_holds(*, before, after, gap, more, forward, share):
    step = (before + after + round(gap * 501e-6) + more) * (1 if forward else -1)
    allowed = before + after + round(abs(gap + step) * 500e-6)
    assume(abs(step) > allowed)
    first, then = reading(10**15, UTC_NS, before), reading(10**15 + gap + step, UTC_NS - step, after)
    entered = clock_log(first, then)
    (found,) = entered.steps()
    assert (found.host, found.clock, found.by_ns, found.explained_ns) == ("s0", "monotonic", step, allowed)
    assert (found.after_ns, found.before_ns) == (first.run_ns, then.run_ns)
    if forward:  # only then are its times still in order
        at = np.array([10**15 + round(share * gap), then.host_ns - round(share * gap)])
        error = np.abs(entered.on_run("s0", at) - np.array([at[0] + UTC_NS, at[1] + UTC_NS - step]))
        assert (error <= entered.bound_ns("s0", at)).all()


def test_a_step_says_which_host_how_far_and_when():
    (step,) = clock_log(reading(0, UTC_NS), reading(2 * SECOND_NS, UTC_NS + 1_500_000_000), host="s1").steps()
    assert str(step) == (
        "s1: its monotonic clock stepped by -1500.000 ms between 2027-01-15T08:00:00.000+00:00 and"
        " 2027-01-15T08:00:03.500+00:00 (drift and bounds explain 1.000 ms)"
    )


def test_a_step_of_utc_is_reported_once_for_each_kernel():
    run_clock = RunClock(UTC_NS, 0, "boot")
    stepped = reading(SECOND_NS, UTC_NS, 0, UTC_NS + 6 * SECOND_NS)
    entered = clock_log(run_clock.anchor, reading(1, UTC_NS, 0), stepped, replace(stepped, host_ns=2 * SECOND_NS))
    assert entered.steps() == []
    entered = clock_log(run_clock.anchor, stepped, host=CONTROLLER)
    entered.add("s0", reading(0, UTC_NS))
    entered.add("s0", replace(stepped, bound_ns=10))
    assert [(step.host, step.clock, step.by_ns) for step in entered.steps()] == [
        (CONTROLLER, "UTC", 5 * SECOND_NS),
        ("s0", "UTC", 5 * SECOND_NS),
    ]


@given(away_ns=st.integers(-UTC_NS, UTC_NS), moved_ns=st.integers(-(10**12), 10**12))
def test_packets_are_joined_by_the_utc_that_their_host_takes_for_it(away_ns, moved_ns):
    """Be it in another year, or set back or forward by a quarter of an hour meanwhile."""
    last_ns = 10 * SECOND_NS
    first, last = (reading(at, UTC_NS, 2, at + UTC_NS + away_ns + moved) for at, moved in ((0, 0), (last_ns, moved_ns)))
    at = np.arange(SECOND_NS, last_ns, SECOND_NS)
    for moved in (0, moved_ns):  # stamped before or after that
        stamps = at + UTC_NS + away_ns + moved
        host_ns, run_ns, bound_ns = captures.HostUtc(clock_log(first, last), "s0").to_run_ns(stamps)
        assert (np.abs(host_ns - at) <= bound_ns).all()
        assert (np.abs(run_ns - at - UTC_NS) <= bound_ns).all()


def test_a_host_whose_clock_says_nothing_is_lost(tmp_path, monkeypatch):
    mute = tmp_path / "clock.py"
    mute.write_text("import sys\nsys.stdin.read()\n")
    monkeypatch.setattr(clocks, "ANSWER_TIMEOUT_S", 0.2)
    link, closed = LocalConnection("s0"), []
    monkeypatch.setattr(link, "close", lambda: closed.append("s0"))
    clock = HostClock(link, mute, RunClock.start())
    with pytest.raises(LostHostError, match="s0: its clock did not answer within 0.2 s"):
        clock.read("before")
    assert closed == ["s0"]  # so that no reader waits for it for ever
    clock.stop()
    monkeypatch.undo()
    mute.write_text("")
    with pytest.raises(LostHostError, match="s0: its clock stopped answering: exit status 0"):
        HostClock(LocalConnection("s0"), mute, RunClock.start()).read("after")


def test_repeated_readings_raise_their_error_at_the_end(monkeypatch):
    monkeypatch.setattr(clocks, "PERIOD_S", 0.001)
    calls = []

    def read():
        calls.append(True)
        if len(calls) == 5:
            raise LostHostError("s0", "gone")

    def wait():
        deadline = time.monotonic() + 10
        while len(calls) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)  # a sixth would come meanwhile

    with pytest.raises(LostHostError, match="gone"), call_repeatedly(read):
        wait()
    assert len(calls) == 5


def test_a_block_that_a_signal_kept_from_its_end_keeps_no_process_alive():
    code = (
        "from roundabout.runner.hosts.clocks import call_repeatedly\nblock = call_repeatedly(print)\nblock.__enter__()"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def read_clock(tmp_path, **scripts):
    """What clock.py says of what keeps its clocks, where these programs are."""
    for name, said in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\ncat <<'END'\n{said}END\n")
        (tmp_path / name).chmod(0o755)
    code = f"import runpy, sys; sys.argv = ['clock.py']; clock = runpy.run_path({str(CLOCK)!r}); "
    code += "clock['command_output'].__globals__['SBIN'] = ''; clock['main']()"
    command = [sys.executable, "-c", code]
    environment = {"PATH": f"{tmp_path}:/bin" if scripts else "/nonexistent"}
    done = subprocess.run(command, input="sync\n", env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_an_undisciplined_clock_is_reported_as_none(tmp_path):
    said = read_clock(tmp_path)
    assert (said["chrony"], said["ptp"]) == ("none", "none")


def test_chrony_says_how_far_it_is(tmp_path):
    said = read_clock(tmp_path, chronyc=CHRONY)
    assert said["ptp"] == "none"
    assert said["chrony"] == {
        "reference": "127.0.0.1",
        "stratum": 6,
        "ahead_ns": 424,  # `chronyc tracking` said: fast of NTP time
        "root_delay_ns": 2978,
        "root_dispersion_ns": 2310,
        "frequency_ppm": -0.052,
        "leap": "Normal",
    }


def test_ptp_says_whom_it_follows_and_how_far_off(tmp_path):
    said = read_clock(tmp_path, pmc=PTP)
    assert said["chrony"] == "none"
    assert said["ptp"] == {
        "port_states": ["SLAVE"],
        "grandmaster": "d68998.fffe.856c25",
        "grandmaster_present": True,
        "master_offset_ns": -37,
    }


def test_a_daemon_that_does_not_answer_is_none(tmp_path):
    said = read_clock(tmp_path, chronyc="506 Cannot talk to daemon\n", pmc="sending: GET TIME_STATUS_NP\n")
    assert (said["chrony"], said["ptp"]) == ("none", "none")
