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
from collections.abc import Callable

from matplotlib.figure import Figure

from analysis.expectations import verdict_tables
from analysis.reading.cached_run import CachedRun
from analysis.reading.data import ports
from analysis.reading.timelines import ClusterCell, read_clusters
from analysis.render import page
from analysis.render.style import variant_colours
from analysis.reports import about
from analysis.reports.summary import stored_or_new
from analysis.studies.cluster import figures, tables
from analysis.studies.cluster.study import PooledIterations, Results, groups, whole_traces
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)
pooled = results.pooled
cells = read_clusters(run)
shared = figures.without_dedicated(cells)
colours = variant_colours([cell.variant for cell in cells])
looks = figures.model_looks(cells)
sent = ports(run, "tx_bytes", tuple(cell.first.key for cell in cells))


def each_group(
    draw: Callable[[list[ClusterCell]], Figure | None], what: str, caption: str, some: list[ClusterCell] = cells
) -> page.Html:
    """Return HTML with a figure for each group of compared cells, below the group's name."""
    drawn = [(name, draw(own)) for name, own in groups(some)]
    return page.Html("").join(
        page.bold_heading(name) + page.figure_html(result, caption, f"{what}: {name}" if name else what)
        for name, result in drawn
        if result
    )


def of_group(some: list[ClusterCell]) -> list[PooledIterations]:
    """Return the pooled results of the cells `some`."""
    return [each for each in pooled if each.group == some[0].id.other_levels]


# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## Iteration times of all jobs
#
# All iterations of all jobs and repetitions together, as in the thesis. Long iterations of big models have the largest
# weight in these means. A speed-up compares with the same scheduler without Cassini, or with the study's baseline.
# Jobs do the same work under all schedulers. The number of iterations may differ, because schedulers give a job more
# or fewer workers. Jobs of one worker send nothing and are not included.

# %%
page.table_html(tables.pooled_table(results))

# %%
each_group(
    lambda some: figures.draw_distributions(some, of_group(some), colours),
    "Cumulative distributions of all iteration times",
    "Iteration times of all jobs: in ms, and as multiples of what the same workers need in a dedicated cluster.",
)

# %% [markdown]
# ## Compared with a dedicated cluster
#
# Each iteration's time as a multiple of its time with the same workers on otherwise idle links. All models have equal
# weight in this figure, and the number of workers has no effect. The speed-up is that of the mean multiple.

# %%
page.table_html(tables.dedicated_table(results))

# %% [markdown]
# ## By model
#
# The mean of these multiples, by model.

# %%
page.table_html(tables.slowdown_table(results))

# %% [markdown]
# Speed-ups of the mean iteration time, compared with the same schedulers as above. Schedulers that give a model
# another number of workers change the length of its iterations.

# %%
page.table_html(tables.speedup_table(results))

# %% [markdown]
# ## The trace, event by event
#
# The first repetition. A dot is an iteration at its start, in its model's color. A move is a job that continues with
# other workers. Where each job has its own cluster, there are no such events.

# %%
each_group(
    lambda some: figures.draw_events(some, looks),
    "Iteration times over time",
    f"Iteration times as the trace goes on, and above them what happened to jobs. {figures.describe_decimation(cells)}",
    shared,
)

# %% [markdown]
# ## Placements over time

# %%
each_group(
    lambda some: figures.draw_placements(some, looks),
    "Jobs by host over time",
    "Which models' jobs each host had; where one has several GPUs, the last one that came is drawn over the others.",
    shared,
)

# %% [markdown]
# ## Completion, queueing and fairness
#
# From the timeline of each trial. Completion is the time from arrival to end, queueing the time from arrival to the
# first placement. Fairness is Themis' finish-time fairness: time in the shared cluster divided by the time in a
# dedicated one with the requested number of workers. *Worst* is the mean over repetitions of the job with the worst
# value. Jobs that were never placed, or had not finished at the end, are counted, and are not in means.

# %%
page.table_html(tables.history_table(results))

# %%
each_group(
    lambda some: figures.draw_histories(some, colours),
    "Completion, queueing and fairness of jobs",
    "Distributions over the jobs of all repetitions.",
    whole_traces(cells),
)

# %%
each_group(
    lambda some: figures.draw_scores(some, colours),
    "Compatibility scores of decisions",
    "The score of each placement that Cassini chose; dots are its other candidates'.",
)

# %% [markdown]
# ## Congestion
#
# ECN marks in each iteration of a model's jobs, where marks were counted and can be attributed to jobs.

# %%
marked = tables.mark_tables(results)
page.concatenate(map(page.table_html, marked)) if marked else page.paragraph("Marks were not counted here.")

# %%
each_group(
    lambda some: figures.draw_marks(some, colours),
    "ECN marks per iteration, by model",
    "A dot is an iteration of the first repetition.",
    shared,
)

# %% [markdown]
# The links between switches with the highest utilization, in the first repetition.

# %%
each_group(
    lambda some: figures.draw_links(some, sent, colours),
    "Use of the busiest links over time",
    f"Means of a {figures.BINS}th of the trial's length each.",
    shared,
)

# %% [markdown]
# ## Fidelity

# %%
about.fidelity_notes(results, run)

# %%
about.headroom(run)

# %% [markdown]
# ## How the figures were made
#
# Iterations within a repetition depend on each other, and repetitions are independent. So intervals are Student's t
# over repetitions. Each repetition has its own trace and its own guesses. A speed-up compares the same trace, so its
# interval comes from the scatter of the repetitions' own speed-ups. The interval of a speed-up of a 99th percentile
# lies between two of the longest iterations; the scatter of the repetitions decides which. With fewer than four
# repetitions there is no interval.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
