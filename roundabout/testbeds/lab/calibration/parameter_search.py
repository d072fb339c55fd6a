# SPDX-License-Identifier: Apache-2.0
"""Search for constants of the lab.

The candidates are the current constants, then samples of the ranges, then variations of the best candidates.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from roundabout.testbeds.lab.calibration.calibration import Calibration
from roundabout.testbeds.lab.calibration.proposals import BEST, Point, Ranges, latin_hypercube, vary_best


@dataclass
class Candidate:
    """A candidate for the lab's constants. `misfit` is None before the measurement and after an invalid one."""

    name: str
    point: Point
    calibration: Calibration
    misfit: float | None = None


@dataclass
class ParameterSearch:
    """A search over `tries` candidates. The seed and the previous misfits determine each candidate."""

    ranges: Ranges
    kept: Calibration
    tries: int
    seed: int
    done: list[Candidate] = field(default_factory=list)

    def __iter__(self) -> Iterator[Candidate]:
        """Yield one candidate after the other. Set its `misfit` before the next one."""
        yield self._note(Candidate("kept", self.ranges.place(self.kept), self.kept))
        samples = min(self.tries // 2, self.tries - 1)
        for number, point in enumerate(
            latin_hypercube(samples, len(self.ranges.names), self.seed) if samples > 0 else ()
        ):
            yield self._propose(f"sample {number + 1}", point)
        variations = self.tries - 1 - samples
        for number in range(variations):
            best = [each.point for each in self.ranking[:BEST]] or [self.done[0].point]
            yield self._propose(f"variation {number + 1}", vary_best(best, number, variations, self.seed))

    @property
    def ranking(self) -> list[Candidate]:
        """Return the candidates with a valid measurement, the lowest misfit first."""
        return sorted((each for each in self.done if each.misfit is not None), key=lambda each: each.misfit or 0.0)

    def _propose(self, name: str, point: Point) -> Candidate:
        return self._note(Candidate(name, point, self.ranges.calibration(point, self.kept)))

    def _note(self, new: Candidate) -> Candidate:
        self.done.append(new)
        return new
