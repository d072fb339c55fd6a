# SPDX-License-Identifier: Apache-2.0
"""What hosts really run for each model and framework, word by word: of two workers, and of a hybrid four, the second.

ROUNDABOUT_GOLDEN=1 renews the golden files: read the difference.
"""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from roundabout.runner.hosts.slurm_allocation import srun_prefix
from roundabout.spec.trainers import MODELS
from roundabout.spec.training.launch import Launch
from roundabout.spec.training.trainer import Task
from roundabout.spec.training.training_spec import Training, read_models

pytestmark = pytest.mark.unit

GOLDEN = Path(__file__).with_name("golden")
FRAMEWORKS = {name: kind for name, kind in MODELS.items() if issubclass(kind, Training)}
LAUNCHES: tuple[str, ...] = get_args(Launch)


def line(workers: int = 2, **fields: Any) -> str:
    each = [{"name": f"s{rank}", "address": f"10.0.0.{rank + 1}", "port": 29500} for rank in range(workers)]
    trainer: Training = TypeAdapter(FRAMEWORKS[fields["name"]]).validate_python(fields)
    task = Task({"name": "j1", "workers": each}, 1, PurePosixPath("/opt/roundabout"))
    step = srun_prefix("7", "s1") if trainer.scheduled else ()
    return shlex.join([*step, *trainer.container(task), *trainer.argv(task)])


def models_of(framework: str) -> list[str]:
    return [name for name, model in read_models().items() if model.kind in FRAMEWORKS[framework].kinds]


def cases(framework: str) -> Iterator[dict[str, Any]]:
    """Yield launches, fields of every framework, models that this one has, and its own fields."""
    yield from ({"launch": launch} for launch in LAUNCHES)
    yield from ({"backend": backend} for backend in ("gloo", "nccl"))
    yield {"paced": False, "batch": 32, "python": "/opt/torch/bin/python"}
    yield {"record": "kineto"}
    yield {"image": "site/pytorch:2.7", "backend": "nccl"}
    yield {"image": "/images/pytorch.sqsh", "launch": "slurm"}
    known = models_of(framework)
    yield from ({"model": name} for name in known)
    if framework == "deepspeed":
        ways = {"data": 2, "pipeline": 2, "tensor": 2, "hybrid": 4}
        yield from ({"parallel": way, "workers": count} for way, count in ways.items())
        yield from ({"model": name, "parallel": way, "workers": ways[way]} for name in known for way in ways)


def rendered(framework: str) -> str:
    found = []
    for case in cases(framework):
        options = ", ".join(f"{name}: {value}" for name, value in case.items())
        found.append(f"# {options}\n{line(**{'name': framework, **case})}\n")
    return "\n".join(found)


def test_horovods_commands_are_ddps_with_another_script_and_a_name_for_the_host():
    named = rendered("ddp").replace("--user nobody ", "--user nobody --host-name 10.0.0.2 ")
    assert rendered("horovod") == named.replace("/ddp.py ", "/with_horovod.py ")


@pytest.mark.parametrize("framework", [name for name in FRAMEWORKS if name != "horovod"])
def test_every_command_is_as_it_was_read(framework):
    path, found = GOLDEN / f"{framework}.txt", rendered(framework)
    if os.environ.get("ROUNDABOUT_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found)
    assert found == path.read_text()


@pytest.mark.parametrize("launch", LAUNCHES)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_launch_puts_the_same_words_before_every_models_script(framework, launch):
    prefixes = set()
    for model in ({}, *({"model": name} for name in models_of(framework))):
        script = line(name=framework, **model).partition(" /usr/bin/python3 ")[2]
        words = line(name=framework, launch=launch, **model)
        assert words.endswith(script)
        prefixes.add(words.removesuffix(script))
    assert len(prefixes) == 1


def test_all_models_of_the_table_are_in_them():
    text = "".join(path.read_text() for path in GOLDEN.iterdir())
    assert len(read_models()) == 14  # Table 4.2's thirteen, GPT-2 in two sizes
    assert [name for name in read_models() if f"model: {name}\n" not in text] == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "ddp", "model": "DLRM"}, "one of VGG11, VGG16"),
        ({"name": "dlrm", "model": "VGG11"}, "one of DLRM"),
        ({"name": "deepspeed", "model": "BERT"}, "one of GPT1, GPT2, GPT2-XL, GPT3"),
        ({"name": "ddp", "model": "VGG11", "batch": 2000}, "512 to 1800, as Table 4.2 has for VGG11"),
        ({"name": "horovod", "model": "XLM", "batch": 3}, "4 to 32, as Table 4.2 has for XLM"),
        ({"name": "deepspeed", "batch": 18}, "a divisor of the batch, 18"),
        ({"name": "ddp", "backend": "mpi"}, "'gloo' or 'nccl'"),
        ({"name": "ddp", "image": "/images/pytorch.sqsh"}, "the name of an image of Docker"),
        ({"name": "ddp", "image": "pytorch", "launch": "slurm"}, "an absolute path, because pyxis would convert"),
        ({"name": "ddp", "image": "--privileged"}, "pattern"),
    ],
)
def test_an_invalid_command_line_of_a_trainer_is_refused(fields, expected):
    with pytest.raises(ValidationError) as refused:
        line(**fields)
    assert expected in str(refused.value)
