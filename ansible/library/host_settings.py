#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: asks a host's settings.py to apply, compare or restore settings."""

from __future__ import annotations

import json
import os
import sys

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: host_settings
short_description: Apply, compare or restore settings through the host's settings.py
description:
  - The host's settings.py is the one owner of settings; this module only calls it. In check mode it compares.
options:
  prefix:
    description: Where host programs are deployed; settings.py lies in its bin.
    type: path
    required: true
  state_folder:
    description: Folder of the journal.
    type: path
    required: true
  owner:
    description: Who applies or restores.
    type: str
    required: true
  document:
    description: What to apply, as settings.py takes it.
    type: dict
  state:
    description: Whether to apply the document, or to bring back what the owner found.
    type: str
    choices: [applied, restored]
    default: applied
author:
  - The Roundabout authors
"""

EXAMPLES = r"""
- name: Allow ECN
  host_settings:
    prefix: /opt/roundabout
    state_folder: /var/lib/roundabout
    owner: provision
    document: {sysctl: {net.ipv4.tcp_ecn: 1}}
"""

RETURN = r"""
differs:
  description: Settings that are not what the document says.
  type: list
  returned: when state is applied
"""


def main() -> None:
    """Answer one task."""
    module = AnsibleModule(
        argument_spec={
            "prefix": {"type": "path", "required": True},
            "state_folder": {"type": "path", "required": True},
            "owner": {"type": "str", "required": True},
            "document": {"type": "dict"},
            "state": {"type": "str", "choices": ["applied", "restored"], "default": "applied"},
        },
        required_if=[("state", "applied", ["document"])],
        supports_check_mode=True,
    )
    restores = module.params["state"] == "restored"
    command = "journal" if restores and module.check_mode else "restore" if restores else "apply"
    answer = call(module, "read" if module.check_mode and not restores else command)
    if restores:
        mine = [entry for entry in answer.get("outstanding", []) if entry["owner"] == module.params["owner"]]
        module.exit_json(**dict(answer, changed=bool(mine or answer.get("restored"))))
    if answer["differs"] and not module.check_mode:
        module.fail_json(msg="settings did not take effect", differs=answer["differs"])
    module.exit_json(**dict(answer, changed=bool(answer.get("changed") or answer["differs"])))


def call(module: AnsibleModule, command: str) -> dict:
    """The answer of settings.py to one command; its message fails the task."""
    program = os.path.join(module.params["prefix"], "bin", "settings.py")
    options = ["--owner", module.params["owner"], "--state", module.params["state_folder"]]
    document = json.dumps(module.params["document"] or {})
    status, answer, complaint = module.run_command([sys.executable, program, command, *options], data=document)
    if status != 0:
        module.fail_json(msg=complaint.strip())
    return json.loads(answer)


if __name__ == "__main__":
    main()
