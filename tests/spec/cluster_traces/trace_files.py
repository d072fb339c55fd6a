# SPDX-License-Identifier: Apache-2.0
"""Small files of each kind of real trace, written by hand: the published columns, and values as published."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from pydantic import TypeAdapter

from roundabout.spec import SpecError
from roundabout.spec.trace import SubmittedJob, Trace
from roundabout.spec.trace_readers import acme, alibaba_gpu_2020, alibaba_gpu_2023, helios, lingjun, read_trace
from roundabout.spec.trace_readers.rows import Row

EXAMPLES = Path(__file__).parents[1].joinpath("traces")


@dataclass(frozen=True)
class Table:
    """A file of a trace."""

    file: str
    model: type[Row]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    has_heading: bool = True

    @property
    def read(self) -> list[str]:
        """The columns that are read."""
        return [field.alias or name for name, field in self.model.model_fields.items()]

    def column(self, name: str) -> list[str]:
        return [row[self.columns.index(name)] for row in self.rows]

    def with_cell(self, row: int, column: str, value: str) -> "Table":
        cells = [value if name == column else cell for name, cell in zip(self.columns, self.rows[row], strict=True)]
        return replace(self, rows=(*self.rows[:row], tuple(cells), *self.rows[row + 1 :]))

    def without(self, column: str) -> "Table":
        return self.ordered([each for each in self.columns if each != column])

    def ordered(self, columns: Sequence[str]) -> "Table":
        places = [self.columns.index(each) for each in columns]
        return replace(
            self, columns=tuple(columns), rows=tuple(tuple(row[each] for each in places) for row in self.rows)
        )

    def text(self, delimiter: str = ",", line_end: str = "\n") -> str:
        return "".join(self.lines(delimiter, line_end))

    def lines(self, delimiter: str = ",", line_end: str = "\n") -> list[str]:
        return [as_csv(row, delimiter, line_end) for row in ((self.columns,) if self.has_heading else ()) + self.rows]

    def line_of(self, row: int) -> int:
        """Return the line in which a row ends."""
        before = "".join(self.lines()[: row + 1 + self.has_heading])
        return len(StringIO(before, newline="").readlines())


def as_csv(cells: Sequence[str], delimiter: str, line_end: str) -> str:
    text = StringIO(newline="")
    quoting = csv.QUOTE_ALL if "\r" in "".join(cells) else csv.QUOTE_MINIMAL  # by itself, csv quotes none for \r
    csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting).writerow(cells)
    return text.getvalue()


def load(path: str, model: type[Row], published: Sequence[str] = ()) -> Table:
    """Return one of the tables beside this file; `published` are the columns of one without a heading."""
    file = EXAMPLES / path
    rows = list(csv.reader(StringIO(file.read_text(), newline="")))
    columns = published or rows.pop(0)
    return Table(file.name, model, tuple(columns), tuple(tuple(row) for row in rows), has_heading=not published)


HELIOS = load("helios/cluster_log.csv", helios.JobRow)
SEREN = load("acme/trace_seren.csv", acme.JobRow)
KALOS = load("acme/trace_kalos.csv", acme.JobRow)
PAI_JOBS = load("alibaba-gpu-2020/pai_job_table.csv", alibaba_gpu_2020.JobRow, alibaba_gpu_2020.JOB_COLUMNS)
PAI_TASKS = load("alibaba-gpu-2020/pai_task_table.csv", alibaba_gpu_2020.TaskRow, alibaba_gpu_2020.TASK_COLUMNS)
PODS = load("alibaba-gpu-2023/openb_pod_list_default.csv", alibaba_gpu_2023.PodRow)
LINGJUN_JOBS = load("lingjun/job.csv", lingjun.JobRow)
LINGJUN_WORKERS = load("lingjun/worker.csv", lingjun.WorkerRow)
# The tables of each kind, the one that an experiment names first.
TABLES: dict[str, tuple[Table, ...]] = {
    "lingjun": (LINGJUN_JOBS, LINGJUN_WORKERS),
    "helios": (HELIOS,),
    "acme": (SEREN,),
    "acme kalos": (KALOS,),
    "alibaba-gpu-2020": (PAI_JOBS, PAI_TASKS),
    "alibaba-gpu-2023": (PODS,),
}
TRACES: TypeAdapter[Trace] = TypeAdapter(Trace)


def read(folder: Path, kind: str, tables: Sequence[Table], **form: str) -> tuple[SubmittedJob, ...]:
    """Write the tables of a trace, in the form that is given, and read it."""
    for table in tables:
        (folder / table.file).write_bytes(table.text(**form).encode())
    return read_file(folder, kind, tables[0].file)


def read_file(folder: Path, kind: str, file: str) -> tuple[SubmittedJob, ...]:
    trace = TRACES.validate_python({"kind": kind.split(maxsplit=1)[0], "file": file})
    return read_trace(trace, folder)


def refusal(folder: Path, kind: str, tables: Sequence[Table]) -> SpecError | None:
    """Return the error with which a trace is refused; None for one that is read."""
    try:
        read(folder, kind, tables)
    except SpecError as error:
        return error
    return None
