# SPDX-License-Identifier: Apache-2.0
"""Which machines of a rack are known."""

from pathlib import Path

import pytest
from paramiko import HostKeys, RSAKey, SSHClient

from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.rack import connect_machine

pytestmark = pytest.mark.lab


def test_hosts_are_known_by_the_users_and_the_machines_files_if_they_exist(
    inventory_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = inventory_file.parent
    key = RSAKey.generate(1024)
    (folder / "global").write_text(f"machine1 ssh-rsa {key.get_base64()}\n")
    files = f"UserKnownHostsFile {folder}/missing\n  GlobalKnownHostsFile {folder}/missing {folder}/global"
    (folder / "config").write_text(f"Host *\n  {files}\n")
    text = inventory_file.read_text()
    inventory_file.write_text(text.replace("vars:", f"vars:\n    ssh_config: {folder / 'config'}", 1))
    keys = HostKeys()
    monkeypatch.setattr(SSHClient, "load_system_host_keys", lambda _, path: keys.load(path))
    connect_machine(read_inventory(inventory_file), "machine1")
    known = keys.lookup("machine1")
    assert known is not None
    assert known["ssh-rsa"] == key
