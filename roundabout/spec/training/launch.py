# SPDX-License-Identifier: Apache-2.0
"""Command prefixes that start a worker's program on its host."""

from typing import Literal

from roundabout.spec.training.trainer import Task

Launch = Literal["direct", "torchrun", "slurm"]
WATCHED_S = 1  # torchrun's monitor interval, s: how often it checks if its worker has ended
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
"""Command that fails, with the reason on stderr, on a host that is not a node of a Slurm cluster."""


def launch_prefix(launch: Launch, python: str, program: str, task: Task) -> tuple[str, ...]:
    """Return the beginning of a worker's command line: the interpreter and `program`, or `torchrun` around them.

    With torchrun, each worker is a node of one process. With Slurm, the runner starts the same command as a step of the
    trial's allocation (runner/hosts/slurm_allocation.py). Each worker has the input and output of its host's connection
    and ends with the connection.
    """
    if launch == "torchrun":
        workers = task.job["workers"]
        nodes = (f"--nnodes={len(workers)}", f"--node_rank={task.rank}", "--nproc_per_node=1")
        rendezvous = (f"--master_addr={workers[0]['address']}", f"--master_port={workers[0]['port']}")
        torchrun = str(task.programs / "bin" / "torchrun.py")
        return (python, torchrun, *nodes, *rendezvous, f"--monitor_interval={WATCHED_S}", program)
    return (python, program)
