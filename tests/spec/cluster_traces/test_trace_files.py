# SPDX-License-Identifier: Apache-2.0
"""Tables of real traces: what is read of each kind, in the forms that people have, and how the rest is refused."""

import json
import math
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from roundabout.spec import SpecError
from roundabout.spec.trace import KINDS, RecordedTrace
from roundabout.spec.trace_readers import rows
from roundabout.spec.trace_readers.values import instant, zoned_instant
from tests.spec.cluster_traces.trace_files import (
    HELIOS,
    KALOS,
    LINGJUN_JOBS,
    LINGJUN_WORKERS,
    PAI_JOBS,
    PAI_TASKS,
    PODS,
    SEREN,
    TABLES,
    read,
    read_file,
    refusal,
)

pytestmark = pytest.mark.unit

COLUMNS = [
    (kind, at, column) for kind, tables in TABLES.items() for at, each in enumerate(tables) for column in each.read
]
UNKNOWN = ["", "None", "null", "NaN", "nan", "NaT", "NA", "N/A", "#N/A", "<NA>", "Unknown", " nan "]
# What spreadsheets, pandas and careless hands make of a value.
ODD = [
    *UNKNOWN,
    *("Infinity", "-inf", "-1", "+8", "1e3", "1.25E+07", "1.5", "1,5", "1_000", "1,000", "0", "00", "8.0", "9" * 400),
    *(
        "4294967296",
        "0x8",
        "\u0668",
        "true",
        "#DIV/0!",
        "=1+1",
        "[1]",
        "{}",
        "null}",
        '{"nvidia.com/gpu": NaN}',
        "[" * 10_000,
    ),
    *('{"nvidia.com/gpu": "8", "nvidia.com/gpu": "9"}', '{"nvidia.com/gpu": 1.5}', '{"nvidia.com/gpu": null}'),
    *("2023-07-15", "2023-13-15 02:19", "2023-02-29 02:19", "15.07.2023 02:19", "7/15/2023 2:19", "7/5/2023 2:19"),
    *("2023-07-15 02:19 AM", "2023-07-15T02:19:05Z", "2023-07-15 02:19:05+99:00", "2023-07-15 02:19:60", "45122.09"),
    *(
        "0001-01-01 00:00:00",
        "1899-12-30 00:00:00",
        "9999-12-31 23:59:59",
        "\uff12\uff10\uff12\uff13-07-15 02:19",
        "a b",
        "\0",
        "x" * 999,
    ),
]
ANY = (
    st.sampled_from(ODD)
    | st.text(max_size=30)
    | st.floats().map(str)
    | st.integers().map(str)
    | st.datetimes().map(str)
)
FEW = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def found(folder, kind, tables=None):
    return [(each.name, each.at_s, each.gpus, each.ran_s) for each in read(folder, kind, tables or TABLES[kind])]


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_every_recorded_trace_kind_is_tested():
    tried = {kind.split()[0] for kind in TABLES} | {"philly"}
    assert tried == {name for name, kind in KINDS.items() if issubclass(kind, RecordedTrace)}


def test_helios_jobs_that_had_gpus_are_read(tmp_path):
    assert found(tmp_path, "helios") == [
        ("101", at("2020-06-01 10:00:00"), 1, 608),
        ("102", at("2020-06-01 10:00:26"), 4, 216),
        ("104", at("2020-06-01 10:02:00"), 8, None),
    ]


def test_acme_times_have_zones_and_durations_count_from_the_start(tmp_path):
    assert found(tmp_path, "acme") == [
        ("201", at("2023-02-28 17:00:00"), 8, 117),
        ("202", at("2023-02-28 17:03:00"), 16, 293),
    ]
    assert found(tmp_path, "acme kalos") == [
        ("dlca", at("2023-05-17 12:00:00"), 64, 8),  # 18 in the column `duration`, with the 10 s in the queue
        ("dlcc", at("2023-05-17 12:05:00"), 8, None),
    ]


def test_alibaba_2020_jobs_get_one_gpu_per_share_and_start_at_launch(tmp_path):
    assert found(tmp_path, "alibaba-gpu-2020") == [
        ("4baa", 4550800, 2, 500),  # of two workers with half a GPU, launched after the parameter server
        ("0cbb", 4550900, 8, None),
        ("1dcc", 4550910, 1, None),  # 0 is a launch that is not known; the last two jobs had no GPU
    ]


@pytest.mark.parametrize(
    ("table", "row", "column", "kept"),
    [
        (PAI_TASKS, 1, "inst_num", ["0cbb", "1dcc"]),
        (PAI_JOBS, 0, "start_time", ["0cbb", "1dcc"]),
        (PAI_TASKS, 1, "plan_gpu", ["0cbb", "1dcc"]),
        (PAI_TASKS, 0, "inst_num", ["4baa", "0cbb", "1dcc"]),
    ],
)
def test_alibaba_2020_jobs_without_gpus_or_submission_are_left_out(tmp_path, table, row, column, kept):
    spoilt = table.with_cell(row, column, "")
    tables = [spoilt if each is table else each for each in (PAI_JOBS, PAI_TASKS)]
    assert [each.name for each in read(tmp_path, "alibaba-gpu-2020", tables)] == kept


def test_alibaba_2020_tables_are_read_with_a_line_of_columns_too(tmp_path):
    plain = read(tmp_path, "alibaba-gpu-2020", (PAI_JOBS, PAI_TASKS))
    named = [replace(each, has_heading=True) for each in (PAI_JOBS, PAI_TASKS)]
    assert read(tmp_path, "alibaba-gpu-2020", named) == plain
    assert read(tmp_path, "alibaba-gpu-2020", [each.ordered(each.columns[::-1]) for each in named]) == plain


def test_alibaba_2023_pods_that_were_scheduled_with_gpus_are_read(tmp_path):
    assert found(tmp_path, "alibaba-gpu-2023") == [
        ("openb-pod-0100", 0, 1, 750),
        ("openb-pod-0101", 427061, 8, 400),
        ("openb-pod-0102", 427070, 1, 100),
    ]


def test_a_list_of_pods_without_times_is_refused_by_all_that_it_lacks(tmp_path):
    short = PODS.ordered(PODS.columns[:5])
    expected = "pod_phase, creation_time, deletion_time, scheduled_time among them"
    assert refusal(tmp_path, "alibaba-gpu-2023", (short,)).expected == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023/7/15 02:19:05", "2023-07-15 02:19:05"),
        ("2023-07-15 02:19", "2023-07-15 02:19:00"),
        ("2023/7/5 2:19", "2023-07-05 02:19:00"),
        ("2023-07-15T02:19:05.250000", "2023-07-15 02:19:05.250000"),
        ("2023-07-15 02:19:05.000000000", "2023-07-15 02:19:05"),
        ("7/15/2023 2:19", "2023-07-15 02:19:00"),
        ("15/7/2023 2:19", "2023-07-15 02:19:00"),
        ("15.07.2023 02:19", "2023-07-15 02:19:00"),
        ("7/7/2023 2:19", "2023-07-07 02:19:00"),
    ],
)
def test_times_of_spreadsheets_and_pandas_are_read(text, expected):
    assert instant(text) == at(expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("7/5/2023 2:19", "the year first, .*since 7 and 5 can both be the month"),
        ("15/7/23 2:19", "a year of four digits"),
        ("2023/7-15 02:19", "a date and a time, as"),
        ("2023/7/15", "a date and a time, as"),
        ("2023/2/29 02:19", "of the calendar"),
        ("15/15/2023 02:19", "of the calendar"),
        ("2023-07-15 25:19", "of the calendar"),
        ("1899-12-30 00:00", "a year from 1970 to 2100"),
        ("2023-07-15 02:19:05+08:00", "without a zone"),
        (5, "a date and a time, as"),
    ],
)
def test_times_that_can_mean_several_or_none_are_refused(text, said):
    with pytest.raises(ValueError, match=said):
        instant(text)


@given(moment=st.datetimes(datetime(1970, 1, 2), datetime(2100, 12, 30)), minutes=st.integers(-840, 840))
def test_times_with_and_without_zones_are_read_as_instants(moment, minutes):
    assert instant(str(moment)) == pytest.approx(moment.replace(tzinfo=UTC).timestamp(), abs=1e-6)
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert zoned_instant(str(zoned)) == pytest.approx(zoned.timestamp(), abs=1e-6)
    with pytest.raises(ValueError, match="with its zone"):
        zoned_instant(str(moment))


FORMS = {
    "semicolons": (";", "\n", ""),
    "tabs": ("\t", "\n", ""),
    "CRLF": (",", "\r\n", ""),
    "old Macintosh": (",", "\r", ""),
    "byte order mark": (",", "\n", "\ufeff"),
    "a spreadsheet's": (";", "\r\n", "\ufeff"),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("form", FORMS)
def test_a_table_in_another_form_says_the_same(tmp_path, kind, form):
    plain = read(tmp_path, kind, TABLES[kind])
    delimiter, line_end, start = FORMS[form]
    for table in TABLES[kind]:
        padding = delimiter * (len(table.columns) - 1) + line_end
        text = start + table.text(delimiter, line_end) + padding  # spreadsheets leave empty rows
        (tmp_path / table.file).write_bytes(text.encode())
    assert read_file(tmp_path, kind, TABLES[kind][0].file) == plain


@pytest.mark.parametrize("kind", TABLES)
def test_columns_are_found_by_their_names(tmp_path, kind):
    named = [replace(each, has_heading=True) for each in TABLES[kind]]
    reordered = [each.ordered(sorted(each.columns)) for each in named]
    fewer = [each.ordered(each.read) for each in named]
    assert read(tmp_path, kind, reordered) == read(tmp_path, kind, fewer) == read(tmp_path, kind, named)


@pytest.mark.parametrize(("kind", "at", "column"), COLUMNS)
def test_a_column_that_is_missing_or_twice_is_said(tmp_path, kind, at, column):
    tables = [replace(each, has_heading=True) for each in TABLES[kind]]
    table = tables[at]
    for columns, said in (
        ([each for each in table.columns if each != column], f"expected {column} among them"),
        ([*table.columns, column], f"found the column {column} twice, expected each column once"),
    ):
        error = refusal(tmp_path, kind, [*tables[:at], table.ordered(columns), *tables[at + 1 :]])
        assert error.message.endswith(said)
        assert (error.file.rsplit("/", 1)[-1], error.line) == (table.file, 1)


@pytest.mark.parametrize("kind", TABLES)
def test_a_row_of_too_few_or_too_many_cells_is_said(tmp_path, kind):
    table, *others = TABLES[kind]
    whole = len(table.columns)
    for row in (table.rows[1][:-1], (*table.rows[1], "x")):
        spoilt = replace(table, rows=(table.rows[0], row, *table.rows[2:]))
        error = refusal(tmp_path, kind, (spoilt, *others))
        assert error.line == table.line_of(1)
        assert f"found a row of {len(row)} cells, expected {whole}, one for each column" in error.message


@pytest.mark.parametrize(
    ("content", "found_", "hint"),
    [
        (b"\x1f\x8b\x08", "gzip-compressed data", "decompress"),
        (b"\x28\xb5\x2f\xfd", "zstd-compressed data", "zstd -d"),
        (b"BZh91AY", "bzip2-compressed data", "bzip2 -d"),
        (b"\xfd7zXZ\0", "xz-compressed data", "xz -d"),
        (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "7z x"),
        (b"PAR1", "a Parquet file", "CSV"),
        (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "CSV"),
        ("job_id".encode("utf-16"), "UTF-16 text", "UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "a Git LFS pointer", "git lfs pull"),
        (b"job_id\n\xff", "the byte 0xff", None),
    ],
)
def test_a_file_that_is_no_text_is_said_with_what_to_do(tmp_path, content, found_, hint):
    (tmp_path / "file").write_bytes(content)
    for kind in ("philly", "helios"):
        with pytest.raises(SpecError) as raised:
            read_file(tmp_path, kind, "file")
        assert raised.value.found == found_
        assert hint is None or hint in raised.value.hint


def test_devices_and_pipes_are_neither_waited_for_nor_read_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MAX_BYTES", 1000)
    with pytest.raises(SpecError, match="found more than 1000 bytes, expected 1000 bytes at most"):
        read_file(tmp_path, "helios", "/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError, match="found no columns"):
        read_file(tmp_path, "helios", "pipe")


@pytest.mark.parametrize("content", ["job_id,user".encode("utf-16-le"), b"f.csv\0\0\0job_id,user\n", bytes(9)])
def test_null_bytes_in_the_line_of_columns_are_said(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(SpecError, match="file:1: found null bytes, expected UTF-8 text"):
        read_file(tmp_path, "helios", "file")


@pytest.mark.parametrize("kind", TABLES)
def test_concatenated_tables_are_read_as_one(tmp_path, kind):
    tables = [replace(each, has_heading=True) for each in TABLES[kind]]
    expected = read(tmp_path, kind, [replace(each, rows=each.rows * 2) for each in tables])
    for table in tables:
        (tmp_path / table.file).write_text(table.text() * 2)
    assert read_file(tmp_path, kind, tables[0].file) == expected


def test_a_quote_that_is_not_closed_is_said_at_its_rows_first_line(tmp_path):
    columns = "job_id,gpu_num,state,submit_time,start_time,end_time,note\n"
    row = '1,8,RUNNING,2020-06-01 10:00:00,,,"one\ntwo"\n'
    (tmp_path / "file").write_text(columns + row + '2,8,RUNNING,2020-06-01 10:00:00,,,"open\n' + row)
    with pytest.raises(SpecError, match=r"file:4: .*expected rows of CSV") as raised:
        read_file(tmp_path, "helios", "file")
    assert "a quote that is not closed" in raised.value.hint


@pytest.mark.parametrize("zone", ["+0800", "+08", "+08:00"])
def test_zones_are_read_with_or_without_a_colon(zone):
    assert zoned_instant(f"2023-05-17 19:00:58{zone}") == at("2023-05-17 11:00:58")
    with pytest.raises(ValueError, match="without a zone"):
        instant(f"2023-05-17 19:00:58{zone}")


@pytest.mark.parametrize(("kind", "at", "column"), COLUMNS)
@FEW
@given(odd=st.tuples(ANY, st.integers(0, 9)))
def test_an_odd_value_is_read_or_refused_at_its_row_and_column(tmp_path, kind, at, column, odd):
    value, row = odd
    table = TABLES[kind][at]
    row %= len(table.rows)
    spoilt = table.with_cell(row, column, value)
    error = refusal(tmp_path, kind, [*TABLES[kind][:at], spoilt, *TABLES[kind][at + 1 :]])
    if error is not None:
        assert error.file.rsplit("/", 1)[-1] == table.file
        assert (error.field, error.line) == (column, spoilt.line_of(row))
        assert "\n" not in error.message and len(error.message) < 500
        assert error.found == repr(value.strip()) or error.found.endswith("...")


IF_KNOWN = {
    "lingjun": ["gmt_job_running", "gmt_job_stopped", "gmt_job_finished"],
    "helios": ["start_time", "end_time"],
    "acme": ["start_time", "end_time"],
    "acme kalos": ["start_time", "end_time"],
    "alibaba-gpu-2020": ["end_time"],
    "alibaba-gpu-2023": ["scheduled_time", "deletion_time"],
}


@pytest.mark.parametrize("word", UNKNOWN)
@pytest.mark.parametrize("kind", IF_KNOWN)
def test_times_that_are_not_known_leave_the_duration_unknown(tmp_path, kind, word):
    table, *others = TABLES[kind]
    before = read(tmp_path, kind, TABLES[kind])
    for column in IF_KNOWN[kind]:
        spoilt = table
        for row in range(len(table.rows)):
            spoilt = spoilt.with_cell(row, column, word)
        after = read(tmp_path, kind, (spoilt, *others))
        assert [(each.name, each.at_s, each.gpus) for each in after] == [(x.name, x.at_s, x.gpus) for x in before]
        assert all(each.ran_s is None for each in after) or kind == "lingjun"  # a job has one of two ends there


@st.composite
def good_jobs(draw):
    """Draw names, submissions in seconds of a trace, waits, durations and numbers of GPUs."""
    times = st.integers(1, 10**7)
    job = st.tuples(times, times, times, st.integers(1, 10_000))
    return [(f"j{number}", *each) for number, each in enumerate(draw(st.lists(job, min_size=1, max_size=5)))]


def on_clock(kind, second):
    """Return a second of a trace as its kind writes it."""
    if kind.startswith("alibaba"):
        return str(float(second)) if kind.endswith("2020") else str(second)
    moment = datetime(2023, 3, 1, tzinfo=UTC) + timedelta(seconds=second)
    zones = {"acme": timezone(timedelta(hours=8)), "acme kalos": UTC}
    return str(moment.astimezone(zones[kind])) if kind in zones else f"{moment:%Y-%m-%d %H:%M:%S}"


def filled(table, number, **cells):
    """Return a table of so many rows like its first, with these cells in their columns."""
    many = replace(table, rows=table.rows[:1] * number)
    for column, values in cells.items():
        for row, value in enumerate(values):
            many = many.with_cell(row, column, value)
    return many


def tables_of(kind, jobs):
    names, submitted, waits, lasted, gpus = zip(*jobs, strict=True)
    began = [one + other for one, other in zip(submitted, waits, strict=True)]
    ended = [one + other for one, other in zip(began, lasted, strict=True)]
    came, start, end = ([on_clock(kind, each) for each in times] for times in (submitted, began, ended))
    number, wanted = len(jobs), [str(each) for each in gpus]
    if kind == "lingjun":
        resources = [json.dumps({"cpu": "1", "nvidia.com/gpu": each}) for each in wanted]
        times = {"gmt_job_submitted": came, "gmt_job_running": start, "gmt_job_finished": end}
        return (
            filled(LINGJUN_JOBS, number, job_name=names, **times),
            filled(LINGJUN_WORKERS, number, job_name=names, RES=resources),
        )
    if kind == "alibaba-gpu-2020":
        each_one = {"job_name": names, "start_time": start, "plan_gpu": ["100.0"] * number}
        return (
            filled(PAI_JOBS, number, job_name=names, start_time=came, end_time=end),
            filled(PAI_TASKS, number, **each_one, inst_num=[str(float(each)) for each in gpus]),
        )
    if kind == "alibaba-gpu-2023":
        times = {"creation_time": came, "scheduled_time": start, "deletion_time": end}
        return (filled(PODS, number, name=names, num_gpu=wanted, **times),)
    times = {"submit_time": came, "start_time": start, "end_time": end}
    table = {"helios": HELIOS, "acme": SEREN, "acme kalos": KALOS}[kind]
    return (filled(table, number, job_id=names, gpu_num=wanted, **times),)


@pytest.mark.parametrize("kind", TABLES)
@FEW
@given(jobs=good_jobs(), form=st.sampled_from(sorted(FORMS)))
def test_good_rows_come_back_as_they_were_written(tmp_path, kind, jobs, form):
    delimiter, line_end, _ = FORMS[form]
    rows = read(tmp_path, kind, tables_of(kind, jobs), delimiter=delimiter, line_end=line_end)
    origin = 0 if kind.startswith("alibaba") else at("2023-03-01")
    back = [(each.name, each.at_s - origin, each.gpus, each.ran_s) for each in rows]
    assert back == [(name, came, gpus, lasted) for name, came, _, lasted, gpus in jobs]
    assert all(math.isfinite(each.at_s) for each in rows)
