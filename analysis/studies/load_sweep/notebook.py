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
# Salamy's thesis is "Network Requirements for Distributed Machine Learning Training in the Cloud" (MIT, 2022).
# Figures, tables and equations on this page are those of its chapter 3. A claim passes if it holds in every case that
# this run measured. Where Salamy gives no figure, this project chose the bound in brackets.

# %%
verdict_tables.summarize(results.expectations, "Salamy")

# %%
verdict_tables.agreement_table(results.expectations, "Salamy")

# %% [markdown]
# ## Iteration time against load
#
# Mean iteration time against the payload of the cross traffic that was sent, from its senders' counters. Bars reach up
# to the 99 % tail, or to the longest iteration at levels with fewer than 1,000 iterations. Hollow points are from
# disturbed trials; fits include them.
#
# Lines are fits of t = A exp(B / (C - BW)ⁿ), with the 95 % interval of the curve. Thin dashed lines are the iteration
# time under max-min fair sharing in which cross traffic takes its load first. On the axis of the hyperbola C / (C -
# BW), a fit with n = 1 is straight.

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
# In t = A exp(B / (C - BW)ⁿ), BW is the bandwidth of the cross traffic. C is the bandwidth at which the time grows
# without limit, and n determines how sharply the curve bends. The time is an exponential of B / Cⁿ times the
# hyperbola's nth power. A is the time for unlimited C, so it is less than the time without cross traffic, A exp(B /
# Cⁿ). For BERT-large, Salamy prints A = 0.200 s and B = 7.281, which give 0.200 exp(7.281 / √25) = 0.858 s. B is the
# sensitivity to the remaining bandwidth. Its unit is (Gbit/s)ⁿ, so values of B can be compared only for equal n and C.
#
# To predict, use the chosen fit (the first table). To compare A and B with Salamy's, use the fit with Salamy's n and C
# (the second table).
#
# The model is selected by leave-one-out cross-validation: each model is fitted to all levels but one, and predicts
# that one. The candidates are n = 1/2, 1, 2 and a free n with C fixed at the link's payload rate, and the first three
# with a free C. Fits are made to log t. R² is over the levels, in the domain named.
#
# *Held* is a coefficient that was given and not fitted. An interval may be unbounded at one end. The model is selected
# again for each bootstrap sample; the intervals include this uncertainty. *Chosen again* is the share of samples that
# select the same model. A fitted C above the link's payload rate means that the curve bends less than the link's own
# hyperbola.

# %%
page.table_html(tables.fit_table(sweeps))

# %%
page.list_html("Without a fit:", tables.missing_reasons(sweeps, lambda sweep: sweep.why_no_fit))

# %% [markdown]
# The measured levels, fitted with Salamy's n and C = 25 Gbit/s, so that A and B can be compared with Salamy's (Tables
# 3.9 and 3.10, equation 3.3).

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
# The congestion point is the level at which congestion first dominates. The method draws a line through the first
# levels and a tangent to the next ones. It takes the level nearest to their intersection (Appendix A.2, on the
# logarithmic axis). The first levels are those on a straight line whose slope is closer to that of an idle link (flat)
# than to that of a full link.
#
# *Data there* is the data that the link could have carried for the job in an iteration at that level. Salamy
# compares it with the data of an iteration (equation 3.1), and finds it larger. *As Salamy takes it*: the same for
# first levels on a straight line of any slope, with 25 Gbit/s as the link's payload rate, so that headers count as
# payload. Only these values can be compared with Salamy's.

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
# ## Unused bandwidth
#
# Available is the link's payload rate less the cross traffic. Needed is the data of an iteration divided by the
# iteration time. The difference is unused. The first table is for the heaviest load of each sweep (Tables 3.3, 3.5 and
# 3.7). The second is the mean over the levels from the congestion point on (Table 3.8). *As Salamy takes it*: of 25
# Gbit/s, so that headers count as unused. Salamy's sweeps end at up to 24.7.

# %%
page.table_html(tables.bandwidth_table(sweeps))

# %%
page.table_html(tables.spare_table(sweeps))

# %% [markdown]
# ## Distributions
#
# All iterations of all repetitions at the levels nearest to 8 and 20 Gbit/s of payload, which Salamy calls 30 % and 80
# %.

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
# Payload rates of two workers during an iteration's communication, from their interfaces' counters. Flow 1 leaves a
# worker that meets no cross traffic, flow 2 the worker that shares its link with it (Figure 3-9; Table 3.11, which
# does not name its transport).
#
# In a ring, all workers send the same number of bytes in nearly the same time. The mean over packets, as in Salamy's
# Figures 3-10 and 3-11, rises with the time that a worker waits and then hurries. To draw these figures, packets of
# these workers are needed (`capture`).

# %%
page.table_html(tables.intra_iteration_table(sweeps))

# %% [markdown]
# ## Iteration time at another load
#
# The mean iteration time that the selected fit predicts, with its 95 % prediction interval. *Extrapolated* means
# outside the measured loads. There the form of the curve determines the prediction, not the data.

# %%
page.table_html(tables.prediction_table(sweeps))

# %% [markdown]
# ## Planned, offered and sent load
#
# Planned is the load of the drawn flows, and offered the load of the flows that were due while jobs ran. Figures on
# this page use the load that senders' counters report as sent in that time. All are payload, without headers. The
# schedule was not held if flows began late or were not carried: on a full link they wait for each other.

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
# Iterations within a repetition depend on each other, and repetitions are independent. So intervals of iteration times
# are Student's t over repetitions. The interval of a 99 % tail lies between two of the longest iterations; the scatter
# of the repetitions decides which. With fewer than four repetitions there is no interval.
#
# For the intervals of congestion points, each level's mean is drawn from the distribution that its repetitions imply.
# Intervals of a fit include every coefficient of a curve that fits nearly as well. They also include fits and
# selections for levels drawn in the same way.

# %% [markdown]
# ## Repeated trials
#
# An invalid attempt counts in no figure and is repeated. If all attempts at a trial were invalid only for lack of CPU
# time, the least disturbed one counts at levels without a valid trial, as a hollow point. An attempt on a lossless
# fabric is also repeated if segments were retransmitted. Such iterations are slow ones, so each attempt that a level
# lost for this reason removes part of its tail from this page.

# %%
page.table_html(tables.attempt_table(results.attempts))

# %%
about.invalid_trials(results.invalid_trials)

# %% [markdown]
# ## Provenance

# %%
about.provenance(run)
