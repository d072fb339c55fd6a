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
from analysis.reading.once import ReadOnce
from analysis.render import about, page, verdicts
from analysis.studies.levels import figures, tables
from analysis.studies.levels.study import Results
from analysis.summary import stored_or_new
from roundabout.store import Run

run = ReadOnce(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)

# %%
about.header(run, results)

# %%
verdicts.cards(results.expectations)

# %% [markdown]
# ## Iteration times by level
#
# Medians over all iterations of all valid repetitions, with their 95 % intervals. *Least* marks the level of the least
# median of its line.

# %%
page.drawn(
    figures.times(results),
    f"Median iteration time against {results.factor}, a line a combination of the other factors.",
    f"Median iteration time against {results.factor}, by job",
)

# %%
page.shown(tables.times(results))

# %% [markdown]
# ## What was emulated

# %%
about.fidelity_notes(results)

# %%
about.headroom(run)

# %% [markdown]
# ## How the figures were made
#
# Intervals come from a bootstrap on two levels: repetitions are drawn with replacement, and within each of them blocks
# of consecutive iterations; with fewer than four repetitions there is no interval.

# %%
about.invalid(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
