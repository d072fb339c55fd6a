# SPDX-License-Identifier: Apache-2.0
"""The possible payload rate of Salamy's link: chapter 3's own tables against packet lengths and ways to count.

Salamy takes the link for 25 Gbit/s throughout, and gives neither the length of packets nor whether loads count headers.
Training's needs (equation 3.1) are payload, and so are iperf's own figures; `tcpdump` may have counted frames. Headers
of RDMA, 2 % more than TCP's at an MTU of 1500 and as many at 4200, are taken for TCP's. `python -m
analysis.papers.salamy_link` prints the tables of docs/results/salamy-link.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.papers.salamy import (
    BURST,
    CONSISTENT,
    FITS,
    IPERF,
    LINK_GBPS,
    MODELS,
    OBSERVED,
    Observed,
    Printed,
    Setting,
)
from analysis.statistics.degradation.demand import experimental_mb, required_gbps
from analysis.statistics.degradation.model import iteration_time_s
from roundabout.spec.frames import frame_bytes, payload_share, segment_bytes

ALL_BUT_TWO_GBPS = 23.0
"""A load that exceeds all printed loads except those in two rows of Table 3.7."""
MTUS_BYTES = (1500, 4200, 9000)
"""MTUs to compare: Ethernet's standard, the least for RoCE's longest packets, and jumbo frames."""


@dataclass(frozen=True)
class Case:
    """A printed case of training under load: the cross traffic as counted, and training's need of payload, Gbit/s."""

    observed: Observed
    load_gbps: float
    needed_gbps: float


@dataclass(frozen=True)
class Counting:
    """A way to read the tables: the length of packets, and whether a load from `tcpdump` counts their headers."""

    mtu_bytes: int | None
    frames: bool = False

    @property
    def name(self) -> str:
        """Return the name of the way to count, as tables show it."""
        if self.mtu_bytes is None:
            return "as printed: no headers"
        return f"MTU {self.mtu_bytes}, loads are {'frames' if self.frames else 'payload'}"

    @property
    def carries_gbps(self) -> float:
        """Return the payload rate that the link carries, Gbit/s."""
        return LINK_GBPS * (1.0 if self.mtu_bytes is None else payload_share(self.mtu_bytes))

    def left_gbps(self, case: Case) -> float:
        """Return the link's unused payload rate in a case, Gbit/s; a value below 0 makes the case impossible."""
        counted = 1.0
        if self.mtu_bytes and self.frames and case.observed.setting != IPERF:
            counted = segment_bytes(self.mtu_bytes) / frame_bytes(self.mtu_bytes)
        return self.carries_gbps - case.load_gbps * counted - case.needed_gbps


COUNTINGS = (Counting(None), *(Counting(mtu, frames) for mtu in MTUS_BYTES for frames in (False, True)))


def most_congested(setting: Setting) -> list[Case]:
    """Return the most congested case of each model: the rows of Table 3.3, 3.5 or 3.7."""
    return [
        Case(each, LINK_GBPS - each.worst_available_gbps, each.worst_required_gbps)
        for each in OBSERVED
        if each.setting == setting
    ]


def saturated(setting: Setting) -> list[Case]:
    """Return each model's mean case at saturation (Table 3.8).

    The need of a mean is not printed, so the need of the most congested case stands for it, as a lower bound.

    If loads are counted as frames, the unused rate is therefore too large by the headers of the remaining need.
    """
    return [
        Case(each, LINK_GBPS - each.spare_gbps - each.worst_required_gbps, each.worst_required_gbps)
        for each in OBSERVED
        if each.setting == setting
    ]


def at_congestion(setting: Setting) -> list[Case]:
    """Return the congestion points whose loads are printed (Figures 3-2 to 3-4 with Tables 3.2, 3.4, 3.6)."""
    return [
        Case(
            each,
            each.congestion_gbps,
            float(required_gbps(_data_mb(each), congestion_time_s(each, each.congestion_gbps))),
        )
        for each in OBSERVED
        if each.setting == setting and each.congestion_gbps is not None
    ]


def excess_over_theory(observed: Observed, carried_gbps: float) -> float | None:
    """Return the share by which data at the congestion point exceed an iteration's data, on a link of `carried_gbps`.

    None if the point's load is not printed.
    """
    load_gbps = observed.congestion_gbps
    if load_gbps is None:
        return None
    return float(
        experimental_mb(carried_gbps - load_gbps, congestion_time_s(observed, load_gbps)) / _data_mb(observed) - 1
    )


def _data_mb(observed: Observed) -> float:
    return MODELS[observed.model].data_mb(observed.setting.workers)


def congestion_time_s(observed: Observed, load_gbps: float) -> float:
    """Return the iteration time at the congestion point, s, if its load is `load_gbps`.

    It follows from the table's MB, because the text prints the time with two digits.
    """
    return float(required_gbps(observed.congestion_mb, 1.0)) / (LINK_GBPS - load_gbps)


def slope_of_full_link(fit: Printed, load_gbps: float) -> float:
    """Return the slope of log t of a printed fit at a load, over the slope that a saturated link has there."""
    return float(fit.b * fit.n / (LINK_GBPS - load_gbps) ** fit.n)


def full_from_gbps(fit: Printed) -> float:
    """Return the load, Gbit/s, from which a printed fit is as steep as a saturated link.

    At that load (C - BW) t, the data of a congestion point, is least.
    """
    return LINK_GBPS - float((fit.b * fit.n) ** (1 / fit.n))


def least_mb(fit: Printed) -> float:
    """Return the least data, MB, that any congestion point on a printed fit could have."""
    load_gbps = full_from_gbps(fit)
    time_s = iteration_time_s(np.array(load_gbps), fit.a_s, fit.b, fit.n, LINK_GBPS)
    return float(experimental_mb(LINK_GBPS - load_gbps, time_s))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table as lines of Markdown, with words aligned to the left and figures to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


COLUMNS: tuple[tuple[str, list[Case]], ...] = (
    ("Table 3.3: iperf", most_congested(IPERF)),
    ("Table 3.5: consistent", most_congested(CONSISTENT)),
    ("Table 3.7: VGG, DenseNet", [each for each in most_congested(BURST) if each.load_gbps < ALL_BUT_TWO_GBPS]),
    ("Table 3.7: BERT, ResNet", [each for each in most_congested(BURST) if each.load_gbps > ALL_BUT_TWO_GBPS]),
    ("Table 3.8: iperf", saturated(IPERF)),
    ("consistent", saturated(CONSISTENT)),
    ("burst", saturated(BURST)),
    ("Figure 3-2: points", at_congestion(IPERF)),
)


def remaining_bandwidth() -> list[str]:
    """Return a table of the link's unused bandwidth by each way to read the tables, Gbit/s.

    A cell holds the range over the rows of one printed table.
    """
    rows = []
    for counting in COUNTINGS:
        found = ([counting.left_gbps(case) for case in cases] for _, cases in COLUMNS)
        spans = (f"{min(each):.2f} to {max(each):.2f}" for each in found)
        rows.append((counting.name, f"{counting.carries_gbps:.2f}", *spans))
    return table(("read as", "carries", *(name for name, _ in COLUMNS)), rows)


def congestion_points() -> list[str]:
    """Return a table of the data at Salamy's congestion points beyond theory, for one payload rate of the link."""
    carried = [(f"{each.carries_gbps:.2f}", each.carries_gbps) for each in COUNTINGS if not each.frames]
    rows = [
        (
            f"{each.model}, {each.setting.traffic}, {each.setting.transport}",
            f"{each.congestion_gbps:g}",
            *(f"{100 * share:+.0f} %" for _, gbps in carried if (share := excess_over_theory(each, gbps)) is not None),
        )
        for each in OBSERVED
        if each.congestion_gbps is not None
    ]
    return table(("point", "load, Gbit/s", *(f"of {name}" for name, _ in carried)), rows)


def slopes() -> list[str]:
    """Return a table of the printed fits' slopes without load, and of the least data of a congestion point on each."""
    of = {(each.model, each.setting.traffic, each.setting.transport): each for each in OBSERVED}
    rows = []
    for fit in FITS:
        observed = of.get((fit.model, fit.traffic, fit.transport))
        rows.append(
            (
                f"{fit.model}, {fit.traffic}, {fit.transport}",
                f"{slope_of_full_link(fit, 0.0):.2f}",
                f"{full_from_gbps(fit):.1f}",
                f"{least_mb(fit):.0f}",
                f"{observed.congestion_mb:.0f}" if observed else "none",
            )
        )
    head = ("printed curve", "slope without load", "as a full link's from, Gbit/s", "least MB", "printed MB")
    return table(head, rows)


if __name__ == "__main__":
    for lines in (remaining_bandwidth(), congestion_points(), slopes()):
        print("\n".join(lines), end="\n\n")
