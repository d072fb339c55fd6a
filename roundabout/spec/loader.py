# SPDX-License-Identifier: Apache-2.0
"""Loader of experiments, which assembles every combination of their factors' levels."""

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from roundabout.spec.assembly.event_validation import check_events
from roundabout.spec.assembly.factors import Factors, read_factors
from roundabout.spec.assembly.file_cache import cached_files
from roundabout.spec.assembly.library import (
    CATALOG,
    EXPERIMENTS,
    HEADER,
    KINDS,
    OVERLAYABLE,
    PROFILES,
    TOPOLOGIES,
    Library,
    guess_kind,
)
from roundabout.spec.assembly.merge import merge
from roundabout.spec.assembly.overrides import (
    Override,
    apply_file_overrides,
    apply_to_combination,
    check_used,
    with_overrides,
)
from roundabout.spec.assembly.trial_filter import Selection, filter_cells
from roundabout.spec.assembly.validation import (
    Merged,
    Scope,
    check_capture,
    check_clocks,
    check_cross_traffic,
    check_demand,
    check_dependencies,
    check_expectation,
    check_inputs,
    check_pattern,
    check_rules,
    check_scheduling,
    check_shared_hosts,
    check_signals,
    check_transports,
    check_workers,
    port_queue,
    traffic_by_sender,
)
from roundabout.spec.assembly.validation_errors import explain_error, parse_as
from roundabout.spec.base import Level
from roundabout.spec.errors import SpecError, expected_names, list_choices, quote_value, suggest
from roundabout.spec.expectation import AnyExpectation, ExpectationCheck, Expectations
from roundabout.spec.experiment import ONLY_VARIANT, Cell, Experiment, ExperimentHeader
from roundabout.spec.job import JobFields, ResolvedJob
from roundabout.spec.profile import Profile
from roundabout.spec.reader.yaml_source import Block, Document, as_yaml, parse, read_document, shown_path
from roundabout.spec.topology import RATES, Topology
from roundabout.spec.trace import RecordedTrace, SubmittedJob
from roundabout.spec.trace_readers import read_trace
from roundabout.spec.transports import FOLDER
from roundabout.spec.treatment import ClusterTreatment, Treatment
from roundabout.spec.trial_spec import TrialSpec

Model = TypeVar("Model", bound=BaseModel)


# Lengths of an experiment, and the fields that a file's `lengths` may change.
LENGTHS = ("quick", "full")
LENGTH_CHANGES = ("repetitions", "exclude", "factors", *OVERLAYABLE)


class Summary(NamedTuple):
    """One entry of the catalog. `error` is None if the file is valid.

    `reads_elsewhere` is True if the experiment names a file outside the catalog's folder.
    """

    name: str
    about: str
    source: str
    trials: int
    error: SpecError | None
    reads_elsewhere: bool = False


def load_profile(name_or_path: str, root: Path = EXPERIMENTS) -> Profile:
    """Load a profile by name from the library below `root`, or from a file if the argument is a path (`is_path`).

    Raises SpecError if the profile is missing or invalid.
    """
    if not is_path(name_or_path):
        return Library(root).profile(name_or_path)
    return parse_as(Profile, _file(name_or_path))


def load_topology(name_or_path: str, root: Path = EXPERIMENTS) -> Topology:
    """Load a topology by name from the library below `root`, or from a file if the argument is a path (`is_path`).

    Raises SpecError if the topology is missing or invalid.
    """
    if not is_path(name_or_path):
        return Library(root).topology(name_or_path)
    return parse_as(Topology, _file(name_or_path))


def guess_file_kind(name_or_path: str) -> str:
    """Return the library folder (CATALOG, PROFILES or TOPOLOGIES) of a name or of a file's content.

    Return CATALOG for an unknown name. Raises SpecError if a file cannot be read.
    """
    if is_path(name_or_path):
        return guess_kind(_file(name_or_path).root)
    library = Library(EXPERIMENTS)
    return next((shelf for shelf in KINDS if library.has(shelf, name_or_path)), CATALOG)


def load_experiment(
    name_or_path: str | Path,
    root: Path = EXPERIMENTS,
    length: str | None = None,
    complain: ExpectationCheck | None = None,
    changes: Block | None = None,
) -> Experiment:
    """Load an experiment by name from the catalog below `root`, or from a file if the argument is a path (`is_path`).

    `length` selects one of the file's `lengths`, which is merged over the whole file. `changes` are overrides, which
    take precedence over the file's `set`. `complain` adds checks of the expectations. Every combination of levels is
    merged, checked and resolved, so the result can be run. Raises SpecError for the first fault.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or is_path(text):
        document, library = _file(name_or_path), Library(root, Path(name_or_path).parent)
        shelf = guess_kind(document.root)
        if "all" in document.root:
            raise document.error((), "an inventory", "an experiment", hint="`roundabout doctor FILE` checks it")
        if shelf != CATALOG:
            raise document.error((), KINDS[shelf], "an experiment", hint="experiments call it by its name")
    else:
        library = Library(root)
        document = library.document(CATALOG, text)
    document = with_overrides(document, changes) if changes else document
    return _assemble(_apply_length(document, length), library, complain)


def build_experiment(
    fields: Mapping[str, Any], folder: Path = Path(), complain: ExpectationCheck | None = None
) -> Experiment:
    """Build an experiment from the fields of an experiment file, with the same checks.

    `folder` is searched for profiles, topologies and programs. Messages call the file `experiment`. Raises SpecError
    for the first fault.
    """
    document = parse(as_yaml(_to_plain(fields), "experiment"), "experiment", folder)
    return _assemble(_apply_length(document, None), Library(beside=folder), complain)


def is_path(text: str) -> bool:
    """Return True if `text` is a path: it contains `/` or ends in .yaml or .yml. Otherwise it is a name."""
    return "/" in text or text in (".", "..") or text.lower().endswith((".yaml", ".yml"))


def _file(name_or_path: str | Path) -> Document:
    path = Path(name_or_path)
    return read_document(path, shown_path(path))


def load_catalog(root: Path = EXPERIMENTS) -> dict[str, Experiment | SpecError]:
    """Return every experiment in the catalog below `root` by its name, or the first fault of an invalid one."""
    with cached_files():
        return {name: _loaded_or_fault(name, root) for name in Library(root).names(CATALOG)}


def _loaded_or_fault(name: str, root: Path) -> Experiment | SpecError:
    try:
        return load_experiment(name, root)
    except SpecError as error:
        return error


def read_catalog(root: Path = EXPERIMENTS) -> list[Summary]:
    """Return a summary of every experiment in the catalog below `root`, including invalid ones."""
    return [_summary(name, loaded, root) for name, loaded in load_catalog(root).items()]


def _summary(name: str, loaded: Experiment | SpecError, root: Path) -> Summary:
    if isinstance(loaded, SpecError):
        return Summary(name, "", "", 0, loaded)
    elsewhere = any(not Path(file).is_relative_to(root.resolve()) for file in _named_files(loaded.document))
    return Summary(name, loaded.about, loaded.source or "", loaded.trial_count, None, elsewhere)


def _named_files(value: Any) -> Iterator[str]:
    """Yield every file that an experiment's document names."""
    if isinstance(value, Mapping):
        if isinstance(value.get("file"), str):
            yield value["file"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _named_files(each)


def _apply_length(document: Document, length: str | None) -> Document:
    """Return the document with the overlay of that length merged over it, and without the others."""
    lengths: Any = document.root.get("lengths")
    root = Block(document.root)
    root.pop("lengths", None)
    if lengths is not None and not isinstance(lengths, Block):
        raise document.error(("lengths",), quote_value(lengths), f"overlays by name ({list_choices(LENGTHS)})")
    for name, overlay in (lengths or {}).items():
        if name not in LENGTHS or not isinstance(overlay, Block):
            expected = f"one of {list_choices(LENGTHS)}, each a mapping of fields to what changes in them"
            raise document.error(("lengths", name), f"'{name}': {quote_value(overlay)}", expected)
        for field in overlay:
            if field not in LENGTH_CHANGES:
                hint = suggest(field, LENGTH_CHANGES)
                expected = f"one of {', '.join(LENGTH_CHANGES)}"
                raise document.error(("lengths", name, field), f"the field '{field}'", expected, hint=hint)
    if length is None:
        return Document(document.file, root, document.folder)
    chosen: Block | None = lengths.get(length) if lengths else None
    if chosen is None:
        expected = (
            f"one of {list_choices(lengths)}" if lengths else "neither --quick nor --full: the file has no lengths"
        )
        hint = None if lengths else f"leave --{length} out; --repetitions 1 makes a run short"
        raise document.error(("lengths",), f"no length '{length}'", expected, hint=hint)
    return Document(document.file, merge(root, chosen), document.folder)


@cached_files()
def _assemble(source: Document, library: Library, complain: ExpectationCheck | None) -> Experiment:
    document, over = apply_file_overrides(source)
    header = _header(document)
    library.add(header.profiles, header.topologies)
    factors = read_factors(document, OVERLAYABLE)
    _check_exclude(document, header, factors)
    _check_study(document, header, factors)
    combinations = list(_combinations(document, header, factors))
    if over:
        combinations = _changed(combinations, over, header, factors, library)
    _check_all_levels_run(document, factors, combinations)
    cells = [_cell(merged, library) for merged in combinations]
    check_transports(document, cells)
    for merged, cell in zip(combinations, cells, strict=True):
        check_dependencies(merged, cell, cells)
        check_inputs(merged, cell, cells)
    variants = tuple(str(level) for level in factors.get("variant", (ONLY_VARIANT,)))
    scope = Scope({name: tuple(levels) for name, levels in factors.items()}, variants, cells, complain)
    said = {name: _to_plain(document.root[name]) for name in HEADER if document.root.get(name) is not None}
    experiment = Experiment(
        **said,
        factors=scope.factors,
        cells=tuple(cells),
        expect=_expectations(combinations, factors, scope),
        document=_self_contained(source, library),
    )
    return filter_cells(document, experiment)


def _header(document: Document) -> ExperimentHeader:
    known = (*HEADER, "factors", *OVERLAYABLE)
    unknown = []
    for field in document.root:
        if field not in known:
            expected, hint = expected_names(field, known)
            unknown.append(document.error((field,), f"the unknown field '{field}'", expected, hint=hint))
    if unknown:
        unknown[0].further = tuple(unknown[1:])
        raise unknown[0]
    return _validate(ExperimentHeader, document, _part(document.root, HEADER))


def _part(block: Block, fields: tuple[str, ...]) -> Block:
    """Return the given fields of a block, without null ones."""
    part = Block()
    part.mark = block.mark
    for field in fields:
        if block.get(field) is not None:
            part.put(field, block[field], block.marks.get(field))
    return part


def _validate(model: type[Model], document: Document, root: Block) -> Model:
    try:
        return model.model_validate(root, context={FOLDER: document.folder})
    except ValidationError as error:
        raise explain_error(error, document, model, root) from None


def _check_exclude(document: Document, header: ExperimentHeader, factors: Factors) -> None:
    for index, excluded in enumerate(header.exclude):
        for factor, levels in excluded.items():
            here = ("exclude", index, factor)
            if factor not in factors:
                hint = suggest(factor, factors)
                raise document.error(here, f"'{factor}'", f"a factor ({list_choices(factors)})", hint=hint)
            for level in levels:
                if level not in factors[factor]:
                    expected = f"a level of {factor} ({list_choices(factors[factor])})"
                    raise document.error(here, quote_value(level), expected, hint=suggest(level, factors[factor]))


def _check_study(document: Document, header: ExperimentHeader, factors: Factors) -> None:
    """Check that the compared factor varies here."""
    requested = header.study
    variants: list[Level] = [str(level) for level in factors.get("variant", {ONLY_VARIANT: None})]
    over = requested.x_factor(factors)
    levels = variants if over == "variant" else [*variants, *factors.get(over, {})]
    of_levels = "a variant" if over == "variant" else f"a variant or a level of {over}"
    known: dict[str, tuple[Level | None, list[Level], str]] = {
        "over": (requested.over, [*factors], "a factor"),
        "baseline": (requested.baseline, levels, of_levels),
    }
    for field, (found, names, what) in known.items():
        if found is not None and found not in names:
            hint = suggest(found, names)
            raise document.error(("study", field), quote_value(found), f"{what} ({list_choices(names)})", hint=hint)


def _combinations(document: Document, header: ExperimentHeader, factors: Factors) -> Iterator[Merged]:
    base = _part(document.root, OVERLAYABLE)
    for chosen in itertools.product(*(levels.items() for levels in factors.values())):
        levels = dict(zip(factors, (level for level, _ in chosen), strict=True))
        if any(all(levels[factor] in some for factor, some in excluded.items()) for excluded in header.exclude):
            continue
        root = merge({}, base)
        for _, overlay in chosen:
            root = merge(root, overlay)
        yield Merged(document, levels, root)


def _changed(
    combinations: list[Merged],
    over: tuple[Override, ...],
    header: ExperimentHeader,
    factors: Factors,
    library: Library,
) -> list[Merged]:
    """Return the combinations that run, with the overrides applied."""
    cells = [_cell(merged, library) for merged in combinations] if header.only else []
    kept = Selection.of(header.only, factors, cells)
    runs = [kept.has_cell(merged.levels) for merged in combinations]
    if not any(runs):
        return combinations  # filter_cells raises the error
    roots = [merged.root for merged, is_run in zip(combinations, runs, strict=True) if is_run]
    check_used(combinations[0].document, over, roots)
    return [
        merged._replace(root=apply_to_combination(merged.root, over)) if is_run else merged
        for merged, is_run in zip(combinations, runs, strict=True)
    ]


def _check_all_levels_run(document: Document, factors: Factors, combinations: list[Merged]) -> None:
    for factor, levels in factors.items():
        for level in levels:
            if not any(merged.levels[factor] == level for merged in combinations):
                raise document.error(("exclude",), f"{factor} {level} left out of every combination", "one at least")


def _cell(merged: Merged, library: Library) -> Cell:
    root = _part(merged.root, tuple(Treatment.model_fields))
    root = _merge_shared(root, "jobs", ("profile", "transport"))
    root = _merge_shared(root, "cross_traffic", ("load_gbps",))
    if isinstance(root.get("cluster"), Block):
        root["cluster"] = merge(_part(root, ("transport",)), root["cluster"])
    merged = merged._replace(root=root)
    treatment = _validate(ClusterTreatment if root.get("cluster") else Treatment, merged.document, root)
    topology = _topology(merged, library, treatment)
    check_workers(merged, treatment, topology)
    check_shared_hosts(merged, treatment)
    check_cross_traffic(merged, treatment, topology)
    check_clocks(merged, treatment)
    check_capture(merged, treatment, topology)
    spec = TrialSpec(
        topology=topology,
        jobs={name: _resolve(merged, library, name, treatment, topology) for name in treatment.jobs},
        cluster=treatment.cluster,
        submitted=_submitted(merged, treatment),
        cross_traffic=traffic_by_sender(merged, treatment),
        iterations=treatment.iterations,
        events=treatment.events,
        reroute_after_ms=treatment.reroute_after_ms,
        tcp=treatment.tcp,
        queue=port_queue(merged, treatment),
        priority_queues=treatment.priority_queues,
        dwrr=treatment.dwrr,
        red_weight=treatment.red_weight,
        skip_within=treatment.skip_within,
        one_job_at_a_time=treatment.one_job_at_a_time,
        cassini=treatment.cassini,
        capture=treatment.capture,
    )
    check_events(merged, spec)
    check_demand(merged, spec)
    check_scheduling(merged, spec)
    check_signals(merged, spec)
    return Cell(levels=merged.levels, spec=spec, depends_on=treatment.depends_on)


def _topology(merged: Merged, library: Library, treatment: Treatment) -> Topology:
    """Return the cell's topology. Cells with the same settings share it, and so the routes that it caches."""
    settings = treatment.model_dump_json(include={"topology", "delays", "routing", *RATES}, exclude_unset=True)
    if settings not in library.topologies_by_settings:
        library.topologies_by_settings[settings] = _set_topology(merged, library, treatment)
    return library.topologies_by_settings[settings]


def _set_topology(merged: Merged, library: Library, treatment: Treatment) -> Topology:
    topology = _look_up(merged, library, TOPOLOGIES, treatment.topology, ("topology",))
    topology = _at_rates(merged, treatment, topology)
    if treatment.delays:
        topology = topology.with_delays(treatment.delays)
    return _routed(merged, treatment, topology)


def _submitted(merged: Merged, treatment: Treatment) -> tuple[SubmittedJob, ...]:
    """Return the jobs in the file of a cluster's trace, if it has one. Raises SpecError."""
    trace = treatment.cluster and treatment.cluster.trace
    return read_trace(trace, merged.document.folder) if isinstance(trace, RecordedTrace) else ()


def _at_rates(merged: Merged, treatment: Treatment, topology: Topology) -> Topology:
    rates = {name: getattr(treatment, name) for name in RATES if getattr(treatment, name) is not None}
    if not rates:
        return topology
    try:
        return topology.with_rates(treatment.line_rate_gbps, treatment.payload_rate_gbps)
    except ValidationError as error:
        context = error.errors(include_url=False)[0].get("ctx", {})
        found = str(context.get("found", f"{max(rates.values()):g}")) + merged.setting
        expected = str(context.get("expected") or context.get("error"))
        raise merged.error((next(reversed(rates)),), found, expected) from None


def _routed(merged: Merged, treatment: Treatment, topology: Topology) -> Topology:
    if treatment.routing is None:
        return topology
    try:
        return topology.with_routing(treatment.routing)
    except ValidationError as error:
        context = error.errors(include_url=False)[0]["ctx"]
        found = f"{context['found']} of topology {topology.name}{merged.setting}"
        raise merged.error(("routing",), found, context["expected"]) from None


def _merge_shared(root: Block, users: str, shared: tuple[str, ...]) -> Block:
    """Merge the experiment's `shared` fields under those of each of its jobs, or cross traffics, in `root`."""
    if not isinstance(root.get(users), Block):
        return root
    under = _part(root, shared)
    complete = Block(root[users])
    for name, user in root[users].items():
        if isinstance(user, Block):
            complete[name] = merge(under, user)
            complete[name].mark = user.mark
    result = Block(root)
    result[users] = complete
    return result


def _resolve(merged: Merged, library: Library, name: str, treatment: Treatment, topology: Topology) -> ResolvedJob:
    job, by = treatment.jobs[name], treatment.resized
    profile: Profile = _look_up(merged, library, PROFILES, job.profile, ("jobs", name, "profile"))
    check_pattern(merged, name, job, profile)
    profile = profile.scale_by(by) if by else profile
    check_rules(merged, name, job, profile, topology)
    declared = {field: getattr(job, field) for field in JobFields.model_fields}
    return ResolvedJob(**declared | {"profile": profile})


def _look_up(merged: Merged, library: Library, shelf: str, name: str, here: tuple[str, ...]) -> Any:
    if not library.has(shelf, name):
        known = library.names(shelf)
        beside = f", or {name}.yaml beside the experiment"
        expected = f"one of those in {shown_path(library.root / shelf)} ({list_choices(known)}){beside}"
        raise merged.error(here, f"'{name}'", expected, suggest(name, known))
    return library.profile(name) if shelf == PROFILES else library.topology(name)


def _expectations(combinations: list[Merged], factors: Factors, scope: Scope) -> tuple[AnyExpectation, ...]:
    """Return all expectations. For those under a factor's level, `at` names the level."""
    scoping = [factor for factor, levels in factors.items() if any("expect" in overlay for overlay in levels.values())]
    expectations: list[AnyExpectation] = []
    seen: set[tuple[Any, ...]] = set()
    for merged in combinations:
        at = {factor: merged.levels[factor] for factor in scoping}
        # Most combinations share one list of expectations, since no overlay replaces it.
        same = (id(merged.root.get("expect")), *at.values())
        if same in seen:
            continue
        seen.add(same)
        part = _validate(Expectations, merged.document, _part(merged.root, ("expect",)))
        for index, written in enumerate(part.expect):
            scoped = written.model_copy(update={"at": {**(written.at or {}), **at} or None})
            if scoped not in expectations:
                check_expectation(merged, index, scoped, scope)
                expectations.append(scoped)
    return tuple(expectations)


def _self_contained(document: Document, library: Library) -> dict[str, Any]:
    """Return the file with everything that it took from its folder, so that it can be read elsewhere."""
    root: dict[str, Any] = _to_plain(document.root, document.folder)
    for shelf, found in library.found_beside.items():
        if found:
            root[shelf] = {**_to_plain(found), **root.get(shelf, {})}
    return root


def _to_plain(value: Any, folder: Path | None = None) -> Any:
    """Return mappings and lists without places; a `file` from `folder` with its whole path."""
    if isinstance(value, Mapping):
        plain = {key: _to_plain(item, folder) for key, item in value.items()}
        if folder and isinstance(plain.get("file"), str):
            plain["file"] = os.path.realpath(folder / plain["file"])
        return plain
    return [_to_plain(item, folder) for item in value] if isinstance(value, list | tuple) else value
