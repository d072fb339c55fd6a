# SPDX-License-Identifier: Apache-2.0
"""A trial's allocation, against programs that stand in for Slurm's; tests/slurm/test_trainers.py has the real ones."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.hosts.slurm_allocation import Allocation, AllocationError, describe_own_allocation
from roundabout.spec.training.launch import SLURM_PROBE
from tests.deadline import wait_for

pytestmark = pytest.mark.unit

PROGRAMS = {
    "hostname": """[ "$*" = -s ] && echo node7""",
    "salloc": """echo "$*" > "$SLURM_HOME/requested"
if [ -e "$SLURM_HOME/busy" ]; then echo "salloc: error: Requested nodes are busy" >&2; exit 1; fi
echo $$ > "$SLURM_HOME/salloc"
while [ "$1" != sh ]; do shift; done
export SLURM_JOB_ID=12; exec 3<&0
"$@" <&3 &
while kill -0 $! 2> /dev/null; do
  if [ -e "$SLURM_HOME/taken" ]; then kill $!; echo "salloc: Job allocation 12 has been revoked." >&2; exit 1; fi
  sleep 0.01
done
echo ended >> "$SLURM_HOME/given-back" """,
    "squeue": """echo "node7 has job 11 of anna (hers, RUNNING)" """,
    "scancel": """echo "$*" >> "$SLURM_HOME/cancelled" """,
    "srun": "",
    "scontrol": """[ ! -e "$SLURM_HOME/unknown" ] || { echo "Node $3 not found"; exit 1; }""",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in PROGRAMS.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_HOME", str(tmp_path))
    return tmp_path


def allocation() -> Allocation:
    return Allocation({"s0": LocalConnection("s0")}, "roundabout-mine")


def test_an_allocation_lasts_as_long_as_its_context(home: Path) -> None:
    with allocation() as held:
        assert held.number == "12"
        assert held.loss_reason is None
        step = ("srun", "--jobid=12", "--nodelist=node7", "--nodes=1", "--ntasks=1", "--overlap")
        assert held.step("s0") == (*step, "--cpu-bind=none", "--mpi=none")
        assert not (home / "given-back").exists()
    assert (home / "given-back").exists()
    assert not (home / "cancelled").exists()
    requested = (home / "requested").read_text()
    assert requested.startswith("--job-name=roundabout-mine --nodelist=node7 --nodes=1 --exclusive --immediate=20 ")


def test_an_allocation_of_no_hosts_does_not_call_slurm(home: Path) -> None:
    with Allocation({}, "roundabout-mine") as held:
        assert (held.number, held.loss_reason) == (None, None)
    assert not (home / "requested").exists()


def test_an_allocation_that_the_run_has_already_is_used_and_kept(home: Path) -> None:
    with Allocation({"s0": LocalConnection("s0")}, "roundabout-mine", "9") as held:
        assert held.step("s0")[:3] == ("srun", "--jobid=9", "--nodelist=node7")
    assert not (home / "requested").exists()
    assert not (home / "cancelled").exists()


def test_an_inherited_allocation_is_named_where_workers_are_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert describe_own_allocation(["s0"]) is None
    monkeypatch.setenv("SLURM_JOB_ID", "9")
    assert describe_own_allocation([]) is None
    notice = describe_own_allocation(["s0", "s1"])
    assert notice
    assert notice.startswith("workers on s0, s1 are steps of Slurm's job 9, which SLURM_JOB_ID names")


def test_busy_nodes_are_one_message(home: Path) -> None:
    (home / "busy").touch()
    with pytest.raises(AllocationError) as error, allocation():
        pass
    found = "salloc: error: Requested nodes are busy; node7 has job 11 of anna (hers, RUNNING)"
    assert error.value.message == f"Slurm did not give the nodes node7 within 20 s: {found}"
    assert error.value.hint == "go on when they are free: roundabout resume"


def test_a_holder_that_is_killed_gives_back_all_the_same(home: Path) -> None:
    with allocation():
        os.kill(int((home / "salloc").read_text()), signal.SIGKILL)
    assert (home / "cancelled").read_text() == "12\n"


def test_an_allocation_that_is_taken_away_is_reported(home: Path) -> None:
    with allocation() as held:
        (home / "taken").touch()
        wait_for(lambda: held.loss_reason)
        assert (
            held.loss_reason
            == "Slurm's job 12 ended, in which workers were: salloc: Job allocation 12 has been revoked."
        )


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (lambda home: (home / "unknown").touch(), "Slurm does not list this host: Node node7 not found\n"),
        (lambda home: (home / "salloc").unlink(), "found no salloc, expected that of Slurm: or launch: direct\n"),
    ],
)
def test_a_host_that_is_no_node_says_so(
    home: Path, ahead: Callable[[Path], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{home}:/nowhere")
    shell = ["/bin/sh", *SLURM_PROBE[1:]]
    assert subprocess.run(shell, capture_output=True).returncode == 0
    ahead(home)
    done = subprocess.run(shell, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, said)
