# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects over each transport: they finish, and what arrives is what was sent.

`pytest -rP` shows their times beside cubic's.
"""

import hashlib
import os
import re
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from roundabout.spec.transports import registry
from roundabout.testbeds.lab.network import cc_allowlist

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
FILE_BYTES, REQUESTS, ROWS = 32 << 20, 2000, 100_000
TRANSPORTS = registry.program_names()
NGINX = """
user nobody nogroup;
daemon off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  server {{ listen 8080; root {home}/www; }}
}}
"""


@contextmanager
def serving(host: Any, *argv: str) -> Iterator[None]:
    """A server in a namespace, until the context ends; its children end with it."""
    words = ["ip", "netns", "exec", host.name, *argv]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield
        finally:
            server.terminate()


def patiently(tries: Callable[[], subprocess.CompletedProcess[str]]) -> subprocess.CompletedProcess[str]:
    """The first try that succeeds: the server may not listen yet."""
    deadline = time.monotonic() + 30
    while (done := tries()).returncode != 0:
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.05)
    return done


def iperf3(client: Any, server: Any, _home: Path) -> None:
    with serving(server, "iperf3", "-s", "-1"):
        patiently(lambda: client.run("iperf3", "-c", server.address, "-n", str(FILE_BYTES), "-P", "4", check=False))


def curl_and_load(client: Any, server: Any, home: Path) -> None:
    (home / "www").mkdir(exist_ok=True)
    content = os.urandom(FILE_BYTES)
    (home / "www/large").write_bytes(content)
    (home / "www/small").write_bytes(content[:10_000])
    (home / "nginx.conf").write_text(NGINX.format(home=home))
    fetched = home / "fetched"
    url = f"http://{server.address}:8080"
    with serving(server, "nginx", "-c", str(home / "nginx.conf"), "-e", str(home / "error.log")):
        patiently(lambda: client.run("curl", "-sf", "-o", str(fetched), f"{url}/large", check=False))
        assert hashlib.sha256(fetched.read_bytes()).digest() == hashlib.sha256(content).digest()
        printed = client.run("ab", "-q", "-n", str(REQUESTS), "-c", "16", f"{url}/small").stdout
    assert re.search(rf"Complete requests: +{REQUESTS}\n", printed)
    assert re.search(r"Failed requests: +0\n", printed)
    assert "Non-2xx" not in printed


def dump(client: Any, server: Any, home: Path) -> None:
    """What is dumped over the network is what is dumped beside the server."""
    (programs,) = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
    data = home / "postgres"
    data.mkdir()
    os.chown(data, 65534, 65534)
    initdb = [*NOBODY, str(programs / "initdb"), "-D", str(data), "-U", "rb", "-A", "trust", "-N"]
    subprocess.run(initdb, check=True, capture_output=True)
    (data / "pg_hba.conf").write_text("local all all trust\nhost all all 10.77.9.0/24 trust\n")
    words = ["-c", "listen_addresses=*", "-c", f"unix_socket_directories={data}", "-c", "fsync=off"]
    fill = f"create table t as select n, md5(n::text) as word from generate_series(1, {ROWS}) as n"
    with serving(server, *NOBODY, str(programs / "postgres"), "-D", str(data), *words):
        here = ["-h", str(data), "-U", "rb", "-d", "postgres"]
        patiently(lambda: server.run("psql", *here, "-c", "SELECT 1", check=False))
        server.run("psql", *here, "-c", fill)
        beside = server.run("pg_dump", *here).stdout
        over = client.run("pg_dump", "-h", server.address, "-U", "rb", "-d", "postgres").stdout
    assert f"{ROWS}\t" in over
    assert plain(over) == plain(beside)


def plain(dumped: str) -> list[str]:
    """Without the words by which newer versions distinguish dumps."""
    return [line for line in dumped.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


@pytest.fixture
def cubic() -> Iterator[str]:
    """The kernel's own, which other namespaces may use meanwhile."""
    owner = f"test-{uuid.uuid4().hex[:6]}"
    cc_allowlist.allow("cubic", owner)
    yield "cubic"
    cc_allowlist.disallow("cubic", owner)


@pytest.mark.proof
@pytest.mark.parametrize("program", [iperf3, curl_and_load, dump])
@pytest.mark.parametrize("name", TRANSPORTS)
def test_programs_of_others_receive_all_bytes_over_each_transport(  # noqa: PLR0917 - fixtures
    tools: Any, pair: Any, tmp_path: Path, cubic: str, name: str, program: Callable[[Any, Any, Path], None]
) -> None:
    tmp_path.chmod(0o755)
    for parent in (tmp_path.parent, tmp_path.parent.parent):  # which user nobody has to pass
        parent.chmod(0o711)
    took_s = {}
    with tools.loaded(name):
        for control in (registry.kernel_name(name), cubic):
            home = tmp_path / control
            home.mkdir()
            for end in pair:
                end.run("sysctl", "-qw", f"net.ipv4.tcp_congestion_control={control}", "net.ipv4.tcp_ecn=1")
            begin = time.monotonic()
            program(pair[0], pair[1], home)
            took_s[control] = time.monotonic() - begin
    print(f"{program.__name__}: {', '.join(f'{each} {seconds:.2f} s' for each, seconds in took_s.items())}")
