# SPDX-License-Identifier: Apache-2.0
"""The table of the candidates that fit an identification: departures from the vendor's values, and rates."""

from collections.abc import Iterator, Sequence

from analysis.calibration.identification import Observation
from analysis.render.tables import Cell as Shown, Column, Table, one_section
from roundabout.spec.transports.identification import Identification


def table(document: Identification, fitting: Sequence[Observation]) -> Table:
    """Return a row for each candidate, in the order given."""
    ranges = [name for name, each in document.readings.items() if each.values is None]
    columns = (
        Column("departs in", kind="words", wraps=True),
        *(Column(name.replace("_", "_\u200b"), ".3g") for name in ranges),
        *(Column(f"{variant},\nGbit/s", kind="words") for variant in document.variants),
        Column("share", ".2f"),
        Column("misfit", ".2f"),
    )

    def row(each: Observation) -> Iterator[Shown]:
        values = each.candidate.values
        yield Shown(", ".join(f"{name} {values[name]:g}" for name in each.candidate.departures) or "nothing")
        yield from (Shown(values[name]) for name in ranges)
        yield from (
            Shown(", ".join(f"{rate:.1f}" for rate in each.rates[variant].values())) for variant in document.variants
        )
        one, other = list(each.rates[document.variants[-1]].values())[:2]
        yield from (Shown(one / other), Shown(each.misfit))

    rows = (tuple(row(each)) for each in fitting)
    return Table(columns, one_section(rows), f"What fits {document.source}", empty="nothing fits")
