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
# Medians over all iterations of all valid repetitions, with their 95 % intervals. *Least* marks the level of the least
# median of its line.

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
# Iterations of a repetition depend on each other, repetitions do not: intervals are Student's t over repetitions,
# those of 99th percentiles run between two of the longest iterations, by how much the repetitions differ. Where
# iterations have two modes, a median is one mode or the other by chance. By the share of the variance that the best
# split into two groups explains (Otsu 1979): from a share of 70 % on, intervals of medians are between ranks; from
# 80 % on, tables give means, and speed-ups are of means. With fewer than four repetitions there is no interval. Of
# fewer than 1,000 iterations a 99th percentile would be a guess: the longest one is shown, and of how many it is that.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
