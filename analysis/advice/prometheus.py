# SPDX-License-Identifier: Apache-2.0
"""Byte counters of hosts from a Prometheus server's answer.

Source: Prometheus' HTTP API, /api/v1/query and /api/v1/query_range, `resultType` matrix.
"""

import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter as Count
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.advice.counters import HOSTS, Counters, host_column, host_of, make_counter
from analysis.advice.errors import AdviceError
from analysis.statistics.cumulative_counter import Floats
from roundabout.spec.errors import list_choices, quote_value
from roundabout.spec.reader import json_source
from roundabout.spec.reader.json_source import Location
from roundabout.spec.reader.yaml_source import Content, decode

TIMEOUT_S = 30
MAX_BYTES = 1 << 30  # largest stored answer, bytes: fifty million samples

NAME = "__name__"
UNITS = (
    (r"bytes|octets", None),
    (r"port_?xmit_?data|port_?rcv_?data|port_data", "words of four bytes"),
    (r"packets|pkts", "packets"),
    (r"bits", "bits"),
)
"""Patterns of metrics' names, the first that is found counts, with the unit that they name; None for bytes."""
NO_BYTES = (
    (r"(kilo|kibi|mega|mebi|giga|gibi)bytes", "multiples of bytes"),
    (r"nvlink|pcie", "bytes within a host"),
    (r"receive|_rx_|rcv|inoctets", "received bytes"),
)
"""Patterns of names of metrics in bytes that are not those which a host sent."""


def read_from_server(url: str, named: Collection[str]) -> Counters:
    """Return the counters of each host in a server's answer. Raises AdviceError or SpecError."""
    return _parse_answer(json_source.parse(decode(_fetch(url), url), url), named)


def read_from_file(path: Path, named: Collection[str]) -> Counters:
    """Return the counters of each host in a stored answer. Raises AdviceError or SpecError."""
    return _parse_answer(json_source.read(path, MAX_BYTES), named)


def _fetch(url: str) -> bytes:
    """Return a server's answer. Braces and quotes in the query are escaped. Raises AdviceError."""
    address, mark, query = url.partition("?")
    written = urllib.parse.quote(query, safe="%&=+:,~()")
    try:
        with urllib.request.urlopen(f"{address}{mark}{written}", timeout=TIMEOUT_S) as answer:  # noqa: S310 - http or https, as `sources` saw
            body: bytes = answer.read()
            return body
    except urllib.error.HTTPError as error:
        body = error.read()
        if not body.lstrip().startswith(b"{"):  # Prometheus says in JSON what is wrong with the query
            raise AdviceError(f"{url}: no answer: {error}") from error
        return body
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise AdviceError(f"{url}: no answer: {error}") from error


def _parse_answer(content: Content, named: Collection[str]) -> Counters:
    """Return the counters in an answer, by the label that has the hosts `named`."""
    series = _series(content)
    labels = [each["metric"] for each in series]
    columns: dict[str, list[str]] = {}
    for each in labels:
        for label, value in each.items():
            columns.setdefault(label, []).append(value)
    label = host_column(columns, named)
    if label is None:
        raise AdviceError(
            f"{content.file}: found labels {list_choices(columns) or 'none'}, expected one of {list_choices(HOSTS)}"
        )
    hosts = {place: host_of(each[label], named) for place, each in enumerate(labels) if label in each}
    host, times = Count(hosts.values()).most_common(1)[0]
    if times > 1:
        differ = _differing_labels([labels[place] for place in hosts if hosts[place] == host])
        expected = "one: choose a device in the query, or one value of the labels in which they differ"
        raise AdviceError(f"{content.file}: found {times} series of host {host}, expected {expected}{differ}")
    notes = [*_server_notes(content.root), *_label_notes(columns, label)]
    for name in dict.fromkeys(each.get(NAME, "") for each in labels):
        notes += _unit_notes(name, content.file)
    found = {}
    for place, host in hosts.items():
        at, counts = _samples(content, ("data", "result", place, "values"), series[place]["values"])
        found[host] = make_counter(at, 10**9, counts, None, f"{content.file}: host {host}")
    return Counters(found, tuple(notes))


def _differing_labels(labels: Sequence[Mapping[str, str]]) -> str:
    """Describe the labels in which series differ; empty if there is none."""
    names = dict.fromkeys(name for each in labels for name in each)
    values = {name: sorted({each.get(name, "") for each in labels}) for name in names}
    differ = "; ".join(f"{name}: {list_choices(each)}" for name, each in values.items() if len(each) > 1)
    return f" ({differ})" if differ else ""


def _server_notes(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the server's warnings, such as on stores that did not answer, and its remarks on the query."""
    for kind in ("warnings", "infos"):
        found = answer.get(kind)
        for each in found if isinstance(found, list) else [found] if found else []:
            yield f"{kind} of the server: {str(each)[:300]}"


def _label_notes(columns: Mapping[str, Sequence[str]], host: str) -> Iterator[str]:
    """Yield the labels that say which counter was read: those with one value for several series."""
    values = {label: list(dict.fromkeys(each)) for label, each in columns.items() if label != host}
    series = len(columns[host])
    named = [
        f"{label} {list_choices(each)}"
        for label, each in values.items()
        if series == 1 or len(each) < len(columns[label])
    ]
    if named:
        yield f"counters: {'; '.join(named)}"


def _unit_notes(name: str, file: str) -> Iterator[str]:
    """Yield a note if the metric's name does not show that it counts bytes. Raises AdviceError for another unit."""
    unit = next((unit for pattern, unit in UNITS if re.search(pattern, name.lower())), "")
    other = next((what for pattern, what in NO_BYTES if re.search(pattern, name.lower())), unit)
    if other:
        hint = (
            "multiply by the unit in a table, or choose a counter of bytes, such as node_network_transmit_bytes_total"
        )
        raise AdviceError(f"{file}: found {name}, which counts {other} by its name, expected bytes sent", hint)
    if unit is not None:
        metric = f"the metric {name}" if name else "the answer, without a metric's name,"
        yield f"{metric} does not name its unit: it is read as bytes sent"


def _series(content: Content) -> list[dict[str, Any]]:
    """Check an answer as far as its series, and return them."""
    answer = content.root
    if not isinstance(answer, dict) or "status" not in answer:
        raise content.error((), quote_value(answer), "a Prometheus server's answer, with status and data")
    if answer["status"] != "success":
        raise content.error(("status",), f"error {quote_value(answer.get('error'))}", "samples")
    data = answer.get("data")
    if not isinstance(data, dict):
        raise content.error(("data",), quote_value(data), "a mapping with resultType and result")
    if data.get("resultType") != "matrix":
        hint = "use query_range, or query with a range: counter[5m]"
        raise content.error(
            ("data", "resultType"), quote_value(data.get("resultType")), "'matrix', samples over time", hint=hint
        )
    series = data.get("result")
    if not series and (series is None or isinstance(series, list)):
        raise content.error(
            ("data", "result"), "no series", "one of each host", hint="is the metric stored for that time?"
        )
    if not isinstance(series, list):
        raise content.error(("data", "result"), quote_value(series), "a list of series")
    for place, each in enumerate(series):
        _check_series(content, ("data", "result", place), each)
    return series


def _check_series(content: Content, where: Location, series: Any) -> None:
    fields = series if isinstance(series, dict) else {}
    labels, values = fields.get("metric"), fields.get("values")
    if not isinstance(labels, dict):
        raise content.error((*where, "metric"), quote_value(labels), "labels by name")
    for label, value in labels.items():
        if not isinstance(value, str):
            raise content.error((*where, "metric", label), quote_value(value), "text")
    if not isinstance(values, list):
        raise content.error((*where, "values"), quote_value(values), "a list of samples")


def _samples(content: Content, where: Location, samples: Sequence[Any]) -> tuple[Floats, Floats]:
    """Return times in seconds, and values: nan for one that is null. Raises SpecError for one that is no number."""
    at, values = np.empty(len(samples)), np.empty(len(samples))
    for place, sample in enumerate(samples):
        if not isinstance(sample, list) or len(sample) != 2:
            raise content.error((*where, place), quote_value(sample), "a time and a value")
        if isinstance(sample[0], bool) or not isinstance(sample[0], int | float):
            raise content.error((*where, place, 0), quote_value(sample[0]), "a time in seconds")
        try:
            at[place], values[place] = sample[0], _value(sample[1])
        except ValueError:
            raise content.error((*where, place, 1), quote_value(sample[1]), "a number") from None
    return at, values


def _value(value: Any) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, str | int | float) or "_" in str(value):
        raise ValueError("no number")
    return float(value)
