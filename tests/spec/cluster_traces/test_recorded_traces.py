# SPDX-License-Identifier: Apache-2.0
"""Real traces, tried on small files of the published form: what is read of them, and what is said of bad rows."""

import json
import os
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from roundabout.spec import SpecError
from roundabout.spec.reader.yaml_source import dotted_path
from roundabout.spec.trace import Lingjun, Philly
from roundabout.spec.trace_readers import lingjun, read_trace
from tests.spec.cluster_traces.recorded_jobs import JOB, JOBS, NEVER, RUNNING, TOPOLOGY, WORKERS

pytestmark = pytest.mark.unit


def philly(folder, text):
    (folder / "cluster_job_log").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(Philly(kind="philly", file="cluster_job_log"), folder)


def alibaba(folder, jobs=JOBS, workers=WORKERS):
    for name, text in (("job.csv", jobs), ("worker.csv", workers)):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(Lingjun(kind="lingjun", file="job.csv"), folder)


def read_topology(folder, text):
    (folder / "topo.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return lingjun.read_topology(folder / "topo.csv", gpus_per_host=8, line_rate_gbps=50, payload_rate_gbps=43)


def test_phillys_jobs_have_their_first_attempts_gpus_and_the_time_of_all(tmp_path):
    found = philly(tmp_path, json.dumps([JOB, RUNNING, NEVER]))
    assert [(each.name, each.gpus, each.ran_s) for each in found] == [
        ("application_1_1", 3, 60 + 3600),
        ("application_1_2", 1, None),
    ]
    assert found[0].at_s == 1507338699


LAYOUTS = {
    "list": json.dumps,
    "printed list": lambda jobs: json.dumps(jobs, indent=4),
    "JSON lines": lambda jobs: "\n".join(map(json.dumps, jobs)),
    "printed one after another": lambda jobs: "\n\n".join(json.dumps(job, indent=4) for job in jobs) + "\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_phillys_jobs_are_read_from_a_list_and_one_after_another(tmp_path, layout):
    expected = philly(tmp_path, json.dumps([JOB, RUNNING, NEVER]))
    text = LAYOUTS[layout]([JOB, RUNNING, NEVER])
    assert philly(tmp_path, text) == philly(tmp_path, "\ufeff" + text.replace("\n", "\r\n")) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fault_in_a_philly_job_is_named_with_its_line(tmp_path, layout):
    text = LAYOUTS[layout]([JOB, {**RUNNING, "submitted_time": "2017-10-07"}, NEVER])
    line = 1 + text[: text.index('"2017-10-07"')].count("\n")
    field = "[1].submitted_time" if "list" in layout else "submitted_time"
    with pytest.raises(SpecError) as raised:
        philly(tmp_path, text)
    assert (raised.value.line, raised.value.field, raised.value.found) == (line, field, "'2017-10-07'")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{json.dumps(JOB)}\n{json.dumps(JOB)[:-5]}", "cluster_job_log:2: found .*expected valid JSON"),
        (f"{json.dumps(JOB)},\n{json.dumps(JOB)}", "cluster_job_log:1: found ',', expected valid JSON"),
        (f"{json.dumps(JOB)}\n5", "cluster_job_log:2: found 5, expected a mapping"),
        ('{"jobid": "a",\n"jobid": "b"}', "cluster_job_log:2: jobid: found the key 'jobid' a second time"),
        ('[{"jobid": NaN}]', r"cluster_job_log:1: \[0\].jobid: found 'NaN', expected a finite number"),
        ("{" * 100_000, "cluster_job_log:1: found '{{.*expected valid JSON"),
        ('{"a":' * 100_000, "cluster_job_log: found too deep a nesting"),
    ],
)
def test_a_file_that_is_no_philly_log_is_refused(tmp_path, text, said):
    with pytest.raises(SpecError, match=said):
        philly(tmp_path, text)


def test_lingjuns_jobs_have_their_workers_gpus(tmp_path):
    found = alibaba(tmp_path)
    assert [(each.name, each.gpus, each.ran_s) for each in found] == [
        ("dlc1", 16, 3600),
        ("dlc2", 4, 600),
        ("dlc3", 1, None),  # it runs before it is submitted, as one job of the published file does
    ]
    assert found[1].at_s - found[0].at_s == 360


def test_lingjuns_topology_is_a_tree_of_switches_named_by_parent(tmp_path):
    found = read_topology(tmp_path, TOPOLOGY)
    assert found.hosts == ("h1", "h2", "h3", "h4")
    assert len(found.switches) == 1 + 1 + 2 + 3
    assert len(found.path("h1", "h3")) == 2
    assert len(found.path("h1", "h4")) == 4
    assert len(found.path("h1", "h2")) == 6  # two ToRs called S2, below P10 and P12
    assert found.path("h1", "h4")[1].link.line_rate_gbps == 100  # two hosts below it


def broken(path, value):
    job = deepcopy(JOB)
    place = job
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps([job])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            broken(["submitted_time"], "yesterday"),
            r"\[0\].submitted_time: found 'yesterday', expected a date and a time, as 2023-07-15 02:19:05",
        ),
        (broken(["submitted_time"], None), r"\[0\].submitted_time: found nothing, expected a date and a time"),
        (
            broken(["attempts", 0, "start_time"], 5),
            r"\[0\].attempts\[0\].start_time: found 5, expected a date and a time",
        ),
        (broken(["attempts", 0, "detail", 1, "gpus"], 8), r"detail\[1\].gpus: found 8, expected a list"),
        (broken(["jobid"], "a b"), r"\[0\].jobid: found 'a b', expected"),
        ("{}", "cluster_job_log:1: jobid: found nothing, expected a value: the field is required"),
        ("5", "cluster_job_log:1: found 5, expected a JSON list of jobs, or one job a line"),
        ("[{}]", r"\[0\].jobid: found nothing"),
        ("[", "cluster_job_log:1: found the end, expected valid JSON"),
        (b"\xff", "cluster_job_log:1: found the byte 0xff, expected UTF-8 text"),
    ],
)
def test_a_fault_in_a_philly_log_is_named(tmp_path, text, said):
    with pytest.raises(SpecError, match=said):
        philly(tmp_path, text)


@pytest.mark.parametrize(
    ("jobs", "workers", "said"),
    [
        (JOBS.replace("2023/7/15 02:25", "15.7.2023"), WORKERS, r"job.csv:3: gmt_job_submitted: found '15.7.2023'"),
        (
            JOBS.replace("gmt_job_running", "started"),
            WORKERS,
            "job.csv:1: found the columns id, uid, .*gmt_job_running among them",
        ),
        (JOBS.replace("dlc2", ""), WORKERS, "job.csv:3: job_name: found '', expected"),
        (JOBS, WORKERS.replace('""4""', '""four""'), "worker.csv:4: RES: found .*expected JSON with a whole number"),
        (JOBS, WORKERS.replace('""4""', "-4"), "worker.csv:4: RES: found"),
        (JOBS, "", "worker.csv:1: found no columns"),
        (JOBS, WORKERS + '"', "worker.csv:8: found unexpected end of data, expected rows of CSV"),
    ],
)
def test_a_fault_in_lingjun_rows_is_named(tmp_path, jobs, workers, said):
    with pytest.raises(SpecError, match=said):
        alibaba(tmp_path, jobs, workers)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(SpecError, match="no-such: found no such file or directory, expected a file that can be read"):
        read_trace(Philly(kind="philly", file="no-such"), tmp_path)
    (tmp_path / "job.csv").write_text(JOBS)
    with pytest.raises(SpecError, match=r"worker\.csv: found no such file"):
        read_trace(Lingjun(kind="lingjun", file="job.csv"), tmp_path)


def test_a_trace_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError, match="pipe:1: found the end, expected valid JSON"):
        read_trace(Philly(kind="philly", file="pipe"), tmp_path)


def test_a_topology_without_hosts_is_said(tmp_path):
    with pytest.raises(SpecError, match=r"topo\.csv: hosts: found"):
        read_topology(tmp_path, "ip,DSW,PSW,ASW\n")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["2017-10-07 01:12:09", "None"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*JOB, *JOB["attempts"][0]]), inner),
    max_leaves=20,
)


FIELDS = [
    ("jobid",),
    ("submitted_time",),
    ("attempts",),
    ("attempts", 0),
    ("attempts", 0, "start_time"),
    ("attempts", 0, "end_time"),
    ("attempts", 0, "detail"),
    ("attempts", 0, "detail", 1),
    ("attempts", 0, "detail", 1, "gpus"),
    ("attempts", 0, "detail", 1, "gpus", 0),
]


@pytest.mark.parametrize("path", FIELDS, ids=dotted_path)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON, layout=st.sampled_from(sorted(LAYOUTS)))
def test_an_odd_value_of_phillys_is_read_or_refused_at_its_line_and_field(tmp_path, path, value, layout):
    text = LAYOUTS[layout]([JOB, json.loads(broken(path, value))[0], RUNNING])
    refused = refusal_of(tmp_path, text)
    if refused is not None:
        assert refused.field.startswith(f"[1].{dotted_path(path)}" if "list" in layout else dotted_path(path))
        assert text.splitlines()[refused.line - 1].strip()
        assert "\n" not in refused.message and len(refused.message) < 500


def refusal_of(folder, text):
    try:
        philly(folder, text)
    except SpecError as error:
        return error
    return None


@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 10**7), st.lists(st.integers(0, 10**6), min_size=1, max_size=4), st.integers(1, 64)),
        min_size=1,
        max_size=4,
    ),
    layout=st.sampled_from(sorted(LAYOUTS)),
)
def test_phillys_jobs_come_back_as_they_were_written(tmp_path_factory, jobs, layout):
    begin = datetime(2017, 8, 7, tzinfo=UTC)
    written = [
        {
            "jobid": f"j{number}",
            "submitted_time": f"{begin + timedelta(seconds=came):%Y-%m-%d %H:%M:%S}",
            "attempts": [
                {
                    "start_time": f"{begin:%Y-%m-%d %H:%M:%S}",
                    "end_time": f"{begin + timedelta(seconds=each):%Y-%m-%d %H:%M:%S}",
                    "detail": [{"ip": "m1", "gpus": ["gpu0"] * gpus}],
                }
                for each in lasted
            ],
        }
        for number, (came, lasted, gpus) in enumerate(jobs)
    ]
    back = philly(tmp_path_factory.getbasetemp(), LAYOUTS[layout](written))
    assert [(each.at_s - begin.timestamp(), each.gpus, each.ran_s) for each in back] == [
        (came, gpus, sum(lasted)) for came, lasted, gpus in jobs
    ]
