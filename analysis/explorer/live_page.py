# SPDX-License-Identifier: Apache-2.0
"""The explorer's page on a run that goes on: its progress, and the trials that are done."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from analysis.explorer.pages import NoIterationsError, describe_empty_run, run_content, write_page
from roundabout.store import Run

PERIOD_S = 5
"""Time between two versions of the page; writing takes CPU time that a measured run may need."""
MAX_SAMPLES = 1200
"""Number of samples of a trial that stay on the page, the newest: ten minutes of progress files."""


class LivePage:
    """A page that is rewritten every `PERIOD_S`, and that a browser loads anew as often.

    `clock` gives seconds.
    """

    def __init__(self, page: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._page = page
        self._clock = clock
        self._written_s = -float("inf")
        self._began_s = clock()
        self._trial: Any = None
        self._samples: list[dict[str, Any]] = []
        self._done: tuple[frozenset[str], dict[str, Any]] | None = None

    def show(self, progress: Mapping[str, Any]) -> None:
        """Add a sample of progress, a record of live.json, and rewrite the page unless that was done recently."""
        now_s = self._clock()
        self._add(progress, now_s)
        if now_s - self._written_s >= PERIOD_S and progress["run"]:
            self._written_s = now_s
            run = Run(Path(progress["path"]))
            live = {**progress, "samples": self._samples}
            write_page(self._page, f"{run.experiment} {run.id}", {**self._content(run), "live": live}, PERIOD_S)

    def end(self, run: Run) -> None:
        """Write the page on the ended run, which no browser loads anew."""
        write_page(self._page, f"{run.experiment} {run.id}", self._content(run))

    def _add(self, progress: Mapping[str, Any], now_s: float) -> None:
        trial = progress["trial"] and (progress["trial"]["key"], progress["trial"]["attempt"])
        if trial != self._trial:
            self._trial, self._samples, self._began_s = trial, [], now_s
        self._samples.append(
            {
                "at_ms": round((now_s - self._began_s) * 1e3),
                "gbps": {name: link["gbps"] for name, link in progress["links"].items()},
                "last_ms": {name: job["last_ms"] for name, job in progress["jobs"].items()},
            }
        )
        del self._samples[:-MAX_SAMPLES]

    def _content(self, run: Run) -> dict[str, Any]:
        """Return the content on the trials that are done, which is read again only when there is one more."""
        committed = run.committed()
        if self._done is None or self._done[0] != committed:
            try:
                self._done = committed, run_content(run)
            except NoIterationsError:
                self._done = committed, describe_empty_run(run)
        return self._done[1]
