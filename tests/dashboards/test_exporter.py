# SPDX-License-Identifier: Apache-2.0
"""What the exporter says: Prometheus' format, its names, and what rules and dashboards query."""

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from roundabout.core.errors import RoundaboutError
from roundabout.dashboards.exporters import Exporter
from roundabout.dashboards.prometheus import DASHBOARDS, RULES, dashboards
from roundabout.dashboards.run import progress_series
from roundabout.runner.exporter_targets import LinkDirection
from roundabout.runner.observer import CrossTrafficUse
from roundabout.runner.progress_events import JobProgress, Progress, TrialProgress
from tests.dashboards.record import LINES, fake_host, importable

importable()
import exporter_metrics  # noqa: E402 - found only now

pytestmark = pytest.mark.unit

FACTS = {
    "labels": {"host": "s0", "site": "lab"},
    "interfaces": {"eth0": {"link": "A0", "out": "s0 to sw0", "in": "sw0 to s0"}},
    "senders": {"10.77.0.1": "s1"},
}
SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\} (-?[0-9.e+-]+)')
NOW = Progress(
    experiment="unfair",
    run="r1",
    trials=4,
    done=1,
    trial=TrialProgress("k", "fair", {"variant": "fair"}, 2, None, 1),
    jobs={"j1": JobProgress(iterations=50, done=3, last_ms=300.0, mean_ms=310.0)},
    cross_traffic={"web": CrossTrafficUse(asked_gbps=8.0, sent_gbps=4.0)},
)
CAPACITY = ["roundabout_link_capacity_bytes_per_second", {"link": "A0", "direction": "s0 to sw0"}, 62_500_000.0]
SERIES = [
    *progress_series(NOW),
    CAPACITY,
    ["roundabout_testbed_scale", {}, 100.0],
    ["roundabout_testbed_dilation", {}, 1.0],
    ["roundabout_settings_drifted", {}, 0],
]
# What others say: Prometheus itself, DCGM, node_exporter.
OTHERS = {"up", "scrape_duration_seconds", "DCGM_FI_DEV_GPU_UTIL", "node_load1"}


@pytest.fixture(scope="module")
def said() -> str:
    record = exporter_metrics.Record()
    for line in LINES.splitlines():
        record.take(line)
    return str(exporter_metrics.text(record, FACTS, SERIES, 1.5))


def samples(text: str) -> dict[str, list[tuple[str, float]]]:
    """Metric -> labels as they are written, and values. Fails where a line is not of the format."""
    found: dict[str, list[tuple[str, float]]] = {}
    typed: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in typed, f"{name} comes twice"
            typed[name] = kind
        elif not line.startswith("# "):
            whole = SAMPLE.fullmatch(line)
            assert whole, line
            assert whole[1] in typed, f"{whole[1]} has no type"
            found.setdefault(whole[1], []).append((whole[2], float(whole[3])))
    for name, kind in typed.items():
        assert name.endswith("_total") == (kind == "counter"), name
    return found


def test_the_text_is_prometheus_format_and_no_series_comes_twice(said: str) -> None:
    for name, series in samples(said).items():
        labels = [each for each, _ in series]
        assert len(labels) == len(set(labels)), name
        assert name.startswith("roundabout_")


@pytest.mark.proof
def test_rules_alarm_when_they_should(tmp_path: Path) -> None:
    for path in (RULES, Path(__file__).with_name("rules_test.yml")):
        shutil.copy(path, tmp_path)
    done = subprocess.run(["promtool", "test", "rules", "rules_test.yml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.proof
def test_promtool_accepts_it(said: str) -> None:
    done = subprocess.run(["promtool", "check", "metrics"], input=said, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line"),
    [
        'roundabout_interface_bytes_total{direction="s0 to sw0",host="s0",interface="eth0",link="A0",site="lab"} 1000',
        'roundabout_interface_bytes_total{direction="sw0 to s0",host="s0",interface="eth0",link="A0",site="lab"} 2000',
        'roundabout_interface_up{host="s0",interface="eth1",link="",site="lab"} 0',
        'roundabout_queue_backlog_bytes{direction="s0 to sw0",host="s0",interface="eth0",link="A0",site="lab"} 300',
        'roundabout_ecn_marked_packets_by_sender_total{direction="s0 to sw0",host="s0",interface="eth0",link="A0",'
        'sender="s1",site="lab"} 5',
        'roundabout_transport_cnps_total{host="s0",site="lab",transport="dcqcn"} 11',
        'roundabout_transport_rate_bytes_per_second{host="s0",site="lab",transport="dcqcn"} 12',
        'roundabout_transport_alpha_ratio{host="s0",site="lab",transport="dcqcn"} 0.5',
        'roundabout_transport_active_seconds_total{host="s0",site="lab",transport="dcqcn"} 13.0',
        'roundabout_transport_cwnd{host="s0",site="lab",transport="dctcp"} 15',
        'roundabout_rdma_np_cnp_sent_total{device="mlx5_0/1",host="s0",site="lab"} 21',
        'roundabout_rdma_port_xmit_data_bytes_total{device="mlx5_0/1",host="s0",site="lab"} 31',
        'roundabout_nic_bytes_total{direction="sw0 to s0",host="s0",interface="eth0",link="A0",priority="3",'
        'site="lab"} 41',
        'roundabout_nic_pause_total{direction="s0 to sw0",host="s0",interface="eth0",link="A0",priority="3",'
        'site="lab"} 42',
        'roundabout_nic_pause_duration_seconds_total{direction="sw0 to s0",host="s0",interface="eth0",link="A0",'
        'priority="3",site="lab"} 43.0',
        'roundabout_nic_phy_bytes_total{direction="sw0 to s0",host="s0",interface="eth0",link="A0",site="lab"} 44',
        'roundabout_nic_outbound_pci_stalled_rd_ratio{direction="",host="s0",interface="eth0",link="A0",site="lab"} '
        "0.45",
        'roundabout_run_info{experiment="unfair",host="s0",repetition="2",run="r1",site="lab",trial="k",'
        'variant="fair"} 1',
        'roundabout_job_last_iteration_seconds{host="s0",job="j1",site="lab"} 0.3',
        'roundabout_cross_traffic_sent_bytes_per_second{host="s0",site="lab",traffic="web"} 500000000.0',
    ],
)
def test_counters_come_in_base_units_with_their_link_way_and_priority(said: str, line: str) -> None:
    assert line in said.splitlines()


def test_unknown_values_are_not_exported(said: str) -> None:
    assert not [labels for labels, _ in samples(said)["roundabout_interface_bytes_total"] if "eth1" in labels]
    assert "lifespan" not in said


def test_every_metric_of_the_table_is_said_and_no_other_can_be(said: str) -> None:
    assert exporter_metrics.METRICS.keys() <= samples(said).keys()
    with pytest.raises(KeyError, match="roundabout_made_up"):
        exporter_metrics.text(exporter_metrics.Record(), FACTS, [["roundabout_made_up", {}, 1]], 0.0)


def test_labels_are_escaped() -> None:
    facts = {"labels": {"host": 'a"b\\c\nd'}}
    text = exporter_metrics.text(exporter_metrics.Record(), facts, [], 0.0)
    assert 'host="a\\"b\\\\c\\nd"' in text


def test_rules_and_dashboards_query_only_what_is_exported(said: str) -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    queries = [rule["expr"] for rule in rules]
    queries += [query for panels in dashboards().values() for _, query in panels]
    queried = {name for query in queries for name in metrics_of(query)}
    assert len(queries) > 30
    assert queried - samples(said).keys() - recorded - OTHERS == set()
    assert recorded <= queried, "a rule that no panel reads"


def metrics_of(query: str) -> set[str]:
    """The metrics that a query names: words that are no function, operator or label."""
    bare = re.sub(r'\{[^}]*\}|\[[^\]]*\]|"[^"]*"|\b(by|on|group_left)\s*\([^)]*\)', " ", query)
    words = set(re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\w*\s*\()", bare))
    return {word for word in words if "_" in word or ":" in word or word == "up"}


def test_metrics_of_a_query_are_found() -> None:
    query = 'sum by (site, a_b) (rate(x_total{c_d="e_f"}[20s])) / on (g_h) y:z and up == 0'
    assert metrics_of(query) == {"x_total", "y:z", "up"}


def test_dashboards_can_be_imported() -> None:
    paths = sorted(DASHBOARDS.glob("*.json"))
    found = [json.loads(path.read_text()) for path in paths]
    assert [path.stem for path in paths] == ["hosts", "links", "rack_nics", "run"]
    assert len({each["uid"] for each in found}) == len(found)
    for dashboard in found:
        (source,) = dashboard["__inputs"]
        ids = [panel["id"] for panel in dashboard["panels"]]
        assert len(ids) == len(set(ids))
        for panel in dashboard["panels"]:
            assert panel["datasource"]["uid"] == f"${{{source['name']}}}"
            assert panel["targets"] and all(target["expr"] for target in panel["targets"])


@contextmanager
def others_exporter() -> Iterator[int]:
    """Another exporter on loopback: its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"node_load1 0.5\n")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_an_exporter_answers_until_its_stdin_closes(tmp_path: Path) -> None:
    with others_exporter() as port:
        ways = {"eth0": LinkDirection("A0", "s0", "sw0")}
        exporter = Exporter(fake_host(tmp_path, "s0", directions=ways, beside={"node": port, "dcgm": 1}))
        own = exporter.query('own [["roundabout_run_trials", {}, 4]]').decode()
        assert exporter.beside == ["node"]
        assert exporter.query("node") == b"node_load1 0.5\n# EOF\n"
    exporter.close()
    assert own.endswith("# EOF\n")
    found = samples(own.removesuffix("# EOF\n"))
    assert found["roundabout_run_trials"] == [('host="s0",site="fake"', 4)]
    assert ('direction="s0 to sw0",host="s0",interface="eth0",link="A0",site="fake"', 1000) in found[
        "roundabout_interface_bytes_total"
    ]
    with pytest.raises(RoundaboutError):
        exporter.query("own")


def test_an_exporter_whose_sampler_ended_says_nothing_old(tmp_path: Path) -> None:
    host = fake_host(tmp_path, "s0")
    short = Exporter(type(host)(host.site, host.node, (*host.argv[:-3], "true"), host.facts, host.connect))
    assert "roundabout_interface" not in short.query("own").decode()
    short.close()


def test_an_exporter_ends_with_its_program(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as lab:
        exporter = Exporter(fake_host(tmp_path, "s0", ends_with=lab.pid))
        assert b"roundabout_interface_up" in exporter.query("own")
        lab.kill()
    give_up = time.monotonic() + 10

    def query_until_it_fails() -> None:
        while time.monotonic() < give_up:
            exporter.query("own")

    with pytest.raises(RoundaboutError, match="exporter ended: exit status 0"):
        query_until_it_fails()
    exporter.close()


def test_a_sampler_starts_anew_when_transports_came(tmp_path: Path) -> None:
    transports = tmp_path / "transports"
    exporter = Exporter(fake_host(tmp_path, "s0", transports=str(transports)))
    assert "roundabout_transport_cnps_total" in exporter.query("own").decode()
    (tmp_path / "s0.csv").write_text(LINES.replace("cnps", "cuts"))
    assert "roundabout_transport_cnps_total" in exporter.query("own").decode()
    (transports / "dcqcn").mkdir(parents=True)
    assert "roundabout_transport_cuts_total" in exporter.query("own").decode()
    exporter.close()
