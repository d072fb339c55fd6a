# SPDX-License-Identifier: Apache-2.0
"""Photograph the explorer's page on a run: `python -m docgen.pictures.explorer RUN`.

It is no part of `python -m docgen`, because runs are not committed, and because letters look different from one machine
to the next.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.explorer.pages import explore_run
from docgen.generation import DOCS
from docgen.pictures.playground import WAITING
from docgen.pictures.report import photograph, print_picture
from roundabout.api import open_run

PICTURE = DOCS / "how-to/explore.png"
SIZE = 1000, 1250  # of the window, in CSS pixels: the page down to the queues of links


def main() -> int:
    """Photograph the page on the run that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m docgen.pictures.explorer", description="Photograph a run's page.")
    parser.add_argument("run", help="folder or id of a run, an experiment (its newest run), or `last`")
    run = open_run(parser.parse_args().run)
    with TemporaryDirectory() as folder:
        page = explore_run(run, Path(folder) / "page.html")
        return print_picture(PICTURE, lambda: photograph(page, PICTURE, SIZE, [WAITING]))


if __name__ == "__main__":
    sys.exit(main())
