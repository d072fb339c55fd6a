# SPDX-License-Identifier: Apache-2.0
"""`roundabout dashboards`: start Prometheus for the testbeds and the run of this machine."""

import html
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from roundabout.cli.options import Inventory, Runs
from roundabout.core.errors import UsageError
from roundabout.dashboards.exporters import ExporterPool
from roundabout.dashboards.prometheus import DASHBOARDS, RETENTION, dashboards, graph_url, prometheus
from roundabout.dashboards.relay import run_relay
from roundabout.dashboards.run import run_series
from roundabout.runner.exporter_targets import controller_target
from roundabout.runner.testbed import ExporterTarget, TestbedProvider
from roundabout.store import scratch
from roundabout.store.files import disk_errors, make_directory
from roundabout.terminal.execution import requested_provider, undo_when_ended
from roundabout.terminal.screen import Screen

PORT = 9090
PAGE = """<!doctype html><meta charset="utf-8"><title>Roundabout</title>
<style>body {{ font: 16px/1.5 sans-serif; max-width: 45em; margin: 2em auto; padding: 0 1em }}</style>
<h1>Roundabout</h1>
<ul>{graphs}</ul>
<p><a href="{url}/alerts">Alerts</a> · <a href="{url}/targets">targets</a> · <a href="{url}/rules">rules</a></p>
<p>{standing}</p>
"""


def command(
    inventory: Inventory = None,
    runs: Runs = Path("runs"),
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of Prometheus on 127.0.0.1.")] = PORT,
    keep: Annotated[
        Path | None, typer.Option(help="Folder to keep the data in: an empty one, or that of an earlier start.")
    ] = None,
) -> None:
    """Run Prometheus for the labs of this machine, or for a rack, until Ctrl-C."""
    provider = requested_provider(None, inventory)
    undo_when_ended()
    console = Screen()
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        folder = prepare_folder(keep) if keep else stack.enter_context(scratch.folder("dashboards"))
        exporters = ExporterPool(lambda: _existing_targets(provider))
        url = f"http://127.0.0.1:{port}"
        relay = stack.enter_context(run_relay(exporters, lambda: run_series(runs), lambda: _page(url, exporters)))
        stack.enter_context(prometheus(relay.url, folder, port))
        console.print(f"open        {relay.url}/")
        console.print(f"Prometheus  {url}/")
        console.print(f"Grafana     import {DASHBOARDS}/*.json", soft_wrap=True)
        console.print("Ctrl-C ends it all")
        threading.Event().wait()


def _existing_targets(provider: TestbedProvider) -> Iterator[ExporterTarget]:
    yield controller_target()
    yield from provider.exporter_targets()


def prepare_folder(keep: Path) -> Path:
    """Create the folder `keep` if it is missing, and return its absolute path.

    Raises UsageError if the folder has files that are not of dashboards, and StoreError if it cannot be read.
    """
    make_directory(keep, 0o755)
    with disk_errors(keep):
        if strange := sorted({path.name for path in keep.iterdir()} - {*RETENTION}):
            raise UsageError(f"--keep: found {strange[0]!r} in '{keep}', expected an empty folder or an earlier one")
    return keep.resolve()


def _page(url: str, exporters: ExporterPool) -> str:
    links = "".join(
        f'<li><a href="{html.escape(graph_url(url, panels))}">{html.escape(title)}</a>: '
        f"{html.escape(', '.join(dict.fromkeys(name for name, _ in panels)))}</li>"
        for title, panels in dashboards().items()
    )
    sites = sorted({site for site, _ in exporters.addresses()})
    return PAGE.format(graphs=links, url=url, standing=html.escape(f"Scraped: {', '.join(sites)}."))
