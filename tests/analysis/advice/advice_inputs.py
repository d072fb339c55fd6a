# SPDX-License-Identifier: Apache-2.0
"""Byte counters of two jobs on four hosts, in the forms that `advise` reads."""

import json

import numpy as np

from analysis.advice import sources

GBPS = 50.0
BEGIN_S = 1_700_000_000
STEP_MS = 10
STEP_BYTES = 50_000_000
"""While a host sends, at 40 Gbit/s: in the first 8 of 20 steps."""
BEGIN_BYTES = 10**12
HOSTS = ("n1", "n2", "n3", "n4")
JOBS = {"j1": ("n1", "n2"), "j2": ("n3", "n4")}
STEPS = np.tile(np.repeat([STEP_BYTES, 0], [8, 12]), 8)
SENT = np.concatenate([[0], np.cumsum(STEPS)])


def series(host, labels=None, begin_bytes=BEGIN_BYTES):
    values = [[BEGIN_S + place * STEP_MS / 1000, str(begin_bytes + sent)] for place, sent in enumerate(SENT.tolist())]
    return {"metric": labels or {"instance": f"{host}:9100", "device": "eth0"}, "values": values}


def answer(*changed, **replaced):
    """Return an answer of all hosts, with some series in their places, and other fields in `data`."""
    result = [*changed, *(series(host) for host in HOSTS[len(changed) :])]
    return {"status": "success", "data": {"resultType": "matrix", "result": result} | replaced}


def rows(*, begin_ms=BEGIN_S * 1000):
    return [
        [str(begin_ms + place * STEP_MS), host, str(BEGIN_BYTES + sent)]
        for host in HOSTS
        for place, sent in enumerate(SENT.tolist())
    ]


def csv(content, header="at_ms,host,tx_bytes"):
    return "\n".join([header, *(",".join(row) for row in content)]) + "\n"


def read(folder, content, name="a.json", named=HOSTS):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return sources.read(str(path), named).hosts


def assert_all_sent(found, hosts=HOSTS):
    for host in hosts:
        assert found[host].to_sent_bytes(GBPS).payload_bytes.tolist() == SENT.tolist()


def slurm(**job):
    return {"job_id": 7, "name": "t", "job_state": ["RUNNING"], "nodes": "n[1-2]"} | job
