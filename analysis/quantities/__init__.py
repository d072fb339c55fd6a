# SPDX-License-Identifier: Apache-2.0
"""Quantities that can be measured of a run, one file each (or a few that belong together), registered by name.

    @quantity("mean iteration time", unit="ms", digits=1)
    def mean(request: QuantityRequest) -> list[Case]:
        \"\"\"Mean of all iterations of all repetitions.\"\"\"
        return request.each_job(np.mean)

From then on `expect:` can name it. A file in `analysis/quantities/` of a folder on ROUNDABOUT_PATH counts as one here.
"""

from analysis.quantities._registry import Quantity, all_quantities, find_quantity, quantity
from analysis.quantities._request import CachedReading, Case, Curve, QuantityRequest
from analysis.statistics.intervals import mean_of
from roundabout.core import plugins

__all__ = [
    "CachedReading",
    "Case",
    "Curve",
    "Quantity",
    "QuantityRequest",
    "all_quantities",
    "find_quantity",
    "mean_of",
    "quantity",
]
__path__ = plugins.extend_path(__path__, __name__)
