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
# All iterations of all jobs and repetitions together, as the thesis has them: long iterations of big models weigh most
# in these means. A speed-up is over the same scheduler without Cassini, or over the study's baseline. Jobs do the same
# work under all schedulers, but not always in as many iterations, since schedulers give them more workers or fewer.
# Jobs of one worker send nothing and are not in here.

# %%
page.table_html(tables.pooled_table(results))

# %%
each_group(
    lambda some: figures.draw_distributions(some, of_group(some), colours),
    "Cumulative distributions of all iteration times",
    "Iteration times of all jobs: in ms, and as multiples of what the same workers need in a dedicated cluster.",
)

# %% [markdown]
# ## Beside a dedicated cluster
#
# Each iteration as a multiple of what the same workers need when nobody else is on any link. So models count alike, and
# numbers of workers make no difference; the speed-up is of the mean multiple.

# %%
page.table_html(tables.dedicated_table(results))

# %% [markdown]
# ## By model
#
# The mean of that.

# %%
page.table_html(tables.slowdown_table(results))

# %% [markdown]
# Speed-ups of the mean iteration time, over the same schedulers as above. Schedulers that give a model other numbers of
# workers give it other iterations.

# %%
page.table_html(tables.speedup_table(results))

# %% [markdown]
# ## The trace, event by event
#
# The first repetition. A dot is an iteration where it began, in its model's colour; a move is a job that goes on with
# other workers. Where each job has a cluster of its own, nothing happens that could be shown here.

# %%
each_group(
    lambda some: figures.draw_events(some, looks),
    "Iteration times over time",
    f"Iteration times as the trace goes on, and above them what happened to jobs. {figures.describe_decimation(cells)}",
    shared,
)

# %% [markdown]
# ## Who was where

# %%
each_group(
    lambda some: figures.draw_placements(some, looks),
    "Jobs by host over time",
    "Which models' jobs each host had; where one has several GPUs, the last one that came is drawn over the others.",
    shared,
)

# %% [markdown]
# ## What became of jobs
#
# By the timeline of each trial. Completion is from arrival to end, queueing from arrival to the first placement.
# Fairness is Themis' finish-time fairness: time in the shared cluster over that in a dedicated one with the workers
# that the job asked for. *Worst* is the mean over repetitions of the job that fared worst. Jobs that never were placed,
# or were not done at the end, are counted and are in no mean.

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
# ECN marks of each iteration of a model's jobs, where somebody counted them and it can be told whose they are.

# %%
marked = tables.mark_tables(results)
page.concatenate(map(page.table_html, marked)) if marked else page.paragraph("Nobody counted marks here.")

# %%
each_group(
    lambda some: figures.draw_marks(some, colours),
    "ECN marks per iteration, by model",
    "A dot is an iteration of the first repetition.",
    shared,
)

# %% [markdown]
# The links between switches that carry most of what they could, in the first repetition.

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
# Iterations of a repetition depend on each other, repetitions do not: intervals are Student's t over repetitions, each
# of which has a trace and guesses of its own. Speed-ups are over the same trace: their intervals come from the scatter
# of the repetitions' own speed-ups. Those of 99th percentiles run between two of the longest iterations, by how much
# the repetitions differ. With fewer than four repetitions there is no interval.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
