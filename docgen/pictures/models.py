# SPDX-License-Identifier: Apache-2.0
"""Pictures at the top of explanations, drawn by the models that the pages explain."""

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from analysis.render.page import svg_of
from analysis.render.style import FREE, INK, JOBS, SOFT, draw_level, draw_word_key, new_figure
from analysis.statistics.degradation.model import EXPONENTS, iteration_time_s
from roundabout.models.fluid import BYTES_PER_MS_OF_GBPS, Engine, FluidJob, ResidualCapacity, capacities, fluid_jobs
from roundabout.models.fluid.jobs import Barrier, ComputePhase, SendPhase, Stream
from roundabout.models.fluid.mltcp import SHAPES, Factor
from roundabout.models.packets.hardware_defaults import Fabric, payload_bytes
from roundabout.models.packets.structures import PS_PER_MS
from roundabout.models.packets.trial import open_trial
from roundabout.spec import TrialSpec, load_experiment

EXPERIMENT, FIGURE = "unfair-vgg19", "fig-1"
LEAD_MS = 60.0
"""How much earlier the first job of the flow-level picture begins."""
PACKETS_MS = (145.0, 245.0)
"""The shown part of the packets' picture: about from the first packet, and a part of the first iteration."""
STEP_MS = 0.5
CAPACITY_GBPS = 25.0  # of Salamy's link
SLOWDOWN_AT_HALF = 2.0
"""Slowdown that all three curves of degradation share where cross traffic takes half of the link."""
RATE = 5e6  # of the link of two MLTCP jobs, bytes/ms; the picture has no units
OFFSETS = np.linspace(0.02, 0.98, 17)


def draw_flow_level() -> str:
    """Return the picture of two jobs in the flow-level model: the use of their link, and when each sends."""
    spec = _spec("fair")
    link = spec.topology.bottleneck
    first, second = fluid_jobs(spec).values()
    jobs = {"j1": first, "j2": replace(second, start_ms=first.start_ms + LEAD_MS)}
    engine = Engine(ResidualCapacity.constant(capacities(spec.topology)), sample_ms=1.0)
    for name, job in jobs.items():
        engine.add(name, replace(job, iterations=3))
    engine.run_to_end()
    figure, (use, phases) = new_figure(2, 1, 3.2, sharex=True, height_ratios=(2, 1))
    carried = engine.carried()[link.ends]
    use.fill_between(np.arange(len(carried) - 1), np.diff(carried) / BYTES_PER_MS_OF_GBPS, color=JOBS[0], alpha=0.35,
                     step="post", linewidth=0)  # fmt: skip
    use.set_ylim(0, 1.35 * link.payload_rate_gbps)
    draw_level(use, link.payload_rate_gbps, f"{link.name} carries {link.payload_rate_gbps:g}")
    use.set_ylabel("Gbit/s")
    for place, (name, colour) in enumerate(zip(jobs, JOBS, strict=False)):
        for _, communication, end, *_ in engine.iterations(name)[0]:
            phases.barh(place, end - communication, 0.6, communication, color=colour)
    phases.set_yticks(range(len(jobs)), [f"{name} sends" for name in jobs])
    phases.set_ylim(len(jobs) - 0.5, -0.5)
    phases.set_xlabel("ms")
    return svg_of(figure)


def draw_packets() -> str:
    """Return the picture of two jobs in the packet-level model: their rates in the first iteration, fair and unfair."""
    figure, panels = new_figure(1, 2, 2.7, sharey=True)
    for panel, variant in zip(panels, ("fair", "unfair"), strict=True):
        spec = _spec(variant)
        at_ms, rates = _packet_rates(spec)
        for colour, rate in zip(JOBS, rates, strict=False):
            panel.plot(at_ms, rate, color=colour, linewidth=1.1)
        panel.set_title(f"{variant}: {_timers(spec)}")
        panel.set_xlabel("ms since the start")
        panel.set_ylim(0, 45)
    panels[0].set_ylabel("payload, Gbit/s")
    draw_word_key(panels[1], dict(zip(spec.jobs, JOBS, strict=False)))
    return svg_of(figure)


def _packet_rates(spec: TrialSpec) -> tuple[np.ndarray, np.ndarray]:
    """Return instants and each job's mean payload rate of a worker before each of them, in Gbit/s."""
    engine, _, jobs = open_trial(spec, 1, Fabric())
    at_ms = np.arange(*PACKETS_MS, STEP_MS)
    delivered = []
    for instant in at_ms:
        engine.run(round(instant * PS_PER_MS))
        delivered.append(
            [sum(engine.pair_result(pair).delivered for pair in job.pairs.values()) for job in jobs.values()]
        )
    packet = payload_bytes(spec.topology.mtu_bytes)
    sent = np.diff(np.array(delivered, float), axis=0).T * packet / STEP_MS / BYTES_PER_MS_OF_GBPS
    workers = np.array([len(job.workers) for job in spec.jobs.values()])
    return at_ms[1:], sent / workers[:, None]


def _timers(spec: TrialSpec) -> str:
    timers = [job.transport.model_dump()["T_us"] for job in spec.jobs.values()]
    return f"T of {' and '.join(f'{timer:g}' for timer in dict.fromkeys(timers))} µs"


def draw_aggressiveness() -> str:
    """Return the picture of MLTCP's F by shape, from what a flow has sent of its iteration."""
    figure, (panel,) = new_figure(1, 1, 2.6)
    ratio = np.linspace(0, 1, 101)
    colours = dict(zip(SHAPES, FREE, strict=False))
    for shape, colour in colours.items():
        a, b, c, d, e = Factor(shape=shape).coefficients
        panel.plot(ratio, (a + b * ratio + c * ratio**2) / (d + e * ratio), color=colour)
    panel.set_xlim(0, 1)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("sent share of the iteration's bytes")
    panel.set_ylabel("F")
    draw_level(panel, 1, "the base transport")
    draw_word_key(panel, colours)
    return svg_of(figure)


def draw_mltcp_shift() -> str:
    """Return the picture of how far MLTCP moves two jobs apart in an iteration, by the theory and by the engine."""
    figure, (panel,) = new_figure(1, 1, 2.8)
    factor = Factor()
    offsets = np.linspace(0, 1, 101)
    shift = factor.slope * offsets * (1 - offsets) / (factor.intercept + factor.slope * offsets)
    panel.plot(offsets, shift, color=SOFT)
    found = [_shift_of_engine(offset, factor) for offset in OFFSETS]
    panel.plot(OFFSETS, found, "o", color=JOBS[0], markersize=4.5)
    panel.set_xlabel("offset of two jobs, as a share of the time that one takes to send alone")
    panel.set_ylabel("growth in an iteration")
    panel.set_xlim(0, 1)
    panel.set_ylim(bottom=0)
    draw_word_key(panel, {"published theory": SOFT, "fluid engine": JOBS[0]})
    return svg_of(figure)


def _shift_of_engine(offset: float, factor: Factor) -> float:
    """Return by how much the offset of two like jobs grows in an iteration; all as shares of a job's sending time."""
    link, send_ms = ("a", "b"), 100.0
    stream = Stream(0, 0, (link,), RATE * send_ms)
    phases = (ComputePhase(3 * send_ms), SendPhase((stream,), send_ms, (Barrier((0,), (0,)),)))
    engine = Engine(ResidualCapacity.constant({link: RATE}))
    for name, start_ms in (("j1", 0.0), ("j2", offset * send_ms)):
        engine.add(name, FluidJob(phases, 1, start_ms=start_ms, iterations=2, factor=factor))
    engine.run_to_end()
    begins = [engine.iterations(name)[0, 1, 1] for name in ("j1", "j2")]
    return float(begins[1] - begins[0]) / send_ms - offset


def draw_degradation() -> str:
    """Return the picture of the model of degradation, by the exponent n of each kind of cross traffic."""
    figure, panels = new_figure(1, 2, 2.7, sharey=True)
    load = np.linspace(0, 0.8 * CAPACITY_GBPS, 101)
    colours = dict(zip(EXPONENTS, JOBS, strict=False))
    for kind, n in EXPONENTS.items():
        b = np.log(SLOWDOWN_AT_HALF) / (CAPACITY_GBPS**-n * (2**n - 1))
        slowdown = iteration_time_s(load, 1.0, b, n, CAPACITY_GBPS) / iteration_time_s(
            load[:1], 1.0, b, n, CAPACITY_GBPS
        )
        panels[0].plot(load, slowdown, color=colours[kind])
        panels[1].plot(CAPACITY_GBPS / (CAPACITY_GBPS - load), slowdown, color=colours[kind])
    _label_degradation(panels)
    draw_word_key(panels[1], {f"{kind}, n = {n:g}": colours[kind] for kind, n in EXPONENTS.items()})
    return svg_of(figure)


def _label_degradation(panels: list[Axes]) -> None:
    panels[0].set_xlabel(f"load BW, Gbit/s of {CAPACITY_GBPS:g}")
    panels[1].set_xlabel("hyperbola C / (C - BW)")
    panels[0].set_ylabel("slowdown")
    panels[0].set_yscale("log")
    panels[0].set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    panels[0].set_ylim(0.95, 30)
    for panel in panels:
        panel.minorticks_off()
        panel.axhline(SLOWDOWN_AT_HALF, color=INK, linewidth=0.6, linestyle=(0, (4, 3)))


def _spec(variant: str) -> TrialSpec:
    """Return the trial of two VGG19 jobs on one link under a variant of HotNets'22, Figure 1."""
    cells = load_experiment(EXPERIMENT).cells
    return next(cell.spec for cell in cells if cell.levels == {"variant": variant, "figure": FIGURE})
