# SPDX-License-Identifier: Apache-2.0
"""An exporter beside programs that answer its queries with something else than a complete HTTP answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer

import pytest

from roundabout.dashboards.exporters import Exporter
from tests.dashboards.record import fake_host

pytestmark = pytest.mark.unit

GREETING = b"READY 1.0 printer\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
METRICS = OK + b"\r\nnode_load1 0.5\n"
CUT = OK + b"Content-Length: 5000\r\n\r\nnode_load1 0.5\n"
OTHERS = {
    "a greeting": GREETING,
    "a cut answer": CUT,
    "a cut chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\nnode",
    "no length of a chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nwords\r\n",
    "an endless header": OK + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
    "a status without a number": b"HTTP/1.1 fine\r\n\r\n",
    "nothing": b"",
}


@contextmanager
def served(answers: list[bytes]) -> Iterator[int]:
    """Serve each answer once, in order, and the last one from then on; yield the port."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(answers.pop(0) if answers[1:] else answers[0])

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", OTHERS)
def test_a_program_without_http_is_no_exporter(tmp_path: Path, name: str) -> None:
    with served([OTHERS[name]]) as port:
        exporter = Exporter(fake_host(tmp_path, "s0", beside={"node": port}))
        assert exporter.beside == []
        assert b"roundabout_interface_bytes_total" in exporter.query("own")
        exporter.close()


def test_an_answer_that_is_cut_later_leaves_the_hosts_own_metrics(tmp_path: Path) -> None:
    with served([METRICS, METRICS, CUT]) as port:
        exporter = Exporter(fake_host(tmp_path, "s0", beside={"node": port}))
        assert exporter.beside == ["node"]
        assert exporter.query("node") == b"node_load1 0.5\n# EOF\n"
        assert exporter.query("node") == b"\n# EOF\n"
        assert b"roundabout_interface_bytes_total" in exporter.query("own")
        exporter.close()
