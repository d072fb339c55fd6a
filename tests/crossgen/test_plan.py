# SPDX-License-Identifier: Apache-2.0
"""Plans: whatever is requested, volume, order and load are right."""

import json
import math
import statistics
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.crossgen.conftest import CROSSGEN, show

pytestmark = pytest.mark.unit

MEAN_BYTES = {"linear": 1_711_250, "steps": 2_434_900}  # of web-search sizes, by what lies between them
DEVIATION_BYTES = {"linear": 3_966_344, "steps": 5_574_520}

WEB_SEARCH = (1e4, 2e4, 3e4, 5e4, 8e4, 2e5, 1e6, 2e6, 5e6, 1e7, 3e7)

properties = settings(max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CROSSGEN, *map(str, words)], capture_output=True, text=True)


def refusal(*words: object) -> str:
    done = run("plan", "--output", "/dev/null", *words)
    assert done.returncode == 1
    return done.stderr.strip()


@properties
@given(
    load_gbps=st.floats(0.5, 25),
    duration_s=st.integers(1, 20),
    seed=st.integers(0, 2**63 - 1),
    gaps=st.sampled_from(["poisson-process", "poisson-distributed"]),
    between=st.sampled_from(["linear", "steps"]),
)
def test_a_consistent_load_is_in_order_and_as_requested(  # noqa: PLR0917
    tmp_path: Path, load_gbps: float, duration_s: int, seed: int, gaps: str, between: str
) -> None:
    path = tmp_path / "x.load"
    options = ["--load-gbps", load_gbps, "--duration-s", duration_s, "--seed", seed, "--gaps", gaps]
    reported = json.loads(run("plan", *options, "--sizes-between", between, "--output", path, "--json").stdout)
    rows = show(path)
    starts = [int(row["start_ns"]) for row in rows]
    total = sum(int(row["bytes"]) for row in rows)
    assert starts == sorted(starts)
    assert starts[-1] <= duration_s * 10**9
    flows = math.floor(load_gbps / 8 * duration_s * 1e9 / MEAN_BYTES[between])
    assert len(rows) == reported["flows"] == flows
    assert total == reported["bytes"]
    assert reported["offered_gbps"] == pytest.approx(8 * total / duration_s / 1e9)
    assert reported["plan"]["expected_gbps"] == pytest.approx(8 * flows * MEAN_BYTES[between] / duration_s / 1e9)


@pytest.mark.parametrize("between", ["linear", "steps"])
@pytest.mark.parametrize("burst", [[], ["--burst-width-us", 1000]], ids=["consistent", "burst"])
def test_a_load_is_as_expected_within_its_standard_error(between: str, burst: list[object]) -> None:
    """Of 200 seeds some are further off than 3 standard errors, as they must, but few, and the mean is not."""
    off = []
    for seed in range(200):
        options = ["--load-gbps", 20, "--duration-s", 10, "--seed", seed, "--sizes-between", between, *burst]
        reported = json.loads(run("plan", *options, "--output", "/dev/null", "--json").stdout)
        drawn = reported["classes"]["quiet" if burst else "consistent"]["flows"]
        scale = min(1, 17.5e6 / 8 / MEAN_BYTES[between]) if burst else 1  # of eight flows between two bursts
        assert reported["offered_gbps_standard_error"] == pytest.approx(
            8 * scale * DEVIATION_BYTES[between] * math.sqrt(drawn) / 1e10, rel=0.1
        )
        off.append(
            (reported["offered_gbps"] - reported["plan"]["expected_gbps"]) / reported["offered_gbps_standard_error"]
        )
    assert sum(abs(each) > 3 for each in off) <= 2
    assert abs(statistics.fmean(off)) < 3 / math.sqrt(len(off))


@properties
@given(
    load_gbps=st.floats(0.5, 25),
    between=st.sampled_from(["linear", "steps"]),
    scale=st.floats(0.1, 1),
    seed=st.integers(0, 2**63 - 1),
)
def test_bursts_keep_their_share_while_what_is_between_them_is_drawn(
    tmp_path: Path, load_gbps: float, between: str, scale: float, seed: int
) -> None:
    """What is drawn differs from period to period, and is one of the listed sizes, scaled, where they are steps."""
    path = tmp_path / "x.load"
    options = ["--load-gbps", load_gbps, "--duration-s", 0.2, "--scale-sizes", scale, "--seed", seed]
    run("plan", *options, "--sizes-between", between, "--burst-width-us", 1000, "--output", path)
    rows = show(path)
    starts = [int(row["start_ns"]) for row in rows]
    assert starts == sorted(starts)
    volume, mean = load_gbps / 8 * 1e7, MEAN_BYTES[between] * scale
    flows = max(math.floor(round(volume * 0.7) / mean), 8)
    shrunk = scale * min(1, volume * 0.7 / 8 / mean)
    listed = {round(shrunk * size) for size in WEB_SEARCH}
    volumes = set()
    for period in range(20):
        own = [row for row, start_ns in zip(rows, starts, strict=True) if start_ns // 10**7 == period]
        bursts, quiet = ([int(row["bytes"]) for row in own if row["class"] == name] for name in ("burst", "quiet"))
        assert sum(bursts) == pytest.approx(volume * 0.3, abs=1)
        assert len(quiet) == flows
        if between == "steps":
            assert all(any(abs(size - each) <= 1 for each in listed) for size in quiet)
        volumes.add(sum(quiet))
    assert len(volumes) > 1


def test_sizes_in_percent_are_taken_and_said(tmp_path: Path) -> None:
    path = tmp_path / "web.csv"
    options = ["--load-gbps", 0.1, "--duration-s", 1, "--sizes-between", "linear", "--output", "/dev/null", "--json"]
    note = f"crossgen: {path}: the last cumulative probability is 100, so all are percent\n"
    for content, said in (("0,0\n1000,0.5\n3000,1\n", ""), ("size,cdf\r\n0,0\r\n1000,50\r\n3000,100\r\n", note)):
        path.write_text(content)
        done = run("plan", "--sizes", path, *options)
        assert (done.returncode, done.stderr) == (0, said)
        assert json.loads(done.stdout)["plan"]["mean_bytes"] == 0.5 * 500 + 0.5 * 2000


def test_sizes_that_are_no_file_are_refused(tmp_path: Path) -> None:
    options = ["--load-gbps", 0.1, "--duration-s", 1, "--sizes"]
    assert refusal(*options, tmp_path / "none") == f"crossgen: cannot open {tmp_path}/none: No such file or directory"
    assert refusal(*options, tmp_path) == f"crossgen: cannot read {tmp_path}: Is a directory"


def test_a_folder_is_no_load_file(tmp_path: Path) -> None:
    assert run("show", tmp_path).stderr == f"crossgen: cannot read {tmp_path}: Is a directory\n"


def test_a_load_file_says_what_it_offers(plan: Callable[..., Path]) -> None:
    path = plan(0.2, 10, "--burst-width-us", "1000")
    sizes = [int(row["bytes"]) for row in show(path)]
    header = json.loads(path.read_bytes().split(b"\n", 1)[0])["plan"]
    assert (header["volumes"], header["sizes_between"]) == ("drawn", "steps")
    assert header["offered_gbps"] == pytest.approx(8 * sum(sizes) / 1e10)
    assert header["offered_mean_bytes"] == pytest.approx(statistics.fmean(sizes))


@properties
@given(
    load_gbps=st.floats(0.01, 25),
    periods=st.integers(1, 10),
    width_us=st.integers(1, 3300),
    height=st.floats(1, 3),
    scale=st.floats(0.1, 1),
    seed=st.integers(0, 2**63 - 1),
)
def test_exact_bursts_are_exact(  # noqa: PLR0917
    tmp_path: Path, load_gbps: float, periods: int, width_us: int, height: float, scale: float, seed: int
) -> None:
    path = tmp_path / "x.load"
    options = ["--load-gbps", load_gbps, "--duration-s", periods / 100, "--scale-sizes", scale, "--seed", seed]
    burst = ["--burst-width-us", width_us, "--burst-height", height, "--volumes", "exact"]
    done = run("plan", *options, *burst, "--output", path)
    if "expected a load of at least" in done.stderr:
        return  # so little that a burst would be some bytes
    assert done.returncode == 0, done.stderr
    rows = show(path)
    starts = [int(row["start_ns"]) for row in rows]
    assert starts == sorted(starts)
    volume = load_gbps / 8 * 1e7
    for period in range(periods):
        flows = [row for row, start_ns in zip(rows, starts, strict=True) if start_ns // 10**7 == period]
        bursts = [row for row in flows if row["class"] == "burst"]
        assert sum(int(row["bytes"]) for row in flows) == pytest.approx(volume, abs=1)
        assert sum(int(row["bytes"]) for row in bursts) == pytest.approx(volume * height * width_us / 1e4, abs=1)
        assert len(bursts) == 2 and len(flows) >= 10
        assert int(bursts[0]["start_ns"]) == period * 10**7
        assert int(bursts[1]["start_ns"]) < period * 10**7 + width_us * 1000


QUIET = ["--duration-s", 0.02, "--burst-width-us", 1000, "--volumes", "exact"]


@pytest.mark.parametrize(
    "options", [["--load-gbps", 0.0008, "--burst-height", 9.95], ["--load-gbps", 1, "--scale-sizes", 1000]]
)
def test_an_impossible_load_is_not_planned(tmp_path: Path, options: list[object]) -> None:
    (tmp_path / "huge.cdf").write_text("1 0\n1e14 1\n")
    path = tmp_path / "x.load"
    done = run("plan", *QUIET, "--sizes", tmp_path / "huge.cdf", *options, "--output", path)
    assert done.returncode == 1 and "expected" in done.stderr and "found" in done.stderr
    assert not path.exists()


def test_sizes_below_a_byte_still_make_whole_flows(tmp_path: Path) -> None:
    (tmp_path / "tiny.cdf").write_text("0 0\n1 1\n")
    done = run("plan", *QUIET, "--sizes", tmp_path / "tiny.cdf", "--load-gbps", 0.001, "--output", tmp_path / "x.load")
    assert done.returncode == 0, done.stderr
    rows = show(tmp_path / "x.load")
    assert sum(int(row["bytes"]) for row in rows) == 2500
    assert all(int(row["bytes"]) >= 1 for row in rows)


def test_destinations_share_the_flows(plan: Callable[..., Path]) -> None:
    rows = show(plan(1, 5, "--destinations", "a,b,c"))
    for name in "abc":
        assert sum(row["destination"] == name for row in rows) == pytest.approx(len(rows) / 3, rel=0.1)


def test_the_file_is_as_documented(plan: Callable[..., Path]) -> None:
    """docs/reference/load-file.md, read without crossgen."""
    path = plan(0.1, 1, "--destinations", "s0,s2", "--burst-width-us", "1000")
    data = path.read_bytes()
    header_end = data.index(b"\n") + 1
    header = json.loads(data[:header_end])
    assert (header["format"], header["version"], header["duration_ns"]) == ("roundabout-load", 1, 10**9)
    records = list(struct.iter_unpack("<QQHH", data[header_end:-20]))
    mark, flows, checksum = struct.unpack("<QQI", data[-20:])
    assert (mark, flows, checksum) == (2**64 - 1, len(records), zlib.crc32(data[:-4]))
    assert [list(map(str, record)) for record in records] == [
        [row["start_ns"], row["bytes"], str(header["destinations"].index(row["destination"])),
         str(header["classes"].index(row["class"]))]
        for row in show(path)
    ]  # fmt: skip


def test_a_plan_goes_to_standard_output_too(plan: Callable[..., Path]) -> None:
    path = plan(0.1, 1)
    words = ["plan", "--load-gbps", "0.1", "--duration-s", "1", "--scale-sizes", "0.01", "--output", "-"]
    assert subprocess.run([CROSSGEN, *words], capture_output=True).stdout == path.read_bytes()


def test_any_distribution_is_taken_and_none_other(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.txt"
    options = ("--load-gbps", 1, "--duration-s", 1, "--sizes", sizes)
    sizes.write_text("1000 0\n1000 1\n")
    reported = json.loads(run("plan", *options, "--output", "/dev/null", "--json").stdout)
    assert (reported["flows"], reported["bytes"]) == (125_000, 125_000_000)
    sizes.write_text("0 0\n5 .6\n9 .5\n10 1\n")
    assert refusal(*options).endswith(
        "sizes.txt, line 3, cumulative probability: expected at least 0.6, the line before's, found `.5`"
    )
    sizes.unlink()
    assert "cannot open" in refusal(*options)


def test_a_load_too_small_for_one_flow_is_refused() -> None:
    assert "at least one flow of the mean size" in refusal("--load-gbps", 0.001, "--duration-s", 1)


def test_bad_usage_has_an_exit_status_of_its_own() -> None:
    for words in (["plan"], ["plan", "--load-gbps", "nan"], ["sink", "--bind", "x"], []):
        assert run(*words).returncode == 2


@pytest.mark.parametrize("seed", ["18446744073709551616", "-1", "1.5", "x", "1e3", ""])
def test_a_seed_that_is_no_whole_number_of_64_bits_is_refused(seed: str) -> None:
    done = run("plan", "--load-gbps", 1, "--duration-s", 1, "--output", "/dev/null", "--seed", seed)
    assert done.returncode == 2
    assert f"--seed: expected a whole number from 0 to 18446744073709551615, found {seed}" in done.stderr


@pytest.mark.parametrize("cut", [1, 19, 20, 21, 1000])
def test_a_file_that_was_cut_is_noticed(plan: Callable[..., Path], cut: int) -> None:
    path = plan(0.1, 1)
    path.write_bytes(path.read_bytes()[:-cut])
    done = run("show", path)
    assert done.returncode == 1
    assert "cut short after" in done.stderr
