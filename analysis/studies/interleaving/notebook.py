# SPDX-License-Identifier: Apache-2.0
# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% tags=["parameters"]
RUN = "last"

# %%
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from analysis.expectations import verdict_tables
from analysis.reading.cached_run import CachedRun
from analysis.reading.cells import by_group, cells_of, jobs_of
from analysis.reading.congestion.marks import marks_of_cells
from analysis.reading.traces import median_trial, read_traces
from analysis.render import cables, page
from analysis.render.link_use import draw_link_use
from analysis.reports import about
from analysis.reports.summary import stored_or_new
from analysis.studies.interleaving import figures, tables
from analysis.studies.interleaving.study import Results, sharing_cells
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)
cells = by_group(cells_of(run), lambda cell: cell.id)
together = {group: sharing_cells(own) for group, own in cells.items()}
trials_by_cell = {group: read_traces(run, own) for group, own in together.items()}
traces = {group: [trace for trials in own for trace in trials] for group, own in trials_by_cell.items()}
typical = {group: [median_trial(each) for each in own] for group, own in trials_by_cell.items()}
marks = {group: marks_of_cells(run, own) for group, own in cells.items()}
found = by_group(results.cells, lambda cell: cell.id)
jobs = " and ".join(jobs_of(cell for own in together.values() for cell in own))


TOO_SHORT = "Iterations are too short for a figure of rates: it needs two bins of 10 ms at least."
ONE_ITERATION = "This figure was not drawn, because no job has two iterations."


def draw(
    plot: Callable[..., Figure | None], caption: str, alt: str, missing: str, *data: Mapping[str, Sequence[Any]]
) -> page.Html:
    """Return a figure of `data` for each group of cells that differ only in the variant, below the group's name.

    Groups without a valid trial of jobs that share a link are left out, and those in which nothing can be drawn.
    If that leaves no figure, the sentence `missing` replaces it.
    """
    plots = {group: plot(*(each[group] for each in data)) for group, own in together.items() if own}
    drawn = {group: figure for group, figure in plots.items() if figure}
    if not drawn:
        return page.figure_html(None, caption, alt, missing if plots else page.NO_FIGURE)
    return page.concatenate(
        page.bold_heading(group)
        + page.figure_html(
            figure, caption if place == 0 else f"The same: {group}.", f"{alt}: {group}" if group else alt
        )
        for place, (group, figure) in enumerate(drawn.items())
    )


# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## Iteration times
#
# Milliseconds, from the start of a job's computing to the end of its slowest worker's communication. Figures are over
# all iterations of all valid repetitions; the 95 % interval is below each figure. *Last half* is the second half of
# each repetition's iterations, by which jobs that slide apart should have separated.
#
# The fluid limit is the iteration time with max-min fair sharing of links: alone, with a common start, or interleaved
# with the best start offsets found. Interleaved jobs may wait so that their periods have a common multiple. *Off the
# limit* compares the last half with it.

# %%
page.captioned_table_html(tables.time_table(results))

# %%
page.named_values(
    f"Of what perfect interleaving would save over {results.study.baseline}, saved in the last half",
    tables.describe_gains(results),
)

# %% [markdown]
# ## The first iterations
#
# Jobs compute, and communicate at the same time on shared links. A panel has the jobs of one link. Jobs with equal
# DCQCN timers should get equal shares. A job with a shorter rate-increase timer T recovers sooner after each cut. It
# should get the larger share, finish first, and begin its next iteration earlier.

# %%
draw(
    figures.draw_first_iterations,
    "Bandwidth by the byte counters of each job's first host, read every 10 ms, headers included. Thick: the "
    "repetition that took neither longest nor shortest; thin: the others. Shaded: the first time that all jobs send in "
    "the former, with each one's mean then, over all repetitions. Compare HotNets'22, Figures 1b, 1c.",
    f"Bandwidth of {jobs} over the first three iterations, by variant",
    TOO_SHORT,
    trials_by_cell,
)

# %% [markdown]
# ## Sliding apart
#
# A lead gained in one iteration carries over to the next. If the lead grows, the overlap of communication phases
# shrinks, until some jobs compute while others communicate.

# %%
page.named_values(
    "Of the time in which any job of a link sent, several did at once in the first iteration and over the last half",
    tables.describe_overlaps(results),
)

# %%
draw(
    draw_link_use,
    "Use of each shared link from the start, its jobs stacked, by what each job's first host sends over all of its "
    "NICs; the middle repetition. Compare HotNets'22, Figures 2a, 2b.",
    f"Stacked bandwidth of {jobs} over time, by variant",
    TOO_SHORT,
    typical,
)

# %%
draw(
    figures.draw_sliding,
    "Every iteration of that repetition as a row that begins when the link's first job begins it: when each job that "
    "shares the link communicates, and, dark, when they do so at once.",
    f"When {jobs} communicate, iteration by iteration, by variant",
    ONE_ITERATION,
    typical,
)

# %% [markdown]
# ## Effect on iteration times

# %%
draw(
    figures.draw_distributions,
    "Distributions over all iterations of all repetitions. Compare HotNets'22, Figure 1d, and the interleaving thesis, "
    "Figure 4.13.",
    "Cumulative distributions of iteration times and of ECN marks per iteration, by variant and job",
    ONE_ITERATION,
    cells,
    marks,
    found,
)

# %%
draw(
    figures.draw_over_iterations,
    "Iteration times in order. Thin: each repetition; thick: their median.",
    "Iteration time against iteration number, by job and variant, with the fluid model's limits",
    ONE_ITERATION,
    cells,
    found,
)

# %% [markdown]
# ## ECN marks and the queue
#
# If jobs communicate at the same time, a queue builds up and the switch marks packets. Jobs that send in turns should
# cause fewer marks. A mark is attributed to the job whose worker sent the packet, and to the iteration at the time of
# marking. An iteration lasts from its start to the start of the next one.
#
# Counters are read every 10 ms. *Off by at most* is the largest number of marks that may belong to the neighboring
# iterations. *Unattributed* is the share of marks that belong to no iteration.

# %%
page.table_html(tables.mark_table(results.cells))

# %%
draw(
    figures.draw_marks_over_iterations,
    "ECN marks in each iteration, on all links. Thin: each repetition; thick: their median. Marks are as counted, "
    "of packets that are as large as on a real link, and fewer. Compare the interleaving thesis, Figure 4.14.",
    "ECN marks against iteration number, by job and variant",
    ONE_ITERATION if any(map(any, marks.values())) else page.NO_FIGURE,
    cells,
    marks,
)

# %%
draw(
    figures.draw_backlog,
    "A shared link's queue where it leaves the switch, mean in each iteration of the link's first job, one line a "
    "repetition; bytes at the paper's scale.",
    "Mean backlog of the shared link per iteration, by variant",
    page.NO_FIGURE,
    traces,
)

# %%
cables.cables_of(run, cells_of(run))

# %% [markdown]
# ## Fidelity

# %%
about.fidelity_notes(results, run)

# %%
about.headroom(run)

# %%
about.applied_settings(run)

# %% [markdown]
# ## How the figures were made
#
# Variants ran in random order within each repetition. Iterations within a repetition depend on each other, and
# repetitions are independent. So intervals are Student's t over repetitions. The interval of a 99th percentile lies
# between two of the longest iterations; the scatter of the repetitions decides which. With fewer than four repetitions
# there is no interval. With fewer than 1,000 iterations, a 99th percentile would be a guess. The table then shows the
# longest iteration, and the number of iterations.
#
# Iterations may have two modes, for example if jobs meet in every second iteration. A median is then one mode or the
# other by chance. The criterion is the share of the variance that the best split into two groups explains (Otsu 1979;
# an even distribution reaches 75 %). From 70 % on, the interval of a median comes from ranks. From 80 % on, tables
# show means, and speed-ups compare means.
#
# A speed-up without the name of a job is that of the job that gains least. A verdict is pass if the whole interval
# lies within the paper's figure plus or minus the tolerance, and fail if none of it does. Otherwise it is
# inconclusive.
#
# The fluid model gives every worker its max-min share of the payload rates along its path. A job's data become
# available at its profile's own demand, and data that must wait leave as fast as the share allows.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
