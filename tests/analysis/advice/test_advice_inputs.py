# SPDX-License-Identifier: Apache-2.0
"""Inputs of `advise`: odd samples, labels and lists of jobs give the right result, or one message."""

import json
import math
import os
from functools import reduce
from operator import getitem

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from analysis.advice import senders, sources
from analysis.advice.advice import read_placements
from analysis.advice.counters import HostCounter
from analysis.advice.errors import AdviceError
from analysis.advice.observed_jobs import ObservedJob, observe_counters
from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.spec import SpecError
from tests.analysis.advice.advice_inputs import (
    BEGIN_S,
    GBPS,
    HOSTS,
    JOBS,
    SENT,
    STEP_BYTES,
    STEP_MS,
    STEPS,
    answer,
    assert_all_sent,
    csv,
    read,
    rows,
    series,
    slurm,
)

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]

KEEP_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Each example writes its file anew."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("inputs")


# Samples


def with_sample(place, sample):
    changed = series("n1")
    changed["values"][place] = sample if isinstance(sample, list) else [changed["values"][place][0], sample]
    return answer(changed)


@pytest.mark.parametrize("value", [None, "NaN", "+Inf", "-Inf", "inf", 1e300, "1e999", "0", 2**63, str(2**64)])
def test_an_impossible_value_drops_one_sample(folder, value):
    found = read(folder, with_sample(50, value))
    assert_all_sent(found, HOSTS[1:])
    off = SENT[-1] - found["n1"].to_sent_bytes(GBPS).payload_bytes[-1]
    assert off in (0, 2 * STEP_BYTES) or value is None
    assert 0 <= off <= 2 * STEP_BYTES


@pytest.mark.parametrize("begin", [0, 2**53, 2**63 - 5 * 10**9, 2**64 - 10**10])
def test_counters_of_64_bits_are_read_wherever_they_stand(folder, begin):
    sent = read(folder, answer(series("n1", begin_bytes=begin)))["n1"].to_sent_bytes(GBPS).payload_bytes
    assert np.abs(sent - SENT).max() <= 4096


@pytest.mark.parametrize(
    ("sample", "complaint"),
    [
        ("some", "data.result[0].values[7][1]: found 'some', expected a number"),
        ("1_000", "data.result[0].values[7][1]: found '1_000', expected a number"),
        (True, "data.result[0].values[7][1]: found true, expected a number"),
        ([None, "1"], "data.result[0].values[7][0]: found nothing, expected a time in seconds"),
        (["1700000000", "1"], "values[7][0]: found '1700000000', expected a time in seconds"),
        ([1, "1", 2], "data.result[0].values[7]: found a list of 3, expected a time and a value"),
        ([BEGIN_S * 1000, "1"], "host n1: found the time 1700000000000, expected one before the year 2116"),
        ([1e300, "1"], "host n1: found the time 1.0000000000000001e+300, expected one before the year 2116"),
        ("-5", "host n1: found -5, expected a counter, which is never negative"),
        ([BEGIN_S, "1"], "host n1: found two values for one time, expected one: choose an interface"),
    ],
)
def test_a_sample_that_is_none_is_named(folder, sample, complaint):
    with pytest.raises(UsageError) as caught:
        read(folder, with_sample(7, sample))
    assert complaint in caught.value.message


def test_samples_come_in_any_order_and_more_than_once(folder):
    changed = series("n1")
    changed["values"] = [*reversed(changed["values"]), *changed["values"][:9]]
    assert_all_sent(read(folder, answer(changed)))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({}, "found a mapping of 0, expected a Prometheus server's answer"),
        ({"status": "success", "data": None}, "data: found nothing, expected a mapping with resultType and result"),
        ({"status": "success", "data": {"resultType": "matrix"}}, "data: found no series"),
        (answer(result=None), "data.result: found no series, expected one of each host"),
        (answer(result=[]), "data.result: found no series"),
        (answer(result={}), "data.result: found a mapping of 0, expected a list of series"),
        (answer(resultType="vector"), "data.resultType: found 'vector', expected 'matrix'"),
        (answer(resultType=None), "data.resultType: found nothing, expected 'matrix'"),
        (answer(result=[None]), "data.result[0]: found nothing, expected labels by name"),
        (answer(result=[{"metric": {"node": 1}, "values": []}]), "data.result[0].metric.node: found 1, expected text"),
        (answer(result=[{"metric": {"node": "n1"}}]), "data.result[0]: found nothing, expected a list of samples"),
        (answer(result=[{"metric": {"node": "n1"}, "value": [1, "2"]}]), "found nothing, expected a list of samples"),
    ],
)
def test_an_answer_without_series_is_refused(folder, content, complaint):
    with pytest.raises(SpecError) as caught:
        read(folder, content)
    assert complaint in caught.value.message and str(folder / "a.json") in caught.value.message


def test_series_without_a_label_of_the_host_are_refused(folder):
    with pytest.raises(AdviceError, match="found labels none, expected one of host, instance, node"):
        read(folder, answer(result=[{"metric": {}, "values": [[0, "1"]]}]))


@pytest.mark.parametrize("samples", [0, 1])
def test_a_host_without_samples_is_named_and_the_others_are_read(folder, samples):
    changed = series("n1")
    changed["values"] = changed["values"][:samples]
    j1, j2 = observe_counters(read(folder, answer(changed)), JOBS, GBPS)
    assert j1.reason == f"host n1: found {['no', 'one'][samples]} sample, expected two at least"
    assert j2.found.period_ms.value == pytest.approx(200, rel=0.01)


# Counters that fall


def counter(*values, step_s=15):
    return HostCounter(np.arange(len(values), dtype=np.int64) * int(step_s * 1e9), np.array(values, dtype=np.float64))


@pytest.mark.parametrize("before_gb", [1, 2, 3, 3.9, 4.2])
def test_a_host_that_rebooted_early_sent_nothing_meanwhile(before_gb):
    """Distinguish a counter of 64 bits that was reset below 2^32 from one of 32 bits that wrapped."""
    before = np.arange(before_gb * 1e9 - 10 * 2e7, before_gb * 1e9, 2e7)
    sent = counter(*before, 1e8, 1.2e8, 1.4e8, 1.6e8).to_sent_bytes(GBPS).payload_bytes
    assert sent[-1] == before[-1] - before[0] + 6e7


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**28), min_size=40, max_size=60))
def test_a_counter_of_32_bits_wraps(begin, steps):
    steps[3] = steps[9] = 2**28  # one of them does not wrap: no wrap is more than twice as fast as all others
    sent = np.concatenate([[0], np.cumsum(steps)])
    found = counter(*((begin + sent) % 2**32), step_s=0.1).to_sent_bytes(GBPS).payload_bytes
    assert found.tolist() == sent.tolist()


@pytest.mark.parametrize("form", ["rate", "smooth", "random"])
def test_a_rate_is_no_counter(folder, form):
    rates = STEPS / (STEP_MS / 1000)
    if form == "smooth":
        rates = np.convolve(rates, np.ones(10) / 10, "same")
    elif form == "random":
        rates = np.random.default_rng(1).uniform(0, 5e9, len(STEPS))
    changed = series("n1")
    changed["values"] = [[at, str(rate)] for (at, _), rate in zip(changed["values"][1:], rates, strict=True)]
    with pytest.raises(AdviceError, match=r"host n1: found values that fell \d+ times in \d+ changes") as caught:
        read(folder, answer(changed))
    assert "without rate()" in caught.value.hint


def test_a_gauge_that_mostly_rises_is_no_counter(folder):
    """It falls once an iteration only, which is no reboot either."""
    fills = np.cumsum(np.tile(np.repeat([STEP_BYTES, 0], [19, 1]), 8)) % (19 * STEP_BYTES)
    changed = series("n1")
    changed["values"] = [[BEGIN_S + place / 100, str(fill)] for place, fill in enumerate(fills.tolist())]
    j1, j2 = observe_counters(read(folder, answer(changed)), JOBS, GBPS)
    assert j1.reason.startswith("host n1: found values that fell 8 times in 151 changes, expected 2 resets at most")
    assert j2.found


@pytest.mark.parametrize("silent", [("n1",), ("n1", "n2")])
@pytest.mark.filterwarnings("error")
def test_a_host_that_sends_nothing_is_no_ground_for_advice(folder, silent):
    changed = [series(host) for host in silent]
    for each in changed:
        each["values"] = [[at, "5"] for at, _ in each["values"]]
    j1, j2 = observe_counters(read(folder, answer(*changed)), JOBS, GBPS)
    assert j1.reason and not j1.found
    assert j2.found


def test_a_mean_beyond_the_capacity_is_no_ground_for_advice():
    found = observe_counters({"n1": counter(*(1e9 * np.arange(9)), step_s=0.1)}, {"j": ("n1",)}, GBPS)[0]
    assert found.reason == "host n1: found a mean of 80 Gbit/s, expected 50 at most: is that a rate, and not a counter?"


def test_more_headers_than_bytes_are_refused():
    at_ns, sent = np.arange(9, dtype=np.int64) * 10**9, 1e6 * np.arange(9)
    with pytest.raises(AdviceError, match="found 8e.06 packets of 8e.06 bytes, expected more than 66 bytes a packet"):
        HostCounter(at_ns, sent, sent).to_sent_bytes(GBPS)


# Labels and columns


@pytest.mark.parametrize(
    "labels",
    [
        lambda host: {"instance": f"{host}:9100"},
        lambda host: {"instance": host},
        lambda host: {"host": f"pod-{host}", "instance": f"10.0.0.{host[1]}:9100", "node": host},
        lambda host: {"node": f"x{host}", "instance": f"{host}:9100"},
        lambda host: {"instance": f"10.0.0.{host[1]}:9100", "nodename": host},
    ],
)
def test_hosts_are_found_by_the_label_that_jobs_name(folder, labels):
    found = read(folder, answer(*(series(host, labels(host)) for host in HOSTS)))
    assert_all_sent(found)


@pytest.mark.parametrize("name", ["n1:9100", "[::1]:9100", "[::1]", "::1", "10.0.0.1", "n:x"])
def test_an_address_is_named_with_or_without_its_port(folder, name):
    assert list(
        read(folder, answer(series("", {"instance": name}), result=[series("", {"instance": name})]), named=[name])
    )
    without = name.removesuffix(":9100")
    assert list(read(folder, answer(result=[series("", {"instance": name})]), named=[without])) == [without]


def test_two_series_of_one_host_are_refused(folder):
    twice = [series("n1"), series("n1", {"instance": "n1:9400"})]
    with pytest.raises(AdviceError, match="found 2 series of host n1, expected one: choose a device"):
        read(folder, answer(*twice))


def test_host_names_in_tables_are_text(folder):
    content = [[at, f"0{host[1]}", sent] for at, host, sent in rows()]
    assert list(read(folder, csv(content), "A.CSV", ["01"])) == ["01", "02", "03", "04"]
    content = [[at, f"pod-{host}", host, sent] for at, host, sent in rows()]
    assert_all_sent(read(folder, csv(content, "at_ms,instance,node,tx_bytes"), "a.csv"))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (csv([["1", "n1", "5", "5"]], "at_s,host,tx_bytes,tx_bytes"), "found the column tx_bytes twice, expected it"),
        (csv([["1", "n1", "n1", "5"]], "at_s,host,host,tx_bytes"), "found the column host twice"),
        (csv(rows(), "at_s,host,tx_bytes"), "found the time 1700000000000, expected one before the year 2116"),
        (csv([["1", "n1", "5"]], "when,host,tx_bytes"), "found columns when, host, tx_bytes, expected one called"),
        (csv([["1", "n1", "5"]], "at_s,host,sent"), "found columns at_s, host, sent, expected one called tx_bytes or"),
        (csv([["1", "n1", "5"], ["2", "n1", "5 MB"]], "at_s,host,tx_bytes"), "row 2, column tx_bytes: found '5 MB'"),
        (csv([["0", "n1", "1"], ["1", "n1", "1_000"]]), "row 2, column tx_bytes: found '1_000', expected a number"),
        (csv([["0", "n1", "1"], ["1", "n1", "\u0663"]]), "row 2, column tx_bytes: found '\u0663', expected a number"),
        (csv([["0", "n1", "1"], ["1_0", "n1", "5"]]), "row 2, column at_ms: found '1_0', expected a number"),
        (csv([["1", "n1", "2", "x"], ["1", "n1", "3", "y"]], "at_ms,host,tx_bytes,interface"), "found interfaces x, y"),
        (csv([["", "n1", "2"], ["1", "n1", "3"]]), "found a sample without a time"),
        (csv([["1", "", "5"]], "at_s,host,tx_bytes"), "column host: found a row without a host"),
        (csv([["1", "n1", "true"]], "at_s,host,tx_bytes"), "column tx_bytes: found bool, expected numbers"),
        (csv([["2023-01-01", "n1", "1"]], "at_s,host,tx_bytes"), "column at_s: found date32[day], expected numbers"),
        (csv([["1", "n1", "5", "6"]], "at_s,host,tx_bytes"), "cannot be read: CSV parse error: Row #2: Expected 3"),
        ("at_s,host,tx_bytes\n", "column at_s: found null, expected numbers"),
        ("", "cannot be read: Empty CSV file"),
    ],
)  # fmt: skip
def test_a_table_that_is_none_is_refused_by_row_and_column(folder, content, complaint):
    with pytest.raises(AdviceError) as caught:
        read(folder, content, "a.csv")
    assert complaint in caught.value.message and "\n" not in caught.value.message


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_table_with_other_separators_is_read(folder, separator):
    assert_all_sent(read(folder, csv(rows()).replace(",", separator), "a.csv"))


@pytest.mark.parametrize(
    ("name", "cells", "complaint"),
    [
        ("tx_bytes", ["1", "2"], "column tx_bytes: found string, expected numbers"),
        ("tx_bytes", pa.array(["1", "2"], pa.large_string()), "column tx_bytes: found large_string, expected numbers"),
        ("tx_bytes", [[1], [2]], "column tx_bytes: found list<element: int64>, expected numbers"),
        ("at_s", pa.array([1, 2], pa.time32("ms")), "column at_s: found time32[ms], expected numbers"),
        ("host", [["n1"], ["n1"]], "column host: found list<element: string>, expected text"),
        ("host", [{"a": 1}, {"a": 2}], "column host: found struct<a: int64>, expected text"),
        ("host", [1.5, 2.5], "column host: found double, expected text"),
        ("interface", [["e"], ["e"]], "column interface: found list<element: string>, expected text"),
    ],
)
def test_a_column_of_another_type_is_refused(folder, name, cells, complaint):
    columns = {"at_s": [1, 2], "host": ["n1", "n1"], "interface": ["e", "e"], "tx_bytes": [1, 2]}
    pq.write_table(pa.table(columns | {name: cells}), folder / "a.parquet")
    with pytest.raises(AdviceError) as caught:
        sources.read(str(folder / "a.parquet"))
    assert complaint in caught.value.message


@pytest.mark.parametrize("kind", [pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()), pa.int64()])
def test_a_host_may_be_of_several_types(folder, kind):
    hosts = [1, 1] if kind == pa.int64() else ["1", "1"]
    table = {"at_s": [1, 2], "host": pa.array(hosts, pa.string() if "dict" in str(kind) else kind), "tx_bytes": [1, 2]}
    if "dict" in str(kind):
        table["host"] = table["host"].dictionary_encode()
    pq.write_table(pa.table(table), folder / "a.parquet")
    assert list(sources.read(str(folder / "a.parquet")).hosts) == ["1"]


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.parquet", "pipe.json"])
def test_a_pipe_without_a_writer_is_not_waited_for(folder, name):
    os.mkfifo(folder / name)
    with pytest.raises(UsageError, match=rf"{name}\b.*: (cannot be read|found the end)"):
        sources.read(str(folder / name))


def test_a_missing_table_is_called_missing(folder):
    with pytest.raises(AdviceError, match=r"no.csv: cannot be read: No such file or directory$"):
        sources.read(str(folder / "no.csv"))


def test_bytes_that_are_no_text_are_refused(folder):
    (folder / "a.csv").write_bytes(b"at_s,host,tx_bytes,\xff\n1,n\xff,5,1\n")
    (folder / "a.json").write_bytes(b'{"status":\n"\xff"}')
    with pytest.raises(AdviceError, match="a.csv: cannot be read: .*UTF"):
        sources.read(str(folder / "a.csv"))
    with pytest.raises(SpecError, match="a.json:2: found the byte 0xff, expected UTF-8 text"):
        sources.read(str(folder / "a.json"))


# Jobs and placements


def jobs(folder, text, name="jobs.yaml"):
    (folder / name).write_text(text if isinstance(text, str) else json.dumps(text))
    return senders.read_senders(folder / name).senders


@pytest.mark.parametrize("name", ["on", "off", "yes", "no", "true", "1", "007", "~", "null", "1e3", "2023-01-01"])
def test_jobs_and_hosts_are_called_as_written(folder, name):
    assert jobs(folder, f"{name}: [{name}, n2]\nother: {name}") == {name: (name, "n2"), "other": (name,)}
    assert jobs(folder, {name: [name]}, "jobs.JSON") == {name: (name,)}
    (folder / "p.yaml").write_text(f"{name}: {{{name}: [{name}]}}")
    (found,) = read_placements(folder / "p.yaml", [ObservedJob(name)])
    assert (found.name, found.crossing) == (name, {name: (name,)})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("j1: a[2-1]", ":1: j1: found '[2-1]', expected numbers that rise"),
        ("j1: 'a[1-99999]'", "j1: found more than 10000 hosts in '[1-99999]'"),
        ("j1: [a, 'a[1-9999][1-9999]']", "j1: found more than 10000 hosts in 'a[1-9999][1-9999]'"),
        ("j1: a[1-" + "9" * 5000 + "]", "j1: found '[1-9999"),
        ("j1: a[1-٢]", "j1: found '[1-٢]', expected numbers as in [01-03,07]"),
        ("j1: 'a[x]'", "j1: found '[x]', expected numbers as in [01-03,07]"),
        ("j1: 'a[1-'", "j1: found 'a[1-', expected hosts as in node[01-03,07]"),
        ("j1: a]1[", "j1: found 'a]1[', expected hosts as in node[01-03,07]"),
        ("j1: 'a,,b'", "expected hosts as in node[01-03,07]"),
        ("a: x\nj1: [n1]\nj1: [n2]", ":3: j1: found the key 'j1' a second time (first in line 2)"),
        ("j1:", "j1: found '', expected names of hosts"),
        ("j1: {a: b}", "j1: found a mapping of 1, expected names of hosts"),
        ("j1: []", "j1: found a list of 0, expected names of hosts"),
        ("[s0]", "found a list of 1, expected hosts by job, as in j1: "),
        ("{}", "found no job that runs, expected one at least"),
        ("jobs: [{name: x}]", "jobs[0]: found nothing, expected a state or a list of them"),
        ('"": n1', "found the name '', expected names of letters, digits and signs"),
        ('"a\\e[31mb": n1', r"found the name 'a\x1b[31mb', expected names of letters"),
        ("j1: [[n1]]", "j1: found a list of 1, expected names of hosts"),
        ("j1: &a [n1]\nj2: *a", ":2: found an alias, expected the value itself"),
    ],
)
def test_jobs_that_are_none_are_named(folder, text, complaint):
    with pytest.raises(SpecError) as caught:
        jobs(folder, text)
    assert complaint in caught.value.message and len(caught.value.message) < 300


def test_spaces_beside_commas_are_no_part_of_a_host(folder):
    assert jobs(folder, "j1: n1, n[2-3]") == {"j1": ("n1", "n2", "n3")}


@pytest.mark.parametrize("nodes", ["", None, []])
@pytest.mark.parametrize("state", ["RUNNING", ["RUNNING", "CONFIGURING"], ["PENDING"], ["RUNNING", "COMPLETING"]])
def test_slurms_jobs_without_nodes_are_passed_over(folder, nodes, state):
    listed = [slurm(), slurm(job_id=8, job_state=state, nodes=nodes)]
    assert jobs(folder, {"jobs": listed}, "q.json") == {"t-7": ("n1", "n2")}


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [
        ([slurm(), slurm()], "jobs[1]: found the job t-7 a second time, expected each job once"),
        ([slurm(nodes=3)], "jobs[0].nodes: found 3, expected names of hosts"),
        ([slurm(nodes="n[2-1]")], "jobs[0].nodes: found '[2-1]', expected numbers that rise"),
        ([slurm(name=None)], "jobs[0].name: found nothing, expected text, as `squeue --json` has it"),
        ([slurm(job_id=1.5)], "jobs[0].job_id: found 1.5, expected a number"),
        ([slurm(job_state=None)], "jobs[0].job_state: found nothing, expected a state or a list of them"),
        ([None], "jobs[0]: found nothing, expected a mapping"),
        ([slurm(job_state=["PENDING"])], "found no job that runs, expected one at least"),
        ([], "found no job that runs"),
    ],
)
def test_slurms_jobs_that_are_none_are_named(folder, listed, complaint):
    with pytest.raises(SpecError) as caught:
        jobs(folder, {"jobs": listed}, "q.json")
    assert complaint in caught.value.message


def test_a_job_may_be_called_jobs(folder):
    assert jobs(folder, "jobs: [n1, n2]") == {"jobs": ("n1", "n2")}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("one: {L1: [j1, j1]}", ":1: one.L1[1]: found job 'j1' a second time, expected each job once"),
        ("one: {L1: [j1]}\none: {L1: [j2]}", ":2: one: found the key 'one' a second time"),
        ("one: {L1: [[j1]]}", "one.L1[0]: found job a list of 1, expected one of j1, j2"),
        ("one: {L1: j1}", "one.L1: found 'j1', expected a list of jobs"),
        ("one: [j1]", "one: found a list of 1, expected lists of jobs by link"),
        ("{}", "found a mapping of 0, expected placements by name"),
        ("", "found nothing, expected placements by name"),
    ],
)
def test_placements_that_are_none_are_named(folder, text, complaint):
    (folder / "p.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        read_placements(folder / "p.yaml", [ObservedJob("j1"), ObservedJob("j2")])
    assert complaint in caught.value.message


# Anything


ODD = st.sampled_from(
    [None, True, "", "x", "NaN", "+Inf", "-1", -1, 0, 1, 1e300, 2**64, math.nan, math.inf, [], {}, [1], BEGIN_S * 1000]
)
TRUTH_GBPS = 40.0


def check(path, content, sound=()):
    """Check that each job has its figures without mistakes, or a reason; `sound` ones have figures.

    That what is refused is refused with one message is tested in tests/damage.
    """
    path.write_text(content)
    try:
        found = observe_counters(sources.read(str(path), HOSTS).hosts, JOBS, GBPS)
    except UsageError:
        return
    for job in found:
        assert job.found or (job.reason and job.job not in sound)
        if job.found:
            assert job.found.period_ms.value == pytest.approx(200, rel=0.01)
            assert [each.gbps.value for each in job.found.phases] == pytest.approx([0, TRUTH_GBPS], abs=2)


@settings(KEEP_FILE, max_examples=60, deadline=None)
@given(data=st.data())
def test_an_answer_with_an_odd_value_anywhere(folder, data):
    tree = answer()
    keys = data.draw(st.sampled_from(["status", "data", "resultType", "result", "series", "metric", "at", "value"]))
    way = {
        "status": ("status",),
        "data": ("data",),
        "resultType": ("data", "resultType"),
        "result": ("data", "result"),
        "series": ("data", "result", 0),
        "metric": ("data", "result", 0, data.draw(st.sampled_from(["metric", "values"]))),
        "at": ("data", "result", 0, "values", data.draw(st.integers(0, len(STEPS))), 0),
        "value": ("data", "result", 0, "values", data.draw(st.integers(0, len(STEPS))), 1),
    }[keys]
    around = reduce(getitem, way[:-1], tree)
    if data.draw(st.booleans()) or isinstance(around, list):
        around[way[-1]] = data.draw(ODD)
    else:
        del around[way[-1]]
    check(folder / "a.json", json.dumps(tree), sound=["j2"])


@settings(KEEP_FILE, max_examples=40, deadline=None)
@given(data=st.data())
def test_a_table_with_an_odd_cell_anywhere(folder, data):
    content = rows()
    row = content[data.draw(st.integers(0, len(content) - 1))]
    row[data.draw(st.integers(0, 2))] = data.draw(ODD.map(str) | st.text(max_size=5))
    check(folder / "a.csv", csv(content))


@pytest.mark.parametrize(
    ("changed", "status"), [([], 0), ([series("n1", begin_bytes=2**63)], 0), ([{"metric": {}, "values": []}], 0)]
)
def test_the_command_takes_what_was_read(folder, changed, status, capfd):
    (folder / "a.json").write_text(json.dumps(answer(*changed)))
    (folder / "jobs.yaml").write_text("on: n[1-2]\noff: [n3, n4]")
    words = ["advise", str(folder / "a.json"), "--jobs", str(folder / "jobs.yaml"), "--capacity", "50"]
    assert main(words) == status
    out, err = capfd.readouterr()
    assert " on " in out and " off " in out and not err
