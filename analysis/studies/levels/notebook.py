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
from analysis.render import page
from analysis.reports import about
from analysis.reports.summary import stored_or_new
from analysis.studies.levels import figures, tables
from analysis.studies.levels.study import Results
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)

# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## Iteration times by level
#
# Medians over all iterations of all valid repetitions, with their 95 % intervals. *Least* marks the level with the
# lowest median of its line.

# %%
page.figure_html(
    figures.draw_times(results),
    f"Median iteration time against {results.factor}, a line a combination of the other factors. One that ran at one "
    "level, where others ran at several, is dashed. Each panel has a scale of its own.",
    f"Median iteration time against {results.factor}, by job",
)

# %%
page.captioned_table_html(tables.time_table(results))

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
# repetitions decides which. With fewer than four repetitions there is no interval. With fewer than 1,000 iterations, a
# 99th percentile would be a guess. The table then shows the longest iteration, and the number of iterations.
#
# If iterations have two modes, a median is one mode or the other by chance. The criterion is the share of the variance
# that the best split into two groups explains (Otsu 1979). From 70 % on, the interval of a median comes from ranks.
# From 80 % on, tables show means, and speed-ups compare means.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
