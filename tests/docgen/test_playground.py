# SPDX-License-Identifier: Apache-2.0
"""The playground's engine, compiled to WebAssembly, gives the iteration times of the testbed `fluid`."""

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from docgen.pictures.playground import WAITING, write_page
from docgen.pictures.report import BROWSERS, OPTIONS
from roundabout import build_experiment
from tests.computed_runs import RUNNER
from tests.two_phases import two_phases

pytestmark = [pytest.mark.unit, pytest.mark.proof]

SETTINGS = 20
WITHIN = 1e-3
BYTES_PER_MS = 5_375_000  # the payload rate of dumbbell-2x2, 43 Gbit/s
FLOWS = 4  # of job 2; job 1 has as many times more as its aggressiveness says
PRINTED = """
loadEngine().then((simulate) => {
  const times = (jobs) => simulate(jobs).map((job) => job.iterations.map((each) => each.endMs - each.startMs));
  console.log(JSON.stringify(SETTINGS.map(times)));
});
"""
Setting = list[dict[str, float]]


def draw_setting(rng: random.Random) -> Setting:
    """Return two jobs, as sliders of the page may state them."""
    jobs = [{"computeMs": rng.randrange(50, 401, 10), "sendMs": rng.randrange(20, 301, 10)} for _ in range(2)]
    return [
        {**jobs[0], "weight": rng.randrange(4, 17) / 4, "startMs": 0},
        {**jobs[1], "weight": 1, "startMs": rng.randrange(0, 401, 10)},
    ]


@pytest.fixture(scope="module")
def settings() -> list[Setting]:
    rng = random.Random(60)
    return [draw_setting(rng) for _ in range(SETTINGS)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("page"))


def played_by_testbed(settings: list[Setting], folder: Path) -> list[list[list[tuple[float, float]]]]:
    """Return the end and the time of each iteration, ms, for each job of each setting."""
    profiles, levels = {}, {}
    for number, jobs in enumerate(settings):
        overlay: dict[str, Any] = {}
        for name, job in zip(("j1", "j2"), jobs, strict=True):
            profile = f"{name}-{number}"
            size = round(job["sendMs"] * BYTES_PER_MS)
            profiles[profile] = two_phases(job["computeMs"], size, job["sendMs"])
            flows = round(FLOWS * job["weight"])
            overlay[name] = {"profile": profile, "flows": flows, "start_offset_ms": job["startMs"]}
        levels[f"s{number}"] = {"jobs": overlay}
    fields = {
        "name": "playground",
        "about": "Settings of the playground",
        "topology": "dumbbell-2x2",
        "profiles": profiles,
        "jobs": {"j1": {"workers": ["s0", "s2"]}, "j2": {"workers": ["s1", "s3"]}},
        "transport": {"name": "dcqcn"},
        "iterations": 40,
        "repetitions": 1,
        "factors": {"variant": levels},
    }
    run = RUNNER.start(build_experiment(fields), "playground", folder)
    rows = [row for row in run.table("iterations").to_pylist() if row["rank"] == 0]
    return [[times_of(rows, level, job) for job in ("j1", "j2")] for level in levels]


def times_of(rows: list[dict[str, Any]], level: str, job: str) -> list[tuple[float, float]]:
    own = sorted((row["start_ns"], row["comm_end_ns"]) for row in rows if (row["variant"], row["job"]) == (level, job))
    return [(end / 1e6, (end - start) / 1e6) for start, end in own]


def test_it_gives_the_iteration_times_of_the_testbed(settings: list[Setting], page: Path, tmp_path: Path) -> None:
    scripts = [(page.parent / "playground" / name).read_text() for name in ("engine.js", "simulation.js")]
    text = "\n".join([*scripts, f"const SETTINGS = {json.dumps(settings)};", PRINTED])
    done = subprocess.run(["node", "-"], input=text, capture_output=True, text=True, check=True)
    differences = []
    for times, jobs in zip(json.loads(done.stdout), played_by_testbed(settings, tmp_path), strict=True):
        until_ms = min(job[-1][0] for job in jobs)  # the testbed's first job to end leaves the link to the other one
        for own, job in zip(times, jobs, strict=True):
            expected = [time for end, time in job if end <= until_ms]
            assert len(expected) >= 3
            differences += [abs(found / time - 1) for found, time in zip(own, expected, strict=False)]
    print(f"{len(differences)} iterations, largest difference {max(differences):.1e}")
    assert len(differences) > SETTINGS * 40
    assert max(differences) < WITHIN


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no Chromium, which Ubuntu has as a snap only")
def test_the_page_works_as_a_file(page: Path, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    words = [browser, *OPTIONS, WAITING, f"--user-data-dir={tmp_path}", "--dump-dom", page.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert "Both are faster than with fair sharing." in done.stdout
    assert done.stdout.count("<svg") == 4
