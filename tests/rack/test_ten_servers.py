# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/ten-servers.md: its inventory has what its experiment, and the paper, require."""

import re
import subprocess
from pathlib import Path

import pytest

from roundabout.cli.main import main
from roundabout.testbeds.rack.inventory import read_inventory
from tests.rack.conftest import examples

pytestmark = pytest.mark.unit

TEXT = (Path(__file__).parents[2] / "docs/how-to/ten-servers.md").read_text()
(FILE,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("name", ["ten-servers.yaml", "unfair-vgg19"])
def test_the_experiment_can_be_planned_on_ten_servers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    without = re.sub(r"^ +(s7|s11): .*\n|, (s7|s11): Ethernet20", "", examples()["twelve"], flags=re.MULTILINE)
    Path("inventory").write_text(without)
    Path("ten-servers.yaml").write_text(FILE)
    assert main(["plan", name, "--inventory", "inventory"]) == 0
    *_, promised = capsys.readouterr().out.splitlines()
    assert re.match(r"\d+ trials, about ", promised)


def test_all_ten_servers_have_a_worker() -> None:
    assert {f"s{number}" for number in range(11) if number != 7} == set(re.findall(r"ends: \[(s\d+)", FILE))
    assert len(re.findall(r"workers: ", FILE)) == 5


@pytest.mark.parametrize("has_config", [False, True])
def test_servers_are_reached_whether_or_not_the_user_has_a_configuration_of_ssh(
    *, has_config: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / ".ssh" / "config"
    if has_config:
        config.parent.mkdir()
        config.touch()
    inventory = tmp_path / "inventory"
    inventory.write_text(examples()["twelve"])
    found = read_inventory(inventory).ssh_config
    assert found == (config if has_config else Path("/dev/null"))
    assert subprocess.run(["ssh", "-G", "-F", found, "gpu0.example.org"], capture_output=True).returncode == 0


def test_a_configuration_of_ssh_that_is_named_must_be_there(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    inventory.write_text(examples()["twelve"].replace("vars:", f"vars:\n    ssh_config: {tmp_path / 'absent'}", 1))
    assert read_inventory(inventory).ssh_config == tmp_path / "absent"
