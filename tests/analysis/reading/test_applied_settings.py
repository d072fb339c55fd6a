# SPDX-License-Identifier: Apache-2.0
"""What hosts were given beside what was requested, and timers that nothing separates."""

import json

import pytest

from analysis.reading.applied_settings import AppliedParameter, applied_parameters, timer_warnings
from analysis.reports import about

pytestmark = pytest.mark.unit


def with_values(run, **values):
    """Make the run one whose hosts were given these values of DCQCN."""
    for path in run.path.glob("trials/*/trial.json"):
        record = json.loads(path.read_text())
        hosts = {worker for job in record["spec"]["jobs"].values() for worker in job["workers"]}
        record["settings"] = {host: {"applied": {"transport": {"dcqcn": values}}} for host in hosts}
        path.write_text(json.dumps(record))
    return run


def test_the_page_says_what_a_timer_is_on_hosts(short_run):
    run = with_values(short_run, T_us=1740.0, F=3, cnp_delay_us=7)
    assert AppliedParameter("dcqcn", "T_us", 100, 1740.0) in applied_parameters(run)
    assert AppliedParameter("dcqcn", "F", 1, 3) in applied_parameters(run)
    assert AppliedParameter("dcqcn", "cnp_delay_us", None, 7) in applied_parameters(run)
    page = about.applied_settings(run)
    assert "dcqcn: T of 100 µs is 1740 µs on hosts." in page
    assert "the testbed&#39;s own → 7" in page


def test_without_transport_settings_the_report_names_none(short_run):
    assert about.applied_settings(short_run) == ""


def gap_and_timers(gap, *timers):
    return [
        AppliedParameter("dcqcn", "cnp_gap_us", 50, gap),
        *(AppliedParameter("dcqcn", "T_us", each / 10, each) for each in timers),
    ]


def test_timers_that_elapse_equally_often_between_cnps_are_warned_of():
    (above,) = timer_warnings(gap_and_timers(870.0, 1000.0, 1250.0))
    assert above.startswith(
        "T of 100 (on hosts 1000 µs) and 125 (on hosts 1250 µs) elapse not at all within the 870 µs"
    )
    (below,) = timer_warnings(gap_and_timers(870.0, 500.0, 600.0, 1000.0))
    assert below.startswith("T of 50 (on hosts 500 µs) and 60 (on hosts 600 µs) elapse once")
    assert timer_warnings(gap_and_timers(870.0, 400.0, 600.0, 1000.0)) == []
    assert timer_warnings(gap_and_timers(870.0, 1000.0, 1000.0)) == []
