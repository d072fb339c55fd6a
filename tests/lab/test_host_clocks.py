# SPDX-License-Identifier: Apache-2.0
"""Lab hosts with clocks of their own."""

import json
import subprocess
import time

import pytest

from roundabout.cli.main import main
from roundabout.testbeds.lab import Lab, LabError
from roundabout.testbeds.lab.checks import kernel_features
from tests.lab.lab_command import roundabout

from .conftest import NOTHING, traces

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

HOUR_NS = 3600 * 10**9
CLOCKS = "import time; print(time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns())"


def clocks(lab: Lab, host: str) -> list[tuple[int, int, int]]:
    """Each of a host's clocks (monotonic, since boot, UTC) with what the machine's showed before and after it."""

    def own() -> tuple[int, int, int]:
        return time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns()

    before = own()
    command = ["ssh", "-F", str(lab.ssh_config()), host, f"python3 -c '{CLOCKS}'"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    return list(zip(before, map(int, shown.split()), own(), strict=True))


def test_a_host_has_the_clock_that_was_requested(topology, lab_name):
    shifts = {"s0": HOUR_NS, "s1": -1_500_000_000}
    lab = Lab.create(topology, lab_name(), clock_shift_ns=shifts, verify=False)
    assert lab.capabilities() == {"priorities", "own clock"}
    for host in lab.hosts:
        shift_ns = shifts.get(host, 0)
        monotonic, since_boot, utc = clocks(lab, host)
        for before, shown, after in (monotonic, since_boot):
            assert before <= shown - shift_ns <= after
        assert utc[0] <= utc[1] <= utc[2]
    assert Lab.open(lab.name).record.clock_shift_ns == shifts
    Lab.remove(lab.name)
    assert traces(lab.name) == NOTHING


def test_hosts_share_the_machines_clock_unless_requested(lab):
    assert lab.capabilities() == {"priorities"}
    before, shown, after = clocks(lab, "s0")[0]
    assert before <= shown <= after


def test_a_clock_before_the_machines_boot_is_refused(topology, lab_name):
    name = lab_name()
    with pytest.raises(LabError, match="labinit s0: shifting its clock to before the machine's boot"):
        Lab.create(topology, name, clock_shift_ns={"s0": -(10**9) * 10**8}, verify=False)
    assert traces(name) == NOTHING


def test_a_clock_shift_of_an_unknown_host_is_refused(topology, lab_name):
    with pytest.raises(LabError, match="'dumbbell-2x2' has no host 's9' whose clock") as caught:
        Lab.create(topology, lab_name(), clock_shift_ns={"s9": 1})
    assert caught.value.hint == "its hosts: s0, s1, s2, s3"


def test_a_kernel_without_time_namespaces_is_named(topology, lab_name, monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_features, "TIME_NAMESPACE", tmp_path / "time")
    with pytest.raises(LabError, match="has no time namespaces: .*time is missing") as caught:
        Lab.create(topology, lab_name(), clock_shift_ns={"s0": 1})
    assert "CONFIG_TIME_NS=y" in str(caught.value.hint)


def test_the_command_line_shifts_clocks_and_shows_them(lab_name):
    name = lab_name()
    up = roundabout("up", "--name", name, "--clock-shift", "s0=3600s", "--clock-shift", "s1=-0.5s")
    assert up.returncode == 0, up.stderr
    (report,) = json.loads(roundabout("status", name, "--json").stdout)["labs"]
    assert [host["clock_shift_ns"] for host in report["hosts"]] == [HOUR_NS, -500_000_000, None, None]
    assert "s0 10.77.0.1 (clock +3600 s)" in roundabout("status", name).stdout


@pytest.mark.parametrize("shift", ["s0", "s0=3600", "s0=1h", "=1s", "s0=1e3s"])
def test_a_shift_that_is_none_is_a_mistake(shift, capsys):
    assert main(["lab", "up", "--clock-shift", shift]) == 2
    said = capsys.readouterr().err
    assert f"--clock-shift: found '{shift}'" in said
    assert "s0=3600s" in said
