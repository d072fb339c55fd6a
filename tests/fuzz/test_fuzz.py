# SPDX-License-Identifier: Apache-2.0
"""Every native parser of what comes from outside, sanitised, given what libFuzzer makes of the inputs that are kept.

FUZZ_SECONDS says how long each is tried; FUZZ_KEEP names a folder that collects the inputs which reach something new.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.sanitized import sanitized

pytestmark = pytest.mark.lab

CORPUS = Path(__file__).with_name("corpus")
SECONDS = int(os.environ.get("FUZZ_SECONDS", "5"))
LIMITS = ["-max_len=4096", "-timeout=10", "-rss_limit_mb=2048"]


@pytest.mark.proof
@pytest.mark.parametrize("parser", sorted(each.name for each in CORPUS.iterdir()))
def test_a_parser_takes_or_refuses_anything(parser: str, tmp_path: Path) -> None:
    fuzz = sanitized("address,undefined", "fuzz") / "fuzz"
    found = Path(os.environ.get("FUZZ_KEEP", tmp_path)) / parser
    found.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [fuzz, f"-max_total_time={SECONDS}", f"-artifact_prefix={tmp_path}/", *LIMITS, found, CORPUS / parser],
        env={**os.environ, "FUZZ_PARSER": parser},
        capture_output=True,
        text=True,
        check=False,
    )
    crashes = [each.read_bytes() for each in tmp_path.iterdir() if each.is_file()]
    assert (done.returncode, crashes) == (0, []), done.stderr[-5000:]
    tried = re.search(r"Done (\d+) runs", done.stderr)
    assert tried
    print(f"{parser}: {tried[1]} inputs in {SECONDS} s")
