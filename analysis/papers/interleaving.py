# SPDX-License-Identifier: Apache-2.0
"""The interleaving thesis: Cassini and MLTCP.

The results that it shares with HotNets'22 are in that paper's rows. Our copy ends in section 4.5.6: of Figure 4.17
there are no numbers.
"""

from analysis.papers.entries import Entry, Paper, Row


def _snapshot(number: int, cassini_ms: dict[str, float], themis_ms: dict[str, float], score: float) -> list[Entry]:
    """Return communication times of jobs that share links, and their compatibility score."""
    jobs = ", ".join(cassini_ms)
    return [
        Entry(f"table-4.3/{number}/cassini", f"communication time with Th+Cassini; {jobs}", cassini_ms, "ms"),
        Entry(f"table-4.3/{number}/themis", f"communication time with Themis; {jobs}", themis_ms, "ms"),
        Entry(f"table-4.3/{number}/score", f"compatibility score; {jobs}", score, ""),
    ]


def _gains(name: str, over: str, mean: float, p99: float) -> tuple[Entry, Entry]:
    """Return speed-ups of all iterations of all jobs together."""
    return (
        Entry(f"{name}/mean", f"speed-up of the mean iteration time over {over}", mean, "times"),
        Entry(f"{name}/p99", f"speed-up of the 99 % tail over {over}", p99, "times"),
    )


_SNAPSHOTS = (
    *_snapshot(
        1,
        {"WideResNet101 (800)": 138, "VGG16 (1400)": 148},
        {"WideResNet101 (800)": 206, "VGG16 (1400)": 199},
        1.0,
    ),
    *_snapshot(
        2,
        {"VGG19 (1400)": 168, "VGG16 (1700)": 163, "ResNet50 (1600)": 59},
        {"VGG19 (1400)": 220, "VGG16 (1700)": 220, "ResNet50 (1600)": 55},
        1.0,
    ),
    *_snapshot(3, {"VGG19 (1024)": 166, "VGG16 (1200)": 168}, {"VGG19 (1024)": 176, "VGG16 (1200)": 177}, 0.9),
    *_snapshot(
        4,
        {"RoBERTa (12), first": 164, "RoBERTa (12), second": 180},
        {"RoBERTa (12), first": 210, "RoBERTa (12), second": 208},
        0.8,
    ),
    *_snapshot(
        5,
        {"BERT (8)": 209, "VGG19 (1400)": 294, "WideResNet101 (800)": 265},
        {"BERT (8)": 213, "VGG19 (1400)": 292, "WideResNet101 (800)": 266},
        0.6,
    ),
    Entry("table-4.3/1/shifts", "time-shifts", {"WideResNet101 (800)": 0, "VGG16 (1400)": 150}, "ms"),
    Entry("table-4.3/2/shifts", "time-shifts", {"VGG19 (1400)": 0, "VGG16 (1700)": 158, "ResNet50 (1600)": 46}, "ms"),
    Entry("table-4.3/3/shifts", "time-shifts", {"VGG19 (1024)": 0, "VGG16 (1200)": 100}, "ms"),
    Entry("table-4.3/4/shifts", "time-shifts", {"RoBERTa (12), first": 0, "RoBERTa (12), second": 60}, "ms"),
    Entry("table-4.3/5/shifts", "time-shifts", {"BERT (8)": 0, "VGG19 (1400)": 42, "WideResNet101 (800)": 191}, "ms"),
)

PAPER = Paper(
    key="interleaving",
    name="the interleaving thesis",
    rows=(
        Row(
            "B 1.2",
            "MLTCP",
            "up to 1.9 times as fast in the mean, 2.7 in the 99 % tail, 28.8 times fewer marks or drops; "
            "interleaved after about 30 iterations",
            "section 1.2",
            (
                Entry("1.2/mean", "speed-up of the mean iteration time, at best", 1.9, "times"),
                Entry("1.2/p99", "speed-up of the 99 % tail, at best", 2.7, "times"),
                Entry("1.2/marks", "fewer packets marked or dropped, at best", 28.8, "times"),
                Entry("1.2/iterations", "iterations until jobs interleave", 30, "iterations"),
            ),
            shown_by={"mltcp-vgg19": "transports"},
        ),
        Row(
            "B Fig 4.1",
            "traffic patterns of data, pipeline, tensor and hybrid parallelism",
            "three peaks, then a heavy phase (GPT-2); 25 Gbit/s forward and backward (GPT-3); six phases (hybrid)",
            "Figure 4.1",
            (
                Entry("fig-4.1b", "peaks in the forward pass of GPT-2, pipeline", 3, "peaks"),
                Entry("fig-4.1c", "bandwidth forward and backward of GPT-3, tensor", 25, "Gbit/s"),
                Entry("fig-4.1d", "phases in an iteration of GPT-3, hybrid", 6, "phases"),
            ),
            shown_by={"traffic-patterns": "link sharing"},
        ),
        Row(
            "B Fig 4.2",
            "two VGG19 jobs, one shifted in time",
            "22/22 Gbit/s when both send; shifted by 120 ms the 90 % tail is 1.26 times as fast",
            "Figure 4.2",
            (
                Entry("fig-4.2b", "bandwidth, started at once", {"j1": 22, "j2": 22}, "Gbit/s"),
                Entry("fig-4.2c", "time-shift of j2", 120, "ms"),
                Entry("fig-4.2d", "speed-up of the 90 % tail of both jobs", 1.26, "times"),
            ),
            shown_by={"cassini-vgg": "link sharing"},
        ),
        Row(
            "B Fig 4.6",
            "the circle of GPT-3, hybrid",
            "six arcs",
            "Figure 4.6",
            (Entry("fig-4.6", "arcs of communication", 6, "arcs"),),
            shown_by={"traffic-patterns": "link sharing"},
        ),
        Row(
            "B Fig 4.7, 4.8",
            "one time-shift a job over two links, by the affinity graph",
            "equations 4.7 to 4.9",
            "Figures 4.7 and 4.8",
            shown_by={"cassini-two-links": "link sharing"},
        ),
        Row(
            "B Fig 4.11",
            "Poisson trace",
            "Th+Cassini 1.6 times as fast as Themis in the mean, 1.8 in the 99 % tail; near Ideal",
            "Figure 4.11",
            _gains("fig-4.11", "Themis", 1.6, 1.8),
            shown_by={"cluster-poisson": "link sharing"},
        ),
        Row(
            "B Fig 4.12",
            "Poisson trace, model parallel",
            "1.2 times in the mean, 1.6 in the 99 % tail",
            "Figure 4.12",
            _gains("fig-4.12", "Themis", 1.2, 1.6),
            shown_by={"cluster-poisson-model-parallel": "link sharing"},
        ),
        Row(
            "B Fig 4.13",
            "dynamic trace",
            "over Themis 1.5 and 2.2 times (mean, 99 % tail); over Pollux 1.6 and 2.5",
            "Figure 4.13",
            (*_gains("fig-4.13/themis", "Themis", 1.5, 2.2), *_gains("fig-4.13/pollux", "Pollux", 1.6, 2.5)),
            shown_by={"cluster-dynamic": "link sharing"},
        ),
        Row(
            "B Fig 4.14",
            "ECN marks per iteration of DLRM",
            "27 times fewer than with Themis, 33 than with Pollux",
            "Figure 4.14",
            (
                Entry("fig-4.14/themis", "fewer marks per iteration than with Themis", 27, "times"),
                Entry("fig-4.14/pollux", "fewer marks per iteration than with Pollux", 33, "times"),
            ),
            shown_by={"cluster-marks": "transports"},
        ),
        Row(
            "B Fig 4.15",
            "dynamic trace, model parallel",
            "1.2 times in the mean, 1.6 in the 99 % tail; 29 times fewer marks",
            "Figure 4.15",
            (
                *_gains("fig-4.15", "Themis", 1.2, 1.6),
                Entry("fig-4.15d", "fewer marks per iteration than with Themis", 29, "times"),
            ),
            shown_by={"cluster-dynamic-model-parallel": "link sharing", "cluster-marks-model-parallel": "transports"},
        ),
        Row(
            "B Table 4.3",
            "snapshots: communication times, compatibility scores, time-shifts",
            "scores 1.0 to 0.6; communication 1.5 times as fast at 1.0, no faster at 0.6",
            "Table 4.3",
            _SNAPSHOTS,
            shown_by={"cassini-snapshots": "link sharing"},
        ),
        Row(
            "B Fig 4.16",
            "link use of the snapshots",
            "a figure without numbers",
            "Figure 4.16",
            shown_by={"cassini-snapshots": "link sharing"},
        ),
        Row(
            "B Fig 4.17",
            "several GPUs a server",
            "no numbers in our copy",
            "Figure 4.17",
            shown_by={"cluster-multi-gpu": "link sharing"},
        ),
    ),
)
