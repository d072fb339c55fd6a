# SPDX-License-Identifier: Apache-2.0
"""The files of the project that git tracks."""

import subprocess

from roundabout.core.paths import ROOT


def project_files() -> list[str]:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True).stdout
    return [path for path in listed.splitlines() if (ROOT / path).is_file()]
