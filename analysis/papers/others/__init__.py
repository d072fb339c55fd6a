# SPDX-License-Identifier: Apache-2.0
"""Figures of others, to which models and testbeds are held: one file for each source, and a row for each result."""

from analysis.papers.entries import Paper
from analysis.papers.others import hardware, monkeytree, simulators

SOURCES: tuple[Paper, ...] = (
    monkeytree.SOURCE,
    hardware.CRUX,
    hardware.META,
    hardware.DEEPEP,
    simulators.HPCC,
    simulators.UET_HTSIM,
    simulators.ASTRA_SIM,
)
