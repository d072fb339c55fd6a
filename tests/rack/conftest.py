# SPDX-License-Identifier: Apache-2.0
"""The shipped inventory's three testbeds, each as a file of its own."""

import re
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "inventory.example"


def examples() -> dict[str, str]:
    """The inventories in inventory.example, the commented ones too, by how many servers they have."""
    parts = re.split(r"^(?=# (?:# )?=== )", EXAMPLE.read_text(), flags=re.MULTILINE)[1:]
    # As a reader does it, a block's heading is uncommented like its other lines.
    texts = [re.sub(r"^# ", "", part, flags=re.MULTILINE) if part.startswith("# # ") else part for part in parts]
    return dict(zip(("four", "twelve", "twenty-four"), texts, strict=True))


@pytest.fixture(params=["four", "twelve", "twenty-four"])
def testbed_of_a_paper(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    path = tmp_path / "inventory"
    path.write_text(examples()[request.param])
    return request.param, path


@pytest.fixture
def inventory_file(tmp_path: Path) -> Path:
    """The twelve servers: dumbbell-2x2 is part of them."""
    path = tmp_path / "inventory"
    path.write_text(examples()["twelve"])
    return path
