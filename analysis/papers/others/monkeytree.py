# SPDX-License-Identifier: Apache-2.0
"""MonkeyTree (arXiv 2602.08296) and its public artifact, hipersys-team/MonkeyTreeArtifact."""

from analysis.papers.entries import Paper, Row

SOURCE = Paper(
    key="monkeytree",
    name="MonkeyTree",
    rows=(
        Row(
            "MonkeyTree Fig 6",
            "slowdown of jobs on 1,024 GPUs by load",
            "at a load of 1.0 a mean of 1.606 under ECMP, 1.202 under perfect routing, and 1.004 with moves too",
            "Figure 6 (hipersys-team/MonkeyTreeArtifact, plots/fig06_main_slowdown.py at 5fd29fc)",
            shown_by={"monkeytree-load": "link sharing"},
        ),
    ),
)
