# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text format of a sampler's output: the one table of metrics, and the rule for counters' names.

Names are Prometheus': `_total` counts, units are bytes, seconds and ratios. Values are the host's own: a lab's
rates are the papers' divided by `roundabout_testbed_scale`. What a run says of its jobs is in the papers' time.
"""

import os
import re

# Name -> type and meaning.
METRICS = {
    "roundabout_testbed_scale": ("gauge", "By how much this testbed's rates are smaller than the papers'"),
    "roundabout_testbed_dilation": ("gauge", "By how much this testbed's times are longer than the papers'"),
    "roundabout_link_capacity_bytes_per_second": ("gauge", "What a link of this testbed carries, headers included"),
    "roundabout_clock_utc_seconds": ("gauge", "This host's clock at the request"),
    "roundabout_settings_drifted": ("gauge", "Settings that differ from what was last written"),
    "roundabout_interface_up": ("gauge", "Whether an interface is up"),
    "roundabout_interface_bytes_total": ("counter", "Bytes that an interface sent or received, by where they went"),
    "roundabout_interface_packets_total": ("counter", "Packets of the same"),
    "roundabout_interface_dropped_packets_total": ("counter", "Packets that an interface dropped"),
    "roundabout_queue_backlog_bytes": ("gauge", "Bytes that wait at a switch's port"),
    "roundabout_queue_dropped_packets_total": ("counter", "Packets that a switch's port had no room for"),
    "roundabout_ecn_marked_packets_total": ("counter", "Packets that a switch's port marked"),
    "roundabout_ecn_capable_packets_total": ("counter", "Packets that it could have marked"),
    "roundabout_ecn_marked_packets_by_sender_total": ("counter", "Packets that a switch's port marked, by sender"),
    "roundabout_ip_received_marked_packets_total": ("counter", "IP packets that came marked"),
    "roundabout_tcp_received_segments_total": ("counter", "TCP segments received"),
    "roundabout_tcp_sent_segments_total": ("counter", "TCP segments sent"),
    "roundabout_tcp_retransmitted_segments_total": ("counter", "TCP segments sent again"),
    "roundabout_tcp_loss_probes_total": ("counter", "TCP's probes for losses at the end"),
    "roundabout_tcp_timeouts_total": ("counter", "TCP's timeouts"),
    "roundabout_cpu_seconds_total": ("counter", "CPU time of all CPUs together, by what it went to"),
    "roundabout_cpu_softirq_seconds_total": ("counter", "CPU time of interrupts' second half, part of busy"),
    "roundabout_softnet_packets_total": ("counter", "Packets that CPUs took from their backlogs"),
    "roundabout_softnet_dropped_packets_total": ("counter", "Packets that CPUs' backlogs had no room for"),
    "roundabout_softnet_squeezed_total": ("counter", "Times that a CPU left packets for later"),
    "roundabout_sampler_samples_total": ("counter", "Samples that the sampler took for this exporter"),
    "roundabout_sampler_missed_total": ("counter", "Samples that it could not take in time"),
    "roundabout_run_info": ("gauge", "The run at work here, and its trial"),
    "roundabout_run_trials": ("gauge", "Trials of the run"),
    "roundabout_run_done_trials": ("gauge", "Trials of the run that are done"),
    "roundabout_job_iterations_total": ("counter", "Iterations that a job finished in this trial"),
    "roundabout_job_planned_iterations": ("gauge", "Iterations that a job does in this trial"),
    "roundabout_job_last_iteration_seconds": ("gauge", "How long a job's last iteration took, in the papers' time"),
    "roundabout_cross_traffic_asked_bytes_per_second": ("gauge", "Requested cross traffic, at the papers' rate"),
    "roundabout_cross_traffic_sent_bytes_per_second": ("gauge", "Cross traffic sent, at the papers' rate"),
}

# Fields of the sampler's records of ports -> metric, and direction as seen from the host.
PORT = {
    "tx_bytes": ("roundabout_interface_bytes_total", "out"),
    "rx_bytes": ("roundabout_interface_bytes_total", "in"),
    "tx_packets": ("roundabout_interface_packets_total", "out"),
    "rx_packets": ("roundabout_interface_packets_total", "in"),
    "tx_dropped": ("roundabout_interface_dropped_packets_total", "out"),
    "rx_dropped": ("roundabout_interface_dropped_packets_total", "in"),
    "qdisc_backlog_bytes": ("roundabout_queue_backlog_bytes", "out"),
    "qdisc_drops": ("roundabout_queue_dropped_packets_total", "out"),
    "marks": ("roundabout_ecn_marked_packets_total", "out"),
    "ecn_packets": ("roundabout_ecn_capable_packets_total", "out"),
}
MACHINE = {
    "tcp": {
        "in_segs": "roundabout_tcp_received_segments_total",
        "out_segs": "roundabout_tcp_sent_segments_total",
        "retrans_segs": "roundabout_tcp_retransmitted_segments_total",
        "loss_probes": "roundabout_tcp_loss_probes_total",
        "timeouts": "roundabout_tcp_timeouts_total",
        "ce_received": "roundabout_ip_received_marked_packets_total",
    },
    "cpu": {
        "softnet_processed": "roundabout_softnet_packets_total",
        "softnet_dropped": "roundabout_softnet_dropped_packets_total",
        "softnet_squeezed": "roundabout_softnet_squeezed_total",
    },
    "sampler": {
        "samples": "roundabout_sampler_samples_total",
        "missed": "roundabout_sampler_missed_total",
    },
}

# Source of counters -> prefix of its metrics, and label of the device. The counters' own names follow the prefix.
SOURCES = {
    "ethtool": ("roundabout_nic", "interface"),
    "rdma hw": ("roundabout_rdma", "device"),
    "rdma port": ("roundabout_rdma_port", "device"),
    "transport": ("roundabout_transport", "transport"),
}
# A unit -> Prometheus' unit, the factor to it, and the word for the unit in counters' names.
UNITS = {
    "bytes": ("bytes", 1, "bytes"),
    "bytes/s": ("bytes_per_second", 1, ""),
    "us": ("seconds", 1e-6, "us"),
    "ms": ("seconds", 1e-3, "ms"),
    "s": ("seconds", 1, "s"),
    "percent": ("ratio", 0.01, "percent"),
    "2^-24": ("ratio", 2**-24, "q24"),
}
# Units and names of values that may fall, which are gauges. Names are needed where a transport's unit is ambiguous.
GAUGE_UNITS = frozenset(("bytes/s", "ms", "percent", "2^-24", "stage"))
GAUGES = frozenset(("cwnd", "learned_bytes", "learned_silence_us", "sent_bytes"))
WAYS = {"rx": "in", "tx": "out"}
PRIORITY = re.compile(r"prio(\d)")


class Record:
    """A store of the newest line of each object that a sampler reports."""

    def __init__(self):
        self.fields = {}  # kind -> names
        self.rows = {}  # kind -> thing -> values
        self.counters = {}  # set -> (device, source, counter, unit) of each of its values

    def take(self, line):
        """Store a line of the sampler's output. Return True if it completes a sample."""
        kind, _, rest = line.partition(",")
        values = rest.split(",")
        if kind.startswith("#"):
            self.fields[kind[1:]] = values
        elif kind == "counter":
            said = dict(zip(self.fields[kind], values))
            described = (said["device"], said["source"], said["counter"], said["unit"])
            self.counters.setdefault(said["set"], []).append(described)
        else:
            row = dict(zip(self.fields[kind], values))
            things = dict(self.rows.get(kind, {}))  # a new one: others may be reading
            things[row.get("interface"), row.get("ifindex"), row.get("source")] = row
            self.rows = {**self.rows, kind: things}
        return kind == "sampler"

    def of(self, kind):
        """Return the newest rows of a kind of line, such as `port`."""
        return list(self.rows.get(kind, {}).values())


class Families:
    """Series by metric, and their text."""

    def __init__(self, labels):
        self._labels = labels
        self._series = {}
        self._about = dict(METRICS)

    def add(self, name, labels, value, about=None):
        """Add a series of metric `name`. `about` gives type and meaning of a metric that is not in METRICS."""
        if about:
            self._about.setdefault(name, about)
        if name not in self._about:
            raise KeyError("no metric is called %s" % name)
        self._series.setdefault(name, []).append((dict(self._labels, **labels), value))

    def text(self):
        """Return the text, one metric after another."""
        lines = []
        for name in sorted(self._series):
            kind, meaning = self._about[name]
            lines += ["# HELP %s %s." % (name, meaning), "# TYPE %s %s" % (name, kind)]
            lines += ["%s%s %s" % (name, _labels(labels), _number(value)) for labels, value in self._series[name]]
        return "\n".join(lines) + "\n"


def _labels(labels):
    pairs = ['%s="%s"' % (name, _escape(str(value))) for name, value in sorted(labels.items())]
    return "{%s}" % ",".join(pairs) if pairs else ""


def _escape(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value):
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def text(record, facts, series, utc_s):
    """Return the metrics of one host.

    `record` has the sampler's newest lines, `facts` is the first input line of exporter.py, and `series` are
    additional.
    """
    families = Families(facts.get("labels", {}))
    families.add("roundabout_clock_utc_seconds", {}, float(utc_s))
    for name, labels, value in series:
        families.add(name, labels, value)
    _add_ports(families, record, facts)
    _add_machine(families, record)
    _add_counters(families, record, facts)
    return families.text()


def _way(facts, interface, way):
    """Return the labels of an interface's outgoing or incoming direction."""
    known = facts.get("interfaces", {}).get(interface, {})
    return {"interface": interface, "link": known.get("link", ""), "direction": known.get(way, way)}


def _add_ports(families, record, facts):
    names = {}
    for row in record.of("port"):
        names[row["ifindex"]] = row["interface"]
        known = _way(facts, row["interface"], "out")
        families.add("roundabout_interface_up", {each: known[each] for each in ("interface", "link")}, int(row["up"]))
        for field, (name, way) in PORT.items():
            if row.get(field):
                families.add(name, _way(facts, row["interface"], way), int(row[field]))
    senders = facts.get("senders", {})
    for row in record.of("marks"):
        if row["ifindex"] in names:
            labels = dict(_way(facts, names[row["ifindex"]], "out"), sender=senders.get(row["source"], row["source"]))
            families.add("roundabout_ecn_marked_packets_by_sender_total", labels, int(row["marks"]))


def _add_machine(families, record):
    for kind, metrics in MACHINE.items():
        for row in record.of(kind):
            for field, name in metrics.items():
                families.add(name, {}, int(row[field]))
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    for row in record.of("cpu"):
        for mode in ("busy", "idle", "steal"):
            families.add("roundabout_cpu_seconds_total", {"mode": mode}, int(row[mode + "_ticks"]) / ticks_per_s)
        families.add("roundabout_cpu_softirq_seconds_total", {}, int(row["softirq_ticks"]) / ticks_per_s)


def _add_counters(families, record, facts):
    for number, counters in record.counters.items():
        for row in record.of(number):
            for position, (device, source, counter, unit) in enumerate(counters):
                if row.get(str(position)):
                    name, kind, labels, factor = device_metric(source, counter, unit)
                    labels[SOURCES[source][1]] = device
                    if source == "ethtool":
                        labels.update(_way(facts, device, labels.get("direction", "")))
                    value = int(row[str(position)])
                    about = (kind, "What the counters of %s call %s" % (source, counter))
                    families.add(name, labels, value if factor == 1 else value * factor, about)


def device_metric(source, counter, unit):
    """Return a device's counter as a metric: name, type, labels, and the factor of its values."""
    word, factor, said = UNITS.get(unit, ("", 1, ""))
    gauge = unit in GAUGE_UNITS or (source == "transport" and counter in GAUGES)
    words, labels = [], {}
    for each in re.sub(r"\W", "_", counter).lower().split("_"):
        if source == "ethtool" and each in WAYS and "direction" not in labels:
            labels["direction"] = WAYS[each]
        elif PRIORITY.fullmatch(each):
            labels["priority"] = PRIORITY.fullmatch(each)[1]
        elif each != said and not (source == "rdma port" and each == "port"):
            words.append(each)
    parts = [SOURCES[source][0], *words, *([word] if word else []), *([] if gauge else ["total"])]
    return "_".join(parts), "gauge" if gauge else "counter", labels, factor
