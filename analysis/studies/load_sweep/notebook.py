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
from analysis.papers.salamy import SETTINGS
from analysis.reading.cells import measured
from analysis.reading.injected import injected
from analysis.reading.inside import inside
from analysis.reading.loaded import outcomes
from analysis.reading.requested import requested
from analysis.render import page
from analysis.render.screen import split
from analysis.studies.load_sweep import figures as sweep_plots, page as sweep_page
from analysis.studies.load_sweep.study import by_model, by_setting, studies
from analysis.summary import stored_or_new
from roundabout.store import Run

run = Run.open(RUN)
summary = stored_or_new(run)
sweeps = summary["sweeps"]
found = studies(run)
settings = by_setting(found)
judged = split(summary["expectations"])[1]
printed_in = {f"{each.traffic}, {each.transport}": each.figure for each in SETTINGS}
TCP = [study for study in found if study.loaded.transport == "TCP"]
CONSISTENT = [study for study in found if study.loaded.traffic == "consistent"]


def all_of(parts: list[page.Html]) -> page.Html:
    """One after the other; a line where there is none."""
    return page.Html("".join(parts)) if parts else sweep_page.NOTHING


def compare(setting: str) -> str:
    """Where the thesis has the same."""
    return f" Compare the thesis, Figure {printed_in[setting]}." if setting in printed_in else ""


# %%
page.header(run, summary)

# %%
page.cards(summary)

# %% [markdown]
# ## What agrees with the thesis
#
# The thesis is Salamy's "Network Requirements for Distributed Machine Learning Training in the Cloud" (MIT, 2022),
# chapter 3. A claim agrees when it holds in every case that this run measured; where the thesis gives no figure, the
# bound in brackets is ours.

# %%
sweep_page.in_short(judged)

# %%
sweep_page.agreement(judged)

# %% [markdown]
# ## Slower, the more of the link is taken
#
# Mean iteration time against the load of cross traffic as it was on the wire, payload, by its senders' counters; bars
# reach up to the 99 % tail. Lines are fits of t = A exp(B / (C - BW)ⁿ), with where the curve lies with 95 %. Thin
# dashed lines are what the job would take if the link were shared like water and cross traffic took its load first.
# Against the hyperbola C / (C - BW), a fit with n = 1 is straight.

# %%
all_of(
    [
        page.show(
            sweep_plots.degradation(group),
            f"<b>{setting}</b>.{compare(setting)}",
            f"Iteration time against {setting} load, for {', '.join(group)}",
        )
        for setting, group in settings.items()
    ]
)

# %% [markdown]
# ## Fits
#
# The model is chosen among n = 1/2, 1, 2 and a free n with C held at what the link carries, and those three n with a
# free C: the one whose fits to all levels but one miss that one least. R² is over the levels, in the domain named;
# fits are made to log t. *Held* is what was given and not fitted. An end that nothing bounds is left open.
# A fitted C above what the link carries says that the curve bends less than the link's own hyperbola does.

# %%
sweep_page.fits(sweeps)

# %%
sweep_page.missing(sweeps, "why_no_fit", "a fit")

# %% [markdown]
# Our levels fitted with the n and the C = 25 Gbit/s that the thesis held, so that A and B compare with its own
# (Tables 3.9 and 3.10, equation 3.3).

# %%
sweep_page.fits_as_printed(sweeps)

# %%
all_of(
    [
        page.show(
            figure,
            "By model, each kind of traffic and transport with its fit; dashed: the fit that the thesis printed. "
            "Compare its Figures 3-6, 3-7, B-2 and B-3.",
            "Iteration time against load with our fits and the thesis'",
        )
        for figure in sweep_plots.fits(by_model(found))
    ]
)

# %% [markdown]
# ## Congestion points
#
# Where congestion first dominates: a line through the first levels, a tangent to the next ones, and the level nearest
# to where the two cross (Appendix A.2, on the logarithmic axis). The link could have carried so much data for the job
# in an iteration at that level; the thesis compares this with what an iteration sends (equation 3.1), and finds it
# above that.

# %%
all_of(
    [
        page.show(
            sweep_plots.congestion(group),
            f"<b>{setting}</b>. Dotted: line and tangent; thin: the level taken; bar: the crossing's 95 % interval. "
            "Compare the thesis, Figure A-1.",
            f"How congestion points under {setting} were found",
        )
        for setting, group in settings.items()
        if any(study.congestion for study in group.values())
    ]
)

# %%
sweep_page.demands(sweeps)

# %%
sweep_page.missing(sweeps, "why_no_congestion", "a congestion point")

# %% [markdown]
# ## What the link had left
#
# Available is what cross traffic leaves of the link's payload rate; needed is the data of an iteration over the time
# that it took. The difference goes unused. First the heaviest load of each sweep (Tables 3.3, 3.5 and 3.7), then the
# mean over the levels from the congestion point on (Table 3.8). The thesis counts from 25 Gbit/s, and sweeps to up to
# 24.7.

# %%
sweep_page.bandwidths(sweeps)

# %%
sweep_page.spare(sweeps)

# %% [markdown]
# ## Distributions
#
# All iterations of all repetitions at the levels nearest to 8 and 20 Gbit/s on the wire, which the thesis calls 30 %
# and 80 %.

# %%
page.show(
    sweep_plots.distributions(TCP, lambda study: study.loaded.traffic),
    "Over TCP, by kind of cross traffic. Compare the thesis, Figure 3-5.",
    "Cumulative distributions of iteration times over TCP at light and heavy load",
) if TCP else page.Html("<p>No job trained over TCP (the thesis' Figure 3-5).</p>")

# %%
page.show(
    sweep_plots.distributions(CONSISTENT, lambda study: study.loaded.transport),
    "Under consistent web-search traffic, by transport. Compare the thesis, Figure B-1.",
    "Cumulative distributions of iteration times under consistent traffic at light and heavy load",
) if CONSISTENT else page.Html("<p>No consistent traffic was sent (the thesis' Figure B-1).</p>")

# %% [markdown]
# ## Inside an iteration
#
# How fast two workers send while an iteration communicates, by their interfaces' counters, payload. Flow 1 leaves a
# worker that meets no cross traffic, flow 2 the one that shares its link with it (Figure 3-9; Table 3.11, which does
# not name its transport). In a ring all send as much in nearly as long; the mean over packets, as their readings in
# Figures 3-10 and 3-11 have it, is the higher, the more a worker waits and then hurries. Those figures themselves need
# packets of these workers (`capture`).

# %%
sweep_page.inside(inside(run, found))

# %% [markdown]
# ## How slow at another load?
#
# The mean iteration time that the chosen fit foretells, and where a measurement of it would lie in 95 % of cases.
# *Extrapolated*: outside the loads that were measured, where the form of the curve decides and not the data.

# %%
sweep_page.predictions(found, (10, 15, 19, 22))

# %% [markdown]
# ## The load that was meant, and the load that was there
#
# Planned is the load of the flows drawn, offered that of the flows that were due while jobs ran. Figures on this page
# go by what was on the wire. A schedule that was not held means that flows began late or were not carried: on a full
# link they wait for each other.

# %%
sweep_page.loads(outcomes(run))

# %%
page.show(
    sweep_plots.requested(load),
    f"The flows that were requested of {load.asked_gbps:g} Gbit/s of burst traffic: {load.mean_gbps:.2f} Gbit/s in the "
    "mean, in bursts of 1 ms each 10 ms. Compare the thesis, Figure B-4 (7.3 Gbit/s).",
    "Size and start of the flows requested, and when bursts are due",
) if (load := requested(run)) else page.Html("<p>No flows of burst traffic were stored (the thesis' Figure B-4).</p>")

# %%
page.show(
    sweep_plots.injection(bursts, found[0].loaded.link_gbps),
    "How fast the sender put packets out while jobs ran: a moving average over 18 of them, read at 60,000 instants; "
    "grey: means. The highest readings, one in 200, lie beyond the axis and count in no skewness. "
    "Compare the thesis, Figures 3-8 and B-5.",
    "Injection rates of cross traffic over time, and their histograms",
) if found and (bursts := injected(run)) else page.Html(
    "<p>Histograms of injection rates (the thesis' Figure 3-8) need packets: this run captured none of a host that "
    "only sends cross traffic (<code>capture: {hosts: [...]}</code> in the experiment).</p>"
)

# %% [markdown]
# ## What was emulated

# %%
page.fidelity_notes(summary)

# %%
page.headroom(run)

# %% [markdown]
# ## How the figures were made
#
# Intervals of iteration times come from a bootstrap on two levels: repetitions are drawn with replacement, and within
# each of them blocks of consecutive iterations; those of congestion points draw repetitions at each level. With fewer
# than four repetitions there is no interval. Intervals of fits hold every coefficient that some curve has which fits
# nearly as well.

# %%
page.invalid(summary)

# %% [markdown]
# ## Provenance

# %%
page.provenance(run, measured(run))
