#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: lists the programs on a host that differ from the built ones."""

from __future__ import annotations

import hashlib
import os

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: programs
short_description: Say which programs on a host are not what was built
description:
  - Compares a folder's programs with SHA-256 sums, in one call however many they are. Changes nothing.
options:
  folder:
    description: Where the programs are on the host.
    type: path
    required: true
  wanted:
    description: SHA-256 in hexadecimal by the program's name.
    type: dict
    required: true
author:
  - The Roundabout authors
"""

EXAMPLES = r"""
- name: Compare
  programs:
    folder: /opt/roundabout/bin
    wanted: {replay: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}
"""

RETURN = r"""
stale:
  description: Names of programs that are missing, differ, or cannot be executed.
  type: list
  returned: success
"""


def is_current(path: str, wanted: str) -> bool:
    """Return True if the file at `path` is executable and has the SHA-256 `wanted`."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == wanted and os.access(path, os.X_OK)
    except OSError:
        return False


def main() -> None:
    """Answer one task of Ansible."""
    module = AnsibleModule(
        argument_spec={"folder": {"type": "path", "required": True}, "wanted": {"type": "dict", "required": True}},
        supports_check_mode=True,
    )
    folder, wanted = module.params["folder"], module.params["wanted"]
    stale = [name for name, digest in wanted.items() if not is_current(os.path.join(folder, name), digest)]
    module.exit_json(changed=False, stale=stale)


if __name__ == "__main__":
    main()
