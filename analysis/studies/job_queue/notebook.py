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
from analysis.reading.cells import experiment_of
from analysis.render import page
from analysis.reports import about
from analysis.reports.summary import stored_or_new
from analysis.studies.job_queue import figures, tables
from analysis.studies.job_queue.study import Results
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)

# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## Slowdowns of jobs
#
# A job's slowdown is the time from its start to its end over its time alone. Waiting in the queue does not count.

# %%
factor = experiment_of(run).x_factor
unknown = [name for name in figures.STATISTICS if name not in figures.known_statistics(results)]
page.figure_html(
    figures.draw_slowdowns(results, factor),
    f"Slowdown of jobs against {factor}, a line a variant. Each panel has a scale of its own."
    + (f" Too few jobs for {' and '.join(unknown)}." if unknown else ""),
    f"Slowdown of jobs against {factor}",
)

# %%
page.captioned_table_html(tables.slowdown_table(results))

# %% [markdown]
# ## Fidelity

# %%
about.fidelity_notes(results, run)

# %% [markdown]
# ## How the figures were made
#
# The simulation of the queue, flow by flow, is the result; no iteration is stored. Intervals are Student's t over
# repetitions, each of which draws its own jobs. With fewer than four repetitions there is no interval. With fewer than
# 1,000 jobs, a 99th percentile would be a guess.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
