# SPDX-License-Identifier: Apache-2.0
"""Every field of every format with every odd value: nothing changes, or what was left out is said, or it is refused."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from analysis.records.call import RecordError
from tests.records.damage.damage import EXAMPLES as FILES
from tests.records.damage.odd_fields import (
    EXAMPLES,
    ODD,
    fabric_or_error,
    is_clear,
    is_right,
    is_right_fabric,
    paths,
    with_odd,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=50)
@given(data=st.data())
def test_an_odd_value_in_a_record_changes_nothing_unsaid(name, data, tmp_path_factory):
    example, folder = EXAMPLES[name], tmp_path_factory.mktemp("odd")
    part, path = data.draw(st.sampled_from(example.fields))
    odd = data.draw(st.sampled_from(ODD))
    found = example.found(folder, example.text(part, path, odd))
    if isinstance(found, RecordError):
        assert is_clear(found, example.names[0])
    else:
        assert is_right(found, example.good)


@settings(max_examples=100)
@given(data=st.data())
def test_an_odd_value_in_a_fabric_s_figures_changes_none(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "out.json"
    content = data.draw(st.sampled_from(sorted((FILES / "nccl-tests").iterdir()))).read_text()
    good, tree = fabric_or_error(path, content), [json.loads(content)]
    assert not isinstance(good, RecordError)
    field, odd = data.draw(st.sampled_from(list(paths(tree)))), data.draw(st.sampled_from(ODD))
    found = fabric_or_error(path, with_odd(tree, field, odd)[1:-1])
    if isinstance(found, RecordError):
        assert is_clear(found, path.name)
    else:
        assert is_right_fabric(found, good)
