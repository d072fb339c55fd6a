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
from analysis.expectations import verdict_tables
from analysis.reading.cached_run import CachedRun
from analysis.reading.cells import cells_of
from analysis.reading.data import by_iteration
from analysis.reading.traces import median_trial, read_traces
from analysis.render import page
from analysis.render.link_use import draw_link_use
from analysis.render.style import variant_colours
from analysis.reports import about
from analysis.reports.summary import stored_or_new
from analysis.studies.programs import figures, tables
from analysis.studies.programs.study import Results
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)
cells = cells_of(run)

# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## Programs beside their baseline
#
# A program's iterations are the lines that it printed. They are compared with those of the same program under the
# baseline. A program does not play its profile, so no figure here comes from the flow-level model.
#
# *Bus bandwidth* is what a program printed. *Sent* is the rate of the job's host that sent most, by its counters, with
# headers, from the first iteration's start to the last one's end. The two differ where a program counts otherwise, as
# an all-reduce does, or pauses between iterations.

# %%
page.captioned_table_html(tables.time_table(results))

# %%
page.table_html(tables.bandwidth_table(results))

# %%
page.figure_html(
    figures.draw_iterations(
        cells, by_iteration(run, "avg(bus_bandwidth_gbps)"), variant_colours([cell.name for cell in cells])
    ),
    "A line for each repetition. Each panel has a scale of its own.",
    "Iteration times and bus bandwidths against iteration number",
)

# %% [markdown]
# ## Use of links
#
# From the byte counters of each job's first host, headers included. The figure shows the last 2.4 s in which all jobs
# run, for the repetition of median length.

# %%
traces = [
    median_trial(each) for each in read_traces(run, [cell for cell in cells if cell.spec.has_concurrent_jobs]) if each
]
page.figure_html(draw_link_use(traces, settled=True), "", "Use of links over time") if traces else None

# %% [markdown]
# ## Fidelity

# %%
about.fidelity_notes(results, run)

# %%
about.headroom(run)

# %%
about.applied_settings(run)

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
