# SPDX-License-Identifier: Apache-2.0
"""Slowdowns that were measured on others' hardware, each with most of its set-up not printed."""

from analysis.papers.entries import Entry, Paper, Row

CRUX = Paper(
    key="crux",
    name="Crux (SIGCOMM'24)",
    rows=(
        Row(
            "Crux Fig 7",
            "GPT of 64 GPUs beside BERT of 16",
            "GPT's iterations take 1.70 s beside BERT and 1.53 s alone; throughputs fall by 9.9 and 7.7 %",
            "section 2.2 and Figure 7 (doi 10.1145/3651890.3672239)",
            (
                Entry("fig-7/gpt", "GPT's iteration time beside BERT over that alone", 1.11, "times"),
                Entry(
                    "fig-7/bert",
                    "BERT's iteration time beside GPT over that alone",
                    1.083,
                    "times",
                ),  # computed: its throughput falls by 7.7 %
            ),
            shown_by={"crux-pair": "link sharing"},
        ),
    ),
)
META = Paper(
    key="meta",
    name="Meta (SIGCOMM'24)",
    rows=(
        Row(
            "Meta QP scaling",
            "an all-reduce over ECMP with more queue pairs",
            "up to 40 % more with hashes of queue pairs and several queue pairs for each message",
            "section 4 (doi 10.1145/3651890.3672233)",
            (
                Entry(
                    "qp-scaling",
                    "all-reduce with E-ECMP and QP scaling over plain ECMP",
                    1.4,
                    "times",
                ),  # printed as `up to`; sizes of the all-reduce and of the fabric are not
            ),
            shown_by={"meta-qp-scaling": "link sharing"},
        ),
    ),
)
DEEPEP = Paper(
    key="deepep",
    name="DeepEP",
    rows=(
        Row(
            "DeepEP 82",
            "dispatch among four servers across spines with ECMP",
            "29.92 GB/s for each GPU across spines, 37.93 in one block",
            "issue 82 of deepseek-ai/DeepEP, comments of 2025-03-19 and 2025-03-26",
            (
                Entry(
                    "issue-82",
                    "time of a dispatch across spines over that in one block, in 8 bits",
                    1.268,
                    "times",
                ),  # computed from the two bandwidths
            ),
            shown_by={"deepep-ecmp": "transports"},
        ),
    ),
)
