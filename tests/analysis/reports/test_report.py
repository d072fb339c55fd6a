# SPDX-License-Identifier: Apache-2.0
"""The page: self-contained, complete, and shown by a browser without a complaint."""

import base64
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import matplotlib.image as mpl_image
import pytest
import yaml
from matplotlib.offsetbox import TextArea

from analysis.reading.cells import CellId, CellTrials, cells_of
from analysis.reading.traces import read_traces
from analysis.render.page import figure_html
from analysis.render.style import new_figure
from analysis.reports.report import ReportError, write_report
from analysis.reports.summary import summarize_run
from analysis.studies.interleaving import figures
from analysis.studies.interleaving.study import sharing_cells
from roundabout.spec import load_experiment
from tests.spec.transports.minimal_experiment import written

pytestmark = pytest.mark.unit

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def page(run):
    return write_report(run)


@pytest.fixture(scope="module")
def text(page):
    return page.read_text()


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH (Ubuntu offers it as a snap only)")


def browse(page, folder, *options):
    """Open the page in headless Chromium; returns what it printed and what it complained of."""
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", *quiet, "--enable-logging=stderr",
         f"--user-data-dir={folder / 'profile'}", *options, page.as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_nothing_is_loaded_from_elsewhere(text):
    assert not re.findall(r"<script[^>]", text)  # an attribute, such as src
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|\#)[^"']*""", text)
    assert not re.findall(r"@import|url\((?!data:)", text)


def test_the_report_shows_no_code(text):
    assert "import" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    assert "RUN =" not in text


def test_all_figures_have_alternative_text(text):
    images = re.findall(r"<img [^>]+>", text)
    assert len(images) == 7
    for image in images:
        assert 'src="data:image/svg+xml;base64,' in image
        assert len(re.search(r'alt="([^"]*)"', image)[1]) > 20


def test_figures_are_numbered_and_come_with_their_data(text):
    assert re.findall(r"<figcaption><b>Figure (\d)\.</b>", text) == [str(number) for number in range(1, 8)]
    assert text.count('href="data:application/pdf;base64,JVBERi0') == 7  # %PDF-
    tables = [base64.b64decode(each).decode() for each in re.findall(r"data:text/csv;base64,([A-Za-z0-9+/=]+)", text)]
    assert len(tables) == 7
    rows = [list(csv.DictReader(each.splitlines())) for each in tables]
    assert {row["part"].partition(",")[0] for row in rows[0]} == {"j1", "j2"}
    assert len({row["part"] for row in rows[0]}) == 2 * 2 * 5 - 2  # two cells have one middle repetition each
    in_order = [row for row in rows[4] if row["panel"] == "j1" and row["series"] == "unfair"]
    assert {row["part"] for row in in_order} == {"median", *(f"repetition {number}" for number in range(1, 6))}
    assert {row["y_label"] for row in in_order} == {"iteration time, ms"}
    assert all(280 < float(row["y"]) < 400 for row in in_order)


def test_contents_lead_to_headings(text):
    (contents,) = re.findall("<nav>(.*?)</nav>", text)
    leading = re.findall(r'href="#([^"]+)"', contents)
    assert len(leading) > 4
    assert all(f'id="{each}"' in text for each in leading)


def test_the_page_and_the_repository_say_how_to_cite(text):
    cited = yaml.safe_load((Path(__file__).parents[3] / "CITATION.cff").read_text())
    assert f"{cited['authors'][0]['name']}: {cited['title']}, revision 0123456789ab." in text


@pytest.mark.parametrize(
    "words",
    [
        "emulated: lab, rates and bytes at 1:50",
        "paper 1.23 ± 0.08",
        "fluid limit",
        "363.8",
        "What this cannot show",
        "0123456789ab",
        "20 of 20 done, 20 valid",
        "dcqcn hotnets22: j1 T 100 µs, j2 T 125 µs",
        "No trial was invalid",
        "2 &lt;a CPU&gt;",
    ],
)
def test_the_report_contains(text, words):
    assert words in text


@pytest.mark.parametrize(
    ("transport", "expected"),
    [
        ("{name: cubic}", "cubic"),
        ("{name: dcqcn}", "dcqcn T 125 µs"),
        ("{name: dcqcn, set: sigcomm15}", "dcqcn sigcomm15"),
        ("{name: dcqcn, set: hpcc, T_us: 100, F: 3}", "dcqcn hpcc T 100 µs F 3"),
        (
            "{name: dcqcn, set: nvidia, ecn: {Kmin_bytes: 80000, Kmax_bytes: 160000, Pmax: 0.5}}",
            "dcqcn nvidia Kmin 80000 bytes Kmax 160000 bytes Pmax 0.5",
        ),
    ],
)
def test_a_transport_is_named_with_its_set_and_what_was_changed_of_it(tmp_path, transport, expected):
    spec = load_experiment(written(tmp_path, transport)).cells[0].spec
    assert CellTrials(CellId({}), spec).transports == expected


@pytest.mark.parametrize(("letters", "shown"), [(120, True), (10, False)])
def test_figure_panels_show_transport_settings_if_they_fit(run, monkeypatch, letters, shown):
    monkeypatch.setattr(figures, "LETTERS", letters)
    drawn = figures.draw_first_iterations(read_traces(run, sharing_cells(cells_of(run))))
    said = {area.get_text() for area in drawn.findobj(TextArea)}
    assert ("dcqcn hotnets22: j1 T 100 µs, j2 T 125 µs" in said) is shown


@needs_browser
def test_a_browser_shows_it_without_complaint(page, tmp_path):
    document, complaints = browse(page, tmp_path, "--dump-dom")
    assert complaints == []
    assert document.count("<figure>") == 7
    assert "</html>" in document


READ = """
const shown = () => [...document.querySelector("thead").closest("table").tBodies[0].rows]
  .filter((row) => row.checkVisibility()).map((row) => [0, 1, 3].map((at) => textOf(row.cells[at])).join(" "));
const isShown = (line) => getComputedStyle(line).display !== "none";
const lines = () => [...document.querySelectorAll("figure .drawn")].filter(isShown).length;
const head = [...document.querySelectorAll("th")].find((each) => each.textContent === "median");
const box = [...document.querySelectorAll(".toggles input")].find((each) => each.value === "unfair");
const found = [shown(), (head.click(), shown()), (head.click(), shown()), (head.click(), shown()), lines()];
const points = [...document.querySelectorAll("figure:last-of-type svg use title")].map((each) => each.textContent);
found.push((box.click(), shown()), lines(), points);
document.title = JSON.stringify(found);
"""
"""What a table shows: first, after three clicks on a column's head, and without the variant `unfair`."""


@needs_browser
def test_a_reader_sorts_a_table_hides_a_variant_and_reads_a_point(page, results, tmp_path):
    figure, (panel,) = new_figure(1, 1, 2)
    panel.plot([1, 2], [300.25, 290], "o-", gid="last")
    copy = tmp_path / "read.html"
    before, after = page.read_text().split("</main>")
    drawn = figure_html(figure, "", "two points, drawn by this test")
    copy.write_text(f"{before}{drawn}</main>{after.replace('</body>', f'<script>{READ}</script></body>')}")
    document, complaints = browse(copy, tmp_path, "--dump-dom")
    assert complaints == []
    first, up, down, again, all_lines, without, fewer_lines, points = json.loads(
        re.search("<title>(.*?)</title>", document)[1]
    )
    named = [f"{cell.variant} {cell.job} {cell.median_ms:.1f}" for cell in results.cells]
    assert [row.split()[-1] for row in first] == [row.split()[-1] for row in named]
    assert [row.split()[-1] for row in up] == sorted(row.split()[-1] for row in named)
    assert [row.split()[-1] for row in down] == sorted((row.split()[-1] for row in named), reverse=True)
    assert first == again
    assert [row.split()[0] for row in first[::2]] == ["alone", "fair", "unfair"]  # each names the two jobs' rows
    assert [row.split()[-1] for row in without] == [row.split()[-1] for row in named if "unfair" not in row]
    assert 0 < fewer_lines < all_lines
    assert points == ["last: 1; 300.2", "last: 2; 290"]


@needs_browser
def test_the_report_fits_a_phone(page, tmp_path):
    frame = tmp_path / "phone.html"
    said = "const shown = this.contentDocument.documentElement; document.title = shown.scrollWidth - shown.clientWidth"
    frame.write_text(f'<iframe src="{page.as_uri()}" width="390" height="800" onload="{said}"></iframe>')
    document, _ = browse(frame, tmp_path, "--allow-file-access-from-files", "--dump-dom")
    assert re.findall("<title>(.*?)</title>", document) == ["0"]


@needs_browser
def test_a_browser_draws_the_reports_figures(page, tmp_path):
    shot = tmp_path / "page.png"
    browse(page, tmp_path, f"--screenshot={shot}", "--window-size=1100,6000", "--hide-scrollbars")
    pixels = mpl_image.imread(shot)[..., :3]
    blue, orange = (0.0, 0x72 / 255, 0xB2 / 255), (0xE6 / 255, 0x9F / 255, 0.0)
    for colour in (blue, orange):  # the jobs' bars in the figure of how they slide apart
        assert (abs(pixels - colour).max(axis=2) < 0.02).sum() > 10_000


def test_a_run_whose_trials_are_all_invalid_has_a_report_too(make_run):
    spoilt = {(variant, number) for variant in ("alone", "fair", "unfair") for number in (1, 2)}
    run = make_run(repetitions=2, spoilt=spoilt)
    run.write_summary(summarize_run(run).record())
    text = write_report(run).read_text()
    assert text.count("CPU busy 0.97") == 8
    assert "not measured" in text
    assert "<img" not in text


def test_writing_a_report_leaves_working_folder_home_and_environment_unchanged(make_run, tmp_path, monkeypatch):
    """Two reports that are written at a time would share a name in the working folder."""
    home, working = tmp_path / "home", tmp_path / "working"
    home.mkdir()
    working.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(working)
    run = make_run(repetitions=1)
    before = dict(os.environ)
    seen, made = set(), Event()
    watcher = Thread(target=lambda: [seen.update(working.iterdir()) for _ in iter(lambda: made.wait(0.02), True)])
    watcher.start()
    try:
        write_report(run)
    finally:
        made.set()
        watcher.join()
    assert seen == set()
    assert [path for path in home.rglob("*") if path.is_file() and "matplotlib" not in str(path)] == []
    assert dict(os.environ) == before


def test_a_notebook_that_fails_is_one_message(make_run, monkeypatch, tmp_path):
    broken = tmp_path / "notebook.py"
    broken.write_text('# %% tags=["parameters"]\nRUN = ""\n# %%\n1 / 0\n')
    monkeypatch.setattr("analysis.studies.Study.notebook", broken)
    with pytest.raises(ReportError, match=r"^interleaving: ZeroDivisionError: division by zero$"):
        write_report(make_run(repetitions=1))


def test_a_notebook_that_does_not_end_is_one_message(make_run, monkeypatch, tmp_path):
    endless = tmp_path / "notebook.py"
    endless.write_text('# %% tags=["parameters"]\nRUN = ""\n# %%\nwhile True: pass\n')
    monkeypatch.setattr("analysis.studies.Study.notebook", endless)
    monkeypatch.setattr("analysis.reports.report.TIMEOUT_S", 1)
    with pytest.raises(ReportError, match=r"^interleaving: a cell ran for more than 1 s"):
        write_report(make_run(repetitions=1))


def test_sigterm_ends_a_notebook(make_run, monkeypatch, tmp_path):
    ending = tmp_path / "notebook.py"
    ending.write_text(
        '# %% tags=["parameters"]\nRUN = ""\n# %%\nimport os, signal, time\n'
        "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)\n"
    )
    monkeypatch.setattr("analysis.studies.Study.notebook", ending)
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with pytest.raises(SystemExit, match="143"):
            write_report(make_run(repetitions=1))
    finally:
        signal.signal(signal.SIGTERM, before)
