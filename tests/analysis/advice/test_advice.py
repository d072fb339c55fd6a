# SPDX-License-Identifier: Apache-2.0
"""`roundabout advise`: what it reads, what it says, and what it has no advice for."""

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from analysis.advice import advice_tables, observed_jobs, senders, sources
from analysis.advice.advice import Verdict, advise, advise_group, partitions
from analysis.advice.counters import HostCounter
from analysis.advice.errors import AdviceError
from analysis.advice.observed_jobs import ObservedJob, observe_counters, observe_run
from analysis.statistics import phases
from analysis.statistics.iteration_period import NoPeriodError
from roundabout.cli.main import main
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.spec import SpecError
from roundabout.store import Run
from tests.analysis.advice import random_jobs
from tests.analysis.advice.long_tables import exactly, long_table
from tests.analysis.advice.scheduled_counters import Schedule
from tests.fluid.oracle.model import Simulation

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]

GBPS = random_jobs.CAPACITY_GBPS
VGG = random_jobs.Played(((110.0, None), random_jobs.send(45.0, 90.0)), 0.004)
TWINS = {"j1": VGG, "j2": VGG}


@pytest.fixture(scope="module")
def twins():
    return random_jobs.counters(TWINS)


def together(*jobs):
    named = [replace(job, job=f"j{place}") for place, job in enumerate(jobs, 1)]
    return advise_group(named, {"link": [job.job for job in named]}, GBPS)


def answer(found):
    """What a Prometheus server says."""
    series = [
        {
            "metric": {"instance": f"{host}:9100", "device": "eth0"},
            "values": [[at / 1e9, str(int(sent))] for at, sent in zip(each.at_ns, each.bytes, strict=True)],
        }
        for host, each in found.items()
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


@pytest.fixture
def jobs_file(tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text("j1: [j1a, j1b]\nj2: [j2a, j2b]\n")
    return path


# What is read


def test_csv_parquet_and_a_prometheus_server_say_the_same(twins, tmp_path):
    pyarrow.csv.write_csv(long_table(twins), tmp_path / "a.csv")
    pq.write_table(long_table(twins).rename_columns(["controller_ns", "host", "tx_bytes"]), tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text(answer(twins))
    for name in ("a.csv", "a.parquet", "a.json"):
        found = sources.read(str(tmp_path / name)).hosts
        assert list(found) == list(twins)
        for host, counter in twins.items():
            assert found[host].bytes.tolist() == counter.bytes.tolist()
            assert np.abs(found[host].at_ns - counter.at_ns).max() <= 1000


def test_samples_are_read_from_a_prometheus_server(twins):
    class Server(BaseHTTPRequestHandler):
        def do_GET(self):
            good = self.path == "/api/v1/query?query=sent%7Bto=%22eth%200%22%7D%5B5m%5D"
            said = answer(twins) if good else json.dumps({"status": "error", "error": "parse error"})
            self.send_response(200 if good else 400)
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/api/v1/query?query="
        assert list(sources.read(f'{url}sent{{to="eth 0"}}[5m]').hosts) == list(twins)
        with pytest.raises(SpecError, match="status: found error 'parse error', expected samples"):
            sources.read(f"{url}sent[")
        server.shutdown()
    for gone in (url, "http://[::1", "http://127.0.0.1:port/"):
        with pytest.raises(AdviceError, match="no answer"):
            sources.read(gone)


def test_which_hosts_send_is_read_from_yaml_and_from_slurm(tmp_path):
    (tmp_path / "a.yaml").write_text("j1: [s0, s2]\nj2: 'gpu[08-10,2],x'\n")
    assert senders.read_senders(tmp_path / "a.yaml").senders == {
        "j1": ("s0", "s2"),
        "j2": ("gpu08", "gpu09", "gpu10", "gpu2", "x"),
    }
    jobs = [
        {"job_id": 7, "name": "bert", "job_state": ["RUNNING"], "nodes": "r[1-2]n[01,03]"},
        {"job_id": 8, "name": "bert", "job_state": "RUNNING", "nodes": "s1"},
        {"job_id": 9, "name": "vgg", "job_state": ["PENDING"], "nodes": ""},
    ]
    (tmp_path / "a.json").write_text(json.dumps({"jobs": jobs}))
    found = senders.read_senders(tmp_path / "a.json").senders
    assert found == {"bert-7": ("r1n01", "r1n03", "r2n01", "r2n03"), "bert-8": ("s1",)}


# Counters as they are


def advised(found, sending=None):
    """The jobs by name."""
    return {each.job: each for each in observe_counters(found, sending or random_jobs.senders(TWINS), GBPS)}


@pytest.mark.parametrize("spoil", ["wraps", "resets", "gap", "nan"])
def test_wraps_resets_and_gaps_change_nothing_much(twins, spoil):
    counter = twins["j1a"]
    at_ns, sent = counter.at_ns, counter.bytes.copy()
    middle = len(sent) // 2
    if spoil == "wraps":
        sent = (sent + 2**31) % 2**32
        assert (np.diff(sent) < 0).sum() > 5
    elif spoil == "resets":
        sent[middle:] -= sent[middle]
    elif spoil == "nan":
        sent[middle : middle + 30] = np.nan
    else:
        at_ns, sent = (np.delete(each, slice(middle, middle + 100)) for each in (at_ns, sent))
    found = advised({**twins, "j1a": HostCounter(at_ns, sent)})["j1"]
    assert found.found is not None, found.reason
    assert found.found.period_ms.value == pytest.approx(VGG.alone_ms, rel=0.01)
    assert [phase.sends for phase in found.found.phases] == [False, True]
    assert found.found.phases[1].gbps.value == pytest.approx(45, rel=0.03)


def test_counters_that_are_mostly_gaps_are_no_ground_for_advice(twins):
    counter = twins["j1a"]
    kept = np.flatnonzero(np.arange(len(counter.at_ns)) % 300 < 150)
    found = advised({**twins, "j1a": HostCounter(counter.at_ns[kept], counter.bytes[kept])})["j1"]
    assert (
        found.reason.startswith("host j1a: found ")
        and "gaps, resets and rises above 200 Gbit/s, expected 25 %" in found.reason
    )


def test_packets_headers_are_no_payload(twins):
    counter = twins["j1a"]
    packets = np.floor(counter.bytes / 4000)
    counted = HostCounter(counter.at_ns, counter.bytes + 66 * packets, packets)
    off = counted.to_sent_bytes(GBPS).payload_bytes - (counter.bytes - counter.bytes[0])
    assert np.abs(off).max() < 100


def test_a_host_without_a_counter_is_named(twins):
    found = advised(twins, {"j1": ("j1a", "s9"), "j2": ("j2a", "j2b")})
    assert found["j1"].reason == "found no counter of host s9, expected one of j1a, j1b, j2a, j2b"
    assert found["j2"].found


def test_jobs_of_one_host_cannot_be_distinguished(twins):
    found = advised(twins, {"j1": ("j1a", "j1b"), "j2": ("j1b", "j2b")})
    assert found["j1"].reason == "cannot be separated from j2: host j1b sends for both"
    assert found["j2"].reason == "cannot be separated from j1: host j1b sends for both"


def test_jobs_that_fill_a_link_together_cannot_be_distinguished():
    """Both require 45 of 50 Gbit/s, at the same time, on one link."""
    generator = np.random.default_rng(0)
    playing = [VGG.job([("link", "")], generator) for _ in range(2)]
    course = Simulation(
        [replace(job, departs_ms=12_000.0) for job in playing],
        ResidualCapacity.constant({("link", ""): GBPS * 125_000}),
    )
    at_ms, gained = [0.0], [np.zeros(2)]
    for interval in course:
        at_ms.append(interval.end_ms)
        gained.append(np.zeros(2))
        for rate in interval.rates:
            gained[-1][rate.job] += rate.bytes_per_ms * (interval.end_ms - interval.begin_ms)
    when = np.arange(0.0, 12_000.0, 10.0)
    sent = np.cumsum(gained, axis=0)
    hosts = {
        f"j{place + 1}a": HostCounter((when * 1e6).astype(np.int64), np.interp(when, at_ms, sent[:, place]))
        for place in (0, 1)
    }
    found = advised(hosts, {"j1": ("j1a",), "j2": ("j2a",)})
    assert found["j1"].reason == "cannot be separated from j2: they fill a link together"
    assert found["j2"].reason == "cannot be separated from j1: they fill a link together"


def test_a_job_that_ended_is_named(twins):
    ended = {}
    for host in ("j2a", "j2b"):
        stop = len(twins[host].bytes) // 2
        ended[host] = HostCounter(twins[host].at_ns, np.minimum(twins[host].bytes, twins[host].bytes[stop]))
    found = advised({**twins, **ended})
    assert found["j1"].found
    assert found["j2"].reason.startswith("it has ended: nothing was sent in the last 6")


def test_an_unstable_period_is_named(twins):
    """In the second half everything takes 5 % longer."""
    slower = {}
    for host in ("j1a", "j1b"):
        at_ns = twins[host].at_ns
        middle = at_ns[len(at_ns) // 2]
        slower[host] = HostCounter(
            np.where(at_ns > middle, middle + (at_ns - middle) * 105 // 100, at_ns), twins[host].bytes
        )
    reason = advised({**twins, **slower})["j1"].reason
    assert reason.startswith("its period is unstable: 200.") and reason.endswith(" ms")


def test_a_job_without_a_period_is_named(twins):
    counter = twins["j1a"]
    even = HostCounter(counter.at_ns, np.floor(counter.at_ns / 10))
    assert "bytes were sent evenly" in advised({**twins, "j1a": even, "j1b": even})["j1"].reason


# What is advised


def test_two_equal_jobs_are_shifted_half_an_iteration():
    met = together(exactly((110, 0), (90, 45)), exactly((110, 0), (90, 45)))
    assert (met.verdict, met.score) == (Verdict.SHIFT, 1.0)
    schedule = met.outlook.schedule
    assert schedule["j1"].shift_ms == 0
    assert 90 <= schedule["j2"].shift_ms <= 111
    assert schedule["j1"].period_ms == schedule["j2"].period_ms == pytest.approx(200.5)
    assert 1.3 < met.outlook.gain_mean.value < 1.4
    assert all(cost.value < 1.02 for cost in met.outlook.cost_shifted.values())


def test_jobs_that_cannot_interleave_are_advised_apart():
    met = together(exactly((40, 0), (160, 45)), exactly((40, 0), (160, 45)))
    assert met.verdict is Verdict.APART
    assert "% longer than alone" in met.why
    assert advise([exactly((40, 0), (160, 45)), exactly((40, 0), (160, 45), job="j2")], GBPS, []).groups_to_separate


def test_jobs_with_spare_room_may_share_unshifted():
    met = together(exactly((110, 0), (90, 20)), exactly((110, 0), (90, 20)))
    assert (met.verdict, met.why) == (Verdict.SHARE, "a shift would gain too little")


def test_a_demand_above_the_links_capacity_lowers_the_score():
    met = together(exactly((110, 0), (90, 60)), exactly((170, 0), (30, 10)))
    assert met.score < 1
    assert "j1 requires 60.0 Gbit/s, more than the link has" in met.why
    assert met.outlook.cost["j1"].value < 1.1


def test_iteration_times_without_a_common_multiple_get_no_shift():
    met = together(exactly((110, 0), (90, 45)), exactly((4000, 0), (3317, 45)))
    assert met.verdict is not Verdict.SHIFT
    assert (met.score, met.outlook.schedule) == (None, None)
    assert "found no common multiple of the iteration times" in met.why and "no shift would last" in met.why


def test_a_phase_without_length_is_none():
    plain = together(exactly((110, 0), (90, 45)), exactly((110, 0), (90, 45)))
    with_one = together(exactly((110, 0), (0, 45), (90, 45)), exactly((110, 0), (90, 45), (0, 0)))
    assert (with_one.verdict, with_one.score) == (plain.verdict, plain.score)


def test_an_unknown_job_gets_no_advice():
    jobs = [exactly((110, 0), (90, 45)), ObservedJob("j2", reason="found no period")]
    found = advise(jobs, GBPS, partitions(jobs, 2))
    assert [(each.verdict, each.why) for each in found.pairs] == [(Verdict.NONE, "j2: found no period")]
    assert found.placements == ()


def test_the_page_draws_the_cost_of_sharing_and_the_shifts():
    jobs = [exactly((110, 0), (90, 45)), exactly((110, 0), (90, 45), job="j2")]
    found = advise(jobs, GBPS, partitions(jobs, 2))
    (pair,) = found.pairs
    html = advice_tables.render_page(found, "here")
    for job in pair.jobs:
        for words, figures in (("as they are", pair.outlook.cost), ("shifted", pair.outlook.cost_shifted)):
            assert f"<title>{words}: {figures[job].value:.2f}</title>" in html
    assert html.count('alt="Sending of j1 and j2, before and after their time-shifts"') == 1


def test_jobs_that_should_stay_apart_have_no_figure_of_shifts():
    jobs = [exactly((40, 0), (160, 45)), exactly((40, 0), (160, 45), job="j2")]
    html = advice_tables.render_page(advise(jobs, GBPS, partitions(jobs, 2)), "here")
    assert "j1 and j2: keep apart" in html
    assert "<figure>" not in html
    assert "<title>shifted" not in html


def test_a_job_alone_meets_nobody():
    jobs = [exactly((110, 0), (90, 45))]
    found = advise(jobs, GBPS, partitions(jobs, 2))
    assert (found.pairs, found.placements, found.groups_to_separate) == ((), (), ())
    assert "there is only one job" in advice_tables.render_page(found, "here")


def test_placements_are_ranked_and_what_is_left_out_says_why():
    heavy, twin = exactly((40, 0), (160, 45)), exactly((110, 0), (90, 45))
    jobs = [replace(job, job=name) for name, job in (("a", heavy), ("b", twin), ("c", twin))]
    found = advise(jobs, GBPS, partitions(jobs, 2)).placements
    assert found[0].name == "a | b c"
    assert found[0].job_groups[0].verdict is Verdict.SHIFT
    assert found[0].score > found[1].score >= found[-1].score


# The command


def test_the_command_shows_advice_and_writes_a_page(twins, tmp_path, jobs_file, capsys):
    pyarrow.csv.write_csv(long_table(twins), tmp_path / "a.csv")
    words = ["advise", str(tmp_path / "a.csv"), "--jobs", str(jobs_file), "--capacity", "50"]
    assert main([*words, "--page", str(tmp_path / "a.html")]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert "share, shifted: j1 +0.0 ms" in " ".join(out.split())
    page = (tmp_path / "a.html").read_text()
    assert "share, shifted" in page and "<!doctype html>" in page
    assert "<h1>Which jobs should share a link</h1>" in page and "Jitter: standard deviation" in page
    assert '<span class="verdict pass long">share, shifted' in page  # which may take several lines
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["advice"] for each in found["pairs"]] == ["share, shifted"]
    assert found["pairs"][0]["expected"]["gain_mean"]["low"] > 1.1
    assert [each["name"] for each in found["placements"]] == ["j1 | j2", "j1 j2"]


def test_placements_come_from_a_file(twins, tmp_path, jobs_file, capsys):
    pyarrow.csv.write_csv(long_table(twins), tmp_path / "a.csv")
    (tmp_path / "p.yaml").write_text("one: {L1: [j1, j2]}\ntwice: {L1: [j1, j2], L2: [j2, j1]}\n")
    words = ["advise", str(tmp_path / "a.csv"), "--jobs", str(jobs_file), "--capacity", "50", "--json"]
    assert main([*words, "--placements", str(tmp_path / "p.yaml")]) == 0
    one, twice = json.loads(capsys.readouterr().out)["placements"]
    assert one["meetings"][0]["advice"] == "share, shifted"
    assert (twice["score"], twice["meetings"]) == (one["score"], one["meetings"])  # two links of the same jobs: no loop
    (tmp_path / "p.yaml").write_text("one: {L1: [j1, j3]}\n")
    assert main([*words, "--placements", str(tmp_path / "p.yaml")]) == 2
    assert "p.yaml:1: one.L1[1]: found job 'j3', expected one of j1, j2" in capsys.readouterr().err


def test_a_run_is_its_own_source(make_run, capsys):
    run = make_run(repetitions=1)
    before = sorted(path for path in run.path.rglob("*"))
    assert main(["advise", str(run.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["job"] for each in found["jobs"]] == ["j1", "j2"]
    assert found["capacity_gbps"] == pytest.approx(43, abs=6)
    assert found["pairs"][0]["advice"] == "share, shifted"
    assert sorted(path for path in run.path.rglob("*")) == before


def test_jobs_of_one_name_with_unlike_profiles_are_not_mixed_up(make_run, monkeypatch):
    run = make_run(repetitions=1)
    records = run.trials()
    records[0]["spec"]["jobs"]["j1"]["profile"]["phases"][0]["compute_ms"] += 10
    monkeypatch.setattr(Run, "trials", lambda _: records)
    j1, j2 = observe_run(run)[0]
    assert (j1.reason, j2.reason) == ("found 2 jobs of this name with unlike profiles, expected one", "")


def test_notes_on_clocks_are_kept_where_there_is_no_advice(monkeypatch):
    def refuse(_):
        raise NoPeriodError("found one rate only")

    counters = [Schedule().counter(lasts_s=15, clock_offset_ms=ahead_ms) for ahead_ms in (0.0, 300.0)]
    sent = [counter.to_sent_bytes(50.0) for counter in counters]
    monkeypatch.setattr(observed_jobs, "find_phases_in", refuse)
    found = observed_jobs.observe_job("j1", sent, hosts=("n1", "n2"))
    assert found.reason == "found one rate only"
    assert found.notes[0].startswith("j1: n2 sends 300 ms after n1")


def test_two_samples_at_one_instant_have_no_rate(monkeypatch):
    monkeypatch.setattr(phases, "RESAMPLINGS", 5)
    sent = Schedule().counter(lasts_s=15).to_sent_bytes(50.0)
    counts = np.where(np.arange(len(sent.at_ns)) == 500, 2, 1)
    twice = replace(sent, at_ns=np.repeat(sent.at_ns, counts), payload_bytes=np.repeat(sent.payload_bytes, counts))
    with np.errstate(invalid="raise", divide="raise"):
        assert observed_jobs.observe_job("j1", [twice]).found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("advise none", "no run 'none'"),
        ("advise none.csv --capacity 50", "found no --jobs, expected it"),
        ("advise none.csv --jobs JOBS", "found no --capacity, expected it"),
        ("advise none.csv --jobs JOBS --capacity 50", "none.csv: cannot be read"),
        ("advise none.csv --jobs none.yaml --capacity 50", "none.yaml: found no such file or directory"),
        ("advise none.csv --jobs JOBS --capacity 0", "--capacity: found 0 Gbit/s"),
        ("advise none.csv --jobs JOBS --capacity 50 --page no/a.html", "--page: found no folder 'no'"),
    ],
)
def test_bad_usage_of_advise_is_refused_without_a_traceback(words, said, jobs_file, tmp_path, capsys):
    assert main([*words.replace("JOBS", str(jobs_file)).split(), "--runs", str(tmp_path)]) != 0
    complaint = capsys.readouterr().err
    assert said in complaint and "Traceback" not in complaint
