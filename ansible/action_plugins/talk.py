# SPDX-License-Identifier: Apache-2.0
"""Ansible action: runs a program on the controller with a text as its standard input, and checks its output.

Modules and further tasks would do the same, but each costs the controller a tenth of a second of CPU for each host, and
a module a second: it is packed, started in a Python process of its own, and compiled there.
"""

from __future__ import annotations

import re
import subprocess
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """The action `talk`, whose result has the fields of `ansible.builtin.command`.

    Arguments: `argv`, `stdin`, `what` for the message of a failure, and patterns of output lines: `failed` is about a
    command that failed, although the program ended without an error, and `done` proves that the whole text was handled.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the program, which has failed unless its output shows that it has not."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        result |= _call(self._task.args["argv"], self._task.args["stdin"])
        failures = _select(result["stdout_lines"], self._task.args["failed"])
        if result["rc"] == 0 and not failures and _select(result["stdout_lines"], self._task.args["done"]):
            return result
        lines = failures or result["stderr_lines"] or result["stdout_lines"][-3:] or ["no answer"]
        reason = "; ".join(line.strip() for line in lines)
        return result | {"failed": True, "msg": f"{self._task.args['what']}: {reason} (exit status {result['rc']})"}


def _call(argv: list[str], text: str) -> dict[str, Any]:
    try:
        done = subprocess.run(argv, input=f"{text}\n".encode(), capture_output=True, check=False)
    except OSError as error:
        return {"rc": error.errno, **_show_output("", str(error))}
    stdout, stderr = (output.decode(errors="replace").rstrip("\r\n") for output in (done.stdout, done.stderr))
    return {"rc": done.returncode, **_show_output(stdout, stderr)}


def _select(lines: list[str], pattern: str) -> list[str]:
    return [line for line in lines if re.search(pattern, line)]


def _show_output(stdout: str, stderr: str) -> dict[str, Any]:
    lines = {"stdout_lines": stdout.splitlines(), "stderr_lines": stderr.splitlines()}
    return {"stdout": stdout, "stderr": stderr, **lines}
