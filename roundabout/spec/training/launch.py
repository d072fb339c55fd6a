# SPDX-License-Identifier: Apache-2.0
"""The start of a worker's program on its host, over the trial's connection."""

from typing import Literal

from roundabout.spec.training.trainer import Task

Launch = Literal["direct", "torchrun", "slurm"]
WATCHED_S = 1  # torchrun looks so often whether its worker has ended
SLURM_PROBE = (
    "sh",
    "-c",
    """refuse() { echo "$1" >&2; exit 1; }
for program in salloc srun scancel squeue scontrol; do
  command -v "$program" > /dev/null || refuse "found no $program, expected that of Slurm: or launch: direct"
done
said=$(scontrol show node "$(hostname -s)" 2>&1) || refuse "Slurm does not know this host: $said"
""",
)
"""Fails on hosts that are no nodes of Slurm's, and says why."""


def launch_prefix(launch: Launch, python: str, program: str, task: Task) -> tuple[str, ...]:
    """Return the command prefix of a worker.

    Empty, or its host's torchrun, in which each worker is a node of one process.

    Through Slurm it is started by itself, too, as a step of its trial's allocation (runner/hosts/allocation.py). Either
    way it has the connection's input and output, and ends with it; nothing is started from host to host.
    """
    if launch == "torchrun":
        workers = task.job["workers"]
        nodes = (f"--nnodes={len(workers)}", f"--node_rank={task.rank}", "--nproc_per_node=1")
        meeting = (f"--master_addr={workers[0]['address']}", f"--master_port={workers[0]['port']}")
        torchrun = str(task.programs / "bin" / "torchrun.py")
        return (python, torchrun, *nodes, *meeting, f"--monitor_interval={WATCHED_S}", program)
    return (python, program)
