# SPDX-License-Identifier: Apache-2.0
"""Commands that start a worker's program on its host, directly or in an image of a container."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, StringConstraints, model_serializer, model_validator
from pydantic_core import PydanticCustomError

from roundabout.spec.base import drop_defaults
from roundabout.spec.training.trainer import BaseTrainer, Task

Launch = Literal["direct", "torchrun", "slurm"]
Image = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9/][\w.:/@+-]*$", max_length=500)]
WATCHED_S = 1  # torchrun's monitor interval, s: how often it checks if its worker has ended
SLURM_PROBE = (
    "sh",
    "-c",
    """refuse() { echo "$1" >&2; exit 1; }
for program in salloc srun scancel squeue scontrol; do
  command -v "$program" > /dev/null || refuse "found no $program, expected that of Slurm: or launch: direct"
done
said=$(scontrol show node "$(hostname -s)" 2>&1) || refuse "Slurm does not list this host: $said"
""",
)
"""Command that fails, with the reason on stderr, on a host that is not a node of a Slurm cluster."""
PYXIS_PROBE = """[ -r "$0" ] || { echo "cannot read $0: make it by enroot import -o $0 docker://IMAGE" >&2; exit 1; }
srun --help | grep -q -e --container-image || { echo "srun has no --container-image, which is of pyxis" >&2; exit 1; }
"""
GPUS, RDMA_DEVICES = "all", "/dev/infiniband"  # of Docker's containers
DOCKER_PROBE = 'docker image inspect "$0" > /dev/null || { echo "docker pull $0 brings an image" >&2; exit 1; }'


class LaunchedTrainer(BaseTrainer):
    """A trainer whose workers are started directly or through Slurm, and perhaps in an image of a container.

    Sources of the commands: NVIDIA/pyxis 046f414, README.md; Docker's reference of `docker container run`.
    """

    launch: Launch = Field(
        default="direct",
        description="how workers are started: directly, by torchrun on their hosts, or through Slurm",
    )
    image: Image | None = Field(
        default=None,
        description="image in which workers run: of Docker, or with `launch: slurm` the path of one of enroot (pyxis)",
    )

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop a default, so that trial keys hashed before the field existed stay valid."""
        return drop_defaults({"image": None}, handler(self))

    @model_validator(mode="after")
    def _image_of_launcher(self) -> Self:
        if self.image and self.image.startswith("/") != self.scheduled:
            by_pyxis = "an absolute path, because pyxis would convert another image at each start"
            by_docker = "the name of an image of Docker; with `launch: slurm` a file of pyxis"
            raise field_error("image", self.image, by_pyxis if self.scheduled else by_docker)
        return self

    @property
    def scheduled(self) -> bool:
        """Return True if Slurm starts the workers."""
        return self.launch == "slurm"

    @property
    def image_probe(self) -> tuple[str, ...] | None:
        """Return a command that fails on a host without the image or what starts it. None without an image."""
        return ("sh", "-c", PYXIS_PROBE if self.scheduled else DOCKER_PROBE, self.image) if self.image else None

    def container(self, task: Task) -> tuple[str, ...]:
        """Return the options of `srun`, or the command of Docker, that put a worker's command into the image."""
        if not self.image:
            return ()
        mount = f"{task.programs}:{task.programs}:ro"
        if self.scheduled:
            user = ("--no-container-remap-root", "--no-container-entrypoint")  # the user's own, and no banner on stdout
            return (f"--container-image={self.image}", f"--container-mounts={mount}", *user)
        run = ("docker", "run", "--rm", "--interactive", "--pull=never", "--entrypoint=")
        shared = ("--network=host", "--ipc=host", "--ulimit=memlock=-1", f"--volume={mount}")
        devices = [f"--gpus={GPUS}"] * self.nccl + [f"--device={RDMA_DEVICES}"] * task.rdma
        return (*run, *shared, *devices, self.image)


def field_error(field: str, found: object, expected: str) -> PydanticCustomError:
    """Return a validation error about `field` for a validator of several fields."""
    return PydanticCustomError(
        "located", "{expected}", {"location": (field,), "found": str(found), "expected": expected}
    )


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
