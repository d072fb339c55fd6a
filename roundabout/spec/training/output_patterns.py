# SPDX-License-Identifier: Apache-2.0
"""Patterns for the output of well-known programs, by name.

trainers/program/iteration_lines.py defines the groups. Each pattern allows a prefix that ends with a colon, by which
mpirun --tag-output and srun --label name ranks.

Sources: NVIDIA/nccl-tests v2.19.6, src/util.cu (writeBenchmarkLineBody: out-of-place figures come first; older versions
lack a column); linux-rdma/perftest 00b55b6, src/perftest_parameters.h (REPORT_FMT); NVIDIA/Megatron-LM,
megatron/training/training.py (training_log); pytorch/torchtitan, torchtitan/components/metrics.py.
"""

import re

_ROW = r"(?:^|:)\s*"

PATTERNS = {
    # A time of 10,000 us or more has five digits or a point, so it is no root.
    "nccl-tests": _ROW + r"\d+\s+\d+\s+[a-z]\w+(?:\s+[a-z]+)?(?:\s+-?\d{1,4})?\s+(?P<us>\S+)\s+\S+\s+(?P<GBps>\S+)\s",
    # The unit of the bandwidths depends on the options, so the bandwidth is that of the message rate.
    "perftest-bw": _ROW + r"(?P<bytes>\d+)\s+\d+\s+\S+\s+\S+\s+(?P<mpps>\S+)(?:\s+\S+)?$",
    "perftest-lat": _ROW + r"\d+\s+\d+\s+\S+\s+\S+\s+\S+\s+(?P<us>\S+)",
    "megatron": r"iteration\s+(?P<iteration>\d+)/.*elapsed time per iteration \(ms\): (?P<ms>\S+)"
    r"(?:.*\blm loss: (?P<loss>\S+))?",
    "torchtitan": r"(?<!validate )\bstep:\s*(?P<iteration>\d+)\s+loss:\s*(?P<loss>\S+)",
}
TIMES = frozenset({"s", "ms", "us", "mpps"})
BANDWIDTHS = frozenset({"gbps", "GBps", "bytes"})
GROUPS = TIMES | BANDWIDTHS | {"iteration", "loss"}


def find_pattern(pattern: str) -> str:
    """Return the regular expression of a name in PATTERNS, or `pattern` itself. Raises ValueError."""
    if re.fullmatch(r"[\w-]+", pattern):
        if pattern not in PATTERNS:
            raise ValueError(f"one of {', '.join(PATTERNS)}, or a regular expression of more than a word")
        return PATTERNS[pattern]
    try:
        groups = re.compile(pattern).groupindex.keys()
    except re.error as error:
        raise ValueError(f"a regular expression of Python ({error})") from error
    if groups - GROUPS:
        raise ValueError(f"no named groups but {', '.join(sorted(GROUPS))}, found {', '.join(sorted(groups - GROUPS))}")
    if len(groups & TIMES) > 1 or len(groups & BANDWIDTHS) > 1:
        raise ValueError(f"one group of {', '.join(sorted(TIMES))} and one of {', '.join(sorted(BANDWIDTHS))} at most")
    return pattern
