# SPDX-License-Identifier: Apache-2.0
"""Byte counters of hosts, from a table or from a Prometheus server."""

from collections.abc import Collection
from pathlib import Path

from analysis.advice import prometheus, tables
from analysis.advice.counters import Counters, check_counters
from analysis.advice.errors import AdviceError

READERS = {".csv": tables.read_table, ".parquet": tables.read_table, ".json": prometheus.read_from_file}


def read(source: str, named: Collection[str] = ()) -> Counters:
    """Return the counters of each host in a `.csv`, `.parquet` or `.json` file, or in a Prometheus server's answer.

    A host is identified by the label, or column, that contains the hosts `named`. Raises AdviceError or SpecError.
    """
    if source.startswith(("http://", "https://")):
        found = prometheus.read_from_server(source, named)
    elif reader := READERS.get(Path(source).suffix.lower()):
        found = reader(Path(source), named)
    else:
        suffix = Path(source).suffix
        raise AdviceError(f"{source}: found a name that ends in '{suffix}', expected .csv, .parquet or .json")
    check_counters(found.hosts, named, source)
    return found
