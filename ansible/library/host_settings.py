#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: runs a host's settings.py to apply, compare or restore settings."""

from __future__ import annotations

import json
import os
import sys

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: host_settings
short_description: Apply, confirm, compare or restore settings through the host's settings.py
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
  root:
    description: Stands for / where settings are.
    type: path
    default: /
  owner:
    description: Who applies or restores.
    type: str
    required: true
  document:
    description: What to apply, as settings.py takes it.
    type: dict
  state:
    description: Whether to apply the document, to confirm that, or to bring back what the owner found.
    type: str
    choices: [applied, confirmed, restored]
    default: applied
  undo_after_s:
    description: Seconds after which a change is undone unless it is confirmed over a new connection; 0 for never.
    type: int
    default: 0
  link_timeout_s:
    description: Seconds to wait for a link to come up again.
    type: int
    default: 15
  shared_nic:
    description: Whether to change a link that carries SSH, the default route or a network file system, too.
    type: bool
    default: false
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
undo_after_s:
  description: Seconds after which the change is undone unless it is confirmed; null if nothing is to be confirmed.
  type: int
  returned: when state is applied
not_restored:
  description: Settings that could not be restored, with what was found before.
  type: list
  returned: when state is restored
"""


def main() -> None:
    """Answer one task of Ansible."""
    module = AnsibleModule(
        argument_spec={
            "prefix": {"type": "path", "required": True},
            "state_folder": {"type": "path", "required": True},
            "root": {"type": "path", "default": "/"},
            "owner": {"type": "str", "required": True},
            "document": {"type": "dict"},
            "state": {"type": "str", "choices": ["applied", "confirmed", "restored"], "default": "applied"},
            "undo_after_s": {"type": "int", "default": 0},
            "link_timeout_s": {"type": "int", "default": 15},
            "shared_nic": {"type": "bool", "default": False},
        },
        required_if=[("state", "applied", ["document"])],
        supports_check_mode=True,
    )
    if module.params["state"] == "restored":
        restore(module)
    if module.params["state"] == "confirmed":
        module.exit_json(changed=False, **must(module, "confirm"))
    apply(module)


def restore(module: AnsibleModule) -> None:
    """Restore the values that the owner found, and check that they are back and that the journal is empty."""
    mine = [entry for entry in journal(module) if entry["owner"] == module.params["owner"]]
    if not os.path.exists(program(module)):
        module.exit_json(changed=False, restored=[], msg="settings.py never was on this host")
    if module.check_mode:
        before = {entry["setting"]: entry["wrote"] for entry in mine}
        module.exit_json(changed=bool(mine), diff=diff(before, {entry["setting"]: entry["found"] for entry in mine}))
    status, answer, complaint = call(module, "restore")
    answer["not_restored"] = answer.pop("failed", [])  # Ansible means something else by `failed`
    if status != 0:
        module.fail_json(msg=complaint, **answer)
    pending = [entry["setting"] for entry in journal(module) if entry["owner"] == module.params["owner"]]
    if pending:
        module.fail_json(msg=f"still to be restored: {', '.join(pending)}", **answer)
    module.exit_json(**dict(answer, changed=bool(mine)))


def apply(module: AnsibleModule) -> None:
    """Apply the document, or in check mode compare with it."""
    if module.check_mode and not os.path.exists(program(module)):
        document = module.params["document"]
        module.exit_json(changed=True, differs=[], diff=diff({}, document), msg="settings.py is not on this host yet")
    undo_after = ["--undo-after", str(module.params["undo_after_s"])] if module.params["undo_after_s"] else []
    answer = must(module, "read") if module.check_mode else must(module, "apply", *undo_after)
    if answer["differs"] and not module.check_mode:
        status, _, complaint = call(module, "restore")
        restored = complaint if status else "everything that was found is restored"
        module.fail_json(msg=f"settings did not take effect; {restored}", differs=answer["differs"])
    expected = {each["setting"]: each["expected"] for each in answer["differs"]}
    found = {each["setting"]: each["found"] for each in answer["differs"]}
    shown = diff(found, expected) if module.check_mode else diff(answer["found"], answer["applied"])
    module.exit_json(**dict(answer, changed=bool(answer.get("changed") or answer["differs"]), diff=shown))


def diff(before: dict, after: dict) -> dict:
    """Return the difference for `--diff`."""
    return {"before": before, "after": after}


def journal(module: AnsibleModule) -> list:
    """Return the settings still to be restored on this host; empty if settings.py was never there."""
    if not os.path.exists(program(module)):
        return []
    return must(module, "journal")["outstanding"]


def must(module: AnsibleModule, command: str, *options: str) -> dict:
    """Return the answer of settings.py to one command; its message fails the task."""
    status, answer, complaint = call(module, command, *options)
    if status != 0:
        module.fail_json(msg=complaint)
    return answer


def call(module: AnsibleModule, command: str, *options: str) -> tuple:
    """Return exit status, answer and message of settings.py for one command."""
    params = module.params
    common = ["--owner", params["owner"], "--state", params["state_folder"], "--root", params["root"]]
    common += ["--link-timeout", str(params["link_timeout_s"]), *(["--shared-nic"] if params["shared_nic"] else [])]
    words = [sys.executable, "-IS", program(module), command, *options, *common]
    status, answer, complaint = module.run_command(words, data=json.dumps(params["document"] or {}))
    return status, json.loads(answer or "{}"), complaint.strip()


def program(module: AnsibleModule) -> str:
    """Return the path of settings.py on the host."""
    return os.path.join(module.params["prefix"], "bin", "settings.py")


if __name__ == "__main__":
    main()
