# SPDX-License-Identifier: Apache-2.0
"""Plugin packages: each module of such a package is one plugin. Plugin folders outside the tree can add modules.

ROUNDABOUT_PATH lists plugin folders, separated as in PATH. A plugin folder is laid out like the tree: its file
`analysis/quantities/mine.py` is the module `analysis.quantities.mine`. A module of the tree hides a plugin's module of
the same name.
"""

import os
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

VARIABLE = "ROUNDABOUT_PATH"


def plugin_folders() -> tuple[Path, ...]:
    """Return the plugin folders that ROUNDABOUT_PATH lists, in that order, as resolved paths."""
    return tuple(Path(os.path.realpath(each)) for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each)


def extend_path(path: Sequence[str], package: str) -> list[str]:
    """Return the `__path__` of a plugin package, extended by the package's folder in each plugin folder."""
    return [*path, *(str(folder.joinpath(*package.split("."))) for folder in plugin_folders())]


def module_names(package: ModuleType) -> tuple[str, ...]:
    """Return the public modules and packages of a plugin package, in alphabetical order."""
    found = {module.name for module in pkgutil.iter_modules(package.__path__)}
    return tuple(sorted(name for name in found if not name.startswith("_")))
