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
from analysis.papers.salamy import SETTINGS
from analysis.reading.cached_run import CachedRun
from analysis.reading.congestion.send_rates import send_rates
from analysis.reading.cross_traffic.planned_flows import planned_flows
from analysis.render import page
from analysis.reports import about
from analysis.reports.summary import stored_or_new
from analysis.studies.load_sweep import figures, tables
from analysis.studies.load_sweep.study import Results
from roundabout.store import Run

run = CachedRun(Run.open(RUN))
results = stored_or_new(run)
assert isinstance(results, Results)
sweeps = results.sweeps
kinds = figures.by_kind(sweeps)
printed_in = {f"{each.traffic}, {each.transport}": each.figure for each in SETTINGS}
TCP = [sweep for sweep in sweeps if sweep.transport == "TCP"]
CONSISTENT = [sweep for sweep in sweeps if sweep.traffic == "consistent"]


def compare(kind: str) -> str:
    """Return a sentence that names Salamy's figure of the same kind; an empty string if there is none."""
    return f" Compare Salamy, Figure {printed_in[kind]}." if kind in printed_in else ""


# %%
about.page_header(run, results)

# %%
verdict_tables.cards(results.expectations)

# %% [markdown]
# ## Verdicts on what Salamy says
#
# Salamy's thesis is "Network Requirements for Distributed Machine Learning Training in the Cloud" (MIT, 2022); figures,
# tables and equations on this page are those of its chapter 3. A claim passes when it holds in every case that this run
# measured; where Salamy gives no figure, the bound in brackets is ours.

# %%
verdict_tables.summarize(results.expectations, "Salamy")

# %%
verdict_tables.agreement_table(results.expectations, "Salamy")

# %% [markdown]
# ## Slower, the more of the link is taken
#
# Mean iteration time against the payload of cross traffic that was sent, by its senders' counters. Bars reach up to the
# 99 % tail; where a level has fewer than 1,000 iterations, to the longest, since a tail of so few is a guess. Hollow
# points are of disturbed trials, on which fits rest too. Lines are
# fits of t = A exp(B / (C - BW)ⁿ), with where the curve lies with 95 %. Thin dashed lines are what the job would take
# if the link were shared like water and cross traffic took its load first. Against the hyperbola C / (C - BW), a fit
# with n = 1 is straight.

# %%
page.concatenate(
    [
        page.figure_html(
            figures.draw_degradation(group),
            page.Html("<b>{}</b>.{}").format(kind, compare(kind)),
            f"Iteration time against {kind} load, for {', '.join(group)}",
        )
        for kind, group in kinds.items()
    ]
)

# %% [markdown]
# ## Fits
#
# In t = A exp(B / (C - BW)ⁿ), BW is the cross traffic's bandwidth, C the bandwidth at which the time has no bound, and
# n how sharply the curve bends. A is the time that would be left if C were unlimited, so it is less than the time
# without cross traffic, A exp(B / Cⁿ). B is how strongly the time depends on the bandwidth that is left; its unit is
# (Gbit/s)ⁿ, so that B compares only between fits of the same n. To predict, use the fit of the first table. The fit
# with Salamy's n and C serves the comparison alone.
#
# The model is chosen among n = 1/2, 1, 2 and a free n with C held at what the link carries, and those three n with a
# free C: the one whose fits to all levels but one miss that one least. R² is over the levels, in the domain named; fits
# are made to log t. *Held* is what was given and not fitted. An end that nothing bounds is left open. The choice is
# made again for sweeps whose levels are drawn from where repetitions leave them; intervals hold those fits too, and
# *chosen again* is how often it came out the same. A fitted C above what the link carries says that the curve bends
# less than the link's own hyperbola does.

# %%
page.table_html(tables.fit_table(sweeps))

# %%
page.list_html("Without a fit:", tables.missing_reasons(sweeps, lambda sweep: sweep.why_no_fit))

# %% [markdown]
# Our levels fitted with the n and the C = 25 Gbit/s that Salamy held, so that A and B compare with those
# (Tables 3.9 and 3.10, equation 3.3).

# %%
page.table_html(tables.printed_fit_table(sweeps))

# %%
page.concatenate(
    [
        page.figure_html(
            figure,
            "By model, each kind of traffic and transport with its fit; dashed: the fit that Salamy printed. "
            "Compare Figures 3-6, 3-7, B-2 and B-3.",
            "Iteration time against load with our fits and Salamy's",
        )
        for figure in figures.draw_fits(figures.by_model(sweeps))
    ]
)

# %% [markdown]
# ## Congestion points
#
# Where congestion first dominates: a line through the first levels, a tangent to the next ones, and the level nearest
# to where the two cross (Appendix A.2, on the logarithmic axis). The first levels are those on a straight line that is
# nearer to flat, as a link with bandwidth to spare leaves it, than to as steep as a full link makes it. The link could
# have carried so much data for the job in an iteration at that level; Salamy compares this with what an iteration sends
# (equation 3.1), and finds it above that. *As Salamy takes it*: the same after first levels on a straight line however
# steep, of a link of 25 Gbit/s, which takes headers for payload. Only those compare with what Salamy printed.

# %%
page.concatenate(
    [
        page.figure_html(
            figures.draw_congestion(group),
            page.Html(
                "<b>{}</b>. Dotted: line and tangent; thin: the level taken; bar: the crossing's 95 % interval. "
                "Compare Salamy, Figure A-1."
            ).format(kind),
            f"How congestion points under {kind} were found",
        )
        for kind, group in kinds.items()
        if any(sweep.congestion for sweep in group.values())
    ]
)

# %%
page.table_html(tables.demand_table(sweeps))

# %%
page.list_html("Without a congestion point:", tables.missing_reasons(sweeps, lambda sweep: sweep.why_no_congestion))

# %% [markdown]
# ## What the link had left
#
# Available is what cross traffic leaves of the link's payload rate; needed is the data of an iteration over the time
# that it took. The difference goes unused. First the heaviest load of each sweep (Tables 3.3, 3.5 and 3.7), then the
# mean over the levels from the congestion point on (Table 3.8). *As Salamy takes it*: of 25 Gbit/s, which takes
# headers for unused. Salamy sweeps to up to 24.7.

# %%
page.table_html(tables.bandwidth_table(sweeps))

# %%
page.table_html(tables.spare_table(sweeps))

# %% [markdown]
# ## Distributions
#
# All iterations of all repetitions at the levels nearest to 8 and 20 Gbit/s of payload, which Salamy calls 30 % and
# 80 %.

# %%
page.figure_html(
    figures.draw_distributions(run, TCP, lambda sweep: sweep.traffic),
    "Over TCP, by kind of cross traffic. Compare Salamy, Figure 3-5.",
    "Cumulative distributions of iteration times over TCP at light and heavy load",
) if TCP else page.paragraph("No job trained over TCP (Salamy, Figure 3-5).")

# %%
page.figure_html(
    figures.draw_distributions(run, CONSISTENT, lambda sweep: sweep.transport),
    "Under consistent web-search traffic, by transport. Compare Salamy, Figure B-1.",
    "Cumulative distributions of iteration times under consistent traffic at light and heavy load",
) if CONSISTENT else page.paragraph("No consistent traffic was sent (Salamy, Figure B-1).")

# %% [markdown]
# ## Inside an iteration
#
# How fast two workers send while an iteration communicates, by their interfaces' counters, payload. Flow 1 leaves a
# worker that meets no cross traffic, flow 2 the one that shares its link with it (Figure 3-9; Table 3.11, which does
# not name its transport). In a ring all send as much in nearly as long; the mean over packets, as their readings in
# Figures 3-10 and 3-11 have it, is the higher, the more a worker waits and then hurries. Those figures themselves need
# packets of these workers (`capture`).

# %%
page.table_html(tables.intra_iteration_table(sweeps))

# %% [markdown]
# ## How slow at another load?
#
# The mean iteration time that the chosen fit predicts, and where a measurement of it would lie in 95 % of cases.
# *Extrapolated*: outside the loads that were measured, where the form of the curve decides and not the data.

# %%
page.table_html(tables.prediction_table(sweeps))

# %% [markdown]
# ## The load that was meant, and the load that was there
#
# Planned is the load of the flows drawn, offered that of the flows that were due while jobs ran. Figures on this page
# go by what senders' counters say was sent meanwhile. All are payload, without headers. A schedule that was not held
# means that flows began late or were not carried: on a full link they wait for each other.

# %%
page.table_html(tables.load_table(results.loads))

# %%
page.figure_html(
    figures.draw_planned_flows(load),
    f"The flows that were requested of {load.asked_gbps:g} Gbit/s of burst traffic: {load.mean_gbps:.2f} Gbit/s in the "
    "mean, in bursts of 1 ms each 10 ms. Compare Salamy, Figure B-4 (7.3 Gbit/s).",
    "Size and start of the flows requested, and when bursts are due",
) if (load := planned_flows(run)) else page.paragraph("No flows of burst traffic were stored (Salamy, Figure B-4).")

# %%
page.figure_html(
    figures.draw_injection(bursts, sweeps[0].link_gbps),
    "How fast the sender put packets out while jobs ran: a moving average over 18 of them, read at 60,000 instants of "
    "even distances (solid) and once a packet (dashed), and windows of time as long (dotted); grey: means. "
    "The highest readings, one in 200, lie beyond the axis and count in no skewness. "
    "Compare Salamy, Figures 3-8 and B-5.",
    "Injection rates of cross traffic over time, and their histograms",
) if sweeps and (bursts := send_rates(run)) else page.Html(
    "<p>Histograms of injection rates (Salamy, Figure 3-8) need packets: this run captured none of a host that "
    "only sends cross traffic (<code>capture: {hosts: [...]}</code> in the experiment).</p>"
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
# Iterations of a repetition depend on each other, repetitions do not: intervals of iteration times are Student's t over
# repetitions, those of 99 % tails run between two of the longest iterations, by how much the repetitions differ. With
# fewer than four repetitions there is no interval. For those of congestion points, each level's mean is drawn anew from
# where its repetitions leave it. Intervals of fits hold every coefficient that some curve has which fits nearly as
# well, and what was fitted and chosen anew to levels drawn like that.

# %% [markdown]
# ## What was repeated
#
# An invalid attempt counts in no figure and is repeated. If all attempts at a trial only lacked CPU time, the least
# disturbed one counts where its level has no valid trial, as a hollow point. Where segments were sent again that is
# what it is for, on a lossless fabric; but such iterations are the slow ones, so the more attempts a level lost to it,
# the more of its tail is missing from this page.

# %%
page.table_html(tables.attempt_table(results.attempts))

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
