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
from analysis.reading.cross_traffic.iteration_flows import WIDTHS, iteration_flows
from analysis.render import page
from analysis.reports import about
from analysis.reports.summary import stored_or_new
from analysis.studies.iteration_flows import figures, tables
from analysis.studies.iteration_flows.study import Results
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)
found = iteration_flows(run)
light, heavy = WIDTHS.values()
READ = (
    f"A reading, once a packet, is the payload of {light} packets at 30 % load, of {heavy} at 80 %, over their time."
    if any(each.captured for each in found)
    else "No packets were captured: a reading is what counters say of 10 ms, and weighs as much as was sent."
)

# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %%
verdict_tables.agreement_table(results.expectations, "Salamy")

# %% [markdown]
# ## The flows
#
# Three workers train in a ring, and a fourth host sends cross traffic to one of them (Salamy, Figure 3-9). Flow 1 is
# between two workers that meet no cross traffic, so it shows the ring without congestion. Flow 2 leaves the worker
# that receives the cross traffic, and waits for data from the congested link. Flow 3 is the cross traffic.

# %%
page.figure_html(
    figures.draw_ring(found),
    "The ring, and the cross traffic that meets it. Compare Salamy, Figure 3-9.",
    "Who sends flows 1, 2 and 3 to whom",
)

# %% [markdown]
# ## Rates inside iterations

# %%
page.concatenate(
    page.figure_html(
        figures.draw_rates(cells),
        f"How fast each flow was sent about the beginning of {model}'s middle iteration (0 ms; grey lines: iterations "
        f"begin), in the first repetition. {READ} Compare Salamy, Figures 3-10 and 3-11.",
        f"Rates of flows 1, 2 and 3 inside iterations of {model}",
    )
    for model, cells in figures.by_model(found).items()
)

# %% [markdown]
# ## Table 3.11
#
# A ring conserves bytes: over the whole time, including compute phases, flows 1 and 2 have the same mean rate. The
# sufficient bandwidth of a flow is its bytes divided by the time in which its worker communicated. It is the same for
# both flows too. The mean of readings differs: it rises with the time that a sender waits and then hurries. The
# difference to the sufficient bandwidth is the bandwidth that a node could have left to others without slowing the
# ring.

# %%
page.table_html(tables.bandwidth_table(results))

# %%
page.table_html(tables.difference_table(results))

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
# Readings within a repetition depend on each other, and repetitions are independent. So intervals are Student's t over
# repetitions, of differences between the flows of the same repetition. With fewer than four repetitions there is no
# interval.

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
