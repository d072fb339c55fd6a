# SPDX-License-Identifier: Apache-2.0
"""Every example of a format is known by its content as that format's, packed or not, and documented."""

import gzip
from pathlib import Path

import pytest

from analysis.records.call import RecordError
from analysis.records.formats import fabric_of, format_of
from analysis.records.readers import chakra, inspector

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).with_name("examples")
DOCUMENT = Path(__file__).parents[2] / "docs/reference/record-formats.md"
RECORDS = {"inspector": inspector, "chakra": chakra}


def examples(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((EXAMPLES / folder).iterdir())]


@pytest.mark.parametrize("path", examples(*RECORDS), ids=lambda path: path.name)
@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
def test_a_record_is_recognized_by_its_content(path, packed, tmp_path):
    any_name = tmp_path / "record"
    any_name.write_bytes(gzip.compress(path.read_bytes()) if packed else path.read_bytes())
    assert format_of(any_name) is RECORDS[path.parent.name]
    assert fabric_of(any_name) is None


@pytest.mark.parametrize("path", examples("nccl-tests"), ids=lambda path: path.name)
def test_nccl_tests_results_are_no_record_of_a_job(path):
    fabric = fabric_of(path)
    assert fabric is not None and fabric.collective == "all_reduce"
    with pytest.raises(RecordError, match="expected one of: PyTorch Kineto's trace, NCCL Inspector's log, Chakra's"):
        format_of(path)


@pytest.mark.parametrize("at", [12, 40, -9, -4], ids=str)
def test_a_packed_record_that_is_damaged_is_refused(at, tmp_path):
    """The bytes that are spoilt: of the packed content, of its sum, of its length."""
    content = bytearray(gzip.compress((EXAMPLES / "inspector" / "v4.2.log").read_bytes()))
    content[at] ^= 0xFF
    path = tmp_path / "n1-pid42.log.gz"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="cannot be read"):
        inspector.read(path)


def test_each_version_that_is_read_or_refused_is_documented():
    document = DOCUMENT.read_text()
    for version in (*inspector.VERSIONS, *chakra.SCHEMAS, *chakra.REFUSED):
        assert version in document
