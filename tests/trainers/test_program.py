# SPDX-License-Identifier: Apache-2.0
"""Trainer `program`: which lines are iterations, and what a command does that is none of a job's."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from analysis.quantities import CachedReading, QuantityRequest, find_quantity
from analysis.reports.report import write_report
from analysis.reports.summary import summarize_run
from analysis.studies.programs.study import Results
from roundabout.core.paths import ROOT
from roundabout.spec.trainers.program import Trainer
from roundabout.spec.training.output_patterns import PATTERNS
from roundabout.spec.training.trainer import Task
from tests.fakes.testbed import SCALE, FakeProvider
from tests.fakes.workplace import Workplace
from tests.running import Event, Running
from tests.trainers.host import load

pytestmark = pytest.mark.unit

FOLDER, SHARED = ROOT / "trainers/program", ROOT / "trainers/torch"
PROGRAM = FOLDER / "run_program.py"
lines = load("iteration_lines", FOLDER)
S = 1_000_000_000

NCCL_TESTS = """
# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1
#  Rank  0 Group  0 Pid  12897 on   g100n052 device  0 [0000:07:00] NVIDIA A100-SXM4-80GB
#  Rank 71 Group  0 Pid  14840 on slurm-gb200-207-171 device  3 [0x01] NVIDIA Graphics Device
gpu59:28307:28400 [0] NCCL INFO Channel 00/02 :    0   1   2   3   4   5   6   7
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   536870912     134217728     float     sum      -1   1806.7  297.16  586.06      0   1835.9  292.43  576.74      0
  4294967296    1073741824     float     sum      -1    10094  425.49  839.16      0    10141  423.54  835.32      0
  8589934592    2147483648     float     sum      -1    20299  423.16  834.57      0    20006  429.37  846.82      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 745.53
"""
NCCL_TESTS_WITHOUT_ROOT = """
    67108864       2097152     float   8071.7    8.31    7.27  0e+00   8085.0    8.30    7.26  0e+00
   134217728       4194304     float    16059    8.36    7.31  0e+00    16111    8.33    7.29  0e+00
"""
PERFTEST_BW = """
 Number of qps   : 1		Transport type : IB
 remote address: LID 0000 QPN 0x0076 PSN 0xf3810c RKey 0x201600 VAddr 0x007fbb4c981000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:255:255:04
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 8          224958464        0.00               0.48   		   7.498617
 1024       1000             0.00               5544.28		   5.677340
"""
PERFTEST_QOS = """
 #bytes    #sl      #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      3           5000           97.50              96.53                  0.184116
"""
PERFTEST_PORTS = """
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]   BW Port1[Gb/sec]\
   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]
 65536      10000            97.50              96.53		   0.184116        48.27              0.092058\
              48.26              0.092058
"""
PERFTEST_CPU = """
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]    CPU_Util[%]
 65536      5000             97.50              96.53		     0.184116	    12.50
"""
PERFTEST_LAT_DURATION = """
 #bytes        #iterations       t_avg[usec]    tps average
 2             2500410            1.20            833470.12
"""
PERFTEST_LAT = """
 TX depth        : 1
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile
Conflicting CPU frequency values detected: 3295.212000 != 5023.444000. CPU Frequency is not max.
 2       1000          1.42           1.93         1.47     	       1.49        	0.00   		1.57    		1.93
"""
MEGATRON = """
 [2025-04-13 23:41:12] iteration       10/    1000 | consumed samples:          160 | elapsed time per iteration (ms): \
1147.6 | learning rate: 0.000000E+00 | global batch size:    16 | loss scale: 8388608.0 |
 iteration      201/  250000 | consumed samples:       205824 | elapsed time per iteration (ms): 139113.4 | learning \
rate: 1.507E-05 | global batch size:  1024 | lm loss: 2.373574E+00 | loss scale: 1.0 | grad norm: 0.811 |
"""
TORCHTITAN = """
[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  tps: 10,050  mfu: 13.99%
[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  tps: 10,049  mfu: 13.99%
[rank0]:[titan] 2026-02-24 19:46:19,145 - root - INFO - \x1b[31mstep:  5  \x1b[32mloss:  7.07623\x1b[39m
[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  tps: 10,049  mfu: 13.99%
[titan] 2026-02-24 19:46:20,000 - root - INFO - validate step:  6  loss:  9.00000
"""


def parsed(name: str, output: str, skip: int = 0) -> list[Event]:
    """The iterations in an output of which a line comes every second."""
    parser = lines.IterationParser(PATTERNS.get(name, name), skip)
    found = enumerate(lines.LineSplitter().split(output.encode()), start=1)
    return [event for number, line in found if (event := parser.parse(line, number * S))]


def lasted_us(events: list[Event]) -> list[float]:
    return [(event["comm_end_ns"] - event["start_ns"]) / 1e3 for event in events]


def test_rows_of_nccl_tests_are_iterations_with_out_of_place_figures():
    """Rows of coreweave/nccl-tests pull request 43; other lines of NVIDIA/nccl issue 1530 and of NCCL's log."""
    found = parsed("nccl-tests", NCCL_TESTS)
    assert lasted_us(found) == [1806.7, 10094, 20299]
    assert [event["bus_bandwidth_gbps"] for event in found] == pytest.approx([8 * 586.06, 8 * 839.16, 8 * 834.57])
    assert {event["sent_bytes"] for event in found} == {None}


def test_rows_of_older_nccl_tests_have_no_root():
    """Rows of NVIDIA/nccl issue 644: all_gather_perf, which had no `redop` either."""
    found = parsed("nccl-tests", NCCL_TESTS_WITHOUT_ROOT)
    assert lasted_us(found) == [8071.7, 16059]
    assert [event["bus_bandwidth_gbps"] for event in found] == pytest.approx([8 * 7.27, 8 * 7.31])


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: ", "[rank0]:"])
def test_rows_may_have_the_prefix_of_a_launcher(prefix):
    """Prefixes of mpirun --tag-output, srun --label and torchrun."""
    tagged = "".join(f"{prefix}{line}\n" for line in NCCL_TESTS.splitlines())
    assert lasted_us(parsed("nccl-tests", tagged)) == [1806.7, 10094, 20299]


def test_rows_of_perftest_have_a_bandwidth_whatever_its_unit():
    """Rows of linux-rdma/perftest issues 273 (Gbit/s) and 65 (MB/s, which are of 2^20 bytes)."""
    found = parsed("perftest-bw", PERFTEST_BW)
    bandwidths = [event["bus_bandwidth_gbps"] for event in found]
    assert bandwidths == pytest.approx([0.48, 5544.28 * 2**20 * 8 / 1e9], rel=1e-3)
    assert parsed("perftest-bw", PERFTEST_LAT) == parsed("perftest-bw", PERFTEST_LAT_DURATION) == []


@pytest.mark.parametrize("output", [PERFTEST_QOS, PERFTEST_PORTS, PERFTEST_CPU])
def test_rows_of_perftest_with_more_columns_have_the_same_message_rate(output):
    """Columns of linux-rdma/perftest 00b55b6 (RESULT_FMT_G_QOS, RESULT_FMT_G_PER_PORT, RESULT_EXT_CPU_UTIL)."""
    (found,) = parsed("perftest-bw", output)
    assert found["bus_bandwidth_gbps"] == pytest.approx(96.53, rel=1e-3)
    assert parsed("perftest-lat", output) == []


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("perftest-bw", " 65536      5000             nan              nan		     nan"),
        ("perftest-bw", " 65536      5000             0.00              0.00		     0.000000"),
        (
            "perftest-lat",
            " 2       1000     1.42      1.93     1.47     -nan     -nan     1.57     1.93",
        ),
        ("perftest-lat", " 2             0            -nan            0.00"),
    ],
)
def test_a_figure_of_perftest_that_is_no_number_is_named(name, row):
    """C's printf of 0/0 by a test that moved nothing."""
    with pytest.raises(ValueError, match="for (us|mpps) in the line .*, allowed is a positive number"):
        parsed(name, f"{row}\n")


def test_rows_of_perftest_have_the_mean_latency():
    """A row of perftest 4.5 and later; older ones lack what comes after t_avg."""
    assert lasted_us(parsed("perftest-lat", PERFTEST_LAT)) == [1.49]
    assert lasted_us(
        parsed("perftest-lat", " 2       1000          1.27           3.34         1.33        1.34\n")
    ) == [1.34]
    assert parsed("perftest-lat", PERFTEST_BW) == []
    assert lasted_us(parsed("perftest-lat", PERFTEST_LAT_DURATION)) == [1.2]  # RESULT_FMT_LAT_DUR: of `-D 3`


def test_iterations_of_megatron_have_a_time_and_a_loss():
    """Lines of epfLLM/Megatron-LLM issue 11, and of a run whose first iterations were skipped for their loss scale."""
    found = parsed("megatron", MEGATRON)
    assert lasted_us(found) == [1147.6e3, 139113.4e3]
    assert [event.get("loss") for event in found] == [None, 2.373574]


def test_a_step_that_several_ranks_print_is_one_iteration():
    """Lines of pytorch/torchtitan pull request 2389, and one in colors."""
    (found,) = parsed("torchtitan", TORCHTITAN)
    assert (found["start_ns"], found["comm_end_ns"], found["loss"]) == (1 * S, 3 * S, 7.07623)


def test_a_line_for_ten_steps_has_the_time_of_one():
    found = parsed("torchtitan", "".join(f"step: {step} loss: 6.1\n" for step in (1, 11, 21)))
    assert lasted_us(found) == [1e5, 1e5]


def test_warm_up_lines_are_skipped():
    output = "".join(f"step {step}\n" for step in range(5))
    assert [event["start_ns"] for event in parsed("step", output)] == [S, 2 * S, 3 * S, 4 * S]
    assert [event["start_ns"] for event in parsed("step", output, skip=2)] == [2 * S, 3 * S, 4 * S]
    assert len(parsed(r"(?P<ms>\d)", "9\n1\n2\n", skip=1)) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("took nan ms", "'nan' for ms in the line 'took nan ms', allowed is a positive number"),
        ("took inf ms", "'inf' for ms"),
        ("took 0 ms", "'0' for ms"),
        ("took - ms", "'-' for ms"),
        ("took 1 ms, loss nan", "'nan' for loss in .*, allowed is a finite number"),
    ],
)
def test_a_figure_that_is_no_number_is_named(line, message):
    with pytest.raises(ValueError, match=message):
        parsed(r"took (?P<ms>\S+) ms(?:, loss (?P<loss>\S+))?", f"{line}\n")


@given(output=st.text("ab1 \r\n\x1b[m", max_size=40), cuts=st.lists(st.integers(0, 40)))
def test_lines_do_not_depend_on_how_output_arrives(output, cuts):
    whole = lines.LineSplitter().split(output.encode())
    parts, splitter = sorted({0, len(output), *(cut for cut in cuts if cut < len(output))}), lines.LineSplitter()
    assert [line for a, b in pairwise(parts) for line in splitter.split(output[a:b].encode())] == whole


def test_progress_bars_and_unfinished_lines():
    splitter = lines.LineSplitter()
    assert splitter.split(b"\r 1/3\r\x1b[K 2/3\r\n\nstep 1\nstep 2") == ["1/3", "2/3", "step 1"]
    assert splitter.rest() == "step 2"


def test_a_file_is_read_from_where_it_ends(tmp_path):
    path = tmp_path / "log"
    path.write_text("of an earlier trial\n")
    tail = lines.FileTail(str(path))
    assert tail.read() == b""
    with path.open("a") as file:
        file.write("added\n")
    assert tail.read() == b"added\n"
    path.write_text("new\n")
    assert tail.read() == b"new\n"
    path.unlink()
    assert tail.read() == b""
    path.write_text("a file of its name, which is longer\n")
    assert tail.read() == b"a file of its name, which is longer\n"


@pytest.fixture(autouse=True)
def _programs_in_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host has all programs in one folder."""
    monkeypatch.setenv("PYTHONPATH", str(SHARED))


def started(command: str | None, *, rank: int = 0, iterations: int = 2, **options: Any) -> Running:
    """A worker of two whose job has begun."""
    workers = [{"name": f"s{number}", "address": f"127.0.0.{number + 1}", "port": 29500} for number in range(2)]
    job = {"name": "j1", "workers": workers, "iterations": iterations, "begins_ms": 0, "departs_ms": None}
    options = {"pattern": r"step (?P<ms>\S+)", "file": None, "skip": 0, "startup_s": 20, **options, "command": command}
    running = Running([sys.executable, str(PROGRAM), str(rank), json.dumps(job), json.dumps(options)])
    assert running.event() == {"event": "ready"}
    running.begin()
    return running


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The function `started`, whose workers end with the test."""
    running: list[Running] = []

    def start(*arguments: Any, **options: Any) -> Running:
        running.append(started(*arguments, **options))
        return running[-1]

    yield start
    for each in running:
        each.close_input()
        each.process.wait(timeout=20)
        for stream in (each.process.stdout, each.process.stderr):
            if stream:
                stream.close()


def test_iterations_come_from_both_outputs_and_others_do_not_count(run):
    worker = run("echo starting; echo step 5 >&2; echo step 7; echo step 9")
    first, second, done = (worker.event() for _ in range(3))
    assert [round((each["comm_end_ns"] - each["start_ns"]) / 1e6) for each in (first, second)] in (
        [5, 7],
        [7, 5],
        [7, 9],
    )
    assert [each["iteration"] for each in (first, second)] == [0, 1]
    assert done == {"event": "done", "iterations": 2}


def test_a_command_whose_output_is_no_terminal_s_is_not_buffered(run):
    """grep writes blocks to a pipe, and lines to a terminal."""
    before = time.monotonic()
    assert run("(echo step 5; sleep 30) | grep step").event()["event"] == "iteration"
    assert time.monotonic() - before < 15


def test_lines_that_a_pipe_kept_back_are_no_measure_of_time(run):
    """Only lines that report no time of their own are concerned."""
    steps = "(for each in 1 2 3 4 5; do echo step $each; sleep {}; done)"
    kept = f"{steps.format(0.05)} | sort"
    last = run(kept, iterations=4, pattern=r"step \d").events()[-1]
    assert last["event"] == "error"
    assert "within 1 ms of the line before, without a time (flush each line) after 4 of 4 iter" in last["message"]
    assert run(kept, iterations=4).events()[-1] == {"event": "done", "iterations": 4}
    flushed = f"{steps.format(0.3)} | grep --line-buffered step"  # a reader without CPU takes two lines at once
    assert run(flushed, iterations=4, pattern=r"step \d").events()[-1] == {"event": "done", "iterations": 4}


def test_iterations_come_from_a_file(run, tmp_path):
    path = tmp_path / "log"
    path.write_text("step 1\nstep 1\n")
    worker = run(f"echo step 3; echo step 5 >> {path}; echo step 7 >> {path}", file=str(path))
    first, second = worker.event(), worker.event()
    assert [round((each["comm_end_ns"] - each["start_ns"]) / 1e6) for each in (first, second)] == [5, 7]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("true", r"exit status 0 after 0 of 2 iterations; lines of its output .* 'step .*': 0; it printed nothing"),
        ("echo hello; exit 3", "exit status 3 after 0 of 2 iterations; .*; its last lines: hello$"),
        ("echo step 5; echo oops >&2; kill -SEGV $$", r"SIGSEGV after 1 of 2 .*: 1;.*(step 5 \| oops|oops \| step 5)$"),
        ("no-such-program", "exit status 127 .*no-such-program: command not found"),
        ("echo step 5; echo step nan; sleep 9", "'nan' for ms in the line 'step nan', .* after 1 of 2 .*: 2;"),
        ("printf 'step 5'", "after 0 of 2 .*: 0; its last lines: step 5$"),
    ],
)  # fmt: skip
def test_a_command_that_does_not_deliver_is_described(run, command, message):
    worker = run(command)
    event = worker.event()
    while event["event"] == "iteration":
        event = worker.event()
    assert event["event"] == "error"
    assert event["message"].startswith(f"the command {command!r} ")
    assert worker.process.wait(timeout=20) == 1
    assert re.search(message, event["message"]), event["message"]


def test_a_command_that_prints_nothing_fails_in_time(run):
    message = run("sleep 60", startup_s=0.3).event()["message"]
    assert "reported no iteration within the startup_s of 0.3 after 0 of 2 iterations; " in message


def test_a_worker_that_does_not_report_is_done_and_says_if_its_command_fails(run):
    worker = run("echo step 5; exit 4", rank=1, pattern=None)
    assert worker.event() == {"event": "done", "iterations": 2}
    assert "ended with exit status 4; its last lines: step 5" in worker.event()["message"]
    idle = run(None, rank=1, pattern=None)
    assert idle.event() == {"event": "done", "iterations": 2}
    assert idle.process.wait(timeout=20) == 0


def test_nothing_is_left_when_standard_input_closes(run, tmp_path):
    left = tmp_path / "left"
    ignoring = f"trap '' TERM; setsid sleep 300 & echo $! > {left}; echo step 5; sleep 300"
    worker = run(ignoring)
    assert worker.event()["event"] == "iteration"
    worker.close_input()
    assert worker.event() == {"event": "stopped", "reason": "standard input was closed"}
    assert worker.process.wait(timeout=20) == 3
    with pytest.raises(ProcessLookupError):
        os.kill(int(left.read_text()), signal.SIGCONT)


def test_a_command_gets_its_place(run):
    variables = (
        "$MASTER_ADDR $MASTER_PORT $RANK $WORLD_SIZE $LOCAL_RANK $ADDRESS $ADDRESSES $ITERATIONS $GLOO_SOCKET_IFNAME"
    )
    worker = run(f"echo {variables}; exit 1", rank=1)
    assert "127.0.0.1 29500 1 2 0 127.0.0.2 127.0.0.1,127.0.0.2 2" in worker.event()["message"]


def options_of(rank: int, **fields: Any) -> dict[str, Any]:
    trainer = Trainer.model_validate({"name": "program", "command": "run", "pattern": "nccl-tests", **fields})
    task = Task(
        {"name": "j1", "workers": [{"name": f"s{each}"} for each in range(3)]}, rank, PurePosixPath("/opt/roundabout")
    )
    *launcher, number, _, options = trainer.argv(task)
    assert launcher == [
        "/usr/bin/python3", "/opt/roundabout/bin/worker_launcher.py", "--user", "nobody",
        "/usr/bin/python3", "/opt/roundabout/bin/run_program.py",
    ]  # fmt: skip
    assert number == str(rank)
    return json.loads(options)  # type: ignore[no-any-return]


def test_one_worker_reports_and_all_or_the_first_run_the_command():
    def given(**fields: Any) -> list[tuple[bool, bool]]:
        options = [options_of(rank, **fields) for rank in range(3)]
        return [(each["command"] == "run", each["pattern"] == PATTERNS["nccl-tests"]) for each in options]

    assert given() == [(True, True), (True, False), (True, False)]
    assert given(reporter="last") == [(True, False), (True, False), (True, True)]
    assert given(once=True) == [(True, True), (False, False), (False, False)]


def test_nccl_logs_to_the_worker_that_runs_the_command():
    def ranks(**fields: Any) -> list[list[int]]:
        trainer = Trainer.model_validate({"name": "program", "command": "run", "pattern": "nccl-tests", **fields})
        return [list(trainer.nccl_ranks(2, rank)) for rank in range(2)]

    assert ranks(backend="nccl") == [[0], [1]]
    assert ranks(backend="nccl", once=True) == [[0, 1], []]
    assert ranks(once=True) == [[], []]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pattern": "nccl-test"}, "one of nccl-tests, .*, or a regular expression"),
        ({"pattern": "time (?P<ms>"}, "a regular expression of Python .missing"),
        ({"pattern": "(?P<time>.*)"}, "no named groups but .*, found time"),
        ({"pattern": "(?P<ms>.*) (?P<us>.*)"}, "one group of mpps, ms, s, us and one of .* at most"),
        ({"file": "log.txt"}, "file"),
        ({"once": True, "reporter": "last"}, "first, because `once`"),
        ({"once": True, "image": "nvidia/cuda"}, "none with `once`, because mpirun and srun"),
        ({"launch": "torchrun"}, "direct or slurm: the command itself"),
    ],
)
def test_fields_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        Trainer.model_validate({"name": "program", "command": "run", "pattern": "nccl-tests", **fields})


class ProgramProvider(FakeProvider):
    """Fake hosts that also have the real programs of this trainer."""

    def provision(self, site: Any) -> None:
        super().provision(site)
        for host in site.hosts.values():
            for path in (*FOLDER.glob("*.py"), *(ROOT / "trainers/torch").glob("*.py")):
                (host.prefix / "bin" / path.name).write_bytes(path.read_bytes())


def experiment(trainer: dict[str, Any]) -> str:
    return json.dumps({
        "schema": 1, "name": "tiny", "about": "A program beside a replayed job", "topology": "dumbbell-2x2",
        "jobs": {
            "j1": {
                "profile": "vgg19-fig1", "workers": ["s0", "s2"],
                "trainer": {"name": "program", "user": "root", **trainer},
            },
            "j2": {"profile": "vgg19-fig1", "workers": ["s1", "s3"]},
        },
        "iterations": 3, "transport": {"name": "dcqcn"},
    })  # fmt: skip


@pytest.fixture
def work(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.provider = ProgramProvider(place.folder / "fake")
    return place


def test_a_run_has_the_iterations_of_one_worker_whatever_others_do_after_them(work):
    work.provider.fault("s1", iteration_ms=300)
    row = "  1048576  262144  float  sum  -1  2000.5  0.52  0.75  0  2000.5  0.52  0.75  0"
    command = f"[ $RANK = 1 ] && sleep 0.5 && exit 1; for each in $(seq $ITERATIONS); do echo '{row}'; done"
    run = work.start(experiment({"command": command, "pattern": "nccl-tests"}))
    (trial,) = run.trials()
    assert trial["valid"], trial["reason"]
    rows = [row for row in run.table("iterations").to_pylist() if row["job"] == "j1"]
    assert [(row["rank"], row["iteration"], row["iteration_ms"]) for row in rows] == [
        (0, each, 2.0005) for each in range(3)
    ]
    assert [row["bus_bandwidth_gbps"] for row in rows] == pytest.approx([6.0 * SCALE] * 3)
    assert [row["sent_bytes"] for row in rows] == [None] * 3
    (case,) = find_quantity("bus bandwidth").measure(QuantityRequest(CachedReading(run)))
    assert (case.properties["job"], case.value) == ("j1", pytest.approx(6.0 * SCALE))


def test_a_run_names_job_host_pattern_and_output_of_a_command_that_fails(work):
    # By one worker alone, because the first failure of several is the one that is reported.
    run = work.start(experiment({"command": "echo no GPU; exit 3", "pattern": "^step", "once": True}))
    (trial,) = run.trials()
    assert not trial["valid"]
    said = "ended with exit status 3 after 0 of 3 iterations; "
    said += "lines of its output that match the pattern '^step': 0; its last lines: no GPU"
    assert f"job j1, worker 0 on s0: the command 'echo no GPU; exit 3' {said}" in trial["reason"]


def test_a_report_compares_a_program_with_its_baseline_and_not_with_its_profile(work):
    row = "echo '  1048576  262144  float  sum  -1  {}  0.52  {}  0'"
    rows = {variant: row.format(us, us / 1000) for variant, us in {"alone": 2000.0, "beside": 4000.0}.items()}
    factors = {"variant": {"alone": {"one_job_at_a_time": True}, "beside": {"jobs": {"j1": {"trainer": {
        "command": f"for each in $(seq $ITERATIONS); do {rows['beside']}; done"}}}}}}  # fmt: skip
    trainer = {"command": f"for each in $(seq $ITERATIONS); do {rows['alone']}; done", "pattern": "nccl-tests"}
    document = {**json.loads(experiment(trainer)), "factors": factors, "study": {"baseline": "alone"}}
    run = work.start(json.dumps(document))
    results = summarize_run(run)
    assert isinstance(results, Results)
    cells = {(cell.variant, cell.job): cell for cell in results.cells}
    assert cells["beside", "j1"].speedup == pytest.approx(0.5)
    assert cells["beside", "j1"].fluid.model_dump() == dict.fromkeys(("alone_ms", "fair_ms", "interleaved_ms"))
    assert cells["beside", "j2"].fluid.alone_ms == pytest.approx(293)
    assert cells["beside", "j2"].fluid.fair_ms is None
    gains = {(each.levels["variant"], each.job): each.gain.value for each in results.bandwidths if each.gain}
    assert gains == {("beside", "j1"): pytest.approx(2)}
    assert "fluid" not in write_report(run).read_text()
