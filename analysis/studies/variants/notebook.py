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
from analysis.reading.cells import cells_of
from analysis.reading.congestion.marks_and_drops import count_signals
from analysis.reading.data import by_iteration
from analysis.reading.traces import TrialTrace, median_trial, read_traces, spans_of_cells
from analysis.reading.trial_inputs import with_measured_profiles
from analysis.render import cables, page
from analysis.render.link_use import draw_link_use
from analysis.render.style import variant_colours
from analysis.reports import about, affinity, unified_circle
from analysis.reports.summary import stored_or_new
from analysis.studies.variants import figures, tables
from analysis.studies.variants.study import Results, cell_place, groups
from roundabout.models.cassini import CassiniError
from roundabout.store import Run, StoreError

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)
cells = cells_of(run)
found, lost = spans_of_cells(run, cells), count_signals(run, cells)
names = list(dict.fromkeys(cell_place(cell, results.over).name for cell in cells))
colours = variant_colours(names)
together = [
    (group, [figures.prepare_cell(cell_place(cell, results.over).name, cell, found) for cell in some])
    for group, some in groups(cells, results.over)
]


def each_group(draw: Callable[[list[figures.ShownCell]], Figure], what: str) -> page.Html:
    """Return HTML with a figure for each group of compared cells, below the group's name."""
    return page.concatenate(
        page.bold_heading(group) + page.figure_html(draw(some), "", f"{what}: {group}" if group else what)
        for group, some in together
    )


# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## What each gains
#
# Mean iteration time of a job under the baseline over that under each variant, and the same of the 99 % tail; of
# fewer than 1,000 iterations of either it is that of the longest ones. Below each figure its 95 % interval. The fluid
# limits are what links shared like water would allow: the baseline there, begun as its first trial began and as long,
# over the best interleaving found, and over alone. Interleaved jobs share fairly from the best start offsets, and may
# wait before each iteration so that their periods have a common multiple. One job may gain more if others lose more.

# %%
page.table_html(tables.gain_table(results))

# %% [markdown]
# ## How jobs come apart
#
# Jobs are *interleaved* from the first of ten iterations running in each of which no two jobs' communication phases
# overlap by 5 % or more of the shorter phase; the mean of repetitions. Only jobs that share a link count, and with
# several links the one whose jobs take longest. A job that asks for less than the link has may
# go without loss before it is that far apart. *Slowest job over alone* compares mean iteration times. Marks and drops
# are those of all switch ports in an iteration of the first job.
#
# Of jobs with a timetable (`docs/explanation/cassini.md`), *adjusted* is how often the one that is held most often is
# held, and *drift* how much later (earlier: negative) than its timetable the one begins that drifts most.

# %%
timetables = tables.timetable_table(results)
page.concatenate(
    [
        page.captioned_table_html(tables.interleaving_table(results)),
        *([page.table_html(timetables)] if timetables.sections else []),
    ]
)

# %% [markdown]
# ## Iteration by iteration
#
# Thick: the median of repetitions, which are thin. Dashed: the fluid model of the same variant, begun as far apart as
# the jobs' first communications were. It knows MLTCP's F and how many flows a job has, and neither timers nor jitter;
# whoever is not MLTCP gets fair shares there. An offset is the distance from the beginning of the first job's
# communication to the nearest one of the other's.

# %%
each_group(
    lambda some: figures.draw_over_iterations(some, colours), "Iteration time and offset against iteration number"
)

# %%
losses = by_iteration(run, "avg(loss)")
learned = [(group, figures.draw_losses(some, losses, colours)) for group, some in together]
learning = [
    page.bold_heading(group)
    + page.figure_html(each, "Loss of each batch, of jobs that really train", f"Loss by iteration: {group}")
    for group, each in learned
    if each
]
page.concatenate(learning) if learning else None

# %% [markdown]
# ## Use of shared links
#
# By the byte counters of each job's first host, read every 10 ms, headers included: the last 2.4 s in which all jobs
# run, of the repetition that took neither longest nor shortest. Compare the interleaving thesis, Figure 4.16.


# %%
def links_used(some: list[figures.ShownCell]) -> page.Html:
    """Return HTML with a figure for each link that jobs of these cells share."""
    meeting = [each.cell for each in some if each.cell.spec.has_concurrent_jobs and each.cell.trials]
    shown = [median_trial(each) for each in read_traces(run, meeting)]
    by_link: dict[str, list[TrialTrace]] = {}
    for trace in shown:
        by_link.setdefault(trace.link.name, []).append(trace)
    return page.concatenate(
        page.figure_html(draw_link_use(traces, settled=True), "", f"Use of {link} over time, by variant")
        for link, traces in by_link.items()
    )


page.concatenate(page.bold_heading(group) + links_used(some) for group, some in together)

# %% [markdown]
# ## How compatible the jobs are
#
# Jobs as they were measured alone, where time-shifts are from that, else as they are given, on one circle for each link
# that they share: a ring a job, an arc an Up phase, and around them what all send together beside what the link carries
# for payload. Before rotation all begin together; after it, they are shifted in time as is best for that link (the
# interleaving thesis, Figures 4.3 to 4.6; `docs/explanation/cassini.md`). Where there are several links, one time-shift
# a job suits all: in the graph each edge has a job's time-shift on that link. Jobs of several scores that were held to
# time-shifts are drawn with what that gained over the baseline.


# %%
def compatibility(group: str, some: list[figures.ShownCell]) -> page.Html:
    """Return HTML with each shared link's unified circle and the affinity graph, or why there are none."""
    try:
        found = affinity.place_jobs(group, with_measured_profiles(run, [each.cell for each in some]))
    except (CassiniError, StoreError) as error:
        return page.paragraph(f"{error.message}.")
    drawn = [
        page.figure_html(unified_circle.figure(each), "", f"{link}: circles before and after rotation")
        for link, each in found.links.items()
    ]
    if len(drawn) > 1:
        drawn.append(page.figure_html(affinity.figure([found]), "", "Jobs, the links that they share, and time-shifts"))
    return page.concatenate(drawn)


by_score = figures.draw_gain_by_score(results.gains, colours)
page.figure_html(by_score, "", "Gain of jobs that are held, against their compatibility score") if by_score else None

# %%
met = [(group, [each for each in some if each.cell.spec.has_concurrent_jobs]) for group, some in together]
page.concatenate(page.bold_heading(group) + compatibility(group, some) for group, some in met if some)

# %% [markdown]
# ## Distributions, marks and drops
#
# Over all iterations of all repetitions.

# %%
each_group(lambda some: figures.draw_distributions(some, lost, colours), "Cumulative distributions of iteration times")

# %%
cables.cables_of(run, cells)

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
# Iterations of a repetition depend on each other, repetitions do not: intervals are Student's t over repetitions,
# those of 99th percentiles run between two of the longest iterations, by how much the repetitions differ. Those of
# ratios are put together from their parts'. With fewer than four repetitions there is no interval.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
