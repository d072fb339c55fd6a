# SPDX-License-Identifier: Apache-2.0
"""The folder of specifications: what is in it, and profiles and topologies by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from roundabout.spec.base import Strict
from roundabout.spec.errors import SpecError, choices, did_you_mean, show
from roundabout.spec.explain import explain
from roundabout.spec.profile import Profile
from roundabout.spec.source import Document, read
from roundabout.spec.topology import Topology

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
CATALOG, PROFILES, TOPOLOGIES = "catalog", "profiles", "topologies"

Part = TypeVar("Part", bound=Strict)


class Library:
    """The specifications below one folder; what was read once is kept."""

    def __init__(self, root: Path = EXPERIMENTS) -> None:
        self.root = root
        self._names: dict[str, list[str]] = {}
        self._profiles: dict[str, Profile] = {}
        self._topologies: dict[str, Topology] = {}

    def names(self, shelf: str) -> list[str]:
        """The names of all specifications in a folder of the library."""
        if shelf not in self._names:
            self._names[shelf] = sorted(path.stem for path in (self.root / shelf).glob("*.yaml"))
        return self._names[shelf]

    def lay(self, profiles: Mapping[str, Profile]) -> None:
        """Put profiles beside those of the folder, before any of the same name."""
        self._names[PROFILES] = sorted({*self.names(PROFILES), *profiles})
        self._profiles |= profiles

    def document(self, shelf: str, name: str) -> Document:
        """The file of that name, unparsed. Raises SpecError when there is none, or when it calls itself differently."""
        known = self.names(shelf)
        if name not in known:
            expected = f"one of {choices(known)}" if known else "a file there, but there is none"
            folder = shown(self.root / shelf)
            raise SpecError(folder, f"no {name}.yaml", expected, hint=did_you_mean(name, known))
        path = self.root / shelf / f"{name}.yaml"
        document = read(path, shown(path))
        if document.root.get("name", name) != name:
            raise document.error(("name",), show(document.root["name"]), f"'{name}', the file's own name")
        return document

    def profile(self, name: str) -> Profile:
        """The profile of that name."""
        if name not in self._profiles:
            self._profiles[name] = parse_as(Profile, self.document(PROFILES, name))
        return self._profiles[name]

    def topology(self, name: str) -> Topology:
        """The topology of that name."""
        if name not in self._topologies:
            self._topologies[name] = parse_as(Topology, self.document(TOPOLOGIES, name))
        return self._topologies[name]


def parse_as(model: type[Part], document: Document) -> Part:
    """`document` as a `model`. Raises SpecError for the first thing wrong with it."""
    try:
        return model.model_validate(document.root)
    except ValidationError as error:
        raise explain(error, document, model, document.root) from None


def shown(path: Path) -> str:
    """`path` as messages show it: relative to the working directory where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (OSError, ValueError, RuntimeError):
        return str(path)
