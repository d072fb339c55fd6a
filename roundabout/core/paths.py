# SPDX-License-Identifier: Apache-2.0
"""Paths of the project's files: in its checkout, or in an installed wheel, which contains a part of one.

Below ROOT all paths are as in the checkout. A wheel lacks tests and build files, and its errors say so.
"""

from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]
CARRIED = PACKAGES / "roundabout" / "carried"
IS_CHECKOUT = not CARRIED.is_dir()
ROOT = PACKAGES if IS_CHECKOUT else CARRIED
REVISION = "revision.json"  # in a wheel: that of the checkout which it was made in
BUILD = "./bootstrap" if IS_CHECKOUT else "install a wheel that `make wheel` made in a checkout on such a machine"
