# SPDX-License-Identifier: Apache-2.0
"""Output of iperf, in every form and damaged: a result, or one IperfError with one message."""

import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

from crossgen import iperf
from crossgen.iperf import IperfError, parse_second

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("line", "second"),
    [
        ("[SUM]   1.00-2.00   sec  4.75 MBytes  39845 Kbits/sec    0", (1.0, 2.0, 0.039845)),
        ("[  5]   0.00-1.00   sec  4.75 MBytes  39845 Kbits/sec    0   87.7 KBytes", (0.0, 1.0, 0.039845)),
        ("[SUM]   0.00-2.00   sec  9.50 MBytes  39845 Kbits/sec    0             sender", None),
        ("[SUM]   2.00-2.00   sec  0.00 Bytes  0.00 Kbits/sec    0", None),
        ("[ ID] Interval           Transfer     Bitrate", None),
    ],
)
def test_an_interval_line_of_iperf_is_parsed(line: str, second: tuple[float, float, float] | None) -> None:
    parsed = parse_second(line)
    assert (parsed and (parsed["start_s"], parsed["end_s"], pytest.approx(parsed["gbps"]))) == second


@settings(max_examples=100)
@given(st.text(alphabet="[]SUM 0123456789.-secKbits/", max_size=80))
def test_any_line_of_iperf_is_an_interval_or_ignored(line: str) -> None:
    for text in (
        line,
        f"[SUM]   0.00-1.00  sec  {line} MBytes  39845 Kbits/sec",
        f"[  5] {line}  sec  1 MBytes  5 Kbits/sec",
    ):
        second = parse_second(text)
        assert second is None or second["end_s"] > second["start_s"]


@pytest.mark.parametrize("load", ["0", "nan", "inf", "-1", "1e-9", "words"])
def test_a_load_that_iperf_would_take_for_no_limit_is_bad_usage(load: str) -> None:
    words = ["load", "--to", "10.0.0.1", "--load-gbps", load]
    done = subprocess.run([sys.executable, iperf.__file__, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert "argument --load-gbps" in done.stderr


def test_a_start_that_is_no_instant_is_said() -> None:
    words = [sys.executable, iperf.__file__, "load", "--to", "10.0.0.1", "--load-gbps", "1"]
    done = subprocess.run(words, input="start soon\n", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "iperf.py: found `start soon`, expected `start MONOTONIC_NS` on standard input\n",
    )


def test_the_way_to_iperf_fails_with_one_message() -> None:
    with pytest.raises(IperfError, match=r"^sh failed: status 3, without output$"):
        iperf.output(["sh", "-c", "exit 3"], 10)
    with pytest.raises(IperfError, match=r"^sh failed: a b$"):
        iperf.output(["sh", "-c", "printf 'a\n b\n' >&2; exit 1"], 10)
    assert iperf.output(["sh", "-c", "printf '\\377x\n'"], 10) == "\N{REPLACEMENT CHARACTER}x\n"
