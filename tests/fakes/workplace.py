# SPDX-License-Identifier: Apache-2.0
"""A folder that has all a run needs: the fake testbed, runs, journals, and a small experiment."""

from pathlib import Path

from roundabout.runner.machine import machine_lease, temporary, undo_journal
from roundabout.runner.run import Runner
from roundabout.spec.loader import load_experiment
from roundabout.store import Run
from tests.fakes.testbed import FakeProvider
from tests.observers import Notes


def experiment(iterations=3, variants="fair: {}", repetitions=1):
    """Return the text of a small experiment."""
    return f"""
schema: 1
name: tiny
about: Two jobs for a moment
topology: dumbbell-2x2
jobs:
  j1: {{profile: vgg19-fig1, workers: [s0, s2]}}
  j2: {{profile: vgg19-fig1, workers: [s1, s3]}}
iterations: {iterations}
transport: {{name: dcqcn}}
factors:
  variant: {{{variants}}}
repetitions: {repetitions}
"""


class Workplace:
    """A folder with a fake testbed, runs, and the machine's state."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.provider = FakeProvider(self.folder / "fake")
        self.notes = Notes()
        self.state = self.folder / "run" / "roundabout"
        self.journals = self.folder / "lib" / "roundabout" / "runs"
        self.runs = self.folder / "runs"

    def write(self, text):
        """Write the experiment's file, and return its path."""
        path = self.folder / "tiny.yaml"
        path.write_text(text)
        return path

    @property
    def runner(self):
        return Runner(self.provider, self.notes, self.undo, self.state, self.journals)

    def start(self, text=None):
        path = self.write(text or experiment())
        return self.runner.start(load_experiment(path), str(path), self.runs)

    def undo(self, entry):
        """Undo an entry of a dead run's journal."""
        (temporary.remove if entry["kind"] == temporary.KIND else self.provider.undo)(entry)

    def clean(self):
        """Do what `roundabout clean` does."""
        with machine_lease.hold("machine", "clean", self.state):
            undo_journal.raise_together(undo_journal.replay(self.journals, self.undo, self.notes.step))

    @property
    def has_leftovers(self):
        """Return True if anything of a run is left on the machine."""
        return self.provider.left or self.state.exists() or self.journals.parent.exists()

    def resume(self):
        run = Run.open("last", self.runs)
        return self.runner.resume(run, load_experiment(run.manifest["which"]))
