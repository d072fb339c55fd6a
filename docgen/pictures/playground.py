# SPDX-License-Identifier: Apache-2.0
"""Photograph the playground after unfair sharing, for pages without scripts: `python -m docgen.pictures.playground`.

It is no part of `python -m docgen`, because letters look different from one machine to the next.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docgen.generation import DOCS
from docgen.pictures.report import photograph, print_picture
from docgen.playground.engine import write_playground

PICTURE = DOCS / "tutorials/playground.png"
SIZE = 760, 970  # of the window, in CSS pixels: the width of a page's text, down to the circles
WAITING = "--virtual-time-budget=9000"  # ms until the picture, so that scripts have ended
PRESET = "Unfair"
PAGE = f"""<!doctype html>
<meta charset="utf-8">
<style>
  body {{
    font-family: sans-serif;
    --md-default-fg-color--light: #0009;
    --md-default-fg-color--lighter: #0004;
    --md-default-fg-color--lightest: #0001;
  }}
</style>
<link rel="stylesheet" href="playground/playground.css">
<div id="playground"></div>
<script src="playground/engine.js"></script>
<script src="playground/simulation.js"></script>
<script src="playground/playground.js"></script>
<script>
  const press = () => [...document.querySelectorAll("button")].find((each) => each.textContent === "{PRESET}").click();
  setTimeout(press, 3000); // when the engine is there
</script>
"""
"""The playground without the rest of the site, as someone has pressed the button `PRESET`."""


def write_page(folder: Path) -> Path:
    """Write PAGE and what it loads into `folder`, and return its path. Raises CompileError."""
    write_playground(folder / "playground")
    page = folder / "page.html"
    page.write_text(PAGE)
    return page


def take() -> None:
    """Photograph the playground. Raises RoundaboutError."""
    with TemporaryDirectory() as folder:
        photograph(write_page(Path(folder)), PICTURE, SIZE, [WAITING])


if __name__ == "__main__":
    sys.exit(print_picture(PICTURE, take))
