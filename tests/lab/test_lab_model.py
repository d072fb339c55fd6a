# SPDX-License-Identifier: Apache-2.0
"""What of the lab needs neither root nor namespaces."""

import errno
import os
import re
import threading
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
import yaml
from pyroute2 import NetlinkError

from roundabout.spec import SpecError, Topology, Transport, load_experiment, load_topology
from roundabout.spec.delays import Delays
from roundabout.spec.tcp import Tcp
from roundabout.spec.transports import registry
from roundabout.testbeds.lab import Lab, LabError
from roundabout.testbeds.lab.calibration.calibration import DEFAULT, Ecn, load_calibration
from roundabout.testbeds.lab.checks import host_requirements, kernel_features
from roundabout.testbeds.lab.ecn import marking
from roundabout.testbeds.lab.lifecycle import trial_settings
from roundabout.testbeds.lab.lifecycle.lab_record import LabRecord
from roundabout.testbeds.lab.lifecycle.locks import lock_folder
from roundabout.testbeds.lab.network import kernel_refusal, link_measurement, paths, port_queues
from roundabout.testbeds.lab.network.feedback import ROUND_TRIP_US, held_us
from roundabout.testbeds.lab.network.layout import lay_out
from roundabout.testbeds.lab.provider import LabProvider

pytestmark = pytest.mark.unit


def star_of_stars(leaves: int, hosts: int) -> Topology:
    switches = ["spine", *(f"leaf{leaf}" for leaf in range(leaves))]
    names = [f"h{number}" for number in range(leaves * hosts)]
    links = [{"name": f"up{leaf}", "ends": [f"leaf{leaf}", "spine"]} for leaf in range(leaves)]
    links += [{"name": name, "ends": [name, f"leaf{number // hosts}"]} for number, name in enumerate(names)]
    rates = {"line_rate_gbps": 50.0, "payload_rate_gbps": 43.0}
    return Topology.model_validate(
        {
            "name": "star",
            "about": "a test",
            "queue": "lossy",
            "hosts": names,
            "switches": switches,
            "links": links,
            **rates,
        }
    )


def test_addresses_and_ports_are_unique(topology):
    layout = lay_out(topology)
    assert [host.address for host in layout.hosts.values()] == ["10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4"]
    assert len({port.ifindex for port in layout.ports}) == len(layout.ports) == 6
    macs = [end.mac for cable in layout.cables for end in cable.ends]
    assert len(set(macs)) == len(macs) == 10


def test_more_than_255_hosts_have_addresses():
    layout = lay_out(star_of_stars(10, 30))
    assert layout.hosts["h299"].address == "10.77.1.44"


def test_a_path_leaves_by_the_right_ports(topology):
    layout = lay_out(topology)
    path = layout.paths[layout.nics["s0"][0], layout.nics["s2"][0]]
    assert [(port.switch, port.towards) for port in path] == [("tor0", "tor1"), ("tor1", "s2")]


def test_captures_listen_before_the_queue_of_a_nic(topology):
    taps = {host.name: host.tap for host in lay_out(load_topology("configuration-b")).hosts.values()}
    assert taps == {"s0": None, "s1": None, "s2": "tap0", "s3": None}
    assert {host.tap for host in lay_out(topology).hosts.values()} == {None}


def test_hosts_behind_a_port(topology):
    layout = lay_out(topology)
    trunk = next(port for port in layout.ports if port.towards == "tor1")
    assert layout.hosts_behind[trunk.ifindex] == {"s2", "s3"}


def test_queues_drain_at_the_payload_rate_with_headers(topology):
    calibration = load_calibration()
    queue = next(iter(port_queues.port_queues(lay_out(topology), calibration, 50).values()))
    assert queue.drain_bytes_per_s == pytest.approx(43e9 / 8 / 50 * 1514 / 1448, rel=1e-6)
    assert queue.limit_bytes == calibration.queue_bytes.lossless
    lossy = next(iter(port_queues.port_queues(lay_out(star_of_stars(2, 2)), calibration, 50).values()))
    assert lossy.limit_bytes == calibration.queue_bytes.lossy
    short = lay_out(load_topology("configuration-b-drops-2500kb"))
    assert {queue.limit_bytes for queue in port_queues.port_queues(short, calibration, 50).values()} == {50_000}
    assert {queue.limit_bytes for queue in port_queues.port_queues(short, calibration, 50, 5).values()} == {250_000}
    (nic,) = port_queues.nic_queues(short, calibration, 50).values()
    assert nic.limit_bytes == calibration.queue_bytes.lossless  # what waits in a sender's own NIC is not lost


def test_packets_are_as_long_as_the_real_ones_where_each_of_those_is_sent():
    jumbo, calibration = load_topology("configuration-b-jumbo"), load_calibration()
    assert [port_queues.mtu_bytes(jumbo, scale) for scale in (100, 100 / 17.4, 2, 1)] == [1500, 1566, 4500, 9000]
    assert port_queues.mtu_bytes(load_topology("configuration-b"), 1) == 1500
    layout = lay_out(jumbo)
    for dilation, headers in ((1, 1514 / 1448), (100, 9014 / 8948)):
        drains = {
            *(
                queue.drain_bytes_per_s
                for queue in port_queues.port_queues(layout, calibration, 100, dilation).values()
            ),
            *(queue.drain_bytes_per_s for queue in port_queues.nic_queues(layout, calibration, 100, dilation).values()),
        }
        assert drains == {round(24.75e9 / 8 / 100 * headers)}


def test_a_trunk_is_probed_by_more_than_its_access_links_carry():
    layout = lay_out(star_of_stars(3, 4))
    trunk = next(port for port in layout.ports if (port.switch, port.towards) == ("leaf0", "spine"))
    probe = link_measurement.plan_probe(layout, trunk)
    assert probe is not None
    assert len(probe.flows) == 2
    assert len({nic.node for flow in probe.flows for nic in flow}) == 4


def test_probes_side_by_side_share_no_port_and_spare_the_cpu():
    layout = lay_out(star_of_stars(3, 4))
    probes = [probe for port in layout.ports if (probe := link_measurement.plan_probe(layout, port))]
    groups = list(link_measurement.group_probes(probes, 50))
    assert sorted(probe.port.ifindex for group in groups for probe in group) == [port.ifindex for port in layout.ports]
    for group in groups:
        assert sum(probe.port.payload_rate_gbps for probe in group) * 1e9 / 50 <= link_measurement.CPU_CARRIES_BPS
        assert all(one is other or one.is_independent_of(other) for one in group for other in group)
    assert len(groups) < len(probes) / 2


class Busy:
    """Links on a machine that is busy for `busy_s`: each measurement is off until then. Its clock is its own."""

    def __init__(self, patch: pytest.MonkeyPatch, busy_s: float) -> None:
        self.now, self.busy_s, self.looks = 0.0, busy_s, 0
        patch.setattr(link_measurement.time, "monotonic", lambda: self.now)
        patch.setattr(link_measurement, "measure_base_rtt_us", lambda *_: 100.0)
        patch.setattr(link_measurement.RateMeter, "of", lambda _, group, window_s: self.measure(group, window_s))

    def measure(self, group: list[link_measurement.Probe], window_s: float) -> dict[int, float]:
        self.now += window_s
        self.looks += 1
        return {probe.port.ifindex: 41.59 if self.now < self.busy_s else 42.9 for probe in group}


def test_a_link_that_is_off_while_the_machine_is_busy_is_looked_at_again(topology, monkeypatch):
    Busy(monkeypatch, 28)
    measured = link_measurement.measure_links(lay_out(topology), {}, {}, 50)
    assert {port.payload_rate_gbps for link in measured for port in link.ports} == {42.9}


def test_a_link_that_stays_off_is_said_to_be_after_half_a_minute_of_tries(topology, monkeypatch):
    links = Busy(monkeypatch, 1000)
    message = r"measured 41.59 Gbit/s of payload, expected 43 within 3%.*each of (\d+) tries, of which .* after 3\d s"
    with pytest.raises(LabError, match=message) as caught:
        link_measurement.measure_links(lay_out(topology), {}, {}, 50)
    assert 30 < links.now < 60
    tries = int(re.search(message, caught.value.message)[1])
    assert tries > 5
    assert links.looks % tries == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": "fifty"}, "scale: found 'fifty', expected a number"),
        (
            {"ecn": {"kmin_bytes": 2, "kmax_bytes": 1, "pmax": 1}},
            "ecn: found a mapping of 3, expected kmin_bytes at most",
        ),
        ({"surprise": 1}, "the unknown field 'surprise'"),
        ({"version": None}, "version: found nothing, expected a whole number"),
    ],
)
def test_a_wrong_calibration_is_named(tmp_path, change, message):
    path = tmp_path / "calibration.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(DEFAULT.read_text()), **change}))
    with pytest.raises(SpecError, match=message) as caught:
        load_calibration(path)
    assert str(path) in caught.value.message


def test_a_calibration_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SpecError, match="found no such file or directory, expected a file that can be read"):
        load_calibration(tmp_path / "none.yaml")


def test_missing_requirements_are_named_before_a_lab_is_built(monkeypatch, tmp_path):
    monkeypatch.setattr(host_requirements, "require_root", lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(kernel_features, "KERNEL_BTF", tmp_path / "vmlinux")
        with pytest.raises(LabError, match=r"has no BTF: .*vmlinux is missing"):
            host_requirements.require_all()
    with monkeypatch.context() as patch:
        patch.setattr("shutil.which", lambda *_, **__: None)
        with pytest.raises(LabError, match="sshd and ssh-keygen are needed") as caught:
            host_requirements.require_all()
        assert caught.value.hint == "install openssh-server; no daemon has to run"
    with monkeypatch.context() as patch:
        patch.setattr(paths, "BUILD", tmp_path)
        with pytest.raises(LabError, match="labinit is not there") as caught:
            host_requirements.require_all()
        assert caught.value.hint == "./bootstrap"


def test_a_refusal_of_the_kernel_says_what_was_being_made():
    with (
        pytest.raises(LabError, match="the kernel refused the queue of tor0: No such file") as caught,
        kernel_refusal.explain_refusal("the queue of tor0"),
    ):
        raise NetlinkError(errno.ENOENT)
    assert "sch_htb" in str(caught.value.hint)


def test_settings_are_in_the_labs_units():
    calibration = load_calibration()
    halved = calibration.model_copy(update={"scale": 50.0})
    unfair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "unfair").spec
    document = trial_settings.settings_document(unfair, "s0", halved, 1)
    other = trial_settings.settings_document(unfair, "s1", halved, 1)
    assert document["sysctl"]["net.ipv4.tcp_congestion_control"] == "rb_dcqcn"
    assert document["link"] == {"eth0": {"gso_max_size": calibration.gso_max_bytes}}
    assert document["transport"]["dcqcn"]["T_us"] == round(100 * calibration.timer_scale)
    assert other["transport"]["dcqcn"]["T_us"] == round(125 * calibration.timer_scale)
    assert document["transport"]["dcqcn"]["R_max_mbps"] == 860  # of payload, as its port
    assert document["transport"]["dcqcn"]["R_AI_mbps"] == calibration.transports["dcqcn"]["R_AI_mbps"]


UNSCALED = ("clamp_target", "clamp_target_after_timer", "hyper_by_stage", "alpha_by_timer", "alpha_initial")


def test_a_dilated_lab_stretches_published_settings_alike():
    dilated = load_calibration().for_dilation(scale=100, dilation=10)
    unfair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "unfair").spec
    document = trial_settings.settings_document(unfair, "s0", dilated, 10)
    published = unfair.jobs["j1"].transport.published.parameters
    declared = {
        each.name: published.get(each.name, each.value) for each in registry.find_declaration("dcqcn").parameters
    }
    expected = {
        "T_us": 1000,
        "F": declared["F"],
        "g": declared["g"],
        "cnp_gap_us": 10 * declared["cnp_gap_us"],
        "cnp_delay_us": 0,  # the lab's own round trip is longer than 96 us
        "alpha_timer_us": 10 * declared["alpha_timer_us"],
        "byte_counter_bytes": round(declared["byte_counter_bytes"] / 10),
        "R_AI_mbps": declared["R_AI_mbps"] / 100,
        "R_HAI_mbps": declared["R_HAI_mbps"] / 100,
        "R_min_mbps": declared["R_min_mbps"] / 100,
        "R_max_mbps": 430,
        "rate_on_first_cnp_mbps": 0,
        **{name: declared[name] for name in UNSCALED},
    }
    assert document["transport"]["dcqcn"] == pytest.approx(expected)
    assert (dilated.ecn.kmin_bytes, dilated.ecn.kmax_bytes) == (8000, 16000)
    assert document["route"] == {"10.77.0.0/16": {"rto_min_ms": 2000}}
    assert "route" not in trial_settings.settings_document(unfair, "s0", load_calibration(), 1)
    at_once = unfair.model_copy(update={"tcp": Tcp(delayed_acks=False)})
    assert trial_settings.settings_document(at_once, "s0", load_calibration(), 1)["route"] == {
        "10.77.0.0/16": {"quickack": 1}
    }


def test_a_transport_may_be_dilated_more_than_jobs_are(monkeypatch):
    unfair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "unfair").spec
    labs = LabProvider(dilation=4, transport_dilation=16)
    labs.check_trial(unfair)
    record = LabRecord(
        name="a",
        state="up",
        created_utc=datetime.now(UTC),
        scale=100,
        dilation=4,
        transport_dilation=16,
        calibration=labs.calibration,
        topology=unfair.topology,
    )
    lab, alike = Lab(record), Lab(record.model_copy(update={"transport_dilation": None}))
    assert (lab.dilation, lab.bytes_on_host(100e6), lab.ms_on_host(1)) == (4, 4e6, 4)
    params = lab.settings_document(unfair, "s0")["transport"]["dcqcn"]
    assert (params["T_us"], params["cnp_gap_us"], params["alpha_timer_us"]) == (1600, 64, 16)
    assert params["R_AI_mbps"] == 0.05
    assert params["cnp_delay_us"] == round(16 * unfair.feedback_delay.mean_us - ROUND_TRIP_US)
    thresholds = []
    monkeypatch.setattr(Lab, "live_pids", lambda _: {})
    monkeypatch.setattr(port_queues, "update_queues", lambda *_: None)
    monkeypatch.setattr(marking, "set_thresholds", lambda *given: thresholds.extend(given))
    lab.prepare(unfair)
    assert (thresholds[2], thresholds[-1]) == (Ecn(kmin_bytes=12_800, kmax_bytes=25_600, pmax=1), 6)
    assert "time stretched 4 times, the transport's 16 times" in lab.fidelity.stamp
    assert any("4 times fewer cuts" in line for line in lab.fidelity.cannot)
    assert any("which stand for 27.1 kB" in line for line in lab.fidelity.cannot)
    assert lab.identity()["transport_dilation"] == 16
    assert "transport_dilation" not in alike.identity()  # so that keys of trials without it stay valid


def test_mltcp_over_a_nic_is_dilated_apart_while_it_learns_its_job():
    trial = next(cell for cell in load_experiment("compare-all").cells if cell.variant == "mltcp").spec
    labs = LabProvider(dilation=4, transport_dilation=16)
    labs.check_trial(trial)
    for given in ({"gap_us": 50_000}, {"iteration_bytes": 1_000_000}):
        jobs = {
            name: job.model_copy(update={"transport": Transport(name="mltcp_dcqcn", **given)})
            for name, job in trial.jobs.items()
        }
        with pytest.raises(LabError, match=f"mltcp_dcqcn.{next(iter(given))}, which is of a job"):
            labs.check_trial(trial.model_copy(update={"jobs": jobs}))


@pytest.mark.parametrize(("dilation", "delays"), [(100, {}), (100, {"cnp_to_cut_us": 20.0}), (17.4, {}), (1, {})])
def test_a_lab_holds_cnps_back_for_what_its_round_trip_leaves_of_the_feedback_delay(dilation, delays):
    spec = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "unfair").spec
    spec = spec.model_copy(update={"topology": spec.topology.with_delays(Delays(**delays))})
    calibration = load_calibration().for_dilation(scale=100, dilation=dilation)
    params = trial_settings.settings_document(spec, "s0", calibration, dilation)["transport"]["dcqcn"]
    assert spec.feedback_delay.mean_us == pytest.approx(9.6 + delays.get("cnp_to_cut_us", 2.5) - 2.5, abs=0.05)
    expected = max(0, spec.feedback_delay.mean_us * dilation - ROUND_TRIP_US)
    assert params["cnp_delay_us"] == pytest.approx(expected, abs=0.5)
    assert held_us(spec.model_copy(update={"jobs": {}}), "s0", dilation) == 0


def test_a_variation_of_a_transport_has_its_calibrated_constants():
    fair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    ecn = {"Kmin_bytes": 5.0, "Kmax_bytes": 9.0, "Pmax": 1.0}
    published = {"name": "a", "parameters": {"cnp_gap_us": 50.0, "F": 5}, "ecn": ecn}
    varied = Transport.model_validate({"name": "mltcp_dcqcn", "set": published, "T_us": 125, "slope": 1})
    jobs = {name: job.model_copy(update={"transport": varied}) for name, job in fair.jobs.items()}
    spec, calibration = fair.model_copy(update={"jobs": jobs}), load_calibration()
    base, own = (trial_settings.settings_document(each, "s0", calibration, 1)["transport"] for each in (fair, spec))
    assert own["mltcp_dcqcn"].items() >= base["dcqcn"].items()
    assert (own["mltcp_dcqcn"]["slope"], own["mltcp_dcqcn"]["shape"]) == (1, "linear")
    assert trial_settings.ecn_thresholds(spec, calibration, calibration.scale) == calibration.ecn


@pytest.mark.parametrize("dilation", [1, 10])
def test_gap_us_is_dilated_like_times_of_jobs_and_not_like_timers(dilation):
    fair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    given = Transport.model_validate({"name": "mltcp_dcqcn", "T_us": 125, "gap_us": 100_000})
    spec = fair.model_copy(
        update={"jobs": {n: job.model_copy(update={"transport": given}) for n, job in fair.jobs.items()}}
    )
    calibration = load_calibration() if dilation == 1 else load_calibration().for_dilation(scale=100, dilation=dilation)
    params = trial_settings.settings_document(spec, "s0", calibration, dilation)["transport"]["mltcp_dcqcn"]
    assert params["gap_us"] == 100_000 * dilation
    assert params["T_us"] == round(125 * calibration.timer_scale)
    assert calibration.timer_scale != 1


def test_uncalibrated_parameters_come_from_the_published_set():
    parameters = {"T_us": 55.0, "R_AI_mbps": 40.0, "cnp_gap_us": 50.0}
    published = {"name": "a", "parameters": parameters, "ecn": {"Kmin_bytes": 5.0, "Kmax_bytes": 9.0, "Pmax": 1.0}}
    fair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    transport = Transport.model_validate({"name": "dcqcn", "set": published, "F": 7})
    jobs = {name: job.model_copy(update={"transport": transport}) for name, job in fair.jobs.items()}
    spec, calibration = fair.model_copy(update={"jobs": jobs}), load_calibration()

    params = trial_settings.settings_document(spec, "s0", calibration, 1)["transport"]["dcqcn"]
    assert params["T_us"] == round(55 * calibration.timer_scale)
    assert params["R_AI_mbps"] == calibration.transports["dcqcn"]["R_AI_mbps"]
    assert params["F"] == 7
    assert "R_AI_mbps" in trial_settings.replaced_sets(calibration)[0]

    assert trial_settings.ecn_thresholds(spec, calibration, 100) == calibration.ecn

    own = calibration.for_dilation(100, 10)
    params = trial_settings.settings_document(spec, "s0", own, 10)["transport"]["dcqcn"]
    assert (params["T_us"], params["R_AI_mbps"], params["cnp_gap_us"]) == (550, 0.4, 500)
    assert trial_settings.replaced_sets(own) == ()
    assert trial_settings.ecn_thresholds(spec, own, 0.5) == Ecn(kmin_bytes=10, kmax_bytes=18, pmax=1)
    unnamed = {name: job.model_copy(update={"transport": Transport(name="dcqcn")}) for name, job in fair.jobs.items()}
    assert trial_settings.ecn_thresholds(fair.model_copy(update={"jobs": unnamed}), own, 0.5) == own.ecn


def test_a_segment_is_marked_for_each_packet_that_it_stands_for_where_a_mark_makes_a_cnp():
    fair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    calibration = load_calibration()
    for dilation, packets in ((100, 1), (17.4, 6), (4, 25), (1, 100)):
        own = calibration.for_dilation(100, dilation)
        assert trial_settings.packets_per_segment(fair, own, 100 / dilation) == packets
    assert trial_settings.packets_per_segment(fair, calibration, 100) == 0  # thresholds of the lab's own are of bursts
    tcp = {name: job.model_copy(update={"transport": Transport(name="dctcp")}) for name, job in fair.jobs.items()}
    of_tcp = fair.model_copy(update={"jobs": {**fair.jobs, "j2": tcp["j2"]}})
    assert trial_settings.packets_per_segment(of_tcp, calibration.for_dilation(100, 4), 25) == 0


def test_tcp_settings_of_an_experiment_reach_tcp_hosts_only():
    calibration = load_calibration()
    causes = {
        str(cell.levels["cause"]): trial_settings.settings_document(cell.spec, "s2", calibration, 1)["sysctl"]
        for cell in load_experiment("bursts-resnet").cells
    }
    by_cause = {
        cause: (sysctl["net.ipv4.tcp_ecn"], sysctl["net.ipv4.tcp_early_retrans"]) for cause, sysctl in causes.items()
    }
    assert (by_cause["as-printed"], by_cause["no-ecn"], by_cause["drops-2500kb"]) == ((1, 0), (0, 0), (0, 3))
    unfair = load_experiment("unfair-vgg19").cells[0].spec.model_copy(update={"tcp": Tcp(ecn=False)})
    rdma = trial_settings.settings_document(unfair, "s0", calibration, 1)["sysctl"]
    assert rdma["net.ipv4.tcp_ecn"] == 1  # what stands for RDMA lives on marks


def changed_trial(**changed):
    """The fair trial of the flagship, and the lab's ports and settings for it, changed."""
    fair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    transport = Transport(name=changed.pop("transport", "reno"))
    priorities = changed.pop("priorities", (None, None))
    jobs = {
        name: job.model_copy(update={"transport": transport, "priority": priority})
        for (name, job), priority in zip(fair.jobs.items(), priorities, strict=True)
    }
    spec, calibration = fair.model_copy(update={"jobs": jobs, **changed}), load_calibration()
    queues = port_queues.port_queues(lay_out(spec.topology), calibration, 100, 1, spec)
    sysctl = trial_settings.settings_document(spec, "s0", calibration, 1)["sysctl"]
    return {**next(iter(queues.values())).fifos}, trial_settings.ecn_thresholds(spec, calibration, 100), sysctl


def test_without_settings_ports_and_tcp_are_as_the_calibration_has_them():
    fifos, ecn, sysctl = changed_trial()
    assert fifos == {0x10003: 1 << 20, 0x10002: load_calibration().queue_bytes.lossless}
    assert ecn == load_calibration().ecn
    assert (sysctl["net.ipv4.tcp_ecn"], sysctl["net.ipv4.tcp_early_retrans"]) == (1, 0)
    assert sysctl["net.ipv4.tcp_wmem"] == "4096 16384 41943"


def test_drop_tail_queues_hold_1_ms_mark_nothing_and_use_tail_probes():
    fifos, ecn, sysctl = changed_trial(queue="drop-tail")
    assert fifos[0x10002] == 53_750  # of 430 Mbit/s
    assert ecn.kmin_bytes == ecn.kmax_bytes > max(fifos.values())
    assert (sysctl["net.ipv4.tcp_ecn"], sysctl["net.ipv4.tcp_early_retrans"]) == (0, 3)
    assert sysctl["net.ipv4.tcp_wmem"] == "4096 4194304 33554432"
    assert changed_trial(queue="drop-tail", tcp=Tcp(tail_loss_probes=False))[2]["net.ipv4.tcp_early_retrans"] == 0
    short = star_of_stars(2, 2).model_copy(update={"queue_bytes": 2_500_000})
    spec = load_experiment("unfair-vgg19").cells[0].spec.model_copy(update={"queue": "drop-tail", "topology": short})
    queue = next(iter(port_queues.port_queues(lay_out(short), load_calibration(), 100, 1, spec).values()))
    assert queue.limit_bytes == 25_000  # as the topology has it
    spec = load_experiment("unfair-vgg19").cells[0].spec.model_copy(update={"queue": "drop-tail"})
    documents = [trial_settings.settings_document(spec, "s0", load_calibration(), dilation) for dilation in (1, 5)]
    assert [each["route"]["10.77.0.0/16"]["rto_min_ms"] for each in documents] == [10, 50]


def test_a_step_is_one_threshold_of_twenty_packets_at_least():
    fifos, ecn, sysctl = changed_trial(queue="step", transport="dctcp")
    assert fifos[0x10002] == load_calibration().queue_bytes.lossless
    assert ecn == Ecn(kmin_bytes=30_000, kmax_bytes=30_000, pmax=1)
    assert (sysctl["net.ipv4.tcp_ecn"], sysctl["net.ipv4.tcp_early_retrans"]) == (1, 0)


def test_priorities_have_a_fifo_each_and_the_higher_ones_come_first():
    fifos, _, _ = changed_trial(priorities=(2, 1))
    assert list(fifos) == [0x10003, 0x10011, 0x10002]
    assert list(changed_trial(priorities=(7, 7))[0]) == [0x10003, 0x10002]  # alike, they share one


def test_cross_traffic_apart_from_jobs_is_for_a_rack():
    trial = load_experiment("websearch-bert", length="quick").cells[-1].spec
    apart = {name: each.model_copy(update={"traffic_class": "own"}) for name, each in trial.cross_traffic.items()}
    with pytest.raises(LabError, match=r"cross_traffic.websearch.traffic_class: found own, expected jobs"):
        Lab.prepare(SimpleNamespace(), trial.model_copy(update={"cross_traffic": apart}))


def test_the_flagships_constants_are_what_they_were():
    fair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    calibration = load_calibration()
    assert trial_settings.settings_document(fair, "s0", calibration, 1)["transport"] == {
        "dcqcn": {
            "T_us": 1126, "F": 2, "byte_counter_bytes": 0, "R_AI_mbps": 3.47, "R_HAI_mbps": 13.5, "R_min_mbps": 5,
            "R_max_mbps": 430, "g": 590558 / 2**24, "alpha_timer_us": 4200, "cnp_gap_us": 611,
            "cnp_delay_us": 0, "clamp_target": 1, "clamp_target_after_timer": 1, "hyper_by_stage": 1,
            "alpha_by_timer": 0, "alpha_initial": 0, "rate_on_first_cnp_mbps": 0,
        }
    }  # fmt: skip


def test_hosts_get_their_jobs_transport_and_idle_hosts_none(tmp_path):
    calibration = load_calibration()
    path = tmp_path / "cross.yaml"
    path.write_text(
        "name: cross\nabout: cross\ntopology: dumbbell-2x2\niterations: 2\ntransport: {name: dcqcn}\n"
        "jobs: {j1: {profile: vgg19-fig1, workers: [s0, s2]}}\n"
        "factors: {variant: {quiet: {}, cross: {"
        "cross_traffic: {c: {kind: consistent, from: s0, to: [s3], load_gbps: 2}}}}}"
    )
    quiet, cross = (cell.spec for cell in load_experiment(path).cells)
    names = {
        host: trial_settings.settings_document(cross, host, calibration, 1)["sysctl"]["net.ipv4.tcp_congestion_control"]
        for host in ("s0", "s2", "s3")
    }
    assert names == {"s0": "rb_dcqcn", "s2": "rb_dcqcn", "s3": "cubic"}  # s3 only receives: DCQCN needs both ends
    assert trial_settings.settings_document(cross, "s1", calibration, 100) == {}
    assert trial_settings.settings_document(quiet, "s3", calibration, 100) == {}


def test_a_locked_folder_is_refused_or_waited_for(tmp_path):
    with lock_folder(tmp_path), pytest.raises(BlockingIOError), lock_folder(tmp_path):
        pass
    order = []

    def hold() -> None:
        with lock_folder(tmp_path):
            held.set()
            time.sleep(0.1)
            order.append("first")

    held = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    with lock_folder(tmp_path, wait_s=5):
        order.append("second")
    holder.join()
    assert order == ["first", "second"]


def test_a_folder_replaced_while_waiting_is_locked_anew(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    entered = threading.Event()

    def wait_for_it() -> None:
        with lock_folder(folder, wait_s=5, create=True):
            entered.set()

    with lock_folder(folder):
        waiter = threading.Thread(target=wait_for_it)
        waiter.start()
        time.sleep(0.05)
        folder.rmdir()
        assert not entered.is_set()
    waiter.join()
    assert entered.is_set()
    assert os.path.isdir(folder)


def test_keys_of_trials_cover_the_labs_own_programs() -> None:
    own = {"build/bin/labinit", "build/bin/labenter", "build/bin/switchport"}
    assert own <= LabProvider().artifacts([]).keys()
