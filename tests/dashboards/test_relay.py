# SPDX-License-Identifier: Apache-2.0
"""The relay, with hosts that are programs here: which are scraped, what comes of hosts that end; nothing is left."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest

from roundabout.core.errors import RoundaboutError
from roundabout.dashboards import exporters, relay as relay_module
from roundabout.dashboards.exporters import ExporterPool
from roundabout.dashboards.relay import Relay, run_relay
from roundabout.runner.hosts.connections import LostHostError
from roundabout.runner.testbed import ExporterTarget
from tests.dashboards.record import fake_host
from tests.deadline import wait_for

pytestmark = pytest.mark.unit

TIMEOUT_S = 60
DIRECT = build_opener(ProxyHandler({}))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "LOOK_S", 0.05)


def fetch(relay: Relay, path: str) -> str:
    with DIRECT.open(relay.url + path) as answer:
        return str(answer.read().decode())


def status(relay: Relay, path: str) -> int:
    return refusal(relay, path)[0]


def refusal(relay: Relay, path: str) -> tuple[int, str]:
    try:
        with DIRECT.open(relay.url + path) as answer:
            return answer.status, ""
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def targets(relay: Relay) -> set[str]:
    return {each["labels"]["__metrics_path__"] for each in json.loads(fetch(relay, "/targets"))}


@contextmanager
def relay_of(standing: list[ExporterTarget]) -> Iterator[Relay]:
    with run_relay(
        ExporterPool(lambda: list(standing)), lambda: [("roundabout_run_trials", {}, 4)], lambda: "hello"
    ) as relay:
        yield relay


def running(folder: Path) -> list[int]:
    """Exporters and samplers of hosts in this folder: what mentions it on its command line."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder).encode() in each.read_bytes():
                found.append(int(each.parent.name))
    return found


def test_hosts_are_scraped_at_once_and_nothing_is_left(tmp_path: Path) -> None:
    standing = [fake_host(tmp_path, f"s{number}") for number in range(6)]
    with relay_of(standing) as relay, ThreadPoolExecutor(6) as pool:
        assert targets(relay) == {f"/metrics/fake/s{number}" for number in range(6)}
        assert relay.server_address[0] == "127.0.0.1"
        for number, said in enumerate(pool.map(lambda path: fetch(relay, path), sorted(targets(relay)))):
            assert f'roundabout_interface_up{{host="s{number}"' in said
            assert "roundabout_run_trials" not in said
        assert fetch(relay, "/") == "hello"
        for path in ("/metrics/fake/s9", "/metrics/other/s0", "/metrics/fake/s0/node", "/metrics", "/etc"):
            assert status(relay, path) == 404
        assert len(running(tmp_path)) == 12
    assert running(tmp_path) == []


def test_the_controller_says_what_is_known_of_the_run(tmp_path: Path) -> None:
    with relay_of([fake_host(tmp_path, "controller", site="controller")]) as relay:
        said = fetch(relay, "/metrics/controller/controller")
        assert 'roundabout_run_trials{host="controller",site="controller"} 4' in said


def test_hosts_come_and_go(tmp_path: Path) -> None:
    standing = [fake_host(tmp_path, "s0")]
    with relay_of(standing) as relay:
        standing.append(fake_host(tmp_path, "s1"))
        wait_for(lambda: status(relay, "/metrics/fake/s1") == 200, TIMEOUT_S, what="s1 answers")
        standing.pop(0)
        wait_for(lambda: targets(relay) == {"/metrics/fake/s1"}, TIMEOUT_S, what="s0 is gone")
        wait_for(lambda: len(running(tmp_path)) == 2, TIMEOUT_S, what="what ran for s0 ended")


def test_a_host_that_is_lost_stays_a_target_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters, "AGAIN_S", 3600)
    with relay_of([fake_host(tmp_path, "s0")]) as relay:
        for pid in running(tmp_path):
            os.kill(pid, signal.SIGKILL)
        assert status(relay, "/metrics/fake/s0") == 503
        wait_for(lambda: status(relay, "/metrics/fake/s0") == 200, TIMEOUT_S, what="it is started anew")


def test_a_host_that_nobody_reaches_is_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise RoundaboutError("cannot be reached")

    host = fake_host(tmp_path, "s0", beside={"node": 1})
    unreachable = type(host)(host.site, host.node, host.argv, host.facts, refuse)
    with relay_of([unreachable]) as relay:
        assert targets(relay) == {"/metrics/fake/s0"}
        assert refusal(relay, "/metrics/fake/s0") == (503, "lost host s0: cannot be reached\n")


@pytest.mark.parametrize("error", [RoundaboutError("the lab went meanwhile"), OSError("no inventory"), KeyError("s0")])
def test_targets_that_cannot_be_listed_now_are_listed_later(tmp_path: Path, error: Exception) -> None:
    calls: list[Callable[[], list[ExporterTarget]]] = []

    def standing() -> list[ExporterTarget]:
        calls.append(standing)
        if len(calls) == 2:
            raise error
        return [fake_host(tmp_path, "s0")]

    with run_relay(ExporterPool(standing), list, str) as relay:
        wait_for(lambda: len(calls) > 3, TIMEOUT_S, what="it is listed again")
        assert status(relay, "/metrics/fake/s0") == 200


class InstantExporter:
    """An exporter that starts and answers at once."""

    def __init__(self, what: ExporterTarget) -> None:
        self.what, self.lost = what, False
        self.beside: list[str] = []

    def query(self, question: str) -> bytes:
        return question.encode()

    def close(self) -> None:
        self.lost = True


class LookedUpAddress(tuple[str, str]):
    """A node's address that calls `later` when it is looked up for the second time."""

    looked_up = 0
    later: Callable[[], None]

    def __hash__(self) -> int:
        self.looked_up += 1
        if self.looked_up == 2:
            self.later()
        return super().__hash__()


def test_a_node_may_be_removed_during_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters, "Exporter", InstantExporter)
    standing = [fake_host(tmp_path, "s0")]
    pool = ExporterPool(lambda: list(standing))
    pool.update()

    def remove() -> None:
        standing.clear()
        pool.update()

    address = LookedUpAddress(("fake", "s0"))
    address.later = remove
    assert pool.query(address, "own") == b"own"
    remove()
    with pytest.raises(LostHostError, match="it has no exporter yet"):
        pool.query(("fake", "s0"), "own")
