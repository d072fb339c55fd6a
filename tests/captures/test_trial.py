# SPDX-License-Identifier: Apache-2.0
"""What surrounds a capture: the experiment file's word on it, its clock, and what is kept of it."""

import os
import struct
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from roundabout.runner.hosts.clocks import ClockLog, Reading
from roundabout.runner.trial import captures
from roundabout.runner.trial.captures import HostUtc, NicCapture
from roundabout.spec import SpecError, load_experiment
from roundabout.spec.capture import Capture
from roundabout.spec.reader.schema import schemas
from roundabout.store import Identity, Run, Units
from tests.captures.capture_frames import Frame, pcap

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

MB = 1_000_000

EXPERIMENT = """
name: captured
about: x
topology: dumbbell-2x2
jobs: {{j1: {{profile: vgg16-fig3, workers: [s0, s2]}}}}
iterations: 4
transport: {{name: dcqcn}}
capture: {capture}
factors: {{variant: {{all: {{}}, short: {{capture: {{snap_bytes: 64}}}}, none: {{capture: null}}}}}}
"""


def load(folder: Path, capture: str) -> list[Capture | None]:
    path = folder / "captured.yaml"
    path.write_text(EXPERIMENT.format(capture=capture))
    return [cell.spec.capture for cell in load_experiment(str(path)).cells]


def test_variants_change_parts_of_it_or_do_without(tmp_path: Path) -> None:
    full, short, none = load(tmp_path, "{hosts: [s0, s2], budget_mb: 50}")
    assert full == Capture(hosts=("s0", "s2"), budget_mb=50)
    assert (full.snap_bytes, full.keep_mb) == (128, 2000)
    assert short == Capture(hosts=("s0", "s2"), budget_mb=50, snap_bytes=64)
    assert none is None
    document = yaml.safe_load((tmp_path / "captured.yaml").read_text())
    jsonschema.Draft202012Validator(schemas()["experiment"]).validate(document)


@pytest.mark.parametrize(
    ("capture", "found"),
    [
        ("{hosts: [s9]}", "capture.hosts"),
        ("{hosts: []}", "capture.hosts"),
        ("{hosts: [s0], snap_bytes: 10}", "at least 64"),
        ("{hosts: [s0], budget_mb: 0}", "at least 1"),
        ("{hosts: [s0], budget: 5}", "the unknown field 'budget'"),
    ],
)
def test_an_invalid_capture_field_is_refused(capture: str, found: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=found):
        load(tmp_path, capture)


def clock_log(*readings: tuple[int, int]) -> ClockLog:
    """Of a host whose monotonic and UTC clocks showed these ns; its offset from the run's clock is 1000, exactly."""
    found = ClockLog()
    for host_ns, utc_ns in readings:
        found.add("s0", Reading(host_ns, utc_ns, 1000, 0, "during"))
    return found


S = 10**9
UTC = 1_700_000_000 * S


def test_stamps_join_by_the_hosts_two_clocks() -> None:
    clock = HostUtc(clock_log((5 * S, UTC), (7 * S, UTC + 2 * S + 100)), "s0")
    stamps = np.array([UTC, UTC + S + 50, UTC + 2 * S + 100])
    host_ns, run_ns, bound_ns = clock.to_run_ns(stamps)
    assert host_ns.tolist() == [5 * S, 6 * S, 7 * S]
    assert run_ns.tolist() == [5 * S + 1000, 6 * S + 1000, 7 * S + 1000]
    assert bound_ns.tolist() == [100, 100, 0]
    assert clock.moved_ns == 100


def test_the_bound_covers_steps_of_utc() -> None:
    back = HostUtc(clock_log((5 * S, UTC), (7 * S, UTC - S), (9 * S, UTC + S), (11 * S, UTC + 3 * S)), "s0")
    host_ns, _, bound_ns = back.to_run_ns(np.array([UTC - S // 2, UTC + S // 2, UTC + 2 * S]))
    assert bound_ns.tolist() == [3 * S] * 3
    true_ns = np.array([7 * S + S // 2, 8 * S + S // 2, 10 * S])
    assert (np.abs(host_ns - true_ns) <= bound_ns).all()


def test_losses_that_are_unknown_are_null_in_the_table(tmp_path: Path) -> None:
    (tmp_path / "0.pcap").write_bytes(pcap([]))
    unknown = {"dropped_by_kernel": None, "dropped_by_interface": None}
    capture = NicCapture("mlx5_0", 5 * S, (tmp_path / "0.pcap",), {"captured": 7, "received": 7, **unknown})
    tables = {}
    site: Any = SimpleNamespace(hosts={"s0": SimpleNamespace(nics=[SimpleNamespace(address="10.0.0.1")])})
    attempt: Any = SimpleNamespace(path=tmp_path, write=tables.__setitem__)
    identity = Identity("run", "trial", "base", "{}", 1, 1)
    captures.store({"s0": [capture]}, clock_log((5 * S, UTC), (7 * S, UTC)), site, Units(1), attempt, identity)
    (row,) = tables["captures"].to_pylist()
    assert {name: row[name] for name in unknown} == unknown
    assert (row["device"], row["overwritten"]) == ("mlx5_0", 7)


def tcp_frame(source: str, source_port: int) -> Frame:
    """Return a segment without data, to 10.0.9.9."""
    ends = b"".join(ip_address(each).packed for each in (source, "10.0.9.9"))
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0) + ends
    frame = bytes(12) + b"\x08\0" + ip + struct.pack("!HHIIBBHHH", source_port, 2, 0, 0, 0x50, 0x10, 0, 0, 0)
    return Frame(frame, len(frame), UTC)


def test_flows_of_two_nics_of_a_host_have_numbers_of_their_own(tmp_path: Path) -> None:
    nics = ("10.0.0.1", "10.0.1.1")
    own = []
    for number, address in enumerate(nics):
        path = tmp_path / f"eth{number}-0.pcap"
        path.write_bytes(pcap([tcp_frame(address, port) for port in (1, 2)]))
        own.append(
            NicCapture(
                f"eth{number}",
                5 * S,
                (path,),
                {"captured": 2, "received": 2, "dropped_by_kernel": 0, "dropped_by_interface": 0},
            )
        )
    tables: dict[str, Any] = {}
    site: Any = SimpleNamespace(hosts={"s0": SimpleNamespace(nics=[SimpleNamespace(address=each) for each in nics])})
    attempt: Any = SimpleNamespace(path=tmp_path, write=tables.__setitem__)
    identity = Identity("run", "trial", "base", "{}", 1, 1)
    captures.store({"s0": own}, clock_log((5 * S, UTC), (7 * S, UTC)), site, Units(1), attempt, identity)
    assert [(row["device"], row["decoded"]) for row in tables["captures"].to_pylist()] == [("eth0", 2), ("eth1", 2)]
    packets = pq.read_table(tmp_path / "packets.parquet").to_pylist()
    assert [(row["source"], row["flow"], row["direction"]) for row in packets] == [
        ("10.0.0.1", 0, "out"), ("10.0.0.1", 1, "out"), ("10.0.1.1", 2, "out"), ("10.0.1.1", 3, "out"),
    ]  # fmt: skip


def test_the_oldest_raw_files_go_first(tmp_path: Path) -> None:
    for age, key in enumerate(("new", "old", "older")):
        folder = tmp_path / "trials" / key / "captures" / "s0"
        folder.mkdir(parents=True)
        with (folder / "0.pcap").open("wb") as file:
            file.truncate(2 * MB)
        os.utime(folder.parent, (1000 - age, 1000 - age))
    raw = tmp_path / "rejected" / "older-1" / "captures"
    raw.mkdir(parents=True)
    Run(tmp_path).drop_raw(5 * MB)
    assert not raw.exists()
    assert [path.parent.name for path in sorted(tmp_path.glob("trials/*/captures"))] == ["new", "old"]
    Run(tmp_path).drop_raw(0)
    assert list(tmp_path.glob("trials/*/captures")) == []
