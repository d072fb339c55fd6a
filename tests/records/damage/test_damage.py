# SPDX-License-Identifier: Apache-2.0
"""Records with mistakes in their bytes: read, or refused with one message that names the file."""

import pytest
from hypothesis import given, strategies as st

from tests.records.damage.damage import READERS, check, seeds

pytestmark = pytest.mark.unit

BITS = [
    b"",
    b"\0",
    b"\xff",
    b"{",
    b"[" * 100_000,
    b'"',
    b"1e999",
    b"-1",
    b"NaN",
    b"null",
    b"9" * 5000,
    b"\n",
    b"\x80" * 20,
]


@pytest.mark.parametrize("reader", READERS)
@given(data=st.data())
def test_damaged_bytes_are_read_or_refused(reader, data, tmp_path_factory):
    content = data.draw(st.sampled_from([b"", *seeds(reader)]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        bit = data.draw(st.sampled_from(BITS) | st.binary(max_size=4))
        content = content[:at] + bit + content[at + data.draw(st.integers(0, 40)) :]
    check(tmp_path_factory.mktemp("damage"), reader, content)


@pytest.mark.parametrize("reader", READERS)
def test_undamaged_examples_pass(reader, tmp_path):
    """At least one each is read, so that what is damaged above begins as what can be read."""
    assert any(check(tmp_path, reader, content) for content in seeds(reader))
