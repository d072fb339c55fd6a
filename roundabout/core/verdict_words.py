# SPDX-License-Identifier: Apache-2.0
"""The words of verdicts: on expectations of papers, on rules, on fabrics, and on congestion controls."""

from typing import Literal

Word = Literal["pass", "fail", "inconclusive", "not measured"]
INCONCLUSIVE: Word = "inconclusive"
NOT_MEASURED: Word = "not measured"


def pass_or_fail(is_as_expected: bool) -> Word:
    """Return `pass` if a figure is as expected, else `fail`."""
    return "pass" if is_as_expected else "fail"
