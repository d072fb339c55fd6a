# SPDX-License-Identifier: Apache-2.0
"""Long tables of byte counters, and exact jobs."""

import numpy as np
import pyarrow as pa
import pyarrow.csv

from analysis.advice.observed_jobs import ObservedJob
from analysis.statistics.phases import Estimate, FoundPhase, FoundProfile
from roundabout.models.fluid import BYTES_PER_MS_OF_GBPS


def exactly(*parts, jitter_ms=0.5, job="j1"):
    """A job that is known: phases of ms and Gbit/s."""
    at, found = 0.0, []
    for ms, gbps in parts:
        size = gbps * ms * BYTES_PER_MS_OF_GBPS
        figures = (Estimate(value, value, value) for value in (at, ms, size, gbps))
        found.append(FoundPhase(gbps > 0, *figures))
        at += ms
    return ObservedJob(job, FoundProfile(Estimate(at, at, at), tuple(found), 40, 1.0, 0.0), jitter_ms)


def long_table(found, **columns):
    """Rows of all hosts, one after the other."""
    hosts = [host for host, counter in found.items() for _ in counter.at_ns]
    at_ns, sent = (np.concatenate([getattr(each, name) for each in found.values()]) for name in ("at_ns", "bytes"))
    return pa.table({"at_ns": at_ns, "host": hosts, "tx_bytes": sent.astype(np.int64), **columns})
