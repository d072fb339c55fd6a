# SPDX-License-Identifier: Apache-2.0
"""Ansible action: runs a program on the controller with a text as its standard input.

`ansible.builtin.command` does the same in a module, which costs the controller a second of CPU for each host: a module
is packed, started in a Python process of its own, and compiled there.
"""

from __future__ import annotations

import subprocess
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """The action `talk`, with arguments `argv` and `stdin`, and the result of `ansible.builtin.command`."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the program."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        argv, text = self._task.args["argv"], self._task.args["stdin"]
        try:
            done = subprocess.run(argv, input=f"{text}\n".encode(), capture_output=True, check=False)
        except OSError as error:
            return result | {"rc": error.errno, "failed": True, **_show_output("", str(error))}
        stdout, stderr = (output.decode(errors="replace").rstrip("\r\n") for output in (done.stdout, done.stderr))
        return result | {"rc": done.returncode, "changed": True, **_show_output(stdout, stderr)}


def _show_output(stdout: str, stderr: str) -> dict[str, Any]:
    lines = {"stdout_lines": stdout.splitlines(), "stderr_lines": stderr.splitlines()}
    return {"stdout": stdout, "stderr": stderr, **lines}
