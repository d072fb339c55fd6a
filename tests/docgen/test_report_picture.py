# SPDX-License-Identifier: Apache-2.0
"""The photograph of a run's page is small, and says what it lacks."""

from pathlib import Path

import pytest
from PIL import Image

from docgen.pictures.report import BROWSERS, HEIGHT, MAX_BYTES, PICTURE, WIDTH, find_browser, photograph
from roundabout.core.errors import UsageError

pytestmark = pytest.mark.unit


def test_the_tutorials_picture_is_small_and_whole() -> None:
    with Image.open(PICTURE) as image:
        assert image.size == (WIDTH, HEIGHT)
    assert PICTURE.stat().st_size <= MAX_BYTES


def test_a_missing_browser_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=f"found no browser on PATH, expected one of {BROWSERS[0]}"):
        find_browser()


def test_a_missing_page_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"report\.html: found no page of a run"):
        photograph(tmp_path / "report.html", tmp_path / "picture.png")


def test_a_browser_that_draws_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = tmp_path / BROWSERS[0]
    browser.write_text("#!/bin/sh\necho no display >&2\nexit 3\n")
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "report.html").write_text("<p>verdicts</p>")
    with pytest.raises(UsageError, match="found no picture after exit status 3: no display"):
        photograph(tmp_path / "report.html", tmp_path / "picture.png")
