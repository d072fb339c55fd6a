# SPDX-License-Identifier: Apache-2.0
"""The parts of a wheel that pyproject.toml cannot state: its packages, its platform and its revision."""

import json
import shutil
import sys
from pathlib import Path
from sysconfig import get_platform

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))  # which builders leave out

from roundabout.core.paths import CARRIED, REVISION, ROOT
from roundabout.runner.code_facts import revision_of


class Build(build_py):
    """Puts the revision beside what a wheel carries."""

    def run(self) -> None:
        """Build from nothing, since what was deleted since the last time must not come along."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "roundabout", CARRIED.name)
            (folder / Path(__file__).name).unlink()
            (folder / REVISION).write_text(json.dumps(revision_of(ROOT)))


class Wheel(bdist_wheel):
    """A wheel of any Python 3, for machines of this kind."""

    def finalize_options(self) -> None:
        """Set the name of the platform."""
        self.plat_name = self.plat_name or get_platform()
        super().finalize_options()


# Other folders are not importable once installed, such as ansible/ and those of programs for hosts.
PACKAGES = [*find_packages(include=["analysis", "analysis.*", "roundabout", "roundabout.*"]), "roundabout.carried"]

setup(packages=PACKAGES, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
