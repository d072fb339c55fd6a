# SPDX-License-Identifier: Apache-2.0
"""Library of specifications: a folder in which experiments, profiles and topologies are found by name."""

from collections.abc import Mapping
from pathlib import Path

from roundabout.core.paths import ROOT
from roundabout.spec.assembly.file_cache import read_once
from roundabout.spec.assembly.validation_errors import parse_as
from roundabout.spec.errors import SpecError, list_choices, quote_value, suggest
from roundabout.spec.expectation import Expectations
from roundabout.spec.experiment import ExperimentHeader
from roundabout.spec.profile import Profile
from roundabout.spec.reader.yaml_source import Block, Document, read_document, shown_path
from roundabout.spec.topology import Topology
from roundabout.spec.treatment import Treatment

EXPERIMENTS = ROOT / "experiments"
CATALOG, PROFILES, TOPOLOGIES = "catalog", "profiles", "topologies"


HEADER = tuple(field.alias or name for name, field in ExperimentHeader.model_fields.items())
# Fields that overlays may set: the fields of a trial, and the trial's expectations.
OVERLAYABLE = (*Treatment.model_fields, *Expectations.model_fields)
FIELDS = {
    CATALOG: {*HEADER, *OVERLAYABLE, "factors", "lengths"},
    PROFILES: set(Profile.model_fields),
    TOPOLOGIES: set(Topology.model_fields),
}
KINDS = {CATALOG: "an experiment", PROFILES: "a profile", TOPOLOGIES: "a topology"}


def guess_kind(root: Mapping[str, object]) -> str:
    """Return the library folder of a file's kind (experiment, profile, topology), guessed from the field names."""
    return max(FIELDS, key=lambda shelf: len(FIELDS[shelf] & root.keys()))


class Library:
    """The specifications below `root` and beside an experiment's file. Each file is read once.

    A `shelf` is a folder of the library: CATALOG, PROFILES or TOPOLOGIES.
    """

    def __init__(self, root: Path = EXPERIMENTS, beside: Path | None = None) -> None:
        """Open the library.

        `beside` is the experiment file's folder, whose profiles and topologies go before those of `root`.
        """
        self.root = root
        self.topologies_by_settings: dict[str, Topology] = {}
        self.found_beside: dict[str, dict[str, Block]] = {PROFILES: {}, TOPOLOGIES: {}}
        self._beside = beside
        self._paths: dict[str, dict[str, Path]] = {}
        self._profiles: dict[str, Profile] = {}
        self._topologies: dict[str, Topology] = {}

    def names(self, shelf: str) -> list[str]:
        """Return the sorted names of a shelf's specifications: in the library, beside the experiment, or added."""
        beside = (self._beside / shelf).glob("*.yaml") if self._beside else ()
        laid: Mapping[str, Mapping[str, object]] = {PROFILES: self._profiles, TOPOLOGIES: self._topologies}
        return sorted({*self._find_paths(shelf), *(path.stem for path in beside), *laid.get(shelf, {})})

    def has(self, shelf: str, name: str) -> bool:
        """Return True if the shelf has a specification `name`."""
        return name in self.names(shelf) or self._own(shelf, name) is not None

    def add(self, profiles: Mapping[str, Profile], topologies: Mapping[str, Topology]) -> None:
        """Add profiles and topologies. They take precedence over files with the same name."""
        self._profiles |= profiles
        self._topologies |= topologies

    def document(self, shelf: str, name: str) -> Document:
        """Return the unparsed file of the specification `name`.

        Raises SpecError if the file does not exist, or if its field `name` has another value.
        """
        document = self._own(shelf, name) or self._shipped(shelf, name)
        if document.root.get("name", name) != name:
            raise document.error(("name",), quote_value(document.root["name"]), f"'{name}', the file's own name")
        return document

    def profile(self, name: str) -> Profile:
        """Return the profile `name`. Raises SpecError if it is missing or invalid."""
        if name not in self._profiles:
            self._profiles[name] = parse_as(Profile, self.document(PROFILES, name))
        return self._profiles[name]

    def topology(self, name: str) -> Topology:
        """Return the topology `name`. Raises SpecError if it is missing or invalid."""
        if name not in self._topologies:
            self._topologies[name] = parse_as(Topology, self.document(TOPOLOGIES, name))
        return self._topologies[name]

    def _find_paths(self, shelf: str) -> dict[str, Path]:
        """Return the files of a folder of the library by name, those of its subfolders included."""
        if shelf not in self._paths:
            self._paths[shelf] = {path.stem: path for path in (self.root / shelf).rglob("*.yaml")}
        return self._paths[shelf]

    def _own(self, shelf: str, name: str) -> Document | None:
        """Return the document beside the experiment's file, in a folder for its kind or directly there."""
        if self._beside is None or shelf == CATALOG:
            return None
        for path in (self._beside / shelf / f"{name}.yaml", self._beside / f"{name}.yaml"):
            if path.is_file():
                document = read_document(path, shown_path(path))
                if path.parent.name == shelf or guess_kind(document.root) == shelf:
                    self.found_beside[shelf][name] = document.root
                    return document
        return None

    def _shipped(self, shelf: str, name: str) -> Document:
        path = self._find_paths(shelf).get(name)
        if path is None:
            known = self.names(shelf)
            expected = f"one of {list_choices(known)}" if known else "a file there, but there is none"
            folder = shown_path(self.root / shelf)
            raise SpecError(folder, f"no {name}.yaml", expected, hint=_file_hint(name) or suggest(name, known))
        return read_once(path, lambda: read_document(path, shown_path(path)))


def _file_hint(name: str) -> str | None:
    """Return a hint for a name that is a file or a folder of the working folder."""
    for path in (Path(name), Path(f"{name}.yaml"), Path(f"{name}.yml")):
        if path.is_file():
            return f"the file {path} is in this folder: call it ./{path}"
    return (
        f"{name} is a folder here: name a file in it, as ./{name}/FILE.yaml" if name and Path(name).is_dir() else None
    )
