# SPDX-License-Identifier: Apache-2.0
"""From Inspector's logs of a job whose period and bytes are in its profile."""

from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from analysis.records.collective_groups import find_families
from analysis.records.job import join_records
from analysis.records.profile import make_profile
from analysis.records.readers import inspector
from tests.records.record_writers import Inspector
from tests.records.synthetic_records import MS, Made, data_parallel

pytestmark = pytest.mark.unit

SIZE = 400_000_000
RANKS = 4
WITHIN = 0.01
JOB = Path(__file__).with_name("examples") / "inspector-job"


@pytest.mark.parametrize("version", ["v4.0", "v4.4"])
def test_a_job_s_logs_give_its_period_and_bytes(version, tmp_path):
    """Two all-reduces each 100 ms, recorded by hosts whose clocks are a second and an hour apart."""
    job = data_parallel(RANKS, SIZE, made=Made(RANKS, ahead_ns=[10**6 * MS, 0, 1001 * MS * 1000, 3600 * MS * 1000]))
    paths = []
    for rank in range(RANKS):
        paths.append(tmp_path / f"n{rank}-pid42.log")
        paths[-1].write_bytes(Inspector(version=version, host=f"n{rank}").log(job.calls[rank]))
    found = make_profile(paths, "job")
    assert found.format == inspector.NAME
    assert found.timeline.found.period_ms.value == pytest.approx(100, rel=WITHIN)
    sent_bytes = sum(phase.bytes or 0 for phase in found.profile.phases)
    assert sent_bytes == pytest.approx(SIZE * 2 * (RANKS - 1) / RANKS, rel=WITHIN)
    assert any("callbacks on the CPU" in caveat for caveat in found.caveats)


def test_logs_that_the_plugin_itself_wrote_are_joined():
    """20 times each 40 ms: an all-reduce of 6,553,600 floats and a reduce-scatter of 1,048,576 a rank, among 4."""
    job = join_records([inspector.read(path) for path in sorted(JOB.iterdir())])
    begins_ms = [each.begin_ns / 1e6 for each in job.exchanges if each.kind == "all-reduce"]
    assert median(later - earlier for earlier, later in pairwise(begins_ms)) == pytest.approx(40, rel=WITHIN)
    (family,), small = find_families(job)
    assert family.groups == ((0, 1, 2, 3),) and not small
    assert family.bytes == 20 * (1.5 * 4 * 6553600 + 0.75 * 4 * 4 * 1048576)
    assert (len(job.exchanges), job.lost_share) == (40, 0)


def test_logs_that_the_plugin_itself_wrote_make_a_profile():
    found = make_profile(sorted(JOB.iterdir()), "job")
    sent_bytes = [phase.bytes for phase in found.profile.phases if phase.bytes]
    assert sent_bytes == [pytest.approx(each, rel=WITHIN) for each in (1.5 * 4 * 6553600, 0.75 * 4 * 4 * 1048576)]
    assert found.profile.alone_ms == pytest.approx(40, rel=WITHIN)
