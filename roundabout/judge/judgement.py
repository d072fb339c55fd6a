# SPDX-License-Identifier: Apache-2.0
"""The result of judging one congestion control."""

from dataclasses import asdict, dataclass, field
from typing import Any

from roundabout.judge.figures import Figures
from roundabout.judge.kernel_requirements import KernelCheck, Requirements
from roundabout.judge.session import Spread
from roundabout.judge.verdicts import Verdict, verdicts

VERDICT_WORDS = (
    "A lab's verdict is not a NIC's: this is kernel TCP on emulated links of one machine, a hundredth as fast. "
    "What fails here fails elsewhere; what passes here has yet to be shown there."
)
"""Note that accompanies every verdict."""


@dataclass
class Judgement:
    """The figures of each contestant, the judged one first.

    `refused` is the message if the compiler or the kernel rejected the program; then there are no figures. `spread` has
    the range of figures over several rounds. `invalid` names invalid trials of jobs.
    """

    name: str
    program: str
    system: str
    needs: Requirements = field(default_factory=Requirements)
    kernels: tuple[KernelCheck, ...] = ()
    refused: str = ""
    figures: dict[str, Figures] = field(default_factory=dict)
    spread: Spread = field(default_factory=dict)
    invalid: list[str] = field(default_factory=list)
    run: str = ""

    @property
    def verdicts(self) -> list[Verdict]:
        """Return the verdicts on the judged congestion control."""
        if self.refused:
            return [Verdict("fail", "it is not taken: nothing else could be measured")]
        found = [Verdict("pass", "the verifier takes it")] if self.figures else []
        peers = {name: each for name, each in self.figures.items() if name != self.name}
        return found + verdicts(self.figures.get(self.name, {}), peers)

    def record(self) -> dict[str, Any]:
        """Return the result as JSON-compatible values."""
        reported = [each._asdict() for each in self.verdicts]
        return {"schema": 1, **asdict(self), "verdicts": reported, "about": VERDICT_WORDS}
