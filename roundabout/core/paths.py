# SPDX-License-Identifier: Apache-2.0
"""Paths of the project's files, in a checkout or in an installed wheel.

Paths below ROOT are the same in both. A wheel has no tests and no build files; error messages say so.
"""

from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]
CARRIED = PACKAGES / "roundabout" / "carried"
IS_CHECKOUT = not CARRIED.is_dir()
ROOT = PACKAGES if IS_CHECKOUT else CARRIED
REVISION = "revision.json"  # file with the revision of the checkout that a wheel or a source archive was made from
BUILD = "./bootstrap" if IS_CHECKOUT else "install a wheel that `make wheel` made in a checkout on such a machine"
