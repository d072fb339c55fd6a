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
# perftest's figures have two decimals, and its message rates six.
_2, _6 = (rf"(?:\d+\.\d{{{decimals}}}|-?nan|inf)" for decimals in (2, 6))

PATTERNS = {
    # A time of 10,000 us or more has five digits or a point, so it is no root.
    "nccl-tests": _ROW + r"\d+\s+\d+\s+[a-z]\w+(?:\s+[a-z]+)?(?:\s+-?\d{1,4})?\s+(?P<us>\S+)\s+\S+\s+(?P<GBps>\S+)\s",
    # The unit of the bandwidths depends on the options, so the bandwidth is that of the message rate. A service level
    # comes before the iterations; the CPU's utilization, or figures of two ports, come last.
    "perftest-bw": _ROW + rf"(?P<bytes>\d+)(?:\s+\d+)?\s+\d+(?:\s+{_2}){{2}}\s+(?P<mpps>{_6})"
    rf"(?:\s+{_2}(?:\s+{_6}\s+{_2}\s+{_6})?)?$",
    # With a duration, the mean comes first, and the transactions in a second last.
    "perftest-lat": _ROW + rf"\d+\s+\d+\s+(?:(?:{_2}\s+){{3}}|(?={_2}\s+{_2}$))(?P<us>{_2})(?:\s|$)",
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
