# SPDX-License-Identifier: Apache-2.0
"""The measured cause of each row of the scoreboard that fails or stays undecided, by the row's id."""

from collections.abc import Mapping

CAUSES: Mapping[str, str] = {
    "A Fig 2": (
        "Figures 1 and 2 contradict each other: jobs with the instants of Figure 2 gain 1.43 times where Figure 1d "
        "prints 1.23, and never interleave fully, because they send for 7 ms more than they compute "
        "(docs/results/figure-2.md). Which computing time the jobs of Figure 1 had would decide it: Figure 2 has "
        "100 ms, and 150 are needed for 1.23."
    ),
    "A Table 1, B Table 3.1": (
        "Groups 2, 4 and 5 agree; but BERT of group 1 gains 1.10 where 1.17 is printed, and the jobs of group 3, "
        "which do not fit together, take 241, 419 and 355 ms with fair shares where 320, 494 and 466 are printed "
        "(docs/results/table-1.md). Their profiles and each job's T would decide it; the paper prints neither."
    ),
    "B 1.2": (
        "In packets MLTCP over CUBIC interleaves in two of four repetitions, over DCTCP in one, and over Reno and "
        "DCQCN in none of 40 iterations; in the lab jobs come apart over Reno, CUBIC and DCTCP in each of six "
        "(docs/results/mltcp.md). The switch's buffer and marks decide it, and the thesis prints neither."
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
        "DLRM has 1.1 times as many marks with Th+Cassini as with Themis, where the thesis prints 27 times fewer, "
        "because candidates move it among links that are all contended (docs/results/cluster-marks.md). Its "
        "iterations in four states are too few for an interval; more states would decide it."
    ),
    "B Fig 4.17": (
        "The project's copy of the thesis ends before the figure's numbers, so that only the claim that Cassini is "
        "not slower than Themis is tested: 0.99 times as fast (0.97 to 1.01). The printed numbers would decide it."
    ),
    "B Fig 4.15": (
        "Contention-free placements gain 1.1 over Themis' here, and candidates that leave running jobs in place get "
        "1.03 of it (docs/results/cluster-runs.md)."
    ),
    "C Fig 3-2": (
        "BERT-large's printed times at 14 to 18 Gbit/s take 24.3 to 24.6 Gbit/s of payload together with the load, "
        "and packets at an MTU of 1500 carry 23.2; so jobs lengthen from lower loads on here, in packets "
        "(ResNet-50 from 12.4 Gbit/s) as in the lab (12.3). The MTU, and when in an iteration ResNet-50 sends, "
        "would decide it; the thesis prints neither."
    ),
    "C Table 3.2, 3.3": (
        "Of what is unused, 1.85 Gbit/s are headers at an MTU of 1500, and 0.1 to 0.7 pass while jobs compute; at "
        "an MTU of 9000 the lab leaves 0.45 to 0.68 in all, and 1.31 to 1.48 are printed. The MTU, and when "
        "ResNet-50 and DenseNet-161 send, would decide it; the thesis prints neither."
    ),
    "C Fig 3-3": (
        "VGG-16 takes 17.9 Gbit/s alone, which leaves 5.6 at an MTU of 1500, so its point is at 8.5 Gbit/s (7.0 to "
        "9.9), where 15.7 is printed; ResNet-50's is open (8.5 to 15.3). The MTU, and when VGG-16 sends, would decide "
        "it; the thesis prints neither."
    ),
    "C Table 3.4, 3.5": (
        "BERT-large and VGG-16 agree, and all four models leave as much unused as printed; but ResNet-50 has 73 to "
        "129 % more data at its congestion point, where 46 is printed. When ResNet-50 sends in an iteration would "
        "decide it; the thesis does not print it."
    ),
    "C Fig 3-4": (
        "VGG-16 takes 17.9 Gbit/s alone, which leaves 5.6 at an MTU of 1500, so its point is at 8.7 Gbit/s in "
        "packets and 8.9 in the lab, where 16.6 is printed. When VGG-16 and ResNet-50 send over TCP would decide "
        "it; the thesis prints a time over TCP of BERT-large alone, whose point agrees."
    ),
    "C Table 3.6, 3.7": (
        "Two printed rows of Table 3.7 leave 0.25 and 0.27 of 25 Gbit/s unused, which is more payload than packets "
        "at an MTU of 1500 carry (23.5), and than the lab reached at 9000 (22.6). Counters of what was received "
        "would decide it; the printed figure is probably what was offered."
    ),
    "C Table 3.8": (
        "A job that saturates the link beside iperf leaves 2.7 to 4.1 Gbit/s here: 1.85 are headers at an MTU of "
        "1500, and the rest passes while the job computes, as in the lab (1.9 to 3.9 in all). The MTU would decide "
        "it: at 9000 the lab leaves 0.6 and 1.7, and 1.24 and 1.21 are printed."
    ),
    "C Fig 3-5": (
        "VGG-16's ratio of means is 0.95 to 1.02, which about 9 repetitions would decide. The 99 % tails need "
        "1,000 iterations a level, which take 12.5 hours (bursts-tcp)."
    ),
    "C Table 3.9, Fig B-3": (
        "The printed curves over TCP contradict other printed figures: without load 1.17 and 0.125 s, where Figure "
        "3-6 prints 1.45 and Table 3.1 0.16; and at 20 Gbit/s BERT-large's 2.91 s take 24.9 Gbit/s of payload with "
        "the load, where an MTU of 1500 leaves 23.5. The measured points behind the curves would decide it; over "
        "RDMA all agree but ResNet-50's curve, which is open."
    ),
    "C Table 3.10, Fig 3-7": (
        "The printed curves under bursts contradict other printed figures without load: 1.16 s of BERT-large, "
        "where Figure 3-6 prints 1.45, and 0.199 s of ResNet-50, where Table 3.1 prints 0.16. The measured points "
        "behind the curves would decide it; at 11 Gbit/s the curves are 29 and 56 % above ours."
    ),
    "C Fig A-1": (
        "Four of 12 cases, those of VGG-16 and DenseNet-161, have no interval, because some resamplings of "
        "repetitions have no congestion point; all 12 are above theory, by 16 to 79 %. Closer levels would decide "
        "it (--full, 35 hours)."
    ),
    "C Fig B-1": (
        "VGG-16 takes 0.433 s (0.414 to 0.452) over RDMA and 0.437 (0.421 to 0.454) over TCP, because the thesis "
        "prints no time over TCP of it, so that its profile is the same. That time would decide it; BERT-large, of "
        "which it is printed, agrees."
    ),
    "C Fig B-2": (
        "All fits with Salamy's n have R² of 0.978 or more, as printed; but other n fit as well or better, and "
        "hers is the best in five of the 13 cases that are certain. The measured points of the thesis would "
        "decide it, because n rests on the last levels below C."
    ),
    "C text": (
        "Consistent traffic spreads iterations by 29 % at 80 % load (27 to 32) in packets, and by 31 in the lab, "
        "where 7.8 is printed. Over how long the thesis takes a spread would decide it, which is not printed."
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
    "MonkeyTree Fig 6": (
        "One trace at each load has no interval: four (--repetitions 4, 37 minutes of a CPU) would decide it. Of 144 "
        "figures of eight systems 102 are within 5 % of print, and all others below it, since a trace of 1,000 jobs "
        "begins with an empty cluster: in its second half 120 are within 5 % (docs/results/monkeytree.md)."
    ),
    "Crux Fig 7": (
        "Data-parallel gradients take GPT 14 of 1,530 ms alone, so that meeting BERT can add 1 % at most. The printed "
        "170 ms take 16.6 GB a server on half of each link; gradients are 1.4 GB, or 2.8 in 32 bits. The bytes "
        "that GPT sends would decide it; layers and hidden size are printed (docs/results/hardware-slowdowns.md)."
    ),
    "Meta QP scaling": (
        "Four times the flows gain 1.33 to 1.98 by the seed of the hashes, and twice the flows 1.40 in the mean. The "
        "queue pairs of both measurements would decide it, which are not printed (docs/results/hardware-slowdowns.md)."
    ),
    "DeepEP 82": (
        "The slowest of 32 GPUs takes 2.46 times as long, and 1.83 at the flow level, where DCQCN is not modelled. The "
        "issue prints one GPU's time, which is 1.81 in the mean, and 1.36 with twice the uplinks. Their number would "
        "decide it; the issue does not print it (docs/results/hardware-slowdowns.md)."
    ),
    "ASTRA-sim 1 MiB": (
        "ASTRA-sim's workers wait for each message, send 1 MiB as four chunks one after another, and add what they "
        "receive; ours pass bytes on as they arrive. Its all-to-alls go around the ring in one direction "
        "(docs/results/astra-sim.md). Times on hardware would decide it; ASTRA-sim prints errors of them alone."
    ),
    "ASTRA-sim bytes": (
        "Nine of twelve are within 0.1 %. ASTRA-sim's all-to-alls relay each message around the ring in one "
        "direction, N(N-1)/2 messages over each link, and ours take the shortest path (docs/results/astra-sim.md)."
    ),
    "ASTRA-sim 64 MiB": (
        "All-reduces and reduce-scatters take 5 to 11 % longer in ASTRA-sim, mostly for adding what arrives: with fast "
        "memory its bytes agree within 0.02 % (docs/results/astra-sim.md). Times on hardware would decide it; NCCL "
        "adds while it sends."
    ),
}
