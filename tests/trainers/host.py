# SPDX-License-Identifier: Apache-2.0
"""Programs of hosts, loaded as modules; they lie beside each other there, as in the tree."""

import importlib
import sys
from types import ModuleType

from roundabout.core.paths import ROOT

FOLDER = ROOT / "trainers/torch"


def load(name: str) -> ModuleType:
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)
