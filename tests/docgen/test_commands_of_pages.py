# SPDX-License-Identifier: Apache-2.0
"""Every command that a page shows could be given: parsed by the application, with names that exist."""

from pathlib import Path

import pytest

from docgen.generation import DOCS
from docgen.page_commands.check import Commands
from docgen.page_commands.lines import CommandLine, find_commands
from roundabout.core.paths import ROOT

pytestmark = pytest.mark.unit

PAGES = [page for page in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")) if page.name != "CHANGELOG.md"]


def test_commands_of_all_pages_could_be_given() -> None:
    texts = {page: page.read_text() for page in PAGES}
    # A generated page's usage lines have brackets and metavariables, and come from the parser itself.
    written = {page: text for page, text in texts.items() if not text.startswith("<!-- Generated")}
    assert sum(len(list(find_commands(text))) for text in written.values()) > 300
    assert [mistake for page, text in written.items() for mistake in Commands(page, text).check()] == []


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("roundabout launch unfair-vgg19", "no command launch"),
        ("roundabout lab raise", "no command lab raise"),
        ("roundabout run unfair-vgg19 --testbeds fluid", "No such option: --testbeds"),
        ("roundabout run unfair-vgg20", "unfair-vgg20"),
        ("roundabout run", "Missing argument 'NAME|FILE'"),
        ("roundabout run unfair-vgg19 --only fairer", "fairer"),
        ("roundabout run unfair-vgg19 --set jobs.j1.transport.T_ms=1", "T_ms"),
        ("roundabout run unfair-vgg19 --testbed water", "water"),
        ("roundabout plan unfair-vgg19 --repetitions four", "four"),
        ("roundabout plan absent.yaml", "absent.yaml"),
        ("roundabout new mine --from torus", "torus"),
        ("roundabout cassini vgg19-1400 vgg99 --capacity 50", "no profile vgg99"),
        ("roundabout profile measure vgg99", "no profile vgg99"),
        ("roundabout acceptance --topology dumbbell-9x9", "no topology dumbbell-9x9"),
        ("roundabout identify hotnets/fig-9", "no identification hotnets/fig-9"),
        ("roundabout compare unfair-vgg19 aggressive", "no experiment aggressive"),
        ("roundabout compare A B --fail-if 'speed > 2 %'", "speed"),
        ("roundabout judge mine.bpf.c --fail-if 'jain_9 < 1'", "jain_9"),
        ("make measure", "no target measure"),
        ("make experiment", "NAME is needed"),
        ("make experiment NAME=unfair-vgg20", "unfair-vgg20"),
        ("make experiment NAME=unfair-vgg19 LENGHT=quick", "no variable LENGHT"),
        ("./bootstrap everything", "no part of bootstrap everything"),
        ("python -m docgen.absent", "no program docgen.absent"),
        ("python benchmarks/packet_engine.py --absent", "has no option --absent"),
    ],
)
def test_a_mistake_is_named_with_its_line(line: str, mistake: str) -> None:
    page = DOCS / "how-to" / "page.md"
    (found,) = Commands(page, f"# Title\n\n    {line}  # the page's reason\n").check()
    assert found.startswith("docs/how-to/page.md:3: ")
    assert mistake in found


@pytest.mark.parametrize(
    "text",
    [
        "`roundabout run` and `roundabout compare A B`",
        "`roundabout run NAME --executor slurm`, `roundabout export RUN --csv FOLDER`",
        "    roundabout new mine\n    roundabout plan mine.yaml\n    roundabout compare mine unfair-vgg19\n",
        "    roundabout new mine --from FLOWS.cm --topology FABRIC.topo\n    roundabout run mine.yaml\n",
        "    roundabout advise RUN --check pairs.yaml && roundabout run pairs.yaml\n",
        "```python\nroundabout = 1\n```\n",
        "make sure that `makeshift` works",
    ],
)
def test_what_could_be_given_is_accepted(text: str) -> None:
    assert list(Commands(DOCS / "page.md", text).check()) == []


def test_commands_are_found_where_they_begin() -> None:
    prose = "One `roundabout run\nunfair-vgg19` and\n`sudo make test`.\n\n"
    code = "    ./rb list > a && A=1 make docs \\\n        B=2  # c\n"
    assert list(find_commands(prose + code)) == [
        CommandLine(1, "roundabout", ("run", "unfair-vgg19"), is_inline=True),
        CommandLine(3, "make", ("test",), is_inline=True),
        CommandLine(5, "roundabout", ("list",), is_inline=False),
        CommandLine(5, "make", ("docs", "B=2"), is_inline=False),
    ]


def test_a_file_of_another_page_does_not_count(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    first = Commands(page, "```yaml\nname: mine\n```\n", root=tmp_path)
    assert list(first.check()) == []
    (found,) = Commands(page, "    roundabout plan mine.yaml\n", root=tmp_path).check()
    assert "mine.yaml" in found
