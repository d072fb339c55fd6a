# SPDX-License-Identifier: Apache-2.0
"""Slurm allocations: a trial gets exclusive use of its hosts, and its workers run as steps of the allocation.

`salloc` on the first host keeps the allocation as long as a program there can read from our connection. The end of the
connection ends the allocation and every program in it. `srun` on each worker's host starts the worker's step. It
forwards the worker's input and output over our connection to the host.
"""

import os
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Self

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import Connection, LostHostError
from roundabout.runner.hosts.programs import Program, call, check_call

OWN_ALLOCATION = "SLURM_JOB_ID"
"""Environment variable with the id of the Slurm job in which this process runs, also of a shell that inherited it."""
GRANT_TIMEOUT_S = 20  # time limit of salloc to grant free nodes; nodes of the previous trial may still be in cleanup
ANSWER_TIMEOUT_S = 20  # further time in which salloc reports a refusal
END_TIMEOUT_S = 10
# salloc ignores SIGPIPE, because its output may have no reader when it releases the nodes.
HOLD = """trap '' PIPE; exec salloc "$@" """
HELD = 'echo "$SLURM_JOB_ID"; exec cat > /dev/null'
STEP = (
    "--nodes=1",
    "--ntasks=1",
    "--overlap",
    "--cpu-bind=none",
    "--mpi=none",
)  # the whole node, as for a directly started worker


def srun_prefix(job: str, node: str) -> tuple[str, ...]:
    """Return the command prefix that starts a program as a step of the Slurm job `job` on its node `node`."""
    return ("srun", f"--jobid={job}", f"--nodelist={node}", *STEP)


def describe_own_allocation(hosts: Collection[str]) -> str | None:
    """Return a notice that workers on `hosts` are steps of this process' own Slurm job, or None if they are not."""
    own = os.environ.get(OWN_ALLOCATION)
    if own is None or not hosts:
        return None
    return (
        f"workers on {', '.join(hosts)} are steps of Slurm's job {own}, which {OWN_ALLOCATION} names, and no nodes are "
        f"allocated for them; `unset {OWN_ALLOCATION}` for an allocation of their own"
    )


class AllocationError(RoundaboutError):
    """Error for an allocation that Slurm did not grant."""


class Allocation:
    """An allocation of the nodes of the given hosts for the duration of a `with` block. There may be no hosts.

    `given` is the id of a Slurm job that has the nodes already: the one in which this process runs.
    """

    def __init__(self, connections: Mapping[str, Connection], name: str, given: str | None = None) -> None:
        self._connections, self._name, self._given = connections, name, given
        self._nodes: dict[str, str] = {}
        self._holder: Program | None = None

    def __enter__(self) -> Self:
        """Allocate the hosts.

        Raises AllocationError if Slurm does not grant them soon, and LostHostError.
        """
        if self._connections:
            each = self._connections.items()
            self._nodes = {host: check_call(there, ["hostname", "-s"]).strip() for host, there in each}
            try:
                if self._given is None:
                    self._allocate()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_exception: object) -> None:
        """Release the hosts, unless a broken connection already did."""
        if self._holder:
            with suppress(LostHostError):
                self._release(self._holder)

    @property
    def number(self) -> str | None:
        """Return the id of the Slurm job, or None without an allocation."""
        given = self._given if self._connections else None
        return self._holder.lines[0] if self._holder and self._holder.lines else given

    @property
    def loss_reason(self) -> str | None:
        """Return the reason why Slurm ended the allocation, or None if it is still held."""
        if self._holder and self._holder.has_ended:
            return f"Slurm's job {self.number} ended, in which workers were: {self._holder.describe_end()}"
        return None

    def step(self, host: str) -> tuple[str, ...]:
        """Return the command prefix that starts a worker on `host` as a step of the allocation."""
        return srun_prefix(str(self.number), self._nodes[host])

    def _allocate(self) -> None:
        nodes = ",".join(self._nodes.values())
        requested = [f"--job-name={self._name}", f"--nodelist={nodes}", f"--nodes={len(self._nodes)}", "--exclusive"]
        limits = [f"--immediate={GRANT_TIMEOUT_S}", "--kill-command=TERM"]
        answered = threading.Event()
        argv = ["sh", "-c", HOLD, "sh", *requested, *limits, "sh", "-c", HELD]
        self._holder = Program("allocation", self._first_connection, argv, lambda *_: answered.set())
        answered.wait(GRANT_TIMEOUT_S + ANSWER_TIMEOUT_S)
        if self.number is None:
            raise self._refusal(self._holder)

    @property
    def _first_connection(self) -> Connection:
        return next(iter(self._connections.values()))

    def _refusal(self, holder: Program) -> RoundaboutError:
        if holder.lost_connection:
            return LostHostError(holder.host, "the connection broke during salloc")
        why = holder.describe_end() if holder.has_ended else f"no answer within {GRANT_TIMEOUT_S + ANSWER_TIMEOUT_S} s"
        nodes, there = ",".join(self._nodes.values()), "%N has job %i of %u (%j, %T)"
        queue = call(self._first_connection, ["squeue", "--noheader", f"--nodelist={nodes}", f"--format={there}"])
        found = "; ".join([why, *queue.stdout.splitlines()])
        message = f"Slurm did not give the nodes {nodes} within {GRANT_TIMEOUT_S} s: {found}"
        return AllocationError(message, "go on when they are free: roundabout resume")

    def _release(self, holder: Program) -> None:
        """End the holding program, which releases the allocation."""
        holder.close_stdin()
        holder.finish(END_TIMEOUT_S)
        if self.number and holder.status != 0:
            call(self._first_connection, ["scancel", self.number])
