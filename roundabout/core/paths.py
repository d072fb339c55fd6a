# SPDX-License-Identifier: Apache-2.0
"""Where the project's files are: in its checkout, or in an installed wheel, which carries what it needs of one.

Below ROOT all paths are as in the checkout. What else a wheel lacks, its errors say: tests, and what builds programs.
"""

from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]
CARRIED = PACKAGES / "roundabout" / "carried"
IS_CHECKOUT = not CARRIED.is_dir()
ROOT = PACKAGES if IS_CHECKOUT else CARRIED
REVISION = "revision.json"  # in a wheel: that of the checkout which it was made in
BUILD = "./bootstrap" if IS_CHECKOUT else "install a wheel that `make wheel` made in a checkout on such a machine"
