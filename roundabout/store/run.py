# SPDX-License-Identifier: Apache-2.0
"""A run on disk. An attempt is written to `partial/` and committed by one rename; no measurement is overwritten.

manifest.json  experiment.yaml  trials.parquet  summary.json  delays.json  report.html
trials/<key>/          the committed attempt: the valid one, else the least disturbed one, else the last one
rejected/<key>-<n>/    attempts that were invalid and repeated, or that another process replaced
references/<key>-<n>/  further measurements of a trial on the other machines of a sweep
partial/<key>-<n>/     running or interrupted attempts

An attempt's raw files lie in its folder RAW.
"""

import errno
import hashlib
import itertools
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roundabout.core import file_lock
from roundabout.store import contents, files, schemas, unit_conversion
from roundabout.store.contents import RAW, RECORD
from roundabout.store.files import StoreError
from roundabout.store.look_schedule import LookSchedule
from roundabout.store.manifest import NAME as MANIFEST, read_manifest
from roundabout.store.trial_states import DISTURBED, State, counted_trials, state_of_record

DROPPED = f".{RAW}.dropped"  # name of a folder of raw files during its deletion
DELETED = ".deleted"
EXPERIMENT, LIST = "experiment.yaml", "trials.parquet"
LISTED = {"run": pa.string(), "trial": pa.string(), "valid": pa.bool_()}
"""Required columns of trials.parquet."""
LOCK = ".lock"
OVERTAKEN = "another attempt at this trial was committed before this one ended"
TRIALS = "trials"
CHOICES = "name a run's folder, its id, an experiment, or `last`"
SHOWN_FAULTS = 5
RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}", re.ASCII)
STAMP = "%Y%m%dT%H%M%SZ"


def new_run_id() -> str:
    """Return a new run id: a UTC stamp and four random digits. Ids sort by time."""
    return f"{datetime.now(UTC):{STAMP}}-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class Identity:
    """The columns that identify, in every row of a table, the trial and the attempt."""

    run: str
    trial: str
    variant: str
    levels: str
    repetition: int
    attempt: int


def build_table(name: str, identity: Identity, measured: dict[str, Any], units: unit_conversion.Units) -> pa.Table:
    """Return the table `name` in the papers' units, from `measured` columns of equal length in the host's units.

    Columns of the schema that `measured` lacks are null.
    """
    schema = schemas.schema(name)
    length = len(next(iter(measured.values())))
    values = {**{key: [value] * length for key, value in vars(identity).items()}, **measured}
    arrays = [pa.array(values.get(field.name, [None] * length), field.type) for field in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    return unit_conversion.to_paper_units(table, units)


class Attempt:
    """An attempt at a trial during its writing."""

    def __init__(self, run: "Run", key: str, number: int) -> None:
        self.run, self.key, self.number = run, key, number
        self.path = run.path / "partial" / f"{key}-{number}"
        self._events = self.path / "events.jsonl"

    def log(self, event: str, controller_ns: int, **details: Any) -> None:
        """Append an event to the trial's events file immediately. `controller_ns` is on the run's clock."""
        line = json.dumps({"controller_ns": controller_ns, "event": event, **details})
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with files.disk_errors(self._events), open(os.open(self._events, flags, 0o666), "wb") as file:
            file.write(f"{line}\n".encode())

    def write(self, name: str, table: pa.Table) -> None:
        """Store the table `name` of the trial. Raises StoreError."""
        path = self.path / f"{name}.parquet"
        # Through a file of ours, since Arrow's own would hide why a write failed.
        with files.disk_errors(path), files.create_file(path) as file:
            pq.write_table(table, file, compression="zstd")

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Store `content` as the JSON file `name` of the trial. Raises StoreError."""
        files.write_json(self.path / name, content)

    def commit(self, record: dict[str, Any]) -> None:
        """Commit this attempt. If another attempt is already committed, move this one to `rejected/`.

        `record` becomes trial.json, the last file written. All files are synced to disk, so that after a power cut the
        trial is complete or missing. Raises StoreError.
        """
        if not self._move_into_place(self.run.path / "trials" / self.key, record):
            self.reject({**record, "valid": False, "reason": OVERTAKEN})

    def reject(self, record: dict[str, Any]) -> None:
        """Move this attempt to `rejected/`, because the trial is repeated."""
        self._move_into_place(self.run.path / "rejected" / f"{self.key}-{self.number}", record)

    def replace_by(self, record: dict[str, Any], better: dict[str, Any]) -> None:
        """Reject this attempt, and commit the rejected attempt with the record `better` at the same trial instead.

        If another attempt is already committed, both stay in `rejected/`. Raises StoreError.
        """
        self.reject(record)
        self.run.commit_rejected(better)

    def add_reference(self, record: dict[str, Any]) -> None:
        """Move this attempt to `references/`, to compare this machine with that of the committed attempt."""
        self._move_into_place(self.run.path / "references" / f"{self.key}-{self.number}", record)

    def _move_into_place(self, place: Path, record: dict[str, Any]) -> bool:
        """Move the attempt into place. Return False if a folder with content is there already."""
        files.make_directory(place.parent)
        with files.disk_errors(self.path):
            reported = contents.describe_files(self.path)
        files.write_json(self.path / RECORD, contents.seal_record({**record, "files": reported}))
        files.return_tree_to_caller(self.path)
        with files.disk_errors(place):
            files.sync_tree(self.path)
            try:
                self.path.rename(place)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
            files.sync(place.parent)
        return True


class Run:
    """A run on disk, open for reading and for adding attempts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name
        self.experiment = path.parent.name
        self._whole: set[Path] = set()

    @classmethod
    def create(cls, runs: Path, experiment: str, manifest: dict[str, Any], run_id: str | None = None) -> "Run":
        """Create the folder `runs`/`experiment`/<id> with its manifest. Raises StoreError if the folder exists."""
        run = cls(runs / experiment / (run_id or new_run_id()))
        if run.path.exists():
            raise StoreError(
                f"found a run at {run.path}, expected none: two began in one second", "begin this one again"
            )
        files.make_directory(run.path)
        run.write_manifest(manifest)
        return run

    @classmethod
    def open(cls, which: str | Path, runs: Path = Path("runs")) -> "Run":
        """Find a run by its folder, its id, its experiment's name (the latest run), or `last` (the latest of all).

        Raises StoreError if no run matches.
        """
        if _is_run(Path(which)):
            return cls(Path(which).resolve())
        known = sorted(cls.all(runs), key=lambda run: run.id)
        found = [run for run in known if str(which) in ("last", run.id, run.experiment)]
        if found:
            return found[-1]
        if os.path.exists(which):
            raise StoreError(f"{which} is no run: it has no {MANIFEST}", CHOICES)
        names = ", ".join(sorted({run.experiment for run in known})) or "none"
        raise StoreError(f"no run {str(which)!r} in {runs} (experiments with runs: {names})", CHOICES)

    @classmethod
    def all(cls, runs: Path = Path("runs")) -> list["Run"]:
        """Return every run under `runs`, in no particular order, including those without a manifest."""
        found = {path.parent for name in (MANIFEST, TRIALS) for path in runs.glob(f"*/*/{name}")}
        return [cls(path.resolve()) for path in found if _is_run_id(path.name)]

    @property
    def start_time(self) -> datetime:
        """The start of the run in UTC, from its id. Raises ValueError if the folder's name is no run id."""
        return datetime.strptime(self.id.partition("-")[0], STAMP).replace(tzinfo=UTC)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The content of manifest.json. Raises StoreError if it is missing or damaged."""
        return read_manifest(self.path)

    @property
    def planned_looks(self) -> int:
        """Return the number of looks at the growing run that were planned before its first trial."""
        schedule = LookSchedule.of(self.manifest)
        return len(schedule.repetitions) if schedule else 1

    def recorded(self, field: str) -> Any:
        """Return a field of the manifest. Raises StoreError if the manifest lacks it, as that of an older run may."""
        if field not in self.manifest:
            raise StoreError(f"{self.path / MANIFEST}: found no {field}, expected one", files.LOST_MESSAGE)
        return self.manifest[field]

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Replace the manifest on disk."""
        files.write_json(self.path / MANIFEST, {"schema": schemas.VERSION, **manifest})
        self.__dict__.pop("manifest", None)

    def write_experiment(self, document: dict[str, Any]) -> None:
        """Store the experiment as a file, and the file's SHA-256 in the manifest."""
        from roundabout.spec.reader.yaml_source import dump  # noqa: PLC0415 - commands that only read runs do not need it

        text = dump(document)
        files.write_text(self.path / EXPERIMENT, text)
        self.write_manifest({**self.manifest, "experiment_sha256": hashlib.sha256(text.encode()).hexdigest()})

    def committed(self) -> frozenset[str]:
        """Return the keys of all committed trials, in any state."""
        return frozenset(folder.name for folder in self._folders("trials"))

    def trials(self) -> list[dict[str, Any]]:
        """Return the records (trial.json) of all committed trials, ordered by their start.

        Raises StoreError if a record is missing, changed, or of another trial.
        """
        records = [contents.read_record(folder, self._id_in_manifest) for folder in self._folders("trials")]
        return sorted(records, key=lambda record: str(record["started_utc"]))

    def check(self) -> None:
        """Compare all stored files with their checksums. Raises StoreError that lists all missing and changed files."""
        records = {self._folder(record): record for record in self.trials()}
        folders = [*self._folders("rejected"), *self._folders("references")]
        aside = {folder: contents.read_record(folder, self._id_in_manifest) for folder in folders}
        expected = contents.expected_files(records) | {folder: each.get("files", {}) for folder, each in aside.items()}
        wrong = [fault for folder, reported in expected.items() for fault in contents.find_faults(folder, reported)]
        lost = self.listed_trials().keys() - self.committed()
        self._refuse([*wrong, *(f"{self.path / 'trials' / key} is missing" for key in sorted(lost))])

    def digest(self) -> str:
        """Return the SHA-256, in hex, of the manifest and the trials' records, which contain their files' checksums.

        Raises StoreError like `trials`.
        """
        return contents.record_digest({"manifest": self.manifest, "trials": self.trials()})

    def rejected_records(self, key: str | None = None) -> list[dict[str, Any]]:
        """Return the records of the attempts in `rejected/`, or of those at the trial `key` only.

        Raises StoreError like `trials`.
        """
        folders = (each for each in self._folders("rejected") if key in (None, each.name.rpartition("-")[0]))
        return [contents.read_record(folder, self._id_in_manifest) for folder in sorted(folders)]

    def commit_rejected(self, record: dict[str, Any]) -> None:
        """Commit the attempt in `rejected/` that has this record, unless its trial is committed. Raises StoreError."""
        aside = self.path / "rejected" / f"{record['trial']}-{record['attempt']}"
        place = self._folder(record)
        files.make_directory(place.parent)
        with files.disk_errors(place):
            try:
                aside.rename(place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return
            files.sync(place.parent)
            files.sync(aside.parent)

    def references(self) -> list[dict[str, Any]]:
        """Return the records of trials that were measured again on other machines.

        Raises StoreError like `trials`.
        """
        return [contents.read_record(folder, self._id_in_manifest) for folder in sorted(self._folders("references"))]

    def table_of(self, record: dict[str, Any], name: str) -> pa.Table:
        """Return the table `name` of the attempt with this record, which is a committed one or a reference.

        Raises StoreError if the file is missing or was changed.
        """
        aside = self.path / "references" / f"{record['trial']}-{record['attempt']}"
        folder = aside if aside.is_dir() else self._folder(record)
        path = folder / f"{name}.parquet"
        self._refuse([fault for fault in [self._fault(path, record.get("files", {}).get(path.name, {}))] if fault])
        return self._read(path, schemas.schema(name))

    def rejected_count(self, key: str) -> int:
        """Return the number of rejected attempts at the trial `key`."""
        return len(list(self.path.glob(f"rejected/{key}-*/trial.json")))

    def interrupted_attempts(self) -> list[str]:
        """Return the names (<key>-<attempt>) of the attempts in `partial/`."""
        return sorted(path.name for path in self.path.glob("partial/*"))

    def begin_attempt(self, key: str) -> Attempt:
        """Create the folder of a new attempt at the trial `key`, with an unused number."""
        numbers = (path.name.rpartition("-")[2] for path in self.path.glob(f"*/{key}-*"))
        used = [int(number) for number in numbers if number.isdecimal()]
        if (folder := self.path / TRIALS / key).exists():
            used.append(contents.read_record(folder, self._id_in_manifest)["attempt"])
        attempts = (Attempt(self, key, number) for number in itertools.count(max(used, default=0) + 1))
        return next(attempt for attempt in attempts if files.claim_directory(attempt.path))

    def table(self, name: str, *, valid_only: bool = True) -> pa.Table:
        """Return the rows of the table `name` of committed attempts. The result may be empty.

        With `valid_only`, these are the trials whose figures count: valid ones, and disturbed ones in cells without a
        valid one. Raises StoreError if a file is missing or was changed.
        """
        schema = schemas.schema(name)
        if name == "trials":
            records = self.trials()
            counted = counted_trials(records)
            rows = [{column: record.get(column) for column in schema.names} for record in records]
            return pa.Table.from_pylist(
                [row for row in rows if row["trial"] in counted or not valid_only], schema=schema
            )
        parts = (self._read(path, schema) for path in self.paths(name, valid_only=valid_only))
        return pa.concat_tables([schema.empty_table(), *parts])

    def paths(self, name: str, *, valid_only: bool = True) -> list[Path]:
        """Return the paths of the table `name` of the same attempts as `table`. Raises StoreError like `table`."""
        records = {self._folder(record): record for record in self.trials()}
        counted = counted_trials(records.values())
        expected = contents.expected_files(records)
        found, wrong = [], []
        for folder, record in records.items():
            path = folder / f"{name}.parquet"
            if (record["trial"] in counted or not valid_only) and path.name in expected[folder]:
                found.append(path)
                wrong.append(self._fault(path, expected[folder].get(path.name, {})))
        self._refuse([fault for fault in wrong if fault])
        return found

    def is_outdated(self, name: str) -> bool:
        """Return True if the files of the table `name` have units of an older version, which `table` converts."""
        path = next(self.path.glob(f"trials/*/{name}.parquet"), None)
        return path is not None and bool(unit_conversion.outdated_columns(_read_schema(path), schemas.schema(name)))

    def _read(self, path: Path, schema: pa.Schema) -> pa.Table:
        table = _read_parquet(path)
        if unit_conversion.outdated_columns(table.schema, schema):
            return unit_conversion.to_present_units(table, schema, self.manifest["testbed"]["scale"])
        return table

    @property
    def _id_in_manifest(self) -> str:
        """Return the id in its manifest, because a folder can be renamed."""
        return str(self.manifest.get("run", self.id))

    def _folders(self, where: str) -> list[Path]:
        place = self.path / where
        if not place.is_dir():
            if os.path.lexists(place):
                raise StoreError(
                    f"{place} is {files.unexpected_kind(place) or 'a file'}, expected a folder", files.LOST_MESSAGE
                )
            return []
        return [path for path in place.iterdir() if not path.name.startswith(".")]

    def _folder(self, record: dict[str, Any]) -> Path:
        return self.path / "trials" / str(record["trial"])

    def _fault(self, path: Path, expected: dict[str, Any]) -> str | None:
        """Return the fault of a file. A file that was whole is not checked again."""
        if path in self._whole:
            return None
        fault = contents.file_fault(path, expected)
        if fault is None:
            self._whole.add(path)
        return fault

    def _refuse(self, wrong: Sequence[str]) -> None:
        """Raise StoreError if there are faults."""
        if wrong:
            more = [f"and {len(wrong) - SHOWN_FAULTS} more"] if len(wrong) > SHOWN_FAULTS else []
            raise StoreError("; ".join([*wrong[:SHOWN_FAULTS], *more]), contents.MEND)

    def listed_trials(self) -> dict[str, State]:
        """Return the state of each trial listed in trials.parquet, by key. Empty without the file.

        Raises StoreError if the file is damaged.
        """
        path = self.path / LIST
        if not path.exists():
            return {}
        try:
            listed = _read_parquet(path.resolve() if path.is_symlink() else path)
            for name, kind in LISTED.items():
                found = listed.schema.field(name).type if name in listed.schema.names else "none"
                if found != kind or listed[name].null_count:
                    what = "rows without a value" if found == kind else found
                    raise StoreError(f"{path} is no list of trials: column {name}: found {what}, expected {kind}")
            if strange := {*listed["run"].to_pylist()} - {self._id_in_manifest}:
                raise StoreError(f"{path} is of run {strange.pop()}, expected {self._id_in_manifest}")
        except StoreError as error:
            raise StoreError(error.message, f"make it anew: roundabout report {self.path}") from error
        rows = listed.select([name for name in ("trial", "valid", DISTURBED) if name in listed.schema.names])
        return {row["trial"]: state_of_record(row) for row in rows.to_pylist()}

    def repair_list(self) -> str | None:
        """Rebuild trials.parquet from the committed trials if it is damaged. Return its fault, or None.

        Raises StoreError if the file cannot be replaced, or if a committed trial is damaged.
        """
        try:
            self.listed_trials()
        except StoreError as error:
            self.refresh_trials()
            done = f"{len(self.committed())} of {len(self.manifest['plan'])} planned trials are committed"
            return f"{error.message}; it was made anew: {done}"
        return None

    def experiment_fault(self) -> str | None:
        """Return a message if experiment.yaml is missing or was changed, or None. Always None for older runs."""
        expected = self.manifest.get("experiment_sha256")
        fault = contents.file_fault(self.path / EXPERIMENT, {"sha256": expected}) if expected else None
        return f"{fault}; the manifest has the experiment, and figures do not depend on this file" if fault else None

    @property
    def size_bytes(self) -> int:
        """Return the total size of the run's files, in bytes. Files that are removed meanwhile are skipped."""
        total = 0
        for path in self.path.rglob("*"):
            with suppress(FileNotFoundError):
                status = path.lstat()
                total += 0 if stat.S_ISDIR(status.st_mode) else status.st_size
        return total

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the run's lock, which prevents additions and deletion by other processes.

        The kernel releases the lock if the holder dies. Raises StoreError if another process holds the lock.
        """
        with files.disk_errors(self.path):  # a file, as over NFS no folder can be locked
            handle = file_lock.open_locked(self.path / LOCK, _create_lock)
        if handle is None:
            raise StoreError(f"{self.path} is going on, expected a run that ended", "wait, or stop it")
        try:
            files.return_to_caller(handle)
            yield
        finally:
            os.close(handle)

    def delete(self) -> None:
        """Delete the run, after an atomic rename of its folder.

        If the deletion is interrupted, the next deletion of a run of the same experiment removes the rest. Raises
        StoreError if the run is being executed.
        """
        experiment = self.path.parent
        with self.hold(), files.disk_errors(self.path):
            for left in experiment.glob(f".*{DELETED}"):
                shutil.rmtree(left)
            gone = self.path.rename(experiment / f".{self.path.name}{DELETED}")
            files.sync(experiment)
            shutil.rmtree(gone)
        with suppress(OSError):  # other runs are there
            experiment.rmdir()

    def refresh_trials(self) -> None:
        """Rebuild trials.parquet from the committed trials."""
        with files.replace_file(self.path / LIST) as file:
            pq.write_table(self.table("trials", valid_only=False), file, compression="zstd")

    def drop_raw(self, keep_bytes: int) -> None:
        """Delete raw files of rejected attempts, then of the oldest trials until at most `keep_bytes` remain."""
        for folder in self.path.glob(f"*/*/{DROPPED}"):  # left by an interruption
            shutil.rmtree(folder)
        for folder in self.path.glob(f"rejected/*/{RAW}"):
            _delete_raw(folder)
        kept = sorted(self.path.glob(f"trials/*/{RAW}"), key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
        kept_bytes = 0
        for folder in kept:
            kept_bytes += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            if kept_bytes > keep_bytes:
                _delete_raw(folder)

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Replace summary.json by `summary`. Raises StoreError."""
        files.write_json(self.path / "summary.json", summary)


def _create_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def _delete_raw(folder: Path) -> None:
    """Delete the raw files of a folder, all or none."""
    gone = folder.rename(folder.with_name(DROPPED))
    files.sync(gone.parent)
    shutil.rmtree(gone)


def _read_parquet(path: Path) -> pa.Table:
    # `read_table` would import pyarrow.dataset, and with it pandas where that is installed.
    with _explain_read_errors(path), pq.ParquetFile(path) as file:
        return file.read()


def _read_schema(path: Path) -> pa.Schema:
    with _explain_read_errors(path):
        return pq.read_schema(path)


@contextmanager
def _explain_read_errors(path: Path) -> Iterator[None]:
    files.check_file(path)
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"cannot read {path}: {error}", files.LOST_MESSAGE) from error


def _is_run(folder: Path) -> bool:
    """Return True for a run's folder: one with a manifest, or with a run's id as its name and a part of a run in it."""
    if os.path.isfile(folder / MANIFEST):
        return True
    return _is_run_id(folder.name) and any(os.path.lexists(folder / name) for name in (MANIFEST, TRIALS))


def _is_run_id(name: str) -> bool:
    try:
        return bool(RUN_ID.fullmatch(name) and Run(Path(name)).start_time)
    except ValueError:
        return False
