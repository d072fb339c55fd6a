# SPDX-License-Identifier: Apache-2.0
"""Salamy, "Network Requirements for Distributed Machine Learning Training in the Cloud" (MIT, 2022): chapter 3.

Models, congestion points, bandwidths and fits as printed, to be shown beside ours. Differences and percentages follow
from what is here (statistics/degradation/demand.py) and are not repeated. Where text and table disagree, the table is
taken; docs/explanation/degradation.md lists what is doubtful. What Salamy says in words is in CLAIMS: where it says
"hardly" or "considerably" the bounds are ours, and stated with the claim.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from analysis.papers.entries import Claim, Entry, Paper, Row, read_table
from analysis.statistics.degradation.demand import data_per_iteration_mb
from analysis.statistics.degradation.model import iteration_time_s
from roundabout.spec.expectation import Basis, Bound, Bounds, Row as ExpectedRow

TABLES = Path(__file__).parent / "salamy_tables"
LINK_GBPS = 25.0
LIGHT_GBPS, HEAVY_GBPS = 8.0, 20.0
"""The loads that Salamy calls 30 % and 80 % (section 3.4.1)."""


@dataclass(frozen=True)
class Setting:
    """One of the chapter's three load sweeps: its cross traffic, training's transport, and the number of workers."""

    traffic: str
    transport: str
    configuration: str
    workers: int
    figure: str


IPERF = Setting("iperf", "RDMA", "A", 4, "3-2")
CONSISTENT = Setting("consistent", "RDMA", "B", 3, "3-3")
BURST = Setting("burst", "TCP", "B", 3, "3-4")
SETTINGS = (IPERF, CONSISTENT, BURST)


@dataclass(frozen=True)
class Model:
    """A row of Table 3.1: a model that trains alone on four workers over RDMA.

    `parameters` is the public model's number of parameters (for BERT, the large uncased model with its masked-language
    head). With it equation 3.1 gives all printed digits of the tables' MB for three and for four workers.
    """

    name: str
    parameters: int
    alone_s: float
    required_gbps: float

    def data_mb(self, workers: int) -> float:
        """Return the data per iteration on each link, MB of 10^6 bytes (equation 3.1; Tables 3.1, 3.2, 3.4 and 3.6)."""
        return data_per_iteration_mb(self.parameters, workers)


BERT, VGG, DENSENET, RESNET = "BERT-large", "VGG-16", "DenseNet-161", "ResNet-50"
MODELS = MappingProxyType({model.name: model for model in read_table(TABLES / "models.csv", Model)})


@dataclass(frozen=True)
class Observed:
    """The printed figures of a model in one setting."""

    traffic: str
    model: str
    congestion_gbps: float | None
    """The load at the congestion point (Figures 3-2 to 3-4); None if the text does not give it."""
    congestion_mb: float
    """The data per iteration at the congestion point, MB (Tables 3.2, 3.4, 3.6)."""
    worst_required_gbps: float
    """The bandwidth that the most congested case needs in theory (Tables 3.3, 3.5, 3.7: "theoretical")."""
    worst_available_gbps: float
    """The bandwidth that cross traffic left the most congested case (same tables: "experimental")."""
    spare_gbps: float
    """The mean of available less required bandwidth at loads that saturate the link (Table 3.8)."""

    @property
    def setting(self) -> Setting:
        """Return the setting with this traffic."""
        return next(setting for setting in SETTINGS if setting.traffic == self.traffic)


OBSERVED = read_table(TABLES / "observed.csv", Observed)


@dataclass(frozen=True)
class FlowRates:
    """The mean rates of flows 1 and 2 of Figure 3-9 (Table 3.11)."""

    model: str
    load_percent: int
    flow_1_gbps: float
    flow_2_gbps: float


INTRA_ITERATION = MappingProxyType(
    {
        (each.model, each.load_percent): (each.flow_1_gbps, each.flow_2_gbps)
        for each in read_table(TABLES / "intra_iteration.csv", FlowRates)
    }
)
"""Mean rates of flows 1 and 2 of Figure 3-9, Gbit/s, by model and load in %, under consistent traffic (Table 3.11)."""


@dataclass(frozen=True)
class Printed:
    """A printed fit t = A exp(B / (25 - BW)^n), BW in Gbit/s."""

    source: str
    model: str
    traffic: str
    transport: str
    a_s: float
    b: float
    n: float


FITS = read_table(TABLES / "fits.csv", Printed)


@dataclass(frozen=True)
class Quality:
    """A printed R^2, an average unless `of` names one model. Salamy does not say whether it is of t or of log t."""

    source: str
    of: str
    n: float | None
    r_squared: float


QUALITIES = read_table(TABLES / "qualities.csv", Quality)


def _line(fit: Printed) -> Callable[[float], float]:
    def time_s(load_gbps: float) -> float:
        return float(iteration_time_s(np.array(load_gbps), fit.a_s, fit.b, fit.n, LINK_GBPS))

    return time_s


def _fit(name: str, fit: Printed) -> tuple[Entry, Entry]:
    """Return a printed fit's coefficients, and its curve."""
    what = f"{fit.model}, {fit.traffic}, {fit.transport}"
    unit = "A in s, B in (Gbit/s)ⁿ"
    return (
        Entry(name, f"fit with n = {fit.n:g}: {what}", {"A": fit.a_s, "B": fit.b}, unit, fit.source),
        Entry(f"{name}/curve", f"iteration time under load by the fit: {what}", _line(fit), "s", fit.source),
    )


def _loads(name: str, setting: Setting) -> Entry:
    """Return the loads at the congestion points of a setting."""
    loads = {
        each.model: each.congestion_gbps
        for each in OBSERVED
        if each.setting == setting and each.congestion_gbps is not None
    }
    what = f"load at the congestion point, {setting.traffic}, {setting.transport}"
    return Entry(name, what, loads, "Gbit/s", f"Figure {setting.figure}")


def _tables(demand: str, bandwidth: str, setting: Setting) -> tuple[Entry, Entry]:
    """Return a setting's table of congestion points against theory, and its table of bandwidths."""
    own = [each for each in OBSERVED if each.setting == setting]
    above = {each.model: 100 * (each.congestion_mb / MODELS[each.model].data_mb(setting.workers) - 1) for each in own}
    unused = {each.model: each.worst_available_gbps - each.worst_required_gbps for each in own}
    within = f"{setting.traffic}, {setting.transport}"
    return (
        Entry(f"table-{demand}", f"data at the congestion point above theory, {within}", above, "%", f"Table {demand}"),
        Entry(
            f"table-{bandwidth}",
            f"bandwidth unused in the most congested case, {within}",
            unused,
            "Gbit/s",
            f"Table {bandwidth}",
        ),  # Table 3.7's 98 % of DenseNet-161 is 96 % by its own numbers
    )


def _spare(setting: Setting) -> Entry:
    spare = {each.model: each.spare_gbps for each in OBSERVED if each.setting == setting}
    name = f"table-3.8/{setting.traffic}"
    return Entry(name, f"bandwidth unused when saturated, {setting.traffic}", spare, "Gbit/s")


def _quality(name: str, quality: Quality) -> Entry:
    # The thesis does not say if it is R² of log t or of t.
    return Entry(name, f"R²: {quality.of}", quality.r_squared, "", quality.source)


_FIT = {(each.model, each.traffic, each.transport): each for each in FITS}

ROWS = (
    Row(
        "C Table 3.1",
        "models alone: data per iteration, iteration time, bandwidth needed",
        "BERT-large 2011 MB, 0.84 s, 19.15 Gbit/s; VGG-16 830 MB, 0.37 s, 17.95; DenseNet-161 172 MB, 0.38 s, 3.63; "
        "ResNet-50 153 MB, 0.16 s, 7.69",
        "Table 3.1",
        (
            Entry(
                "table-3.1/alone", "iteration time alone", {each.name: each.alone_s for each in MODELS.values()}, "s"
            ),
            Entry(
                "table-3.1/required",
                "bandwidth needed",
                {each.name: each.required_gbps for each in MODELS.values()},
                "Gbit/s",
            ),
            Entry(
                "table-3.1/data",
                "data per iteration, four workers",
                {each.name: each.data_mb(4) for each in MODELS.values()},
                "MB",
            ),  # BERT-large's needs 335.2 M parameters, not Table 2.1's 366 M
        ),
        shown_by={"cross-traffic-all": "link sharing"},
    ),
    Row(
        "C Fig 3-2",
        "iperf, configuration A, RDMA: iteration time by load",
        "congestion at 13.99 (VGG-16), 19.7, 18.1 Gbit/s; fits A 0.618, 0.254 s, B 9.95, 10.75 (BERT, VGG), R² 0.99",
        "Figure 3-2, equation 3.3",
        (
            _loads("fig-3-2/congestion", IPERF),
            *_fit("equation-3.3/BERT-large", _FIT[BERT, "iperf", "RDMA"]),
            *_fit("equation-3.3/VGG-16", _FIT[VGG, "iperf", "RDMA"]),
        ),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Table 3.2, 3.3",
        "iperf: congestion points against theory; bandwidth unused",
        "10, 12, 56, 19 % above; 1.48, 1.33, 1.38, 1.31 Gbit/s",
        "Tables 3.2 and 3.3",
        _tables("3.2", "3.3", IPERF),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Fig 3-3",
        "consistent web-search traffic, configuration B, RDMA: iteration time by load",
        "congestion at 15.7 (VGG-16), 17.9, 15.8 Gbit/s; n = 1/2, R² 0.99",
        "Figure 3-3, equation 3.5",
        (_loads("fig-3-3/congestion", CONSISTENT),),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Table 3.4, 3.5",
        "consistent: congestion points against theory; bandwidth unused",
        "28, 34, 132, 46 % above; 67, 65, 67, 34 % of what is available",
        "Tables 3.4 and 3.5",
        _tables("3.4", "3.5", CONSISTENT),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Fig 3-4",
        "burst web-search traffic, configuration B, TCP: iteration time by load",
        "congestion at 14.6, 16.6, 19.9, 18.4 Gbit/s; n = 2, R² 0.83 (n = 1/2 better above 17 Gbit/s)",
        "Figure 3-4, equation 3.6",
        (_loads("fig-3-4/congestion", BURST),),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Table 3.6, 3.7",
        "burst: congestion points against theory; bandwidth unused",
        "31, 25, 86, 49 % above; 78, 94, 98, 73 % of what is available",
        "Tables 3.6 and 3.7",
        _tables("3.6", "3.7", BURST),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Table 3.8",
        "bandwidth unused when saturated, by kind of traffic",
        "iperf 1.24, 1.12, 1.64, 1.21; consistent 2.63, 2.39, 2.84, 2.25; burst 2.62, 2.51, 2.75, 2.52 Gbit/s",
        "Table 3.8",
        tuple(_spare(setting) for setting in SETTINGS),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Fig 3-5",
        "distributions at 30 % and 80 % load, consistent and burst",
        "equal at 30 %, burst clearly worse at 80 %",
        "Figure 3-5",
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Fig 3-6",
        "RDMA and TCP",
        "BERT alone 0.84 s over RDMA, 1.45 s over TCP; the curves meet under load",
        "Figure 3-6, section 3.4.2",
        (
            Entry("fig-3-6/rdma", "iteration time of BERT-large without load, RDMA", 0.84, "s", "section 3.4.2"),
            Entry("fig-3-6/tcp", "iteration time of BERT-large without load, TCP", 1.45, "s", "section 3.4.2"),
        ),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Table 3.9, Fig B-3",
        "fits under consistent traffic, RDMA and TCP",
        "BERT-large 0.200, 7.281 and 0.564, 3.667; ResNet-50 0.140, 22.793 (n = 2) and 0.0645, 3.311; R² 0.97 and 0.96",
        "Table 3.9, Figure B-3",
        (
            *_fit("table-3.9/BERT-large/rdma", _FIT[BERT, "consistent", "RDMA"]),
            *_fit("table-3.9/BERT-large/tcp", _FIT[BERT, "consistent", "TCP"]),
            *_fit("table-3.9/ResNet-50/rdma", _FIT[RESNET, "consistent", "RDMA"]),
            *_fit("table-3.9/ResNet-50/tcp", _FIT[RESNET, "consistent", "TCP"]),
            _quality("fig-b-3/rdma", QUALITIES[4]),
            _quality("fig-b-3/tcp", QUALITIES[5]),
        ),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Table 3.10, Fig 3-7",
        "fits under burst traffic beside those under consistent traffic",
        "burst: BERT-large 0.268, 7.310; ResNet-50 0.0862, 4.174",
        "Table 3.10, Figure 3-7",
        (
            *_fit("table-3.10/BERT-large", _FIT[BERT, "burst", "TCP"]),
            *_fit("table-3.10/ResNet-50", _FIT[RESNET, "burst", "TCP"]),
        ),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Fig 3-8",
        "histograms of injection rates at 24 Gbit/s",
        "burst skewed with a tail, consistent symmetric; 60,000 readings",
        "Figure 3-8",
        shown_by={"injection-websearch": "software"},
    ),
    Row(
        "C Fig 3-10, 3-11, Table 3.11",
        "bandwidth inside an iteration, flow 1 and flow 2",
        "BERT-large 9.82/9.46 at 30 %, 3.62/3.27 at 80 %; ResNet-50 8.42/8.40, 7.24/4.13 Gbit/s",
        "Table 3.11, Figures 3-10 and 3-11",
        tuple(
            Entry(
                f"table-3.11/{model}/{percent}",
                f"bandwidth inside an iteration, {model} at {percent} % load",
                {"flow 1": flow_1, "flow 2": flow_2},
                "Gbit/s",
            )  # the transport is not named
            for (model, percent), (flow_1, flow_2) in INTRA_ITERATION.items()
        ),
        shown_by={"iteration-flows": "software"},
    ),
    Row(
        "C Fig A-1",
        "how a congestion point is constructed",
        "a line, a tangent, and the measured level nearest to where they cross",
        "Figure A-1, Appendix A.2",
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Fig B-1",
        "distributions at 30 % and 80 % load, RDMA and TCP",
        "large models are quicker over RDMA at 30 %; close at 80 %",
        "Figure B-1",
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Fig B-2",
        "iteration time against the hyperbola, with fits",
        "R² 0.99 (iperf, n = 1), 0.99 (consistent, n = 1/2), 0.83 (burst, n = 2; BERT-large 0.91)",
        "Figure B-2",
        (
            _quality("fig-b-2/iperf", QUALITIES[0]),
            _quality("fig-b-2/consistent", QUALITIES[1]),
            _quality("fig-b-2/burst", QUALITIES[2]),
            _quality("fig-b-2/burst/BERT-large", QUALITIES[3]),
        ),
        shown_by={"cross-traffic-all": "transports"},
    ),
    Row(
        "C Fig B-4, B-5",
        "a load file; traces of burst and consistent traffic",
        "bursts of 1 ms each 10 ms, 7.3 Gbit/s; windows of 18 samples",
        "Figures B-4 and B-5",
        (
            Entry("fig-b-4/every", "time between bursts of a load file", 10, "ms"),
            Entry("fig-b-4/long", "length of a burst of a load file", 1, "ms"),
        ),
        shown_by={"injection-websearch": "software"},
    ),
    Row(
        "C text",
        "what the text sums up",
        "at 80 % load 4 (ResNet-50) to 8 times (BERT) as slow; spread 0.05 % light, 7.8 % consistent and 39.3 % burst; "
        "99 % tail 60 % above the mean; 10 % of the link unused under burst traffic",
        "abstract, chapter 4",
        (
            Entry("text/slower", "slow-down at 80 % load, at worst", {RESNET: 4, BERT: 8}, "times", "abstract"),
            Entry("text/tail", "99 % tail above the mean at heavy loads, on average", 60, "%", "chapter 4"),
            Entry("text/spread/light", "spread of iteration times at light loads, on average", 0.05, "%", "chapter 4"),
            Entry(
                "text/spread/heavy",
                "spread of iteration times at heavy loads, on average",
                {"consistent": 7.8, "burst": 39.3},
                "%",
                "chapter 4",
            ),
            Entry("text/unused", "of the link, unused under burst traffic", 10, "%", "chapter 4"),
        ),
        shown_by={"cross-traffic-all": "transports"},
    ),
)


CLAIMS = (
    Claim(
        Bound(
            claim="Without much to send, training does not notice light loads "
            "(DenseNet, ResNet within 5 % at 30 % load)",
            what="slow-down at 30 % load",
            only={"model": (DENSENET, RESNET)},
            at_most=1.05,
            source="Figures 3-2 to 3-4",
            basis=Basis.PREDICTED,
        ),
        {"C Fig 3-2": "iperf", "C Fig 3-3": "consistent", "C Fig 3-4": "burst"},
    ),
    Claim(
        Bound(
            claim="Over RDMA, BERT and VGG notice them at once (more than 5 % slower at 30 % load)",
            what="slow-down at 30 % load",
            only={"model": (BERT, VGG), "transport": "RDMA"},
            at_least=1.05,
            source="Figures 3-2, 3-3",
            basis=Basis.PREDICTED,
        ),
        {"C Fig 3-2": "iperf", "C Fig 3-3": "consistent"},
    ),
    Claim(
        Bound(
            claim="t = A exp(B / (C - BW)ⁿ) describes BERT and VGG (R² of at least 0.95, of log t)",
            what="R² of the fit",
            only={"model": (BERT, VGG)},
            at_least=0.95,
            source="Figures 3-2, B-2: 0.99, 0.99; burst 0.83",
            basis=Basis.PREDICTED,
        ),
        {"C Fig B-2": None, "C Table 3.9, Fig B-3": "consistent"},
    ),
    Claim(
        Bound(
            claim="With C held at the link's rate, n is 1 under iperf, 1/2 under consistent and 2 under burst traffic",
            what="n of the best fit over Salamy's",
            at_least=1,
            at_most=1,
            source="equations 3.3, 3.5, 3.6",
            basis=Basis.PREDICTED,
        ),
        {"C Fig B-2": None},
    ),
    Claim(
        Bound(
            claim="At the congestion point more data would fit through than an iteration sends",
            what="data at the congestion point above theory",
            at_least=0,
            source="Tables 3.2, 3.4, 3.6: 10 to 132 %",
            # All that cross traffic leaves counts as used: docs/explanation/degradation.md.
            basis=Basis.BY_CONSTRUCTION,
        ),
        {"C Table 3.2, 3.3": "iperf", "C Table 3.4, 3.5": "consistent", "C Table 3.6, 3.7": "burst", "C Fig A-1": None},
    ),
    Claim(
        Bound(
            claim="Once saturated, web-search traffic leaves more of the link unused than iperf does",
            what="bandwidth unused when saturated, more than under iperf",
            at_least=0,
            source="Table 3.8: 1.0 to 1.4 Gbit/s more",
            basis=Basis.PREDICTED,
        ),
        {"C Table 3.8": None},
    ),
    Claim(
        Bound(
            claim="At 30 % load consistent and burst traffic hardly differ (means within 5 %)",
            what="burst over consistent traffic, mean at 30 % load",
            at_least=0.95,
            at_most=1.05,
            source="Figure 3-5a",
            basis=Basis.PREDICTED,
        ),
        {"C Fig 3-5": None},
    ),
    Claim(
        Bound(
            claim="At 80 % load burst traffic is the worse one (99 % tails)",
            what="burst over consistent traffic, 99 % tail at 80 % load",
            at_least=1,
            source="Figure 3-5b",
            basis=Basis.PREDICTED,
        ),
        {"C Fig 3-5": None},
    ),
    Claim(
        ExpectedRow(
            claim="At 80 % load, web-search traffic slows ResNet down up to 4 times and BERT up to 8 times "
            "(within a quarter)",
            what="slow-down at 80 % load, at worst",
            row="salamy/text/slower",
            within=0.25,
            source="abstract",
            basis=Basis.PREDICTED,
        ),
        {"C text": None},
    ),
    Claim(
        ExpectedRow(
            claim="BERT trains faster over RDMA than over TCP (0.84 s against 1.45 s), but not under heavy load "
            "(within 15 %)",
            what="TCP over RDMA",
            only={"model": BERT},
            row={"without load": Bounds(at_least=1.15), "at 80 % load": Bounds(at_least=0.85, at_most=1.15)},
            within=0.15,
            source="Figure 3-6",
            basis=Basis.PREDICTED,
        ),
        {"C Fig 3-6": None, "C Fig B-1": None},
    ),
    Claim(
        Bound(
            claim="At heavy loads the 99 % tail lies 60 % above the mean, on average (30 to 90 %)",
            what="99 % tail above the mean at 80 % load",
            at_least=30,
            at_most=90,
            source="chapter 4",
            basis=Basis.PREDICTED,
        ),
        {"C text": None},
    ),
)

PAPER = Paper(key="salamy", name="Salamy", rows=ROWS, claims=CLAIMS, study="load-sweep")
