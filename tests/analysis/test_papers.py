# SPDX-License-Identifier: Apache-2.0
"""What the papers printed: every result has its row, every figure a name that expectations can call it by."""

import math
import re

import pytest

from analysis import papers
from analysis.quantities import all_quantities
from roundabout.core.errors import UsageError
from roundabout.spec.expectation import Printed

pytestmark = pytest.mark.unit

PATTERN = Printed.__metadata__[0].pattern


def test_the_papers_have_37_results():
    ids = [row.id for _, row in papers.rows("papers")]
    assert len(ids) == 37
    assert [sum(each.startswith(letter) for each in ids) for letter in "ABC"] == [5, 13, 19]


def test_each_row_has_its_own_id_and_its_place():
    ids = [row.id for _, row in papers.rows()]
    assert len(ids) == len(set(ids))
    assert all(row.what and row.headline and row.source for _, row in papers.rows())


@pytest.mark.parametrize("name", papers.printed_entries())
def test_everything_printed_can_be_named_and_has_a_source(name):
    assert re.fullmatch(PATTERN, name)
    found = papers.find_printed(name)
    assert found.source.startswith(found.paper.name)
    assert found.entry.what
    if found.entry.shape == "row":
        assert all(math.isfinite(each) for each in found.entry.figures.values())


def test_no_two_entries_share_a_name():
    count = sum(len(row.entries) for _, row in papers.rows())
    assert len(papers.printed_entries()) == count


def test_claims_show_rows_that_there_are_and_name_known_quantities():
    ids = {row.id for _, row in papers.rows()}
    for claim in papers.claims("load-sweep"):
        assert claim.rows.keys() <= ids
        assert claim.expectation.what in all_quantities()
        assert claim.expectation.claim


def test_the_tables_are_what_their_rows_say():
    above = papers.find_printed("salamy/table-3.2").entry.figures
    assert [round(each) for each in above.values()] == [10, 12, 56, 19]
    unused = papers.find_printed("salamy/table-3.3").entry.figures
    assert [round(each, 2) for each in unused.values()] == [1.48, 1.33, 1.38, 1.31]
    curve = papers.find_printed("salamy/equation-3.3/BERT-large/curve").entry.figures
    assert curve(0.0) == pytest.approx(0.618 * math.exp(9.95 / 25))


def test_a_misspelt_name_gets_a_suggestion():
    with pytest.raises(UsageError, match="found nothing printed as 'hotnets/fig-1e'") as caught:
        papers.find_printed("hotnets/fig-1e")
    assert "hotnets/fig-1d" in caught.value.hint
