# SPDX-License-Identifier: Apache-2.0
"""Checks that make a trial disturbed or invalid, so that its measurement never looks like a quiet one's.

They judge effects on the figures: trainers that woke late, links that sent nothing although packets waited, and CPU
time stolen throughout the trial disturb it; losses and missing data make it invalid. A busy CPU, or one second of
steal, is only shown beside the result.
docs/results/disturbed-trials.md has the trials that justify these rules.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roundabout.plan import PlannedTrial
from roundabout.spec import ResolvedJob
from roundabout.store.counter_increments import compute_increments
from roundabout.store.trial_states import RESENT

STOLEN_MAX = 0.03  # largest share of CPU time stolen by other virtual machines, over the trial
STALLED_MAX = 0.015  # largest share of time in which a link sends nothing although packets wait
FULL = 0.9  # share of a link's usual rate above which it counts as busy all the time
MIN_WAITING = 20  # least number of samples with waiting packets that determine a link's usual rate
PORT = ("link", "host", "towards")
SLOWED = 1.1  # least slowdown of communication that other traffic explains; a guess
# Limits of the 90th percentile of trainers' wake-up delays: as a share of the iteration time, and in ms. A trial that
# exceeds both does not follow its profile.
LATE_P90_MAX, LATE_P90_MAX_MS = 0.02, 2.0
# Largest median excess of real (not slept) computing time over the expected time, as a share.
COMPUTING_MAX = 0.03


def resource_stats(tables: Mapping[str, pa.Table], start_ns: int | None, end_ns: int | None) -> dict[str, float | None]:
    """Return figures on the resources of the trial between two instants of the run's clock, by name.

    The figures are shares of busy and stolen CPU time, the 90th percentile of lateness in ms, and the share of stalled
    time of links. None means unknown.
    """
    cpu = tables["cpu"]
    if start_ns is not None and end_ns is not None and cpu.num_rows:
        begin = pc.subtract(cpu["controller_ns"], pc.cast(pc.multiply(cpu["window_ms"], 1e6), pa.int64(), safe=False))
        cpu = cpu.filter(pc.and_(pc.greater_equal(begin, start_ns), pc.less_equal(cpu["controller_ns"], end_ns)))
    # Single hiccups, which virtual machines have, do not move medians; how late a tenth of the iterations were does.
    late_ms = (
        tables["iterations"].group_by(["job", "iteration"]).aggregate([("late_ms", "max")])["late_ms_max"].to_numpy()
    )
    return {
        "busy_max": pc.max(cpu["busy_share"]).as_py(),
        "steal_max": pc.max(cpu["steal_share"]).as_py(),
        "steal_mean": _worst_mean(cpu, "steal_share"),
        "late_p90_ms": float(np.percentile(late_ms, 90)) if len(late_ms) else None,
        "stalled_share": _stalled_share(tables["queue"], start_ns, end_ns),
    }


def _worst_mean(cpu: pa.Table, name: str) -> float | None:
    """Return the mean of a share over the trial, of the host with the highest."""
    means = [
        np.average(here[name].to_numpy(), weights=here["window_ms"].to_numpy())
        for host in cpu["host"].unique()
        if (here := cpu.filter(pc.equal(cpu["host"], host))).num_rows
    ]
    return float(max(means)) if means else None


def _stalled_share(queue: pa.Table, start_ns: int | None, end_ns: int | None) -> float | None:
    """Return the share of the trial in which the worst link carried nothing although packets waited for it.

    While packets wait, a paced link sends at its rate, which is the median between samples that found some. The
    shortfall, from one instant with a full queue to the next, is time in which the link, or the CPU that emulates it,
    stood still.
    """
    if start_ns is None or end_ns is None or not queue.num_rows:
        return None
    here = queue.filter(
        pc.and_(pc.greater_equal(queue["controller_ns"], start_ns), pc.less_equal(queue["controller_ns"], end_ns))
    )
    names = [here[name].to_numpy(zero_copy_only=False) for name in PORT]
    order = np.lexsort((here["host_ns"].to_numpy(), *names))
    at_s, sent, waiting = (here[name].to_numpy()[order] for name in ("host_ns", "tx_bytes", "backlog_bytes"))
    at_s = at_s / 1e9
    one_port = np.logical_and.reduce([name[order][1:] == name[order][:-1] for name in names])
    ends = [0, *(np.flatnonzero(~one_port) + 1), len(order)]
    stalled_s = [_stalled_s(at_s[low:high], sent[low:high], waiting[low:high] > 0) for low, high in pairwise(ends)]
    return max(stalled_s) / ((end_ns - start_ns) / 1e9)


def _stalled_s(at_s: np.ndarray, sent: np.ndarray, waiting: np.ndarray) -> float:
    busy = waiting[1:] & waiting[:-1]
    if busy.sum() < MIN_WAITING:
        return 0.0
    lasted_s, gained = np.diff(at_s), np.diff(sent)
    usual = np.median(gained[busy] / lasted_s[busy])
    if not usual:
        return float(lasted_s[busy].sum())
    full = _between_full(busy, gained / lasted_s >= FULL * usual)
    return max(0.0, float(lasted_s[full].sum() - gained[full].sum() / usual))


def _between_full(busy: np.ndarray, full: np.ndarray) -> np.ndarray:
    """Return which intervals lie, without a break in `busy` ones, between two intervals that are `full`.

    Packets wait at both ends of other intervals too, if bursts come as regularly as samples, and these fill no link.
    """
    number = np.arange(len(busy))
    broken, known = ~busy, busy & full

    def last(where: np.ndarray) -> np.ndarray:
        return np.maximum.accumulate(np.where(where, number, -1))

    def since(where: np.ndarray, breaks: np.ndarray) -> np.ndarray:
        return last(where) > last(breaks)

    between: np.ndarray = since(known, broken) & since(known[::-1], broken[::-1])[::-1]
    return between


def invalid_reasons(
    trial: PlannedTrial, tables: Mapping[str, pa.Table], measured: Mapping[str, float | None]
) -> list[str]:
    """Return the reasons why the trial is not valid. The list is empty for a valid trial.

    `measured` is the result of `resource_stats`.
    """
    return [*wrong_figures(trial, tables), *disturbances(tables, measured)]


def wrong_figures(trial: PlannedTrial, tables: Mapping[str, pa.Table]) -> list[str]:
    """Return the reasons why the trial's figures are wrong, so that none of them may be shown."""
    found = [
        *_missing_iterations(trial, tables["iterations"]),
        *slow_computing(trial, tables["iterations"]),
        *missing_loads(trial, tables["cross_traffic"]),
        *missing_marks(trial, tables),
    ]
    found += _softnet_drops(tables["cpu"])
    if not trial.spec.may_drop and not trial.spec.loses_packets:
        found += _losses(tables)
    return found


def cpu_shortage(tables: Mapping[str, pa.Table], measured: Mapping[str, float | None]) -> list[str]:
    """Return the signs that the trial lacked CPU time, also of a trial that is invalid for other reasons.

    `measured` is the result of `resource_stats`.
    """
    return [*_softnet_drops(tables["cpu"]), *disturbances(tables, measured)]


def _softnet_drops(cpu: pa.Table) -> list[str]:
    dropped = pc.sum(cpu["softnet_dropped"]).as_py() or 0
    return [f"the network stack dropped {dropped} packets for want of CPU"] if dropped else []


def disturbances(tables: Mapping[str, pa.Table], measured: Mapping[str, float | None]) -> list[str]:
    """Return the reasons why the trial's figures are biased by a lack of CPU time, but not wrong.

    `measured` is the result of `resource_stats`.
    """
    return [
        *_exceeds(
            measured["steal_mean"],
            STOLEN_MAX,
            "other virtual machines took {:.1%} of the CPU over the whole trial (limit {:.0%})",
        ),
        *_exceeds(
            measured["stalled_share"],
            STALLED_MAX,
            "a link stood still for {:.1%} of the trial although packets waited for it (limit {:.1%})",
        ),
        *_exceeds(
            measured["late_p90_ms"],
            max(LATE_P90_MAX * (_median_ms(tables["iterations"]) or 0.0), LATE_P90_MAX_MS),
            "trainers woke up {:.2f} ms late (90th percentile, limit {:.1f} ms)",
        ),
    ]


def slow_computing(trial: PlannedTrial, iterations: pa.Table) -> list[str]:
    """Return a reason for each job with real computing whose median computing time exceeds COMPUTING_MAX."""
    found = []
    for name, job in trial.spec.jobs.items():
        if (wanted_ms := job.trainer.computing_ms(job.profile)) is None:
            continue
        took = pc.approximate_median(iterations.filter(pc.equal(iterations["job"], name))["compute_ms"]).as_py()
        if took is not None and took > (1 + COMPUTING_MAX) * wanted_ms:
            found.append(f"computing took {name} {took:.1f} ms, expected {wanted_ms:g} (limit +{COMPUTING_MAX:.0%})")
    return found


def _median_ms(iterations: pa.Table) -> float | None:
    median: float | None = pc.approximate_median(iterations["iteration_ms"]).as_py()
    return median


def _missing_iterations(trial: PlannedTrial, iterations: pa.Table) -> list[str]:
    """Return the jobs whose reporting workers did not all record the same iterations, or all of them."""
    counts = Counter(zip(iterations["job"].to_pylist(), iterations["rank"].to_pylist(), strict=True))
    found = []
    for name, job in trial.spec.jobs.items():
        each = [counts[name, rank] for rank in job.trainer.reporters(len(job.workers))]
        expected = trial.spec.iterations_of(name)
        if set(each) != {expected} and not (job.departs_ms is not None and len(set(each)) == 1):
            total = expected * len(each)
            found.append(f"{sum(each)} iterations of {name} were recorded, expected {total} ({len(each)} workers)")
    return found


def missing_loads(trial: PlannedTrial, cross_traffic: pa.Table) -> list[str]:
    """Return a reason for each cross traffic with a load that is missing in the table `cross_traffic`."""
    reported = set(cross_traffic["traffic"].to_pylist())
    sent = [name for name, spec in trial.spec.cross_traffic.items() if spec.load_gbps > 0]
    return [f"cross traffic {name} reported no sent bytes" for name in sent if name not in reported]


def missing_marks(trial: PlannedTrial, tables: Mapping[str, pa.Table]) -> list[str]:
    """Return a reason if other traffic slowed DCQCN jobs at a switch's port although no packet was marked.

    The slowdown is determined from iteration times, because a rack's switches may not be sampled. `tables` must have
    `iterations` and `flows`.
    """
    if trial.spec.queue == "drop-tail":
        return []
    flows = tables["flows"]
    reported = set(flows["job"].to_pylist())
    over = {
        name: job
        for name, job in trial.spec.jobs.items()
        if name in reported and trial.job in (None, name) and job.transport.intended_queue == "thresholds"
    }
    met = _merging_links(trial)
    slowed = [
        name
        for name, job in over.items()
        if any((hop.link.name, hop.receiver) in met for hop in trial.spec.hops(name))
        and _communication_slowdown(job, tables["iterations"].filter(pc.equal(tables["iterations"]["job"], name)))
        > SLOWED
    ]
    marks = flows.filter(pc.is_in(flows["job"], pa.array(over, pa.string())))["delivered_ce_segments"]
    if not slowed or pc.sum(marks).as_py() or marks.null_count:  # null for RDMA: NICs do not count by flow
        return []
    return [
        f"no packet of {', '.join(over)} was marked, although others slowed {', '.join(slowed)}: do ports mark them?"
    ]


def _merging_links(trial: PlannedTrial) -> set[tuple[str, str]]:
    """Return the links, each with its receiver, into which switches send traffic from several ingress ports."""
    spec, sides = trial.spec, defaultdict[tuple[str, str], set[str]](set)
    routes = [route for name in spec.jobs if trial.job in (None, name) for route in spec.routes_of(name)]
    routes += [spec.topology.path(*flow) for traffic in spec.cross_traffic.values() for flow in traffic.flows]
    for route in routes:
        for before, hop in pairwise(route):
            sides[hop.link.name, hop.receiver].add(before.link.name)
    return {link for link, found in sides.items() if len(found) > 1}


def _communication_slowdown(job: ResolvedJob, iterations: pa.Table) -> float:
    """Return the factor by which communication took longer than alone, breaks included, by the median; 1 if unknown.

    Each iteration counts by its quickest worker, because the others waited for it.
    """
    quickest = iterations.group_by("iteration").aggregate([("communication_ms", "min")])
    median: float | None = pc.approximate_median(quickest["communication_ms_min"]).as_py()
    communicating = [at for at, phase in enumerate(job.profile.phases) if phase.bytes]
    alone_ms = sum(phase.duration_ms for phase in job.profile.phases[communicating[0] : communicating[-1] + 1])
    return 1.0 if median is None else median / alone_ms


def _exceeds(value: float | None, limit: float, message: str) -> list[str]:
    return [message.format(value, limit)] if value is not None and value > limit else []


def _losses(tables: Mapping[str, pa.Table]) -> list[str]:
    found = []
    queue = tables["queue"]
    for link, switch, towards in sorted(set(zip(*(queue[name].to_pylist() for name in PORT), strict=True))):
        here = queue.filter(pc.and_(pc.equal(queue["link"], link), pc.equal(queue["host"], switch)))
        drops = compute_increments(here["host_ns"].to_numpy(), np.array(here["drops"].to_pylist()))
        if drops.total:
            found.append(f"lossless link {link} dropped {drops.total} packets towards {towards}")
        if not drops.known.all():
            lost = drops.kind[~drops.known][0]
            found.append(f"the drops of lossless link {link} towards {towards} are not known: the counter was {lost}")
    flows = tables["flows"]
    crossing = flows.filter(pc.not_equal(flows["host"], flows["peer"]))  # others stay within a host: they meet no queue
    again = pc.sum(crossing["retransmitted"]).as_py() or 0
    if again:
        found.append(f"{again} {RESENT} on a lossless fabric")
    return found
