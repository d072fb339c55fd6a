# SPDX-License-Identifier: Apache-2.0
"""The statement of a lab's fidelity: how its figures come about, and which effects it cannot show."""

from collections.abc import Iterable

from roundabout.runner.fidelity import Fidelity
from roundabout.testbeds.lab.calibration.calibration import Calibration
from roundabout.testbeds.lab.network.feedback import ROUND_TRIP_US

CANNOT = (
    "RDMA: the jobs speak kernel TCP, paced by an eBPF copy of DCQCN's reaction point",
    "PFC: a lossless fabric is a deep queue, without pause frames, head-of-line blocking or go-back-N",
    "GPUs: a job is its profile, played over real sockets",
)
MICROSECONDS = (
    "microseconds: rates are divided by the scale and times are not, so feedback comes every few hundred "
    "microseconds instead of every few; the reaction point's constants are {}"
)
CALIBRATED, DERIVED = "calibrated for that", "those of a dilated lab (run {run}, misfit {misfit:.2f})"
NOT_STRETCHED = (
    "times that Linux does not let be stretched, and which are shorter here by as much: delayed acknowledgements "
    "(40 to 200 ms, of the tail of a message only), CUBIC's clock, and the machine's own hiccups"
)
FEEDBACK = (
    "a feedback that is faster than the lab's own, some {:.2g} us of the papers' time from a mark to its echo; where "
    "the topology says longer, CNPs are held back by the rest"
)
FEWER_CUTS = (
    "as many cuts of rates in an iteration as in the network: times and marking thresholds of the transport are "
    "stretched {:.3g} times more than those of jobs, which gives {:.3g} times fewer cuts"
)
BURST_BYTES = 3 * 1448
"""Payload bytes of the packets in a burst of the calibration's `gso_max_bytes`."""
BURSTS = (
    "single packets: what a NIC sends at once is three packets here, which stand for {:.3g} kB: queues are "
    "that coarse for ECN thresholds"
)


def lab_fidelity(
    calibration: Calibration, dilation: float, replaced: Iterable[str], transport_dilation: float | None = None
) -> Fidelity:
    """Return the fidelity of a lab with this calibration and time dilation.

    `replaced` has a line for each published set of parameters that the calibration replaces. `transport_dilation` is
    the dilation of transports and switches, by default that of jobs.
    """
    scale, derived_from = calibration.scale, calibration.derived_from
    rates = f"links are shaped to 1:{scale:g} of their rate"
    if lines := tuple(replaced):
        constants = DERIVED.format(**derived_from.model_dump()) if derived_from else CALIBRATED
        whose = ", constants of a dilated lab" if derived_from else ""
        return Fidelity(
            "emulated",
            f"emulated: lab, rates and bytes at 1:{scale:g}, times as they are{whose}",
            f"Everything ran on one machine: hosts are Linux namespaces, {rates}, and messages are as much smaller. "
            "Iteration times are unchanged and compare with the paper's directly; rates and bytes on this page were "
            "multiplied back. What this cannot show:",
            (*CANNOT[:2], MICROSECONDS.format(constants), *CANNOT[2:], *lines),
        )
    packets = f"{scale / dilation:.3g}"
    of_transport = transport_dilation or dilation
    more = of_transport / dilation
    stretched = f"time stretched {dilation:g} times"
    if more != 1:
        stretched += f", the transport's {of_transport:g} times"
    return Fidelity(
        "emulated",
        f"emulated: lab, rates at 1:{scale:g}, {stretched}, a packet for {packets}",
        f"Everything ran on one machine: hosts are Linux namespaces, {rates}, and all takes {dilation:g} times as "
        f"long, TCP's retransmission timers included; messages are 1:{packets} of their size, and a packet stands for "
        f"{packets}. DCQCN's parameters are published ones, and nothing of it was calibrated here. Times, rates and "
        "bytes on this page are the papers'. What this cannot show:",
        (
            *CANNOT[:2],
            *([FEWER_CUTS.format(more, more)] if more != 1 else []),
            FEEDBACK.format(ROUND_TRIP_US / of_transport),
            NOT_STRETCHED,
            BURSTS.format(BURST_BYTES * scale / of_transport / 1e3),
            *CANNOT[2:],
        ),
    )
