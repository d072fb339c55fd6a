# SPDX-License-Identifier: Apache-2.0
"""The explorer's page on a run that goes on."""

import re

import pytest

from analysis.explorer import live_page, pages
from analysis.explorer.live_page import PERIOD_S, LivePage
from roundabout.cli.main import main
from roundabout.store import Run
from tests.analysis.computed_run import compute

pytestmark = pytest.mark.unit

CONTENT = re.compile(r'id="content">([^<]+)<')


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three trials, computed in a moment."""
    return compute(tmp_path_factory.mktemp("tiny"))


class Watched:
    """A page that is written at instants of a clock that stands still."""

    def __init__(self, run, folder):
        self.run = run
        self.path = folder / "page.html"
        self.now_s = 100.0
        self.page = LivePage(self.path, lambda: self.now_s)

    def show(self, gbps, key="k1", attempt=1):
        """Report a link's rate a second later."""
        self.now_s += 1
        self.page.show(
            {
                "run": self.run.id,
                "path": str(self.run.path),
                "trial": {"key": key, "attempt": attempt},
                "links": {"L1": {"gbps": gbps}},
                "jobs": {"j1": {"last_ms": 330.5}},
            }
        )

    @property
    def text(self):
        return self.path.read_text()

    @property
    def content(self):
        return pages.unpack(CONTENT.search(self.text)[1])


@pytest.fixture
def watched(run, tmp_path):
    return Watched(run, tmp_path)


def rates(content):
    return [sample["gbps"]["L1"] for sample in content["live"]["samples"]]


def test_the_page_has_the_samples_of_the_trial_and_the_trials_that_are_done(watched):
    watched.show(10)
    assert rates(watched.content) == [10]
    assert len(watched.content["trials"]) == 3
    assert f'http-equiv="refresh" content="{PERIOD_S}"' in watched.text


def test_the_page_is_rewritten_after_each_period(watched):
    for gbps in range(PERIOD_S):
        watched.show(gbps)
    assert rates(watched.content) == [0]
    watched.show(PERIOD_S)
    assert rates(watched.content) == list(range(PERIOD_S + 1))
    assert [sample["at_ms"] for sample in watched.content["live"]["samples"]] == [
        number * 1000 for number in range(PERIOD_S + 1)
    ]


def test_another_attempt_begins_anew(watched):
    for attempt in (1, 2):
        for gbps in range(PERIOD_S):
            watched.show(gbps, attempt=attempt)
    watched.show(77, attempt=2)
    assert rates(watched.content) == [*range(PERIOD_S), 77]


def test_the_newest_samples_stay(watched, monkeypatch):
    monkeypatch.setattr(live_page, "MAX_SAMPLES", 3)
    for gbps in range(PERIOD_S + 1):
        watched.show(gbps)
    assert rates(watched.content) == [PERIOD_S - 2, PERIOD_S - 1, PERIOD_S]


def test_the_page_of_an_ended_run_is_that_of_explore(watched, run, tmp_path):
    watched.show(10)
    watched.page.end(run)
    assert watched.text == pages.explore_run(run, tmp_path / "explored.html").read_text()


def test_a_run_without_trials_has_a_page(run, tmp_path):
    empty = Run.create(tmp_path / "runs", "tiny", run.manifest)
    Watched(empty, tmp_path).page.end(empty)
    assert pages.unpack(CONTENT.search((tmp_path / "page.html").read_text())[1])["trials"] == []


def test_watch_writes_the_page_of_an_ended_run(run, tmp_path, monkeypatch):
    monkeypatch.setattr("os.nice", lambda _: 0)  # for good, of this process
    page = tmp_path / "page.html"
    assert main(["watch", str(run.path), "--page", str(page)]) == 0
    assert len(pages.unpack(CONTENT.search(page.read_text())[1])["trials"]) == 3
