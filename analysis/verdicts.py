# SPDX-License-Identifier: Apache-2.0
"""What the network requirements thesis claims in chapter 3, and whether a run's sweeps show it.

Where the thesis says "hardly" or "considerably" the bounds are ours, and stated with the claim.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.degradation.thesis import BERT, DENSENET, RESNET, VGG
from analysis.statistics.degradation.model import EXPONENTS
from analysis.studies.load_sweep.study import NEAR_GBPS

LIGHT_GBPS, HEAVY_GBPS = 8.0, 20.0
"""The loads that the thesis calls 30 % and 80 % (section 3.4.1)."""
TIMES = "{:.2f}| times"
"""How a figure is written, and behind a bar its unit."""
LEAST_ITERATIONS = 50
"""Below so many a 99 % tail is a guess; the thesis measures as many at least (section 3.3.2)."""

Sweep = dict[str, Any]
"""An entry of `sweeps` in summary.json."""


@dataclass(frozen=True)
class Verdict:
    """A claim, where the thesis makes it, what was found here; `agrees` is None where nothing was measured of it."""

    claim: str
    source: str
    here: str
    agrees: bool | None


def verdicts(sweeps: Sequence[Sweep]) -> list[Verdict]:
    """All of the claims that this module knows, in the order of the thesis."""
    return [claim(sweeps) for claim in CLAIMS]


def near(sweep: Sweep, load_gbps: float) -> dict[str, Any] | None:
    """The level of a sweep that stands for a load, by what was on the wire; None where none is near."""
    level = min(sweep["levels"], key=lambda level: abs(level["wire_gbps"] - load_gbps), default=None)
    return level if level and abs(level["wire_gbps"] - load_gbps) <= NEAR_GBPS else None


def _flat(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "Without much to send, training does not notice light loads (DenseNet, ResNet within 5 % at 30 % load)"
    factors = _slower(sweeps, LIGHT_GBPS, (DENSENET, RESNET))
    return _verdict(claim, "Figures 3-2 to 3-4", factors, lambda each: each <= 1.05)


def _immediate(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "Over RDMA, BERT and VGG notice them at once (more than 5 % slower at 30 % load)"
    rdma = [sweep for sweep in sweeps if sweep["transport"] == "RDMA"]
    return _verdict(claim, "Figures 3-2, 3-3", _slower(rdma, LIGHT_GBPS, (BERT, VGG)), lambda each: each > 1.05)


def _fits(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "t = A exp(B / (C - BW)ⁿ) describes BERT and VGG (R² of at least 0.95, of log t)"
    found = {each["name"]: each["fit"]["r_squared"]["log"] for each in sweeps if each["fit"] and _is(each, BERT, VGG)}
    return _verdict(claim, "Figures 3-2, B-2: 0.99, 0.99; burst 0.83", found, lambda each: each >= 0.95, "{:.3f}|")


def _exponents(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "With C held at the link's rate, n is 1 under iperf, 1/2 under consistent and 2 under burst traffic"
    found: dict[str, list[bool]] = {}
    for sweep in sweeps:
        n = _best_exponent(sweep)
        if n is not None and sweep["traffic"] in EXPONENTS:
            found.setdefault(sweep["traffic"], []).append(n == EXPONENTS[sweep["traffic"]])
    counts = "; ".join(f"{kind} in {sum(each)} of {len(each)}" for kind, each in found.items())
    agrees = all(all(each) for each in found.values())
    here = f"foretells levels best of the three under {counts}"
    return Verdict(claim, "equations 3.3, 3.5, 3.6", here, agrees if found else None)


def _best_exponent(sweep: Sweep) -> float | None:
    """Of the thesis' n with C held, the one that foretells levels best."""
    tried = sweep["fit"]["chosen_by"] if sweep["fit"] else []
    held = (each["n"] for each in tried if each["n"] is not None and each["capacity_gbps"] is not None)
    return next(held, None)


def _above_theory(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "At the congestion point more data would fit through than an iteration sends"
    found = {each["name"]: each["congestion"]["above_theory_percent"] for each in sweeps if each["congestion"]}
    return _verdict(claim, "Tables 3.2, 3.4, 3.6: 10 to 132 %", found, lambda each: each > 0, "{:+.0f}| %")


def _spare(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "Once saturated, web-search traffic leaves more of the link unused than iperf does"
    of = {(each["model"], each["traffic"]): each["spare_gbps"] for each in sweeps if each["spare_gbps"] is not None}
    more = {
        f"{model}, {traffic}": spare - of[model, "iperf"]
        for (model, traffic), spare in of.items()
        if traffic != "iperf" and (model, "iperf") in of
    }
    return _verdict(claim, "Table 3.8: 1.0 to 1.4 Gbit/s more", more, lambda each: each > 0, "{:+.2f}| Gbit/s")


def _alike(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "At 30 % load consistent and burst traffic hardly differ (means within 5 %)"
    ratios = _burst_over_consistent(sweeps, LIGHT_GBPS, "mean_s")
    return _verdict(claim, "Figure 3-5a", ratios, lambda each: abs(each - 1) <= 0.05)


def _worse(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "At 80 % load burst traffic is the worse one (99 % tails)"
    ratios = _burst_over_consistent(sweeps, HEAVY_GBPS, "p99_s")
    return _verdict(claim, "Figure 3-5b", ratios, lambda each: each >= 1)


def _factors(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "At 80 % load, web-search traffic slows ResNet down up to 4 times and BERT up to 8 times (within a quarter)"
    web = [sweep for sweep in sweeps if sweep["traffic"] != "iperf"]
    worst = {model: max(_slower(web, HEAVY_GBPS, (model,)).values(), default=None) for model in (RESNET, BERT)}
    found = {model: factor for model, factor in worst.items() if factor is not None}
    agrees = all(abs(found[model] / paper - 1) <= 0.25 for model, paper in ((RESNET, 4), (BERT, 8)) if model in found)
    return Verdict(claim, "abstract", _listed(found, "{:.1f}| times"), agrees if found else None)


def _tails(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "At heavy loads the 99 % tail lies 60 % above the mean, on average (30 to 90 %)"
    levels = [level for level in (near(sweep, HEAVY_GBPS) for sweep in sweeps) if level and _has_tail(level)]
    if not levels:
        return Verdict(claim, "chapter 4", "", None)
    tail = 100 * (sum(level["p99_s"] / level["mean_s"] for level in levels) / len(levels) - 1)
    return Verdict(claim, "chapter 4", f"{tail:.0f} % in {_count(len(levels))}", 30 <= tail <= 90)


def _meet(sweeps: Sequence[Sweep]) -> Verdict:
    claim = "BERT trains faster over RDMA than over TCP (0.84 s against 1.45 s), but not under heavy load (within 15 %)"
    at = {each["transport"]: each for each in sweeps if each["traffic"] == "consistent" and _is(each, BERT)}
    if len(at) < 2:
        return Verdict(claim, "Figure 3-6", "", None)
    pairs = [(near(at["RDMA"], load), near(at["TCP"], load)) for load in (0.0, HEAVY_GBPS)]
    ratios = [tcp["mean_s"] / rdma["mean_s"] for rdma, tcp in pairs if rdma and tcp]
    if len(ratios) < 2:
        return Verdict(claim, "Figure 3-6", "", None)
    here = f"TCP takes {ratios[0]:.2f} times as long without load, {ratios[1]:.2f} times at 80 %"
    return Verdict(claim, "Figure 3-6", here, ratios[0] > 1.15 and abs(ratios[1] - 1) <= 0.15)


CLAIMS: tuple[Callable[[Sequence[Sweep]], Verdict], ...] = (
    _flat, _immediate, _fits, _exponents, _above_theory, _spare, _alike, _worse, _factors, _meet, _tails,
)  # fmt: skip


def _has_tail(level: dict[str, Any]) -> bool:
    return bool(level["repetitions"] * level["iterations"] >= LEAST_ITERATIONS)


def _is(sweep: Sweep, *models: str) -> bool:
    return sweep["model"] in models


def _slower(sweeps: Iterable[Sweep], load_gbps: float, models: Sequence[str]) -> dict[str, float]:
    """By sweep: how many times as long as without load an iteration takes near a load."""
    levels = {sweep["name"]: near(sweep, load_gbps) for sweep in sweeps if _is(sweep, *models)}
    return {name: level["times_no_load"] for name, level in levels.items() if level and level["times_no_load"]}


def _burst_over_consistent(sweeps: Sequence[Sweep], load_gbps: float, figure: str) -> dict[str, float]:
    """By model and transport."""
    levels = {(each["model"], each["transport"], each["traffic"]): near(each, load_gbps) for each in sweeps}
    found = {}
    for (model, transport, traffic), burst in levels.items():
        consistent = levels.get((model, transport, "consistent"))
        tails = figure != "p99_s" or all(level and _has_tail(level) for level in (burst, consistent))
        if traffic == "burst" and burst and consistent and tails:
            found[f"{model}, {transport}"] = burst[figure] / consistent[figure]
    return found


def _verdict(
    claim: str,
    source: str,
    found: dict[str, float],
    holds: Callable[[float], bool],
    form: str = TIMES,
) -> Verdict:
    """Agrees where it holds everywhere; else those where it does not are named."""
    if not found:
        return Verdict(claim, source, "", None)
    digits, unit = form.split("|")
    ends = sorted({digits.format(value) for value in (min(found.values()), max(found.values()))}, key=float)
    against = {name: value for name, value in found.items() if not holds(value)}
    where = f"; not so: {_listed(against, form)}" if against else ""
    return Verdict(claim, source, f"{' to '.join(ends)}{unit} in {_count(len(found))}{where}", not against)


def _count(cases: int) -> str:
    return "one case" if cases == 1 else f"{cases} cases"


def _listed(found: dict[str, float], form: str) -> str:
    return ", ".join(f"{name} {form.replace('|', '').format(value)}" for name, value in found.items())
