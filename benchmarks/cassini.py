# SPDX-License-Identifier: Apache-2.0
"""Cassini's rotations: our search against an exhaustive grid of the same angles, which must find the same excess.

    python benchmarks/cassini.py [--links N] [--repeats N] [--picture FILE] [--short] [--json]

Jobs are random: one Up phase of 10 to 40 % of the iteration at 15 to 45 Gbit/s, on a link of 50. Their iteration times
are of 100, 200 and 300 ms, or equal, which leaves most rotations to try; with Up phases of 20 to 50 % the link has too
little room, which leaves most to rule out. Times are CPU seconds of one processor, from circles to rotations. Then
Algorithm 2 on placements of 48 links with 3 jobs each, on two processors by the clock, and on ever more links on one.
"""

import itertools
import os
import random
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from benchmarks.shared.command import print_result, quickest, read_options
from roundabout.models.cassini import Arc, Candidate, Circle, Rotations, rank_placements, rotate, unify
from roundabout.models.cassini.circles import Floats

CAPACITY_GBPS = 50.0
SIZES = ((2, 1.0, 20), (3, 5.0, 20), (4, 5.0, 3), (5, 5.0, 1))
"""Number of jobs, degrees between rotations, and number of links on which the grid is searched."""
LINKS = 40
UNEQUAL_MS = (100.0, 200.0, 300.0)
KINDS = {
    "unequal": (UNEQUAL_MS, (0.1, 0.4), 1),
    "equal": ((200.0,), (0.1, 0.4), 1),
    "equal, crowded": ((200.0,), (0.2, 0.5), 1),
    "equal, two phases": ((200.0,), (0.2, 0.5), 2),
}
"""Iteration times, range of the Up share of an iteration, and number of Up phases, by kind of job."""
REPEATS = 5
GROWTH = (10, 30, 100, 300, 1000)


def job(rng: random.Random, name: str, kind: str = "unequal") -> Circle:
    """Return the circle of a random job of a kind in `KINDS`."""
    periods_ms, up, phases = KINDS[kind]
    period_ms = rng.choice(periods_ms)
    begins_ms = (phase * period_ms / phases for phase in range(phases))
    arcs = (Arc(ms, ms + period_ms / phases * rng.uniform(*up), rng.uniform(15, 45)) for ms in begins_ms)
    return Circle(name, period_ms, tuple(arcs))


def grid_excess(found: Rotations) -> float:
    """Return the least mean excess over all rotations of the same sectors, the first job's being 0.

    The rotations of the last two jobs are tried in one array.
    """
    counts = [1, *(-(-found.sectors // turns) for turns in found.unified.turns[1:])]
    rolled = [
        np.stack([np.roll(demand, step) for step in range(count)])
        for demand, count in zip(found.demands_gbps, counts, strict=True)
    ]
    rolled = [np.zeros((1, found.sectors)), *rolled] if len(rolled) < 3 else rolled
    best = np.inf
    for steps in itertools.product(*(range(len(rows)) for rows in rolled[:-2])):
        fixed = sum(rows[step] for rows, step in zip(rolled, steps, strict=False)) - found.capacity_gbps
        best = min(best, least(fixed, rolled[-2], rolled[-1]))
    return best


def least(fixed: Floats, one: Floats, other: Floats) -> float:
    """Return the least mean excess over all pairs of rotations of two jobs' demands, added to `fixed`."""
    total = (fixed + one)[:, None, :] + other
    return float(np.maximum(total, 0, out=total).mean(axis=-1).min())


def search(circles: Sequence[Circle], degrees: float) -> Rotations:
    return rotate(unify(circles), CAPACITY_GBPS, degrees)


def one_link(jobs: int, degrees: float, tried: int, kind: str, options: Namespace) -> dict[str, Any]:
    """Measure our search on random links of `jobs` jobs; compare it on `tried` links with the exhaustive grid."""
    rng, ours_s, ratios, best = random.Random(jobs), [], [], 0
    search([job(rng, "first", kind)], degrees)  # loads what is loaded once
    for link in range(options.links):
        circles = [job(rng, f"j{place}", kind) for place in range(jobs)]
        taken_s, found = quickest(options.repeats, partial(search, circles, degrees))
        ours_s.append(taken_s)
        best += found.is_best
        if link < tried:
            begin = time.process_time()
            excess = grid_excess(found)
            ratios.append((time.process_time() - begin) / ours_s[-1])
            assert abs(excess - found.excess_gbps) < 1e-6, (circles, excess, found)
    figures = {"median_ms": statistics.median(ours_s) * 1e3, "p90_ms": float(np.quantile(ours_s, 0.9)) * 1e3}
    return {
        **figures,
        "max_ms": max(ours_s) * 1e3,
        "best": best / options.links,
        "grid_over_ours": statistics.median(ratios),
    }


def placements(count: int, links: int) -> tuple[list[Candidate], dict[str, Circle], dict[str, float]]:
    """Return placements with circles and capacities, in which no two links have the same jobs."""
    rng, candidates = random.Random(links), []
    circles = {name: job(rng, name) for name in (f"j{place}" for place in range(3 * links))}
    for candidate in range(count):
        names = rng.sample(sorted(circles), len(circles))
        crossing = {f"L{link}": tuple(names[3 * link : 3 * link + 3]) for link in range(links)}
        candidates.append(Candidate(f"p{candidate}", crossing))
    return candidates, circles, {f"L{link}": CAPACITY_GBPS for link in range(links)}


def two_processors(count: int, links: int) -> float:
    """Return the elapsed seconds of Algorithm 2 on two processors."""
    with ProcessPoolExecutor(2) as pool:
        begin = time.perf_counter()
        rank_placements(*placements(count, links), precision_deg=5, mapped=lambda *work: pool.map(*work, chunksize=30))
        return time.perf_counter() - begin


def growth(most_links: int) -> dict[int, float]:
    """Return the CPU seconds of Algorithm 2 on one processor, by the number of links."""
    taken = {}
    for links in (each for each in GROWTH if each <= most_links):
        given = placements(1, links)
        begin = time.process_time()
        found = rank_placements(*given, precision_deg=5)
        assert len(found.ranked[0].shifts_ms) == 3 * links
        taken[links] = time.process_time() - begin
    return taken


def draw(taken: dict[int, float], file: str) -> None:
    """Draw CPU seconds against the number of links into a file."""
    from analysis.render import style  # noqa: PLC0415 - takes a second, and only pictures need it

    drawn, (axes,) = style.new_figure(1, 1, 3.4)
    axes.loglog(list(taken), list(taken.values()), marker="o", color=style.JOBS[0])
    axes.set_xticks(list(taken), [f"{links}" for links in taken])
    axes.set_yticks([0.001, 0.01, 0.1, 1], ["1 ms", "10 ms", "100 ms", "1 s"])
    axes.minorticks_off()
    axes.set(
        xlabel="links with three jobs each", ylabel="CPU time", title="Scores and unique time-shifts of a placement"
    )
    drawn.savefig(file, dpi=150)


def main() -> None:
    """Measure Cassini's search, and print the figures."""
    options = read_options(__doc__, {"links": 1, "repeats": 1}, links=LINKS, repeats=REPEATS, picture="")
    count, links, most_links = (2, 5, 30) if options.short else (10, 48, max(GROWTH))
    results = {
        f"{jobs} jobs at {degrees:g}°, {kind}": one_link(jobs, degrees, tried, kind, options)
        for jobs, degrees, tried in (SIZES[1:2] if options.short else SIZES)
        for kind in KINDS
    }
    taken, both_s = growth(most_links), two_processors(count, links)
    if options.picture:
        draw(taken, options.picture)
    result = {"one_link": results, "growth_s": taken, "two_processors_s": both_s}
    lines = [*map(format_link, results, results.values())]
    lines.append("   ".join(f"{links} links {seconds:.2f} s" for links, seconds in taken.items()))
    lines.append(f"{count} placements x {links} links x 3 jobs, two processors: {both_s:.2f} s by the clock")
    print_result(options, result, lines)


def format_link(name: str, found: dict[str, Any]) -> str:
    times = "   ".join(f"{key} {found[f'{key}_ms']:7.2f} ms" for key in ("median", "p90", "max"))
    return f"{name:38} {times}   best {100 * found['best']:.0f} %   grid / ours {found['grid_over_ours']:8.1f}"


if __name__ == "__main__":
    main()
