# SPDX-License-Identifier: Apache-2.0
"""What the thesis printed in chapter 3: models, congestion points, bandwidths and fits, to be shown beside ours.

Differences and percentages follow from what is here (statistics/degradation/demand.py) and are not repeated. Where text
and table disagree, the table is taken; docs/degradation.md lists what is doubtful.
"""

from dataclasses import dataclass
from types import MappingProxyType

from analysis.statistics.degradation.demand import data_per_iteration_mb

LINK_GBPS = 25.0


@dataclass(frozen=True)
class Setting:
    """One of the chapter's three sweeps: its cross traffic, what carried the training, and how many workers trained."""

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
    """A row of Table 3.1: alone, on four workers, over RDMA.

    `parameters` are those by which equation 3.1 gives the tables' MB, with three workers as with four, to all digits
    printed: those of the public models (for BERT, the large uncased one with its masked-language head).
    """

    name: str
    parameters: int
    alone_s: float
    required_gbps: float

    def data_mb(self, workers: int) -> float:
        """Data per iteration (equation 3.1; Tables 3.1 and 3.2 with four workers, 3.4 and 3.6 with three)."""
        return data_per_iteration_mb(self.parameters, workers)


BERT, VGG, DENSENET, RESNET = "BERT-large", "VGG-16", "DenseNet-161", "ResNet-50"
MODELS = MappingProxyType(
    {
        model.name: model
        for model in (
            Model(BERT, 335_174_458, alone_s=0.84, required_gbps=19.15),
            Model(VGG, 138_357_544, alone_s=0.37, required_gbps=17.95),
            Model(DENSENET, 28_681_000, alone_s=0.38, required_gbps=3.63),
            Model(RESNET, 25_557_032, alone_s=0.16, required_gbps=7.69),
        )
    }
)


@dataclass(frozen=True)
class Observed:
    """What was found for a model in one setting."""

    setting: Setting
    model: str
    congestion_gbps: float | None
    """The load at the congestion point, where the text gives it (Figures 3-2 to 3-4)."""
    congestion_mb: float
    """Its data per iteration (Tables 3.2, 3.4, 3.6)."""
    worst_required_gbps: float
    """What the most congested case should need (Tables 3.3, 3.5, 3.7: "theoretical")."""
    worst_available_gbps: float
    """And what it was left with ("experimental")."""
    spare_gbps: float
    """The mean difference of the two where the link is saturated (Table 3.8)."""


OBSERVED = (
    Observed(IPERF, BERT, None, 2216.2, 3.06, 4.54, 1.24),
    Observed(IPERF, VGG, 13.99, 928.7, 5.19, 6.52, 1.12),
    Observed(IPERF, DENSENET, 19.7, 268.8, 2.04, 3.42, 1.64),
    Observed(IPERF, RESNET, 18.1, 182.5, 2.90, 4.21, 1.21),
    Observed(CONSISTENT, BERT, None, 2296.4, 1.06, 3.18, 2.63),
    Observed(CONSISTENT, VGG, 15.70, 990.7, 1.13, 3.19, 2.39),
    Observed(CONSISTENT, DENSENET, 17.9, 355.2, 0.98, 2.97, 2.84),
    Observed(CONSISTENT, RESNET, 15.8, 198.8, 3.85, 5.83, 2.25),
    Observed(BURST, BERT, 14.6, 2343.5, 0.078, 0.347, 2.62),
    Observed(BURST, VGG, 16.60, 925.3, 0.232, 3.601, 2.51),
    Observed(BURST, DENSENET, 19.9, 284.9, 0.131, 3.306, 2.75),
    Observed(BURST, RESNET, 18.4, 203.2, 0.095, 0.347, 2.52),
)


INSIDE = MappingProxyType(
    {(BERT, 30): (9.82, 9.46), (BERT, 80): (3.62, 3.27), (RESNET, 30): (8.42, 8.40), (RESNET, 80): (7.24, 4.13)}
)
"""By model and load in %: mean rates in Gbit/s of flows 1 and 2 of Figure 3-9 under consistent traffic (Table 3.11)."""


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


FITS = (
    Printed("equation 3.3, Figures 3-2 and B-2", BERT, "iperf", "RDMA", 0.618, 9.95, 1.0),
    Printed("equation 3.3, Figures 3-2 and B-2", VGG, "iperf", "RDMA", 0.254, 10.75, 1.0),
    Printed("Table 3.9, Figure B-3", BERT, "consistent", "RDMA", 0.200, 7.281, 0.5),
    Printed("Table 3.9, Figure B-3", RESNET, "consistent", "RDMA", 0.140, 22.793, 2.0),
    Printed("Tables 3.9 and 3.10, Figures 3-7 and B-3", BERT, "consistent", "TCP", 0.564, 3.667, 0.5),
    Printed("Tables 3.9 and 3.10, Figures 3-7 and B-3", RESNET, "consistent", "TCP", 0.0645, 3.311, 0.5),
    Printed("Table 3.10, Figure 3-7", BERT, "burst", "TCP", 0.268, 7.310, 0.5),
    Printed("Table 3.10, Figure 3-7", RESNET, "burst", "TCP", 0.0862, 4.174, 0.5),
)


@dataclass(frozen=True)
class Quality:
    """A printed R^2, an average unless `of` is one model. The thesis does not say in which domain any was taken."""

    source: str
    of: str
    n: float | None
    r_squared: float


QUALITIES = (
    Quality("section 3.2, Figure 3-2(b)", "BERT-large and VGG-16, iperf, RDMA", 1.0, 0.99),
    Quality("section 3.3.1, Figure B-2(b)", "BERT-large and VGG-16, consistent, RDMA", 0.5, 0.99),
    Quality("section 3.3.2, Figure B-2(c)", "all models, burst, TCP", 2.0, 0.83),
    Quality("section 3.3.2, Figure B-2(c)", "BERT-large, burst, TCP", 2.0, 0.91),
    Quality("section 3.4.2, Figure B-3", "BERT-large and ResNet-50, consistent, RDMA", None, 0.97),
    Quality("section 3.4.2, Figure B-3", "BERT-large and ResNet-50, consistent, TCP", 0.5, 0.96),
)
