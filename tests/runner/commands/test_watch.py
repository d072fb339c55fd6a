# SPDX-License-Identifier: Apache-2.0
"""Samplers for a while: what they say of an interface on which a program sends."""

import socket
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from analysis.advice.tables import parse_table
from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.trial.traffic_watch import sample_traffic

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
SENT = 1_000_000


@pytest.fixture
def host(tmp_path):
    """This machine, and its loopback."""
    (tmp_path / "bin").mkdir()
    for program in ("build/bin/sampler", "collectors/clock.py"):
        (tmp_path / "bin" / Path(program).name).symlink_to(ROOT / program)
    return Host("here", "here", "127.0.0.1", 8, "lo", tmp_path)


def send():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        sending = threading.Thread(target=ours.sendall, args=(bytes(SENT),))
        sending.start()
        with closing(server.accept()[0]) as theirs:
            left = SENT
            while left:
                left -= len(theirs.recv(left))
        sending.join()


def test_sampled_traffic_counts_the_bytes_sent_meanwhile(host):
    later = threading.Timer(0.5, send)
    later.start()
    began_ns = time.time_ns()
    table = sample_traffic({host: LocalConnection("here")}, 1.5)
    later.join()
    (counter,) = parse_table(table, "lo").hosts.values()
    assert counter.bytes[-1] - counter.bytes[0] >= SENT
    assert (np.diff(counter.bytes) >= 0).all()
    assert (np.diff(counter.at_ns) > 0).all()
    assert len(counter.at_ns) > 10
    assert abs(counter.at_ns[0] - began_ns) < 60e9, "UTC"


def test_a_host_without_samplers_says_so(host):
    (host.prefix / "bin" / "sampler").unlink()
    (host.prefix / "bin" / "sampler").write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    (host.prefix / "bin" / "sampler").chmod(0o755)
    with pytest.raises(RoundaboutError, match="the sampler on here ended: broken"):
        sample_traffic({host: LocalConnection("here")}, 60)
