# SPDX-License-Identifier: Apache-2.0
"""The Ansible inventory of a lab's hosts."""

from typing import Any

from roundabout.runner.hosts.host_group import HostGroup


def lab_inventory(site: HostGroup) -> dict[str, Any]:
    """Return an Ansible inventory of a lab's hosts."""
    config = site.ssh_config()
    variables = {
        "ansible_ssh_common_args": f"-F {config}",
        "ansible_ssh_args": "-o ControlMaster=auto -o ControlPersist=20",
        # With the testbed's own files: a shared folder would silently reach a lab that is gone.
        "ansible_control_path_dir": str(config.parent / "ansible"),
        "ansible_ssh_transfer_method": "piped",
        "ansible_remote_tmp": "/tmp/.ansible",  # noqa: S108 - the host's own /tmp
        "roundabout_state": str(site.settings_state),
    }
    hosts = {
        host.name: {"ansible_host": host.ssh_alias, "roundabout_prefix": str(host.prefix)}
        for host in site.hosts.values()
    }
    groups = {**{name: {"hosts": {}} for name in ("rack", "switches", "testbed")}, site.kind: {"hosts": hosts}}
    return {"all": {"vars": variables, "children": groups}}
