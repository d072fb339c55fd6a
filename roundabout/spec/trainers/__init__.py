# SPDX-License-Identifier: Apache-2.0
"""The trainers that a job can name: one module each, whose class `Trainer` has its parameters and command line."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from roundabout.core import plugins
from roundabout.spec.training.trainer import BaseTrainer

__path__ = plugins.extend_path(__path__, __name__)

MODELS: dict[str, type[BaseTrainer]] = {
    name: import_module(f"{__name__}.{name}").Trainer for name in plugins.module_names(sys.modules[__name__])
}
DEFAULT = MODELS["replay"].model_validate({"name": "replay"})

# One model by its name. A union of one is none, and would refuse the discriminator.
if TYPE_CHECKING:
    Trainer = BaseTrainer
elif len(MODELS) > 1:
    Trainer = Annotated[Union[tuple(MODELS.values())], Field(discriminator="name")]  # noqa: UP007 - made of a tuple
else:
    Trainer = MODELS["replay"]
