# SPDX-License-Identifier: Apache-2.0
"""The speed-up beside a table's medians or means, by pencil and paper."""

from unittest.mock import Mock

import numpy as np
import pytest

from analysis.reading.cells import CellId, CellTrials
from analysis.reading.speedups import typical_speedup

pytestmark = pytest.mark.unit

ONE_MODE = [98.0, 99.0, 100.0, 101.0, 102.0]
TWO_MODES = [50.0, 100.0, 50.0, 100.0, 100.0]


def cell_of(times, job="j1"):
    return CellTrials(CellId({}), Mock(), times={job: {0: np.array(times * 10)}})


@pytest.mark.parametrize(
    ("slow", "fast", "expected"),
    [
        (ONE_MODE, ONE_MODE, 1.0),
        ([2 * each for each in ONE_MODE], ONE_MODE, 2.0),
        (ONE_MODE, TWO_MODES, 100 / 80),
        (TWO_MODES, ONE_MODE, 80 / 100),
        (TWO_MODES, TWO_MODES, 1.0),
    ],
)
def test_a_speed_up_is_of_means_where_iterations_have_two_modes(slow, fast, expected):
    assert typical_speedup(cell_of(slow), cell_of(fast), "j1")[0] == pytest.approx(expected)


def test_a_job_that_one_cell_lacks_has_no_speed_up():
    assert typical_speedup(cell_of(ONE_MODE, "j2"), cell_of(TWO_MODES), "j1") is None
