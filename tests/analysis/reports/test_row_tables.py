# SPDX-License-Identifier: Apache-2.0
"""Lists of JSON objects as tables of columns and rows, in published summaries."""

import json

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from analysis.reports.publishing.publication import format_json
from analysis.reports.publishing.row_tables import expand_tables, pack_table
from roundabout.store import StoreError

pytestmark = pytest.mark.unit

NAMES = st.text("ab/.", max_size=2)
VALUES = st.recursive(
    st.none() | st.integers(0, 9) | st.text("x/", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
CELLS = [{"job": job, "ci95": [1, 2], "levels": {"routes.seed": 1, "variant": "fair"}} for job in ("j1", "j2")]


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=3), max_size=3))
def test_a_table_expands_to_the_entries_that_it_was_made_of(entries):
    written = json.loads(format_json({"cells": pack_table(entries)}))["cells"]
    assert json.dumps(expand_tables(written)) == json.dumps(entries)


def test_entries_with_the_same_fields_have_their_names_once():
    table = pack_table(CELLS)
    assert table == {
        "columns": ["job", "ci95", "levels/routes.seed", "levels/variant"],
        "rows": [["j1", [1, 2], 1, "fair"], ["j2", [1, 2], 1, "fair"]],
    }
    assert list(pd.DataFrame(table["rows"], columns=table["columns"])["job"]) == ["j1", "j2"]


@pytest.mark.parametrize("other", [{"job": "j3"}, {**CELLS[0], "levels": {}}, {**CELLS[0], "more": 1}, "j3"])
def test_entries_with_different_fields_stay_as_they_are(other):
    assert pack_table([*CELLS, other]) == [*CELLS, other]


def test_a_row_that_is_too_short_is_refused():
    with pytest.raises(StoreError, match="found a row of 1 values, expected 2"):
        expand_tables({"columns": ["job", "mean"], "rows": [["j1"]]})
