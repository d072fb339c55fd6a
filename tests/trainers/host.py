# SPDX-License-Identifier: Apache-2.0
"""Programs of hosts, loaded as modules; they lie beside each other there, as in the tree."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from roundabout.core.paths import ROOT

FOLDER = ROOT / "trainers/torch"
COMPUTING = FOLDER / "computing"


def load(name: str, folder: Path = FOLDER) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module(name)
