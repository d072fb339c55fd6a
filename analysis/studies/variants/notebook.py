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
from analysis.reports import about, affinity, cassini
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
# ## Gains of each variant
#
# Mean iteration time of a job under the baseline divided by that under each variant, and the same for the 99 % tail.
# If either has fewer than 1,000 iterations, the longest iterations are compared. The 95 % interval is below each
# figure.
#
# The fluid limits assume max-min fair sharing. They divide the baseline, with its first trial's start offsets and
# length, by the best interleaving found, and by the job alone. Interleaved jobs share fairly from the best start
# offsets, and may wait before each iteration so that their periods have a common multiple. One job may gain more if
# others lose more.

# %%
page.table_html(tables.gain_table(results))

# %% [markdown]
# ## How jobs come apart
#
# Jobs are *interleaved* from the first of ten consecutive iterations in which the communication phases of no two jobs
# overlap by 5 % or more of the shorter phase. The figure is the mean of repetitions. Only jobs that share a link
# count; with several links, the figure is for the link whose jobs take longest to interleave. A job that needs less
# than the link's bandwidth may lose no time before that.
#
# *Slowest job over alone* compares mean iteration times. Marks and drops are those of all switch ports in an iteration
# of the first job.
#
# For jobs with a timetable (`docs/explanation/cassini.md`), *adjusted* is how often the most often delayed job is
# delayed. *Drift* is how much later than its timetable the job with the largest drift begins; a negative value means
# earlier.

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
# Thick lines are medians of repetitions, which are thin. Dashed lines are the fluid model of the same variant, with
# the start offsets of the jobs' first communications. The model includes MLTCP's F and a job's number of flows, but no
# timers and no jitter. Transports other than MLTCP get fair shares in it. An offset is the distance from the beginning
# of the first job's communication to the nearest beginning of the other job's.

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
# From the byte counters of each job's first host, read every 10 ms, headers included. The figure shows the last 2.4 s
# in which all jobs run, for the repetition of median length. Compare the interleaving thesis, Figure 4.16.


# %%
def links_used(some: list[figures.ShownCell]) -> page.Html:
    """Return HTML with a figure for each link that jobs of these cells share."""
    concurrent = [each.cell for each in some if each.cell.spec.has_concurrent_jobs and each.cell.trials]
    shown = [median_trial(each) for each in read_traces(run, concurrent)]
    by_link: dict[str, list[TrialTrace]] = {}
    for trace in shown:
        by_link.setdefault(trace.link.name, []).append(trace)
    return page.concatenate(
        page.figure_html(draw_link_use(traces, settled=True), "", f"Use of {link} over time, by variant")
        for link, traces in by_link.items()
    )


page.concatenate(page.bold_heading(group) + links_used(some) for group, some in together)

# %% [markdown]
# ## Compatibility of the jobs
#
# A circle for each shared link has a ring for each job, and an arc for each Up phase. Around them are the sum of the
# jobs' rates and the link's payload rate. Profiles are those measured alone if time-shifts are computed from them, and
# otherwise those given. Before rotation all jobs begin together. After it, they have the time-shifts that are best for
# that link (the interleaving thesis, Figures 4.3 to 4.6; `docs/explanation/cassini.md`).
#
# With several links, each job has one time-shift for all of them. In the graph, each edge has a job's time-shift on
# that link. Jobs with several scores and enforced time-shifts are drawn with their gain over the baseline.


# %%
def compatibility(group: str, some: list[figures.ShownCell]) -> page.Html:
    """Return HTML with each shared link's unified circle and the affinity graph, or why there are none."""
    try:
        found = affinity.place_jobs(group, with_measured_profiles(run, [each.cell for each in some]))
    except (CassiniError, StoreError) as error:
        return page.paragraph(f"{error.message}.")
    drawn = [
        page.figure_html(cassini.figure(each), "", f"{link}: circles before and after rotation")
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
# Figures are over all iterations of all repetitions.

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
# Iterations within a repetition depend on each other, and repetitions are independent. So intervals are Student's t
# over repetitions. The interval of a 99th percentile lies between two of the longest iterations; the scatter of the
# repetitions decides which. Intervals of ratios are combined from those of their two parts. With fewer than four
# repetitions there is no interval.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
