# SPDX-License-Identifier: Apache-2.0
"""A host's journal outlives the version that wrote it: what is known comes back, the rest is named and stays noted."""

import json

import pytest

from roundabout.settings import settings
from roundabout.settings.settings import Host

pytestmark = pytest.mark.unit

# As the revision before this one wrote it.
OF_THE_LAST_REVISION = (
    '{"entry": "found", "owner": "run", "kind": "sysctl", "target": "", "name": "net.ipv4.tcp_ecn", "boot": "b001", '
    '"found": 2, "wrote": 1}\n'
    '{"entry": "found", "owner": "run", "kind": "link", "target": "eth0", "name": "mtu", "boot": "b001", '
    '"found": 1500, "wrote": 9000}\n'
)


def journal(host: Host, text: str) -> None:
    host.state.mkdir()
    (host.state / "journal.jsonl").write_text(text)


def status(host: Host, command: str) -> int:
    return settings.main([*command.split(), "--root", str(host.root), "--state", str(host.state)])


def test_the_last_revisions_journal_is_restored(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / "proc/sys/net/ipv4/tcp_ecn").write_text("1\n")
    (host.root / "link-eth0").write_text('{"mtu": 9000, "gso_max_size": 65536}')
    journal(host, OF_THE_LAST_REVISION)
    assert status(host, "restore --owner run") == 0
    assert sorted(json.loads(capsys.readouterr().out)["restored"]) == ["link eth0 mtu", "sysctl net.ipv4.tcp_ecn"]
    assert (host.root / "proc/sys/net/ipv4/tcp_ecn").read_text().strip() == "2"
    assert json.loads((host.root / "link-eth0").read_text())["mtu"] == 1500
    assert (host.state / "journal.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ('"kind": "teapot"', "teapot eth0 mtu to 1500: unknown kind of setting 'teapot'"),
        ('"name": "spout"', "link eth0 spout to 1500: link eth0 has no setting 'spout'"),
    ],
)
def test_unknown_journal_entries_are_named_and_the_rest_restored(
    host: Host, capsys: pytest.CaptureFixture[str], changed: str, said: str
) -> None:
    (host.root / "proc/sys/net/ipv4/tcp_ecn").write_text("1\n")
    was = '"kind": "link"' if "kind" in changed else '"name": "mtu"'
    journal(host, OF_THE_LAST_REVISION.replace(was, changed))
    assert status(host, "restore --owner run") == 1
    error = capsys.readouterr().err
    assert error.startswith("error: could not restore ") and said in error
    assert (host.root / "proc/sys/net/ipv4/tcp_ecn").read_text().strip() == "2"
    assert changed in (host.state / "journal.jsonl").read_text()
    assert status(host, "journal") == 0


@pytest.mark.parametrize("line", ["[]", '{"entry": "moved"}', '{"entry": "found", "owner": "run"}', '{"owner": "run"}'])
def test_an_entry_of_another_kind_is_one_message(host: Host, capsys: pytest.CaptureFixture[str], line: str) -> None:
    journal(host, f"{OF_THE_LAST_REVISION}{line}\n")
    for command in ("restore --owner run", "journal"):
        assert status(host, command) == 1
        error = capsys.readouterr().err
        assert f"journal.jsonl: line 3 is no entry of this version: {line!r}" in error
        assert "restore with the version that wrote it" in error
