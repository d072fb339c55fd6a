# SPDX-License-Identifier: Apache-2.0
"""The reference page of the quantities that expectations can name, made from their registry."""

from collections.abc import Iterator

from analysis.quantities import Quantity, all_quantities
from docgen.markdown import code, notice, plain, table

HEAD = """# Quantities

`what` of an expectation names one of these ([experiment fields](experiment-fields.md#value)).
`roundabout scoreboard --quantities` lists them too. "Cases by" is what distinguishes one figure of
a quantity from the next, and "needs" lists the fields and jobs without which it is not measured. To
add a quantity: [add a quantity](../how-to/add/quantity.md).

"""


def format_page() -> str:
    """Return the page: a table of figures, and a table of curves."""
    found = list(all_quantities().values())
    parts = [notice("analysis/quantities"), HEAD]
    for title, is_curve in (("Figures", False), ("Curves", True)):
        chosen = [each for each in found if each.curve == is_curve]
        parts += [f"## {title}\n\n", table(("name", "unit", "meaning", "cases by", "needs"), map(_row, chosen))]
    return "".join(parts).rstrip() + "\n"


def _row(each: Quantity) -> list[str]:
    return [each.name, each.unit.strip(), plain(each.about), each.by, ", ".join(_needs(each))]


def _needs(each: Quantity) -> Iterator[str]:
    yield from map(code, each.needs)
    if each.jobs:
        yield f"jobs {' and '.join(each.jobs)}"
