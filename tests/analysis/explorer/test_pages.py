# SPDX-License-Identifier: Apache-2.0
"""The explorer's pages: their data equal the run's tables and summaries, and they load nothing."""

import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from analysis.dataframes.sources import open_results, summary_of
from analysis.explorer import pages
from analysis.explorer.run_list import describe_runs
from analysis.reading import data
from analysis.reports.publishing.publication import RESULTS
from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.store import Run
from roundabout.store.files import StoreError
from tests.analysis.computed_run import compute

pytestmark = pytest.mark.unit

CHECKSUMS = {
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""SHA-256 of the files of uPlot 1.6.32 as they were released."""
CONTENT = re.compile(r'id="content">([^<]+)<')

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Jobs alone and together, computed in a moment."""
    return compute(tmp_path_factory.mktemp("tiny"))


def content_of(page):
    """Return the data in a page."""
    return pages.unpack(CONTENT.search(page.read_text())[1])


def fail(error):
    raise error


@settings(max_examples=15)
@given(values)
def test_packed_content_is_unpacked_unchanged(content):
    assert pages.unpack(pages.pack(content)) == content


def test_iterations_in_the_page_are_those_of_the_table(run, tmp_path):
    page = pages.explore_run(run, tmp_path / "page.html")
    content = content_of(page)
    table = data.iterations(run)
    assert [trial["name"] for trial in content["trials"]] == [
        "alone, j1, repetition 1",
        "alone, j2, repetition 1",
        "fair, repetition 1",
    ]
    for trial in content["trials"]:
        rows = data.filter_rows(table, trial=trial["key"]).to_pylist()
        begin_ns = min(row["start_ns"] for row in rows)
        shown = [
            (job["name"], number, start, middle, end, duration)
            for job in trial["jobs"]
            for number, start, middle, end, duration in zip(
                *(job[name] for name in ("iterations", "start", "compute_end", "comm_end", "iteration_ms")), strict=True
            )
        ]
        assert shown == [
            (
                row["job"],
                row["iteration"],
                *(
                    pytest.approx((row[name] - begin_ns) / 1e6, abs=5e-4)
                    for name in ("start_ns", "compute_end_ns", "comm_end_ns")
                ),
                pytest.approx(row["iteration_ms"], abs=5e-4),
            )
            for row in rows
        ]


def test_windows_of_a_link_add_up_to_its_bytes(run):
    trial = next(each for each in pages.run_content(run)["trials"] if each["name"].startswith("fair"))
    port = data.ports(run, "tx_bytes", (trial["key"],))[trial["key"], "L1", "tor1"]
    direction = next(each for each in trial["directions"] if (each["link"], each["towards"]) == ("L1", "tor1"))
    known = [gbps for gbps in direction["gbps"] if gbps is not None]
    assert len(known) > 50
    sent_bytes = sum(known) * 1e9 / 8 * trial["window_ms"] / 1e3
    assert sent_bytes == pytest.approx(port.total_gain, rel=0.02)  # the last window ends after the last sample


def test_a_trial_is_chosen_by_its_key(run):
    key = run.trials()[1]["trial"]
    content = pages.run_content(run, [key])
    assert [trial["key"] for trial in content["trials"]] == [key]
    assert {trial["key"] for trial in content["others"]} == {each["trial"] for each in run.trials()} - {key}
    with pytest.raises(UsageError, match="found no trial 0000"):
        pages.run_content(run, ["0000"])


def test_published_runs_have_their_own_figures_and_verdicts(tmp_path):
    found = describe_runs(RESULTS, tmp_path / "page.html", fail)
    assert len(found) == len(list(RESULTS.glob("*/*/publication.json")))
    shown = next(each for each in found if (each["experiment"], each["testbed"]) == ("unfair-vgg19", "packets"))
    summary = summary_of(open_results("unfair-vgg19/packets"))
    assert [(cell["job"], cell["median_ms"], cell["speedup"]) for cell in shown["cells"]] == [
        (cell.job, cell.median_ms, cell.speedup) for cell in summary.cells
    ]
    for cell, expected in zip(shown["cells"], summary.cells, strict=True):
        assert cell["median_ms_ci95"] == list(expected.median_ci95_ms)
        assert cell["speedup_ci95"] == (expected.speedup_ci95 and list(expected.speedup_ci95))
    parts = [part for each in summary.expectations for part in each.parts or [each]]
    assert [(each["measured"], each["verdict"]) for each in shown["expectations"]] == [
        (part.measured, part.verdict) for part in parts
    ]
    assert sum(shown["verdicts"].values()) == len(parts)


def test_a_folder_of_runs_links_to_the_page_of_each(run, tmp_path, capsys):
    runs = run.path.parents[1]
    assert main(["explore", str(runs)]) == 0
    assert capsys.readouterr().out.strip().endswith(str(runs / "explorer.html"))
    (listed,) = content_of(runs / "explorer.html")["runs"]
    assert (listed["experiment"], listed["testbed"], listed["trials"]) == ("tiny", "fluid", {"valid": 3})
    (page,) = listed["pages"]
    assert (page["name"], page["href"]) == ("explorer", f"tiny/{run.id}/explorer.html")
    assert content_of(runs / page["href"])["run"] == run.id


def test_an_empty_folder_is_refused_with_one_error(tmp_path, capsys):
    assert main(["explore", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("error:") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_trials_is_listed_without_a_page(run, tmp_path, capsys):
    empty = Run.create(tmp_path / "runs", "tiny", run.manifest)
    assert main(["explore", "--runs", str(tmp_path / "runs")]) == 0
    (listed,) = content_of(tmp_path / "runs/explorer.html")["runs"]
    assert (listed["run"], listed["trials"], listed["pages"]) == (empty.id, {}, [])
    capsys.readouterr()
    assert main(["explore", str(empty.path)]) == 2
    assert "found no iterations that count" in capsys.readouterr().err


def test_an_unreadable_run_is_named_and_the_others_are_shown(run, tmp_path):
    broken = tmp_path / "tiny" / "20261201T000000Z-0000"
    broken.mkdir(parents=True)
    (broken / "manifest.json").write_text("{")
    (tmp_path / "tiny" / run.id).symlink_to(run.path)
    errors = []
    found = describe_runs(tmp_path, tmp_path / "page.html", errors.append)
    assert [each["run"] for each in found] == [run.id]
    assert [type(error) for error in errors] == [StoreError]


def test_pages_load_nothing(run, tmp_path):
    text = pages.explore_run(run, tmp_path / "page.html").read_text()
    assert "Content-Security-Policy\" content=\"default-src 'none'" in text
    assert not re.search(r"<(script|img|iframe)[^>]+src=|<link[^>]+href=\"(?!data:)|@import", text)


def test_uplot_is_as_it_was_released():
    folder = Path(pages.__file__).parent / "uplot"
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()} == CHECKSUMS
