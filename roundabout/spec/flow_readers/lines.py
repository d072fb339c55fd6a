# SPDX-License-Identifier: Apache-2.0
"""Lines of files whose fields are words between spaces, and flows that such files list."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from roundabout.spec.errors import SpecError, quote_value, shorten
from roundabout.spec.reader.yaml_source import shown_path
from roundabout.spec.trace_readers.rows import load_text

MAX_NODES = 100_000  # limit of hosts, flows and links; larger numbers are damage
MAX_FLOW_BYTES = 10**12  # limit of a phase's bytes
MAX_NUMBER = 1e15  # limit of rates in bit/s and delays in ps
INSTANT_NICS = dict.fromkeys(("nic_us", "mark_to_cnp_us", "cnp_to_cut_us", "cnp_jitter_us"), 0.0)
"""Delays of NICs, which take no time in these simulators."""


@dataclass(frozen=True)
class Line:
    """A line of a file, split into words. Its number counts from 1."""

    path: Path
    number: int
    words: tuple[str, ...]

    def error(self, field: str, found: str, expected: str, hint: str | None = None) -> SpecError:
        """Return the error of a field in this line."""
        return SpecError(shown_path(self.path), found, expected, field=field, line=self.number, hint=hint)

    def whole(self, field: str, word: str, least: int = 0, most: int = MAX_NODES) -> int:
        """Return a whole number from `least` to `most`. Raises SpecError for any other word."""
        if not re.fullmatch(r"[0-9]{1,18}", word) or not least <= int(word) <= most:
            raise self.error(field, quote_value(shorten(word)), f"a whole number from {least} to {most}")
        return int(word)

    def number_of(self, field: str, word: str, unit: str, most: float = MAX_NUMBER) -> float:
        """Return a decimal number from 0 to `most`. Raises SpecError for any other word."""
        is_number = re.fullmatch(r"[0-9]{1,15}(\.[0-9]{0,15})?(e[+-]?[0-9]{1,2})?", word, re.IGNORECASE)
        if not is_number or float(word) > most:
            raise self.error(field, quote_value(shorten(word)), f"{unit}, as a decimal number from 0 to {most:.0f}")
        return float(word)


class ListedFlow(NamedTuple):
    """A flow of a list: numbers of its hosts, bytes of payload, its start in ms, and its line."""

    sender: int
    receiver: int
    size: int
    start_ms: float
    line: Line


class FlowList(NamedTuple):
    """The flows of a file, in its order, what is not used of it, in words, and the number of hosts that it says."""

    flows: tuple[ListedFlow, ...]
    unused: tuple[str, ...]
    hosts: int | None = None


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file that have words. Raises SpecError if it is no text, or has no words."""
    numbered = enumerate(load_text(path).splitlines(), start=1)
    lines = [Line(path, number, tuple(text.split())) for number, text in numbered if text.strip()]
    if not lines:
        raise SpecError(shown_path(path), "no words", "a list of flows or a topology")
    return lines


def drop_comments(lines: list[Line]) -> list[Line]:
    """Return the lines that do not begin with a number sign, which begins htsim's comments."""
    return [line for line in lines if not line.words[0].startswith("#")]


def check_ends(line: Line, sender: int, receiver: int) -> None:
    """Raise SpecError if a flow has one host at both ends."""
    if sender == receiver:
        raise line.error("flow", f"{sender} at both ends", "two different hosts")
