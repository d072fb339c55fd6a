# SPDX-License-Identifier: Apache-2.0
"""What every reader owes to any bytes: a record, or one RecordError that names the file."""

from pathlib import Path

from analysis.records.call import Record, RecordError
from analysis.records.readers import chakra, inspector, kineto, nccl_tests

EXAMPLES = Path(__file__).parents[1].joinpath("examples")
CASES = Path(__file__).parents[2].joinpath("cases")
READERS = {"kineto": kineto, "inspector": inspector, "chakra": chakra, "nccl-tests": nccl_tests}
NAMES = {"kineto": "r0.json", "inspector": "n1-pid42.log", "chakra": "trace.0.et", "nccl-tests": "out.json"}
TIMES = 2**63


def check(folder: Path, reader: str, content: bytes) -> bool:
    """Whether it was read; whatever else than a refusal happens, fails."""
    path = folder / NAMES[reader]
    path.write_bytes(content)
    READERS[reader].recognizes(content[: 1 << 16])
    found = read_or_refused(reader, path)
    if isinstance(found, RecordError):
        assert found.message.startswith(str(path)) and "\n" not in found.message
        assert len(found.message) < 600
    elif isinstance(found, Record):
        assert found.calls and found.lost >= 0
        for call in found.calls:
            assert 0 <= call.begin_ns <= call.end_ns < TIMES and 0 <= call.payload_bytes < TIMES
    return not isinstance(found, RecordError)


def read_or_refused(reader: str, path: Path) -> Record | nccl_tests.Fabric | RecordError:
    try:
        return READERS[reader].read(path)
    except RecordError as error:
        return error


def seeds(reader: str) -> list[bytes]:
    """Return the examples of a format; Kineto's are the cases that were reported."""
    paths = CASES.glob("kineto-*/r0.json") if reader == "kineto" else (EXAMPLES / reader).iterdir()
    return [path.read_bytes() for path in sorted(paths)]
