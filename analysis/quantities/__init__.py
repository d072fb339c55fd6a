# SPDX-License-Identifier: Apache-2.0
"""Quantities that can be measured of a run, one file each (or a few that belong together), registered by name.

    @quantity("mean iteration time", unit="ms", digits=1)
    def mean(asked: Asked) -> list[Case]:
        \"\"\"Mean of all iterations of all repetitions.\"\"\"
        return asked.each_job(np.mean)

From then on `expect:` can name it. A file in `analysis/quantities/` of a folder on ROUNDABOUT_PATH counts as one here.
"""

from analysis.quantities._registry import Quantity, known, named, quantity
from analysis.quantities._request import Asked, Case, Curve, Reading
from analysis.statistics.intervals import mean_of
from roundabout.core import plugins

__all__ = ["Asked", "Case", "Curve", "Quantity", "Reading", "known", "mean_of", "named", "quantity"]
__path__ = plugins.extended(__path__, __name__)
