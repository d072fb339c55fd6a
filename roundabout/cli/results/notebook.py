# SPDX-License-Identifier: Apache-2.0
"""`roundabout notebook`: start JupyterLab on a stored run."""

import os
import pwd
import sys
from importlib.util import find_spec
from pathlib import Path

from analysis.notebooks import FOLDER, write_notebooks
from roundabout.cli.options import Runs, WhichRun
from roundabout.core.errors import UsageError
from roundabout.core.paths import IS_CHECKOUT, ROOT
from roundabout.store import Run

PACKAGES = "jupyterlab pandas pyshark"
GET = f"(cd {ROOT} && ./bootstrap notebook)" if IS_CHECKOUT else f"{sys.executable} -m pip install {PACKAGES}"


def command(which: WhichRun = "last", runs: Runs = Path("runs")) -> None:
    """Start JupyterLab, reachable only from this machine, on the notebook that fits a run."""
    if find_spec("jupyterlab") is None:
        raise UsageError(f"JupyterLab is not installed in {sys.prefix}", f"install it: {GET}")
    run = Run.open(which, runs)
    written = write_notebooks(run)
    for path, new in written.items():
        print(path if new else f"{path}  as it was left", flush=True)
    _drop_to_caller()
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *_options(run, next(iter(written)))])  # noqa: S606 - no shell is meant


def _options(run: Run, first: Path) -> list[str]:
    """Return Jupyter's options: it listens on this machine only, and opens `first`, without a screen in no browser."""
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.root_dir": run.path,
        "LabApp.default_url": f"/lab/tree/{FOLDER}/{first.name}",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.extension_manager": "readonly",
    }
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    flags = [*([] if screen else ["--no-browser"]), *(["--allow-root"] if os.geteuid() == 0 else [])]
    return [*(f"--{name}={value}" for name, value in options.items()), *flags]


def _drop_to_caller() -> None:
    """Under sudo, become the calling user, because notebooks need no root, and their files are the user's."""
    user = os.environ.get("SUDO_UID")
    if user is None or os.geteuid() != 0:
        return
    caller = pwd.getpwuid(int(user))
    os.initgroups(caller.pw_name, caller.pw_gid)
    os.setgid(caller.pw_gid)
    os.setuid(caller.pw_uid)
    os.environ |= {"HOME": caller.pw_dir, "USER": caller.pw_name, "LOGNAME": caller.pw_name}
