# SPDX-License-Identifier: Apache-2.0
"""Ansible action: writes a text to a file of the controller, which only its owner may read.

`ansible.builtin.copy` does the same in a module, which costs the controller a second of CPU for each host: a module is
packed, started in a Python process of its own, and compiled there.
"""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """The action `report`, with arguments `content` and `dest`. It also writes in check mode, and is no change."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write `content` to the file `dest`, and return a result without a change."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        descriptor = os.open(self._task.args["dest"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w") as file:
            file.write(self._task.args["content"])
        return result | {"changed": False}
