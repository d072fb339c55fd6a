# SPDX-License-Identifier: Apache-2.0
"""The tests here share modules, which lie beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
