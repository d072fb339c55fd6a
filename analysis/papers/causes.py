# SPDX-License-Identifier: Apache-2.0
"""The measured cause of each row of the scoreboard that fails or stays undecided, by the row's id."""

from collections.abc import Mapping

CAUSES: Mapping[str, str] = {
    "A Fig 2": (
        "Figures 1 and 2 contradict each other: jobs with the instants of Figure 2 gain 1.43 times where Figure 1d "
        "prints 1.23, and never interleave fully, because they send for 7 ms more than they compute "
        "(docs/results/figure-2.md). The jobs' computing time would decide it, which the paper does not print."
    ),
    "A Table 1, B Table 3.1": (
        "The published runs have one repetition, so that no figure has an interval. Four repetitions would decide "
        "most of them; ten of the table's eleven signs beyond 5 % come out right (docs/results/table-1.md)."
    ),
    "B 1.2": (
        "The published run has one repetition, so that no figure has an interval; in it MLTCP over CUBIC interleaves "
        "by the 9th iteration, and over Reno, DCTCP and DCQCN not within 40 (docs/results/mltcp.md). Four "
        "repetitions would decide it."
    ),
    "B Table 4.3": (
        "The printed times are longer than these profiles need alone: snapshot 1 prints 138 and 148 ms with Cassini "
        "for jobs that fit fully, and takes 104.5 and 114.0 ms here, which is their time alone; profiles and payload "
        "rate are not printed (docs/results/cassini-model.md)."
    ),
    "B Fig 4.11": (
        "Contention-free placements gain at most 1.3 over Themis' here, and Themis' equally good candidates differ "
        "too little for Cassini to gain by choosing (docs/results/cluster-runs.md)."
    ),
    "B Fig 4.12": (
        "Contention-free placements gain 1.08 over Themis' here, and Themis' equally good candidates differ too "
        "little for Cassini to gain by choosing (docs/results/cluster-runs.md)."
    ),
    "B Fig 4.13": (
        "Contention-free placements gain 1.5 over Themis' here, but candidates that leave running jobs in place get "
        "1.03 of it; swapping running workers gets 1.3 (docs/results/cluster-runs.md)."
    ),
    "B Fig 4.14": (
        "DLRM has 0.89 times fewer marks with Th+Cassini than with Themis, where the thesis prints 27, because "
        "candidates move it among links that are all contended (docs/results/cluster-marks.md). Its iterations in four "
        "states are too few for an interval; more states would decide it."
    ),
    "B Fig 4.17": (
        "The project's copy of the thesis ends before the figure's numbers, so that only the claim that Cassini is "
        "not slower than Themis is tested: 0.99 times as fast (0.97 to 1.01). The printed numbers would decide it."
    ),
    "B Fig 4.15": (
        "Contention-free placements gain 1.1 over Themis' here, and candidates that leave running jobs in place get "
        "1.03 of it (docs/results/cluster-runs.md)."
    ),
    "C Fig 3-8": (
        "The skewness of injection rates has an interval as wide as 0 to 2.1, which holds both of the compared kinds "
        "of traffic. More repetitions would decide it: Salamy has 60,000 readings."
    ),
    "C Fig 3-10, 3-11, Table 3.11": (
        "At 80 % load BERT's printed 3.62 and 3.27 Gbit/s are less than the 4.92 that its printed iteration time "
        "needs, so they cannot be means over an iteration; and two flows of a ring, which carry the same bytes, "
        "differ by 3.11 where the lab's differ by 0.3 (docs/results/salamy.md)."
    ),
}
