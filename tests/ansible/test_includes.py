# SPDX-License-Identifier: Apache-2.0
"""Native sources include what they use: what one release of the compiler's headers brings along, the next does not.

Debian 12's GCC 12 has std::uint32_t in <string>, Ubuntu 24.04's GCC 13 has not.
"""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

REPOSITORY = Path(__file__).parents[2]
HEADERS = {
    "cstdint": r"\bstd::u?int(8|16|32|64|ptr)_t\b",
    "cstring": r"\bstd::(mem(cpy|set|cmp|chr)|str(len|cmp|error))\b",
    "algorithm": r"\bstd::(sort|clamp|copy|fill|find_if|any_of|all_of|lower_bound|upper_bound)\(",
    "stdexcept": r"\bstd::(runtime_error|invalid_argument|out_of_range|logic_error)\b",
}


@cache
def included(path: Path) -> frozenset[str]:
    """The headers that a source includes, itself or by way of ours."""
    found = re.findall(r'^#include (<\w+>|"[\w./]+")$', path.read_text(), re.MULTILINE)
    ours = [REPOSITORY / name.strip('"') for name in found if name.startswith('"')]
    return frozenset(name.strip("<>") for name in found).union(*(included(each) for each in ours if each.exists()))


def test_sources_include_what_they_use() -> None:
    listed = subprocess.run(["git", "ls-files", "*.cpp", "*.hpp"], cwd=REPOSITORY, capture_output=True, text=True)
    paths = [REPOSITORY / name for name in listed.stdout.splitlines()]
    assert len(paths) > 50
    lacking = {
        f"{path.relative_to(REPOSITORY)}: <{header}>"
        for path in paths
        for header, used in HEADERS.items()
        if re.search(used, path.read_text()) and header not in included(path)
    }
    assert lacking == set()
