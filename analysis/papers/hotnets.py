# SPDX-License-Identifier: Apache-2.0
"""HotNets'22, "Congestion Control in Machine Learning Clusters"; part of it is in the interleaving thesis too."""

from collections.abc import Mapping

from analysis.papers.entries import Entry, Paper, Row

_TABLE_1 = "Table 1 (the interleaving thesis' Table 3.1)"


def _group(name: str, jobs: Mapping[str, tuple[float, float, float]]) -> list[Entry]:
    """Return a group of jobs that compete for bandwidth, in order of appearance.

    Fair and unfair times, ms, and speed-up.
    """
    what = f"group {name}: {', '.join(jobs)}"
    fair_ms, unfair_ms, speedup = (
        {f"j{place}": float(figures[column]) for place, figures in enumerate(jobs.values(), start=1)}
        for column in range(3)
    )
    return [
        Entry(f"table-1/{name}/fair", f"mean iteration time, fair; {what}", fair_ms, "ms"),
        Entry(f"table-1/{name}/unfair", f"mean iteration time, unfair; {what}", unfair_ms, "ms"),
        Entry(f"table-1/{name}/speedup", f"speed-up by unfairness; {what}", speedup, "times"),
    ]


_GROUPS = (
    *_group("1", {"BERT (8)": (183, 157, 1.17), "VGG19 (1200)": (297, 315, 0.94)}),
    *_group("2", {"DLRM (2000), first": (1301, 1001, 1.3), "DLRM (2000), second": (1300, 1019, 1.28)}),
    *_group(
        "3", {"BERT (8)": (320, 216, 1.48), "VGG19 (1400)": (494, 466, 1.06), "WideResNet (800)": (466, 505, 0.92)}
    ),
    *_group("4", {"WideResNet (800)": (295, 273, 1.08), "VGG16 (1400)": (294, 274, 1.07)}),
    *_group(
        "5", {"VGG19 (1400)": (389, 329, 1.18), "VGG16 (1700)": (389, 329, 1.18), "ResNet50 (1600)": (167, 165, 1.01)}
    ),
)

PAPER = Paper(
    key="hotnets",
    name="HotNets'22",
    rows=(
        Row(
            "A Fig 1b, 1c, 1d",
            "two VGG19 jobs, fair and unfair",
            "21/21 Gbit/s fair, 30/15 unfair; both 1.23 times as fast",
            "Figures 1b to 1d",
            (
                Entry("fig-1b", "bandwidth in the first iteration, fair", {"j1": 21, "j2": 21}, "Gbit/s"),
                Entry("fig-1c", "bandwidth in the first iteration, unfair", {"j1": 30, "j2": 15}, "Gbit/s"),
                Entry("fig-1c/share", "the first job's bandwidth over the second's", 2.0, "times"),
                Entry("fig-1d", "speed-up of the median iteration time of both jobs", 1.23, "times"),
            ),
            shown_by={"unfair-vgg19": "transports"},
        ),
        Row(
            "A Fig 2",
            "jobs slide apart until they interleave",
            "first iterations end at 0.28 and 0.32 s, the next ones send from 0.38 and 0.42 s; interleaved by the 4th",
            "Figure 2",
            (
                Entry("fig-2b/first-ends", "end of the first iteration, unfair", {"j1": 0.28, "j2": 0.32}, "s"),
                Entry("fig-2b/first-ends/ratio", "the first job's first iteration over the second's", 0.875, "times"),
                Entry("fig-2b/next-sends", "start of the second communication", {"j1": 0.38, "j2": 0.42}, "s"),
                Entry("fig-2b/interleaved", "iteration by which communication is interleaved", 4, "iterations"),
            ),
            shown_by={"unfair-vgg19": "transports"},
        ),
        Row(
            "A Fig 3, B 4.3",
            "VGG16 alone, rolled around a circle",
            "255 ms = 141 computing + 114 communicating; 200 degrees of computing",
            "Figure 3 (the interleaving thesis' Figure 4.3)",
            (
                Entry("fig-3/iteration", "iteration time of VGG16 alone", 255, "ms"),
                Entry("fig-3", "its parts", {"computing": 141, "communicating": 114}, "ms"),
                Entry("fig-3/arc", "arc of computing", 200, "degrees"),
            ),
            shown_by={"traffic-patterns": "link sharing"},
        ),
        Row(
            "A Fig 4, 5, B 4.4, 4.5",
            "rotations, and the unified circle of periods that differ",
            "lcm(40, 60) = 120; j1 rotated by 30 degrees",
            "Figures 4 and 5 (the interleaving thesis' Figures 4.4 and 4.5)",
            (
                Entry("fig-5/perimeter", "perimeter of the unified circle of periods 40 and 60", 120, "ms"),
                Entry("fig-5/rotation", "rotation of j1 on it", 30, "degrees"),
            ),
            shown_by={"traffic-patterns": "link sharing"},
        ),
        Row(
            "A Table 1, B Table 3.1",
            "five groups of jobs, and what unfairness does to each",
            "compatible groups gain in every job (1.01 to 1.3 times), others lose in one (0.92, 0.94)",
            _TABLE_1,
            _GROUPS,
            shown_by={"unfair-table1": "transports"},
        ),
    ),
)
