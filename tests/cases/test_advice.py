# SPDX-License-Identifier: Apache-2.0
"""Public cases of `advise`: a field that qualifies a figure changes it, is named in a note, or is refused."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.advice import advice, senders, sources
from analysis.advice.advice import JobGroup, Verdict, split_by_jobs
from analysis.advice.advice_tables import record, render_page
from analysis.advice.errors import AdviceError
from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.models.cassini import Candidate
from tests.analysis.advice.advice_inputs import (
    BEGIN_BYTES,
    BEGIN_S,
    HOSTS,
    SENT,
    answer,
    assert_all_sent,
    csv,
    read,
    rows,
    series,
    slurm,
)
from tests.analysis.advice.long_tables import exactly

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]

METRIC = "node_network_transmit_bytes_total"


def labelled(**labels):
    return answer(*(series(host, {"__name__": METRIC, "instance": f"{host}:9100"} | labels) for host in HOSTS))


def outcome(path, named=HOSTS):
    """Return the sent bytes of each host and the notes, or the message of a refusal."""
    try:
        found = sources.read(str(path), named)
    except UsageError as error:
        return error.message
    return {host: each.bytes.tolist() for host, each in found.hosts.items()}, found.notes


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"warnings": ["No StoreAPIs matched"]}, "warnings of the server: No StoreAPIs matched"),
        ({"warnings": "partial response"}, "warnings of the server: partial response"),
        ({"infos": ["PromQL info: metric might not be a counter"]}, "infos of the server: PromQL info"),
        ({"status": "error", "error": "timeout"}, "found error 'timeout'"),
    ],
)
def test_a_field_of_an_answer_changes_figures_or_is_named(tmp_path, changed, said):
    (tmp_path / "a.json").write_text(json.dumps(labelled()))
    (tmp_path / "b.json").write_text(json.dumps(labelled() | changed))
    before, after = outcome(tmp_path / "a.json"), outcome(tmp_path / "b.json")
    assert before != after
    assert said in str(after)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"__name__": "infiniband_portxmitdata_total"}, "counts words of four bytes by its name"),
        ({"__name__": "node_infiniband_port_xmit_data"}, "counts words of four bytes by its name"),
        ({"__name__": "node_network_transmit_packets_total"}, "counts packets by its name"),
        ({"__name__": "ifOutBits"}, "counts bits by its name"),
        ({"__name__": "nic_tx_kilobytes_total"}, "counts multiples of bytes by its name"),
        ({"__name__": "DCGM_FI_PROF_NVLINK_TX_BYTES"}, "counts bytes within a host by its name"),
        ({"__name__": "node_network_receive_bytes_total"}, "counts received bytes by its name"),
        ({"__name__": "sent"}, "the metric sent does not name its unit"),
        ({"__name__": "node_infiniband_port_data_transmitted_bytes_total"}, "port_data_transmitted_bytes_total"),
        ({"device": "lo"}, "device lo"),
        ({"job": "node"}, "job node"),
        ({"prometheus_replica": "a"}, "prometheus_replica a"),
    ],
)
def test_a_label_of_all_series_changes_figures_or_is_named(tmp_path, labels, said):
    (tmp_path / "a.json").write_text(json.dumps(labelled()))
    (tmp_path / "b.json").write_text(json.dumps(labelled(**labels)))
    assert outcome(tmp_path / "a.json") != outcome(tmp_path / "b.json")
    assert said in str(outcome(tmp_path / "b.json"))


@pytest.mark.parametrize("label", ["prometheus_replica", "replica", "device", "thanos_ruler_replica"])
def test_labels_in_which_series_of_one_host_differ_are_named(tmp_path, label):
    twice = [series("n1", {"instance": "n1:9100", label: value}) for value in ("b", "a")]
    (tmp_path / "a.json").write_text(json.dumps(answer(result=twice)))
    assert "found 2 series of host n1, expected one: choose a device in the query" in outcome(tmp_path / "a.json")
    assert f"({label}: a, b)" in outcome(tmp_path / "a.json")


def test_columns_that_are_not_read_are_named(tmp_path):
    content = [[*row, "7"] for row in rows()]
    (tmp_path / "a.csv").write_text(csv(content, "at_ms,host,tx_bytes,rx_bytes"))
    assert outcome(tmp_path / "a.csv")[1] == ("columns that are not read: rx_bytes",)


# Tables


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("name", ["at_ns", "at_s"])
def test_a_timestamp_has_its_own_unit(tmp_path, unit, name):
    at = [BEGIN_S + place for place in range(len(SENT))]
    column = pa.array(at, pa.timestamp("s")).cast(pa.timestamp(unit))
    table = pa.table({name: column, "host": ["n1"] * len(at), "tx_bytes": BEGIN_BYTES + SENT})
    pq.write_table(table, tmp_path / "a.parquet", version="2.6")
    counter = sources.read(str(tmp_path / "a.parquet")).hosts["n1"]
    assert (counter.at_ns // 10**9).tolist() == at


@pytest.mark.parametrize(("separator", "point"), [(";", ","), (";", "."), ("\t", ","), ("\t", "."), (",", ".")])
def test_decimal_commas_and_separators_of_spreadsheets_are_read(tmp_path, separator, point):
    lines = [["at_s", "host", "tx_bytes"]]
    lines += [[f"{int(at) / 1000:.2f}".replace(".", point), host, sent] for at, host, sent in rows()]
    assert_all_sent(read(tmp_path, "\n".join(map(separator.join, lines)), "a.csv"))


@pytest.mark.parametrize(("separator", "point"), [(";", ","), (";", "."), ("\t", ","), ("\t", ".")])
@pytest.mark.parametrize("text", ["rack 1, row 2", "eth0,1x", "1,2,3"])
def test_commas_of_texts_are_not_decimal(tmp_path, separator, point, text):
    lines = [["note", "at_s", "host", "tx_bytes"]]
    lines += [[text, f"{int(at) / 1000:.2f}".replace(".", point), host, sent] for at, host, sent in rows()]
    assert_all_sent(read(tmp_path, "\n".join(map(separator.join, lines)), "a.csv"))


@pytest.mark.parametrize("text", ["1.76e+09", "1760000000", "1.70000e9"])
def test_rounded_times_are_named(tmp_path, text):
    content = [[text, host, sent] for _, host, sent in rows()]
    with pytest.raises(AdviceError, match=r"the times of 161 samples are 1: were they rounded\?"):
        read(tmp_path, csv(content, "at_s,host,tx_bytes"), "a.csv")


@pytest.mark.parametrize(("back_ms", "said"), [(200, "0.2 s"), (500, "0.5 s"), (25, "0.025 s")])
def test_a_clock_that_was_set_back_is_named(tmp_path, back_ms, said):
    content = [
        [str(int(at) - (back_ms if place % 161 >= 104 else 0)), host, sent]
        for place, (at, host, sent) in enumerate(rows())
    ]
    with pytest.raises(AdviceError, match="times that go back by ") as caught:
        read(tmp_path, csv(content), "a.csv")
    assert f"go back by {float(said.split()[0]) - 0.01:g} s after the host's sample 104" in caught.value.message


# Slurm's jobs


def listed(tmp_path, *jobs):
    (tmp_path / "q.json").write_text(json.dumps({"jobs": list(jobs)}))
    return senders.read_senders(tmp_path / "q.json")


@pytest.mark.parametrize("leader", [{"set": True, "infinite": False, "number": 7}, 7])
def test_components_of_a_heterogeneous_job_are_one_job(tmp_path, leader):
    components = [
        slurm(job_id=7, het_job_id=leader),
        slurm(job_id=8, nodes="n[3-4]", het_job_id=leader),
        slurm(job_id=9, nodes="n5", het_job_id={"set": False, "infinite": False, "number": 0}),
    ]
    assert listed(tmp_path, *components).senders == {"t-7": ("n1", "n2", "n3", "n4"), "t-9": ("n5",)}


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"job_state": ["RUNNING", "STOPPED"]}, "t-8: its state is RUNNING, STOPPED"),
        ({"job_state": ["RUNNING", "COMPLETING"]}, "t-8: its state is RUNNING, COMPLETING"),
        ({"job_state": ["SUSPENDED"]}, "left out: 1 SUSPENDED"),
        ({"job_state": "PENDING"}, "left out: 1 PENDING"),
        ({"job_state": ["RUNNING", "CONFIGURING"], "nodes": ""}, "left out: 1 RUNNING, CONFIGURING without nodes"),
    ],
)
def test_the_state_of_a_job_is_named(tmp_path, changed, note):
    (said,) = listed(tmp_path, slurm(), slurm(job_id=8, nodes="n3") | changed).notes
    assert note in said
    assert listed(tmp_path, slurm(), slurm(job_id=8, nodes="n3")).notes == ()


# Advice


@pytest.fixture
def judged(monkeypatch):
    """Let a and b gain by shifts, and no other jobs."""

    def judge(jobs, crossing, capacity_gbps):
        names = tuple(dict.fromkeys(job for members in crossing.values() for job in members))
        return JobGroup(names, Verdict.SHIFT if names == ("a", "b") else Verdict.SHARE, "")

    monkeypatch.setattr(advice, "advise_group", judge)
    job = exactly((190, 0), (10, 5))
    return [replace(job, job=name) for name in "abcd"]


def test_a_placement_repeats_the_advice_on_its_pairs(judged):
    """Advise on each link: a mean over both links hid that the jobs of one should be shifted."""
    found = advice.advise(judged, 50.0, [Candidate("two", {"L1": ("a", "b"), "L2": ("c", "d")})])
    (placement,) = found.placements
    assert [(met.jobs, met.verdict) for met in placement.job_groups] == [
        (("a", "b"), Verdict.SHIFT),
        (("c", "d"), Verdict.SHARE),
    ]
    assert {*placement.job_groups} <= {*found.pairs}
    assert "a b: share, shifted" in render_page(found, "here")


def test_groups_that_are_not_computed_say_so(judged):
    ways = [Candidate(f"all {each}", {"L1": tuple(each)}) for each in ("abc", "abd", "acd", "bcd")]
    found = record(advice.advise(judged, 50.0, ways))["placements"]
    assert [met["advice"] for each in found for met in each["meetings"]] == [*["share as they are"] * 3, "no advice"]
    assert "computed for the best 3 placements only" in found[3]["meetings"][0]["why"]


@pytest.mark.parametrize(
    ("jobs", "links", "parts"),
    [
        ({"L1": ("a", "b"), "L2": ("c", "d")}, 2, [{"L1"}, {"L2"}]),
        ({"L1": ("a", "b"), "L2": ("b", "c")}, 2, [{"L1", "L2"}]),
        ({"L1": ("a", "b"), "L2": ("c", "d"), "L3": ("b", "c")}, 3, [{"L1", "L2", "L3"}]),
        ({}, 0, []),
    ],
)
def test_links_without_a_common_job_are_apart(jobs, links, parts):
    found = split_by_jobs(jobs)
    assert [set(part) for part in found] == parts
    assert sum(map(len, found)) == links


def test_the_exit_status_is_1_if_no_job_gets_advice(tmp_path, capsys):
    flat = answer(*(series(host) | {"values": [[BEGIN_S + at, "5"] for at in range(90)]} for host in HOSTS))
    (tmp_path / "a.json").write_text(json.dumps(flat | {"warnings": ["a store did not answer"]}))
    (tmp_path / "jobs.yaml").write_text("j1: [n1, n2]\nj2: [n3, n4]\n")
    words = ["advise", str(tmp_path / "a.json"), "--jobs", str(tmp_path / "jobs.yaml"), "--capacity", "50"]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert "no job gets advice" in err
    assert out.index("a store did not answer") < out.index("no advice:")
    assert main([*words, "--json"]) == 1
    assert "warnings of the server: a store did not answer" in json.loads(capsys.readouterr().out)["notes"]
