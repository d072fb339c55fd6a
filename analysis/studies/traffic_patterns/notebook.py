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
from analysis.reading.traces import median_trial, read_traces
from analysis.render import page
from analysis.reports import about, affinity, cassini
from analysis.reports.summary import stored_or_new
from analysis.studies.traffic_patterns import figures, tables
from analysis.studies.traffic_patterns.study import Results
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)
cells = {cell.variant: cell for cell in cells_of(run) if cell.trials}
alone = [each for each in results.patterns if each.variant in cells and each.score is None]

# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## Patterns and their circles
#
# On the left is a job's bandwidth over its first three iterations, from its first host's byte counters. On the right,
# the job's profile is rolled around a circle whose perimeter is one iteration. The ring is uncolored where the job
# computes, and darker where it sends more (HotNets'22, Figure 3; the interleaving thesis, Figures 4.1, 4.3 and 4.6).

# %%
page.concatenate(
    page.figure_html(
        figures.draw_pattern(each, median_trial(read_traces(run, [cells[each.variant]])[0])),
        "",
        f"Bandwidth of {each.profile} over three iterations, and its circle",
    )
    for each in alone
)

# %%
page.table_html(tables.pattern_table(results))

# %% [markdown]
# ## Jobs that share a link
#
# Both jobs on one circle, whose perimeter is the least common multiple of their iteration times. The circle is shown
# before and after the rotation that interleaves them best (HotNets'22, Figures 4 and 5).

# %%
shared = [cell.spec for cell in cells.values() if cell.spec.has_concurrent_jobs]
page.concatenate(
    page.figure_html(cassini.figure(found), "", f"{link}: unified circle of {' and '.join(spec.jobs)}")
    for spec in shared
    for link, found in affinity.place_jobs("", spec).links.items()
)

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

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
