# SPDX-License-Identifier: Apache-2.0
"""Studies: kinds of report, each in its own folder, also in folders on ROUNDABOUT_PATH.

`analysis/studies/<kind>/` holds

study.py      `study(run, choice)`, which computes everything once, typed: a `Summary` with what the study adds, its
              `Results`; and `suits(experiment)`, where experiments that name no study may be of this one
tables.py     its tables (analysis/render/tables.py), and `screen(results)`, what a terminal shows
figures.py    its figures, for the notebook
notebook.py   the page: it draws what was found and computes nothing again

An experiment names its study, `load-sweep` for `load_sweep/`; without a name it gets one that suits, or `DEFAULT`.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from roundabout.core import plugins
from roundabout.core.errors import UsageError
from roundabout.spec import Experiment, StudyChoice
from roundabout.spec.errors import list_choices, suggest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from analysis.expectations.results import Summary
    from roundabout.store import Run

__path__ = plugins.extend_path(__path__, __name__)
DEFAULT = "interleaving"


@dataclass(frozen=True)
class Study:
    """A kind of report, with the modules in its folder."""

    kind: str

    @cached_property
    def _study(self) -> ModuleType:
        return self._module("study")

    @property
    def results(self) -> "type[Summary]":
        """Return the class of the study's results, a `Summary`."""
        found: type[Summary] = self._study.Results
        return found

    @property
    def notebook(self) -> Path:
        """Return the path of the study's notebook."""
        return Path(str(self._study.__file__)).with_name("notebook.py")

    def suits_experiment(self, experiment: Experiment) -> bool:
        """Return True if the study suits an experiment that names no study."""
        rule: Callable[[Experiment], bool] | None = getattr(self._study, "suits", None)
        return rule is not None and rule(experiment)

    def compute(self, run: "Run", choice: StudyChoice) -> "Summary":
        """Compute the study's results of a run."""
        found: Summary = self._study.study(run, choice.model_copy(update={"kind": self.kind}))
        return found

    def screen(self, results: Any) -> "Sequence[RenderableType]":
        """Return the study's tables of results for a terminal."""
        shown: Sequence[RenderableType] = self._module("tables").screen(results)
        return shown

    def _module(self, name: str) -> ModuleType:
        return importlib.import_module(f"{__name__}.{self.kind.replace('-', '_')}.{name}")


def study_kinds() -> tuple[str, ...]:
    """Return the names of all studies, including plugins'."""
    return tuple(name.replace("_", "-") for name in plugins.module_names(importlib.import_module(__name__)))


def find_study(kind: str) -> Study:
    """Return the study called `kind`. Raises UsageError if there is none."""
    if kind not in study_kinds():
        expected = f"expected one of those in analysis/studies ({list_choices(study_kinds())})"
        raise UsageError(f"found no study '{kind}', {expected}", suggest(kind, study_kinds()))
    return Study(kind)


def study_of(experiment: Experiment) -> Study:
    """Return the study that an experiment names, or else one that suits it. Raises UsageError for an unknown name."""
    if experiment.study.kind is not None:
        return find_study(experiment.study.kind)
    fitting = (study for study in map(Study, study_kinds()) if study.suits_experiment(experiment))
    return next(fitting, Study(DEFAULT))
