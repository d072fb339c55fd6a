# SPDX-License-Identifier: Apache-2.0
"""Photograph the top of a run's page for the tutorial: `python -m docgen.pictures.report RUN`.

The run's report.html is opened in headless Chromium. It is no part of `python -m docgen`, because runs are not
committed, and because letters look different from one machine to the next.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from docgen.generation import DOCS
from roundabout.api import open_run
from roundabout.core.errors import RoundaboutError, UsageError

PICTURE = DOCS / "tutorials/report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1000, 1290  # of the window, in CSS pixels: the page down to its last verdict
COLORS = 64  # which letters, lines and bars need; it halves the file
MAX_BYTES = 150_000  # of the picture: it is committed
TIMEOUT_S = 60
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync")


def find_browser() -> str:
    """Return the path of Chromium or Chrome. Raises UsageError if there is none."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    raise UsageError(
        f"found no browser on PATH, expected one of {', '.join(BROWSERS)}", "install chromium (Debian: apt)"
    )


def photograph(page: Path, picture: Path, size: tuple[int, int] = (WIDTH, HEIGHT), options: Sequence[str] = ()) -> None:
    """Write a PNG of the top of a page, of this width and height. `options` are more of the browser's.

    Raises:
        UsageError: there is no page or browser, or the PNG gets too large.
    """
    if not page.is_file():
        raise UsageError(f"{page}: found no page of a run", "make it with `roundabout report RUN`")
    browser = find_browser()
    with TemporaryDirectory() as folder:
        shot = Path(folder) / "page.png"
        reported = (f"--user-data-dir={folder}/profile", f"--window-size={size[0]},{size[1]}", f"--screenshot={shot}")
        words = [browser, *OPTIONS, *options, *reported, page.resolve().as_uri()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if not shot.is_file():
            raise UsageError(f"{browser}: found no picture after exit status {done.returncode}: {done.stderr[-300:]}")
        with Image.open(shot) as image:
            image.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(picture, optimize=True)
    found = picture.stat().st_size
    if found > MAX_BYTES:
        raise UsageError(f"{picture}: found {found:,} bytes, expected {MAX_BYTES:,} at most", "lower HEIGHT or COLORS")


def print_picture(picture: Path, take: Callable[[], None]) -> int:
    """Take a picture, print its path, or the error, and return the exit status."""
    try:
        take()
    except RoundaboutError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(picture)
    return 0


def main() -> int:
    """Photograph the page of the run that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m docgen.pictures.report", description="Photograph a run's page.")
    parser.add_argument("run", help="folder or id of a run, an experiment (its newest run), or `last`")
    run = parser.parse_args().run
    return print_picture(PICTURE, lambda: photograph(open_run(run).path / "report.html", PICTURE))


if __name__ == "__main__":
    sys.exit(main())
