# SPDX-License-Identifier: Apache-2.0
"""Outputs of other simulators: HPCC's ns-3, uet-htsim, and ASTRA-sim."""

from analysis.papers.entries import Entry, Paper, Row

HPCC = Paper(
    key="hpcc-ns3",
    name="HPCC's ns-3",
    rows=(
        Row(
            "HPCC two flows",
            "two flows of 200 MB with DCQCN into a port",
            "the first takes 2.008 and the last 2.057 times as long as alone",
            "alibaba-edu/High-Precision-Congestion-Control 9f4be2a, simulation/mix/flow.txt; its program was run",
            (Entry("two-flows", "mean of both completion times over that alone", 2.0325, "times"),),
            shown_by={"hpcc-two-flows": "transports"},
        ),
    ),
)
UET_HTSIM = Paper(
    key="uet-htsim",
    name="uet-htsim",
    rows=(
        Row(
            "uet-htsim flows",
            "a flow of 10 packets, of 100, and of 2 MB over six links",
            "17.01, 46.89 and 176.2 us, with the last acknowledgement",
            "ultraethernet/uet-htsim 40ccb05, htsim/sim/datacenter/validate_outputs/validate_uec_sender.out",
            (
                Entry(
                    "flows",
                    "completion times",
                    {"ten-packets": 17.0107, "hundred-packets": 46.8907, "two-megabytes": 176.2},
                    "us",
                ),
            ),
            shown_by={"uet-htsim-flows": "transports"},
        ),
    ),
)
_ASTRA_SIM_AT = "astra-sim/astra-sim 518bd51, analytical, congestion-aware (docs/results/astra-sim.md); it was run"
ASTRA_SIM = Paper(
    key="astra-sim",
    name="ASTRA-sim",
    rows=(
        Row(
            "ASTRA-sim 1 MiB",
            "twelve collectives of 1 MiB by 4, 8 and 16 ranks on rings",
            "an all-reduce by 8 takes 64.44 us, and an all-to-all by 16 takes 391.24",
            _ASTRA_SIM_AT,
            (
                Entry(
                    "1-mib",
                    "times of collectives of 1 MiB",
                    {
                        "all-reduce-4": 43.00,
                        "all-reduce-8": 64.44,
                        "all-reduce-16": 99.64,
                        "all-gather-4": 64.74,
                        "all-gather-8": 151.02,
                        "all-gather-16": 323.56,
                        "reduce-scatter-4": 22.24,
                        "reduce-scatter-8": 33.08,
                        "reduce-scatter-16": 50.74,
                        "all-to-all-4": 41.56,
                        "all-to-all-8": 125.48,
                        "all-to-all-16": 391.24,
                    },
                    "us",
                ),
            ),
            shown_by={"astra-sim-collectives": "transports"},
        ),
        Row(
            "ASTRA-sim bytes",
            "the same collectives without latency, in one chunk, with fast memory",
            "an all-reduce by 8 takes 34.19 us, and an all-to-all by 16 takes 146.52",
            _ASTRA_SIM_AT,
            (
                Entry(
                    "bytes",
                    "times of the bytes of collectives of 1 MiB",
                    {
                        "all-reduce-4": 29.30,
                        "all-reduce-8": 34.19,
                        "all-reduce-16": 36.63,
                        "all-gather-4": 58.60,
                        "all-gather-8": 136.73,
                        "all-gather-16": 292.98,
                        "reduce-scatter-4": 14.65,
                        "reduce-scatter-8": 17.10,
                        "reduce-scatter-16": 18.32,
                        "all-to-all-4": 29.30,
                        "all-to-all-8": 68.38,
                        "all-to-all-16": 146.52,
                    },
                    "us",
                ),  # its files were changed until these causes of the differences were out
            ),
            shown_by={"astra-sim-collectives": "link sharing"},
        ),
        Row(
            "ASTRA-sim 64 MiB",
            "nine collectives of 64 MiB by 4, 8 and 16 ranks on rings",
            "an all-reduce by 8 takes 2,326.1 us, and an all-gather by 16 takes 1,202.5",
            _ASTRA_SIM_AT,
            (
                Entry(
                    "64-mib",
                    "times of collectives of 64 MiB",
                    {
                        "all-reduce-4-64mib": 1981.6,
                        "all-reduce-8-64mib": 2326.1,
                        "all-reduce-16-64mib": 2522.9,
                        "all-gather-4-64mib": 943.7,
                        "all-gather-8-64mib": 1108.1,
                        "all-gather-16-64mib": 1202.5,
                        "reduce-scatter-4-64mib": 1038.0,
                        "reduce-scatter-8-64mib": 1218.1,
                        "reduce-scatter-16-64mib": 1320.4,
                    },
                    "us",
                ),
            ),
            shown_by={"astra-sim-collectives": "transports"},
        ),
    ),
)
