# SPDX-License-Identifier: Apache-2.0
"""The measured cause of each row of the scoreboard that fails or stays undecided, by the row's id."""

from collections.abc import Mapping

CAUSES: Mapping[str, str] = {
    "A Fig 1b, 1c, 1d": (
        "Jobs with the instants of Figure 2 gain more than Figure 1d prints, because the two figures contradict each "
        "other (docs/results/figure-2.md); and no published set of DCQCN's parameters, of which `dilated-vgg19` has "
        "one, gives the printed share: 1.22 to 1.40 for 2 at the sets' own thresholds (docs/results/dcqcn.md)."
    ),
    "A Fig 2": (
        "The jobs of Figure 2 contradict those of Figure 1: with the printed 100 ms of computing, full interleaving "
        "gives 1.47 times and not 1.23 (docs/results/figure-2.md)."
    ),
    "A Table 1, B Table 3.1": (
        "The published runs have one repetition, so that no figure has an interval. Four repetitions would decide most "
        "of them; ten of the table's eleven signs beyond 5 % come out right (docs/results/table-1.md)."
    ),
    "B Table 4.3": (
        "The printed times are longer than these profiles need alone: snapshot 1 prints 138 and 148 ms with Cassini "
        "for jobs that fit fully, and takes 104.5 and 114.0 ms here, which is their time alone; profiles and payload "
        "rate are not printed (docs/results/cassini-model.md)."
    ),
    "B Fig 4.11": (
        "Contention-free placements gain at most 1.3 over Themis' here, and Themis' equally good candidates differ too "
        "little for Cassini to gain by choosing (docs/results/cluster-runs.md)."
    ),
    "B Fig 4.12": (
        "Contention-free placements gain 1.08 over Themis' here, and Themis' equally good candidates differ too little "
        "for Cassini to gain by choosing (docs/results/cluster-runs.md)."
    ),
    "B Fig 4.13": (
        "Contention-free placements gain 1.5 over Themis' here, but candidates that leave running jobs in place get "
        "1.03 of it; swapping running workers gets 1.3 (docs/results/cluster-runs.md)."
    ),
    "B Fig 4.15": (
        "Contention-free placements gain 1.1 over Themis' here, and candidates that leave running jobs in place get "
        "1.03 of it (docs/results/cluster-runs.md)."
    ),
    "C Fig 3-10, 3-11, Table 3.11": (
        "At 80 % load BERT's printed 3.62 and 3.27 Gbit/s are less than the 4.92 that its printed iteration time "
        "needs, so they cannot be means over an iteration; and two flows of a ring, which carry the same bytes, differ "
        "by 3.11 where the lab's differ by 0.3 (docs/results/salamy.md)."
    ),
}
