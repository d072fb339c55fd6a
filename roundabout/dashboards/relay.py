# SPDX-License-Identifier: Apache-2.0
"""The relay, an HTTP server on loopback through which Prometheus reads the metrics of all hosts and switches.

/targets                          list of targets, for Prometheus's http_sd
/metrics/SITE/NODE                an exporter's metrics
/metrics/SITE/NODE/NAME           metrics of another project's exporter on the node (node, dcgm)
/                                 a page with links to dashboards
"""

import json
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote

from roundabout.core.errors import RoundaboutError
from roundabout.dashboards.exporters import ExporterPool
from roundabout.runner.exporter_targets import Series
from roundabout.runner.hosts.clocks import CONTROLLER
from roundabout.runner.hosts.connections import LostHostError

LOOPBACK = "127.0.0.1"
LOOK_S = 1.0
TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Relay(ThreadingHTTPServer):
    """The HTTP server. `now` returns the metrics of the current run, and `page` the HTML of the page."""

    daemon_threads = True
    request_queue_size = 128  # Prometheus may query all hosts at once

    def __init__(self, exporters: ExporterPool, now: Callable[[], list[Series]], page: Callable[[], str]) -> None:
        super().__init__((LOOPBACK, 0), _Handler)
        self.exporters, self._now, self._page = exporters, now, page

    @property
    def url(self) -> str:
        """Return the server's URL on loopback."""
        return f"http://{LOOPBACK}:{self.server_port}"

    def answer(self, path: str) -> tuple[str, bytes]:
        """Return the content type and body for `path`. Raises KeyError for an unknown path, and LostHostError."""
        match [unquote(part) for part in path.strip("/").split("/")]:
            case [""]:
                return "text/html; charset=utf-8", self._page().encode()
            case ["targets"]:
                return "application/json", json.dumps(self.targets()).encode()
            case ["metrics", site, node] if (site, node) in self.exporters.addresses():
                known = f"own {json.dumps(self._now())}" if site == CONTROLLER else "own"
                return TEXT, self.exporters.query((site, node), known)
            case ["metrics", site, node, name] if name in self.exporters.addresses().get((site, node), ()):
                return TEXT, self.exporters.query((site, node), name)
        raise KeyError(path)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of readers that closed the connection."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def targets(self) -> list[dict[str, Any]]:
        """Return all targets in the format of Prometheus's http_sd."""
        found = []
        for (site, node), beside in self.exporters.addresses().items():
            for name in ("", *beside):
                path = "/".join(quote(part, safe="") for part in (site, node, name) if part)
                labels = {"instance": f"{site}/{node}", "site": site, "host": node, **({"job": name} if name else {})}
                where = {"__metrics_path__": f"/metrics/{path}"}
                found.append({"targets": [f"{LOOPBACK}:{self.server_port}"], "labels": {**where, **labels}})
        return found


class _Handler(BaseHTTPRequestHandler):
    server: Relay
    protocol_version = "HTTP/1.1"  # Prometheus keeps its connections
    timeout = 60

    def do_GET(self) -> None:
        status, kind = 200, TEXT
        try:
            kind, body = self.server.answer(self.path.partition("?")[0])
        except KeyError:
            status, body = 404, b"there is no such page\n"
        except LostHostError as error:
            status, body = 503, f"{error}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Discard the server's log messages."""


@contextmanager
def run_relay(exporters: ExporterPool, now: Callable[[], list[Series]], page: Callable[[], str]) -> Iterator[Relay]:
    """Run a relay for the duration of the block, and update `exporters` regularly. At the end, close all exporters."""
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(LOOK_S):
            try:
                exporters.update()
            except RoundaboutError:
                pass  # a lab was removed meanwhile: the next call finds the existing nodes
            except Exception:  # the dashboards would otherwise keep these nodes for good
                traceback.print_exc()

    with Relay(exporters, now, page) as relay:
        threads = [threading.Thread(target=relay.serve_forever, daemon=True), threading.Thread(target=follow)]
        try:
            exporters.update()
            for thread in threads:
                thread.start()
            yield relay
        finally:
            ended.set()
            if threads[0].ident:
                relay.shutdown()
            if threads[1].ident:
                threads[1].join()
            exporters.close()
