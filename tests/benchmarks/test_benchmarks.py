# SPDX-License-Identifier: Apache-2.0
"""Each benchmark runs to its end, in its short form, and prints its ratio."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks import ack_cost
from roundabout.testbeds.lab.network import cc_allowlist

pytestmark = pytest.mark.lab

FOLDER = Path(__file__).parents[2] / "benchmarks"
# What each prints before its ratio.
RATIOS = {
    "ack_cost": r"reno +{} \(.* cubic's throughput",
    "cassini": r"grid / ours +{}",
    "crossgen": r'"ratio": {}[,}}]',
    "decode": r"ours / tshark +{}",
    "fluid_engine": r"plain model / engine, .*: {}",
    "job_queue": r"mean .* there and {} here",
    "lab_up_down": r"{} of mininet's",
    "packet_engine": r"packet-hops a second, .*: {}",
    "packet_references": r"a factor of at most {}",
    "packet_scenes": r"a factor of at most {}",
    "packet_steady_states": r"CPU time, all / shortened: {}",
    "packet_tcp": r"packet-hops a second, .*: {}",
    "packet_tcp_kernel": r"model / kernel, geometric mean: {}",
    "placements": r"peer_over_a_candidate {}",
    "sampler": r"ratio +{} samplers / sleepers",
    "scrape": r"the relay takes {} of the time",
    "trace_on_fabric": r"lost {},",
    "startup": r"--version .*: +{} x python",
}
WITHOUT_ROOT = (
    "cassini",
    "decode",
    "fluid_engine",
    "job_queue",
    "packet_engine",
    "packet_references",
    "packet_scenes",
    "packet_steady_states",
    "packet_tcp",
    "placements",
    "startup",
    "trace_on_fabric",
)
LONGEST = ("ack_cost", "startup", "packet_tcp_kernel")  # begin first, so that the others run beside them
AT_ONCE = 3  # they wait more than they compute, and their figures mean nothing here


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, "Future[subprocess.CompletedProcess[str]]"]]:
    """Start the short form of every benchmark that may run here, a few at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ordered = sorted(RATIOS, key=lambda name: name not in LONGEST)
        yield {name: pool.submit(short, name) for name in ordered if os.geteuid() == 0 or name in WITHOUT_ROOT}


def short(name: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, FOLDER / f"{name}.py", "--short"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300)


def test_every_benchmark_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(RATIOS)


@pytest.mark.parametrize("name", RATIOS)
def test_a_benchmark_prints_its_ratio(name: str, runs: dict[str, "Future[subprocess.CompletedProcess[str]]"]) -> None:
    if name not in runs:
        pytest.skip("needs root")
    done = runs[name].result()
    assert done.returncode == 0, done.stderr
    found = re.search(RATIOS[name].format(r"([0-9.e+-]+)"), done.stdout)
    assert found, done.stdout
    assert float(found[1]) > 0


def test_a_transport_that_the_kernel_lacks_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cc_allowlist, "loaded_congestion_controls", lambda: ["reno", "cubic"])
    assert ack_cost.in_kernel(["bic", "dcqcn", "reno", "yeah"]) == ["dcqcn", "reno"]
    assert capsys.readouterr().err == "not in this kernel, and left out: bic, yeah\n"


def test_a_transport_whose_flows_get_stuck_is_left_out_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert ack_cost.drop_stuck({"cubic": [1.0, 2.0], "dcqcn": [1.0]}, 2) == {"cubic": [1.0, 2.0]}
    assert capsys.readouterr().err == "flows got stuck, and are left out: dcqcn\n"
