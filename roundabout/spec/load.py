# SPDX-License-Identifier: Apache-2.0
"""Reads experiments, and puts every combination of their factors' levels together."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from roundabout.spec.base import Level
from roundabout.spec.check import (
    Merged,
    Scope,
    check_capture,
    check_clocks,
    check_cross_traffic,
    check_demand,
    check_expectation,
    check_needs,
    check_pattern,
    check_rules,
    check_shared_hosts,
    check_takes,
    check_transports,
    check_workers,
    port_queue,
)
from roundabout.spec.errors import SpecError, choices, did_you_mean, show
from roundabout.spec.expectation import AnyExpectation, Complain, Expectations
from roundabout.spec.experiment import (
    ONLY_VARIANT,
    Cell,
    Experiment,
    Header,
    Job,
    ResolvedJob,
    Treatment,
    TrialSpec,
    Worked,
)
from roundabout.spec.explain import explain
from roundabout.spec.factors import Factors, read_factors
from roundabout.spec.library import CATALOG, EXPERIMENTS, PROFILES, TOPOLOGIES, Library, parse_as, shown
from roundabout.spec.merge import merge
from roundabout.spec.profile import Profile, Resized
from roundabout.spec.source import Block, Document, read
from roundabout.spec.topology import Topology
from roundabout.spec.transports import FOLDER

Model = TypeVar("Model", bound=BaseModel)


HEADER = tuple(field.alias or name for name, field in Header.model_fields.items())
# What overlays may touch: a trial's own fields, and what is expected of it.
OVERLAYABLE = (*Treatment.model_fields, *Expectations.model_fields)
# How much of an experiment is done, and what the file may change for it.
LENGTHS = ("quick", "full")
LENGTH_CHANGES = ("repetitions", "exclude", "factors", *OVERLAYABLE)


class Summary(NamedTuple):
    """One line of the catalogue; `error` says why the file cannot be used."""

    name: str
    about: str
    source: str
    trials: int
    error: SpecError | None


def load_profile(name_or_path: str, root: Path = EXPERIMENTS) -> Profile:
    """The profile of that name below `root`, or the one in a file (a path, or anything that ends in .yaml).

    Raises SpecError.
    """
    if not _is_path(name_or_path):
        return Library(root).profile(name_or_path)
    path = Path(name_or_path)
    return parse_as(Profile, read(path, shown(path)))


def load_topology(name: str, root: Path = EXPERIMENTS) -> Topology:
    """The topology `name` below `root`. Raises SpecError."""
    return Library(root).topology(name)


def load_experiment(
    name_or_path: str | Path,
    root: Path = EXPERIMENTS,
    length: str | None = None,
    complain: Complain | None = None,
) -> Experiment:
    """An experiment of the catalogue below `root`, or the one in a file (a path, or anything that ends in .yaml).

    `length` is one of the file's `lengths`, an overlay on all of it. Every combination of levels is merged, checked and
    resolved here: what this returns can be run. What is expected of it is checked as far as specifications know, and
    where `complain` is given, by that. Raises SpecError.
    """
    library = Library(root)
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or _is_path(text):
        path = Path(name_or_path)
        document = read(path, shown(path))
    else:
        document = library.document(CATALOG, text)
    return _assemble(_of_length(document, length), library, complain)


def _is_path(text: str) -> bool:
    return "/" in text or text.endswith((".yaml", ".yml"))


def catalogue(root: Path = EXPERIMENTS) -> list[Summary]:
    """Every experiment below `root`, those that cannot be used included."""
    return [_summary(name, root) for name in Library(root).names(CATALOG)]


def _summary(name: str, root: Path) -> Summary:
    try:
        experiment = load_experiment(name, root)
    except SpecError as error:
        return Summary(name, "", "", 0, error)
    return Summary(name, experiment.about, experiment.source or "", experiment.trial_count, None)


def _of_length(document: Document, length: str | None) -> Document:
    """The document with the overlay of that length merged over it, and without the others."""
    lengths: Any = document.root.get("lengths")
    root = Block(document.root)
    root.pop("lengths", None)
    if lengths is not None and not isinstance(lengths, Block):
        raise document.error(("lengths",), show(lengths), f"overlays by name ({choices(LENGTHS)})")
    for name, overlay in (lengths or {}).items():
        if name not in LENGTHS or not isinstance(overlay, Block):
            expected = f"one of {choices(LENGTHS)}, each a mapping of fields to what changes in them"
            raise document.error(("lengths", name), f"'{name}': {show(overlay)}", expected)
        for field in overlay:
            if field not in LENGTH_CHANGES:
                hint = did_you_mean(field, LENGTH_CHANGES)
                expected = f"one of {', '.join(LENGTH_CHANGES)}"
                raise document.error(("lengths", name, field), f"the field '{field}'", expected, hint=hint)
    if length is None:
        return Document(document.file, root, document.folder)
    chosen: Block | None = lengths.get(length) if lengths else None
    if chosen is None:
        raise document.error(("lengths",), f"no length '{length}'", f"one of {choices(lengths or ())}")
    return Document(document.file, merge(root, chosen), document.folder)


def _assemble(document: Document, library: Library, complain: Complain | None) -> Experiment:
    header = _header(document)
    library.lay(header.profiles)
    factors = read_factors(document, OVERLAYABLE)
    _check_exclude(document, header, factors)
    _check_study(document, header, factors)
    combinations = list(_combinations(document, header, factors))
    _check_all_levels_run(document, factors, combinations)
    cells = [_cell(merged, library) for merged in combinations]
    check_transports(document, cells)
    for merged, cell in zip(combinations, cells, strict=True):
        check_needs(merged, cell, cells)
        check_takes(merged, cell, cells)
    variants = tuple(str(level) for level in factors.get("variant", (ONLY_VARIANT,)))
    scope = Scope({name: tuple(levels) for name, levels in factors.items()}, variants, cells, complain)
    return Experiment(
        **{name: document.root[name] for name in HEADER if name in document.root and document.root[name] is not None},
        factors=scope.factors,
        cells=tuple(cells),
        expect=_expectations(combinations, factors, scope),
        document=_plain(document.root),
    )


def _header(document: Document) -> Header:
    known = (*HEADER, "factors", *OVERLAYABLE)
    for field in document.root:
        if field not in known:
            expected = f"one of {', '.join(known)}"
            raise document.error((field,), f"the unknown field '{field}'", expected, hint=did_you_mean(field, known))
    return _validate(Header, document, _part(document.root, HEADER))


def _part(block: Block, fields: tuple[str, ...]) -> Block:
    """The given fields of a block, without those that are null."""
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
        raise explain(error, document, model, root) from None


def _check_exclude(document: Document, header: Header, factors: Factors) -> None:
    for index, excluded in enumerate(header.exclude):
        for factor, levels in excluded.items():
            here = ("exclude", index, factor)
            if factor not in factors:
                hint = did_you_mean(factor, factors)
                raise document.error(here, f"'{factor}'", f"a factor ({choices(factors)})", hint=hint)
            for level in levels:
                if level not in factors[factor]:
                    expected = f"a level of {factor} ({choices(factors[factor])})"
                    raise document.error(here, show(level), expected, hint=did_you_mean(level, factors[factor]))


def _check_study(document: Document, header: Header, factors: Factors) -> None:
    """What it compares must vary here."""
    asked = header.study
    variants: list[Level] = [str(level) for level in factors.get("variant", {ONLY_VARIANT: None})]
    over = asked.along(factors)
    levels = variants if over == "variant" else [*variants, *factors.get(over, {})]
    of_levels = "a variant" if over == "variant" else f"a variant or a level of {over}"
    known: dict[str, tuple[Level | None, list[Level], str]] = {
        "over": (asked.over, [*factors], "a factor"),
        "baseline": (asked.baseline, levels, of_levels),
    }
    for field, (found, names, what) in known.items():
        if found is not None and found not in names:
            hint = did_you_mean(found, names)
            raise document.error(("study", field), show(found), f"{what} ({choices(names)})", hint=hint)


def _combinations(document: Document, header: Header, factors: Factors) -> Iterator[Merged]:
    base = _part(document.root, OVERLAYABLE)
    for chosen in itertools.product(*(levels.items() for levels in factors.values())):
        levels = dict(zip(factors, (level for level, _ in chosen), strict=True))
        if any(all(levels[factor] in some for factor, some in excluded.items()) for excluded in header.exclude):
            continue
        root = merge({}, base)
        for _, overlay in chosen:
            root = merge(root, overlay)
        yield Merged(document, levels, root)


def _check_all_levels_run(document: Document, factors: Factors, combinations: list[Merged]) -> None:
    for factor, levels in factors.items():
        for level in levels:
            if not any(merged.levels[factor] == level for merged in combinations):
                raise document.error(("exclude",), f"{factor} {level} left out of every combination", "one at least")


def _cell(merged: Merged, library: Library) -> Cell:
    root = _part(merged.root, tuple(Treatment.model_fields))
    root = _complete(root, "jobs", ("profile", "transport"))
    root = _complete(root, "cross_traffic", ("load_gbps",))
    merged = merged._replace(root=root)
    treatment = _validate(Treatment, merged.document, root)
    topology = _look_up(merged, library, TOPOLOGIES, treatment.topology, ("topology",))
    check_workers(merged, treatment, topology)
    check_shared_hosts(merged, treatment)
    check_cross_traffic(merged, treatment, topology)
    check_clocks(merged, treatment)
    check_capture(merged, treatment, topology)
    spec = TrialSpec(
        topology=topology,
        jobs={name: _resolve(merged, library, name, job, treatment.resized) for name, job in treatment.jobs.items()},
        cross_traffic=treatment.cross_traffic,
        iterations=treatment.iterations,
        tcp=treatment.tcp,
        queue=port_queue(merged, treatment),
        priority_queues=treatment.priority_queues,
        one_job_at_a_time=treatment.one_job_at_a_time,
        cassini=treatment.cassini,
        capture=treatment.capture,
    )
    check_demand(merged, spec)
    return Cell(levels=merged.levels, spec=spec, needs=treatment.needs)


def _complete(root: Block, users: str, shared: tuple[str, ...]) -> Block:
    """`root` with the experiment's `shared` fields merged under those of each of its jobs, or cross traffics."""
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


def _resolve(merged: Merged, library: Library, name: str, job: Job, by: Resized | None) -> ResolvedJob:
    profile: Profile = _look_up(merged, library, PROFILES, job.profile, ("jobs", name, "profile"))
    check_pattern(merged, name, job, profile)
    profile = profile.resized(by) if by else profile
    check_rules(merged, name, job, profile)
    declared = {field: getattr(job, field) for field in Worked.model_fields}
    return ResolvedJob(**declared | {"profile": profile})


def _look_up(merged: Merged, library: Library, shelf: str, name: str, here: tuple[str, ...]) -> Any:
    known = library.names(shelf)
    if name not in known:
        expected = f"one of those in {shown(library.root / shelf)} ({choices(known)})"
        raise merged.error(here, f"'{name}'", expected, did_you_mean(name, known))
    return library.profile(name) if shelf == PROFILES else library.topology(name)


def _expectations(combinations: list[Merged], factors: Factors, scope: Scope) -> tuple[AnyExpectation, ...]:
    """All expectations; where a factor's levels say what is expected, `at` says for which level."""
    scoping = [factor for factor, levels in factors.items() if any("expect" in overlay for overlay in levels.values())]
    expectations: list[AnyExpectation] = []
    for merged in combinations:
        at = {factor: merged.levels[factor] for factor in scoping}
        part = _validate(Expectations, merged.document, _part(merged.root, ("expect",)))
        for index, written in enumerate(part.expect):
            scoped = written.model_copy(update={"at": {**(written.at or {}), **at} or None})
            if scoped not in expectations:
                check_expectation(merged, index, scoped, scope)
                expectations.append(scoped)
    return tuple(expectations)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
