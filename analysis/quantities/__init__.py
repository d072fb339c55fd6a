# SPDX-License-Identifier: Apache-2.0
"""What can be measured of a run, one file a quantity (or a few that belong together), registered by name.

    @quantity("99 % tail of iteration time", unit="ms", digits=1)
    def tail(asked: Asked) -> list[Case]:
        \"\"\"The 99 % tail of each job's iteration times.\"\"\"
        return asked.each_job(lambda times: np.quantile(times, 0.99, axis=1))

From then on `expect:` can name it. A file in `analysis/quantities/` of a folder on ROUNDABOUT_PATH counts as one here.
"""

from analysis.quantities._asked import Asked, Case, Curve, Reading, mean_of
from analysis.quantities._registry import Quantity, known, named, quantity
from roundabout import rooms

__all__ = ["Asked", "Case", "Curve", "Quantity", "Reading", "known", "mean_of", "named", "quantity"]
__path__ = rooms.extended(__path__, __name__)
