# SPDX-License-Identifier: Apache-2.0
"""Plugin packages: each module is one item of a kind, also from folders outside the tree.

ROUNDABOUT_PATH lists such folders, as PATH does. Each is laid out like the tree: `analysis/quantities/mine.py` in one
of them is the module `analysis.quantities.mine`. The tree's modules go first.
"""

import os
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

VARIABLE = "ROUNDABOUT_PATH"


def plugin_folders() -> tuple[Path, ...]:
    """Return the folders outside the tree, in the order of the variable."""
    return tuple(Path(os.path.realpath(each)) for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each)


def extend_path(path: Sequence[str], *packages: str) -> list[str]:
    """Return a plugin package's `__path__`, extended by its folder in each folder outside the tree.

    `packages` are its dotted names: the present one, and former ones that are accepted for one release.
    """
    return [*path, *(str(folder.joinpath(*each.split("."))) for folder in plugin_folders() for each in packages)]


def module_names(package: ModuleType) -> tuple[str, ...]:
    """Return the public modules and packages of a plugin package, in alphabetical order."""
    found = {module.name for module in pkgutil.iter_modules(package.__path__)}
    return tuple(sorted(name for name in found if not name.startswith("_")))
