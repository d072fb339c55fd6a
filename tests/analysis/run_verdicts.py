# SPDX-License-Identifier: Apache-2.0
"""Verdicts of a run, as its summary has them."""

from analysis.expectations.verdicts import Verdict, judge
from analysis.quantities import CachedReading
from analysis.studies import study_of
from roundabout.store import Run


def judge_run(run: Run) -> tuple[Verdict, ...]:
    reading = CachedReading(run)
    return judge(reading, study_of(reading.experiment).kind)
