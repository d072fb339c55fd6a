#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports this host's counters in Prometheus' text format, at each request on stdin. Ends when stdin closes.

    exporter.py [SAMPLER [ARGUMENT...]]

The sampler counts, once a second, and this program translates what it said last. The first line on stdin is JSON, all
of it optional; the answer is one line of JSON, the names of `beside` that answer on this host:

    {"labels": {"host": "s0"},                                             of every series
     "interfaces": {"eth0": {"link": "A0", "out": "s0 to sw0", "in": "sw0 to s0"}},
     "senders": {"10.77.0.1": "s0"},                                       hosts by address
     "transports": "/run/roundabout/bpf/transports",                       the sampler starts anew where this changes
     "settings": ["settings.py", "--state", "/run/roundabout/settings"],   run once a minute to find drift
     "ends_with": 1234,                                                    a process, such as a lab's host
     "series": [["roundabout_testbed_scale", {}, 100]],                    what else is so, named as in METRICS
     "beside": {"node": 9100}}                                             others' exporters, by their ports here

Every other line is a request, and is answered by metrics and a line `# EOF`: `own` for this program's, followed by more
`series` of the moment as JSON; or a name of `beside`.

Python 3.8, standard library only: it is copied to hosts as it is.
"""

import http.client
import json
import os
import select
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import exporter_metrics

END = "# EOF"
FIRST_SAMPLE_S = 5
DRIFT_S, UNKNOWN_S = 60, 5  # seconds between checks, and until the next attempt after a failed check
BESIDE_S = 3  # longest answer of another exporter, seconds


class Sampler:
    """A running sampler process and the newest line of each object that it reports."""

    def __init__(self, argv):
        """Start the sampler, if there is one."""
        self.record = exporter_metrics.Record()
        self._sampled = threading.Event()
        self._process = None
        if argv:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, universal_newlines=True)
            threading.Thread(target=self._follow, daemon=True).start()

    def wait(self):
        """Wait until the first sample is complete, or the sampler has ended."""
        if self._process:
            self._sampled.wait(FIRST_SAMPLE_S)

    def end(self):
        """End the sampler's process."""
        if self._process:
            self._process.stdin.close()
            self._process.wait()

    def _follow(self):
        for line in self._process.stdout:
            if self.record.take(line.rstrip("\n")):
                self._sampled.set()
        self.record = exporter_metrics.Record()  # what a sampler said that ended is not so any more
        self._sampled.set()


class Settings:
    """The number of settings that differ from those applied, which a thread reads periodically."""

    def __init__(self, argv):
        """Read with the command `argv`; without a command nothing is read."""
        self._argv, self._differ = argv, None
        if argv:
            threading.Thread(target=self._follow, daemon=True).start()

    def series(self):
        """Return the newest number as a series; no series if it is unknown."""
        return [] if self._differ is None else [["roundabout_settings_drifted", {}, self._differ]]

    def _follow(self):
        while True:
            requested = subprocess.run(self._argv + ["drifted"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self._differ = len(json.loads(requested.stdout)["differs"]) if requested.returncode == 0 else None
            time.sleep(UNKNOWN_S if self._differ is None else DRIFT_S)


class Exporter:
    """The exporter of one host: its sampler, its settings, and other exporters on the host."""

    def __init__(self, argv, facts):
        self._argv, self._facts = argv, facts
        self._beside = facts.get("beside", {})
        self._loaded = self._transports()
        self._sampler = Sampler(argv)
        self._settings = Settings(facts.get("settings", []))

    def beside(self):
        """Return the names of the other exporters that answer on this host."""
        return [name for name in self._beside if self._fetched(name)]

    def answer(self, question):
        """Return the metrics for a line on stdin, as text: this program's own, or those of another exporter."""
        what, _, given = question.partition(" ")
        if what != "own":
            return self._fetched(what)
        self._look_again()
        self._sampler.wait()
        series = self._facts.get("series", []) + self._settings.series() + (json.loads(given) if given else [])
        return exporter_metrics.text(self._sampler.record, self._facts, series, time.time())

    def end(self):
        """End the sampler and threads."""
        self._sampler.end()

    def _transports(self):
        folder = Path(self._facts.get("transports", "/nonexistent"))
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def _look_again(self):
        loaded = self._transports()
        if loaded != self._loaded:
            self._sampler.end()
            self._loaded, self._sampler = loaded, Sampler(self._argv)

    def _fetched(self, name):
        url = "http://127.0.0.1:%d/metrics" % self._beside[name]
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(url, timeout=BESIDE_S) as answer:
                return answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):  # no program, one without HTTP, or a cut answer
            return ""


def end_with(pid):
    """End this process as soon as process `pid` ends, because a sampler's open files would keep a lab from ending."""

    def follow():
        ended = select.poll()
        try:
            ended.register(os.pidfd_open(pid), select.POLLIN)  # novm - Python 3.9, which labs' machines have
            ended.poll()
        except ProcessLookupError:
            pass
        os._exit(0)  # the sampler ends because its pipe closes

    threading.Thread(target=follow, daemon=True).start()


def main():
    """Answer until end of file."""
    lines = iter(sys.stdin.readline, "")
    facts = json.loads(next(lines, "{}"))
    if "ends_with" in facts:
        end_with(facts["ends_with"])
    exporter = Exporter(sys.argv[1:], facts)
    try:
        print(json.dumps(exporter.beside()), flush=True)
        for line in lines:
            print(exporter.answer(line.strip()).rstrip("\n"), END, sep="\n", flush=True)
    finally:
        exporter.end()


if __name__ == "__main__":
    main()
