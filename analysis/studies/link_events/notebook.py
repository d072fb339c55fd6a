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
from analysis.reading.recoveries import job_times
from analysis.render import page
from analysis.reports import about
from analysis.reports.summary import stored_or_new
from analysis.studies.link_events import figures, tables
from analysis.studies.link_events.study import Results
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)

# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## Iterations around events
#
# Each point is an iteration of the first repetition, where it ends. Dashed lines are events of links.

# %%
page.figure_html(
    figures.draw_iterations(cells_of(run), job_times(run)),
    "Iteration time against the iteration's end, a panel for each variant with events.",
    "Iteration times of each job over time, with events of links as vertical lines",
)

# %% [markdown]
# ## Recovery
#
# The recovery time runs from an event until the first iteration begins from which on iterations are as short as before
# all events. Lost iterations are what iterations took longer until then, over the time of one before.

# %%
page.captioned_table_html(tables.recovery_table(results))

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
# Repetitions are independent, so intervals are Student's t over repetitions. With fewer than four repetitions there is
# no interval.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
