# SPDX-License-Identifier: Apache-2.0
"""`roundabout calibrate --from`, with made-up runs in the place of labs."""

import io
import json

import pytest
from rich.console import Console

from roundabout.cli.lab.derivation import DilatedRun, derive_calibration
from roundabout.cli.main import main
from roundabout.testbeds.lab.calibration.calibration import load_calibration
from roundabout.testbeds.lab.calibration.parameter_search import ParameterSearch
from roundabout.testbeds.lab.calibration.proposals import load_ranges

pytestmark = pytest.mark.unit


@pytest.fixture
def source(short_run):
    """A run in which time was stretched."""
    manifest = short_run.manifest
    short_run.write_manifest({**manifest, "testbed": {**manifest["testbed"], "dilation": 17.4}})
    return DilatedRun.from_run(short_run)


class Lab:
    """Gives runs that are the slower the further off the timers are; the third try is spoilt, as `spoilt` says."""

    def __init__(self, make_run, spoilt=(3,), stops_at=None):
        self.make_run, self.spoilt, self.stops_at, self.tried = make_run, spoilt, stops_at, []

    def __call__(self, calibration, experiment):
        assert [cell.variant for cell in experiment.cells] == ["fair", "unfair"]
        assert experiment.repetitions == 1
        self.tried.append(calibration)
        number = len(self.tried)
        if number == self.stops_at:
            raise KeyboardInterrupt
        off = {1: 1.4, 2: 1.05, 4: 1.2}.get(number, 1.3)
        return self.make_run(
            f"try-{number}", repetitions=1, slowdown=off, spoilt=[("fair", 1)] if number in self.spoilt else ()
        )


def derived(source, folder, lab, tries=4):
    screen = io.StringIO()
    search = ParameterSearch(load_ranges(), load_calibration(), tries, seed=1)
    console = Console(file=screen, width=400)
    found = derive_calibration(source, search, folder, console, lab)
    return found, screen.getvalue()


def maps(folder):
    return [json.loads(path.read_text()) for path in folder.glob("calibrate-unfair-vgg19/map-*.json")]


def test_the_best_is_given_with_where_it_is_from(source, make_run, tmp_path):
    lab = Lab(make_run)
    found, screen = derived(source, tmp_path, lab)
    assert found.transports == lab.tried[1].transports
    assert found.derived_from.run == source.run.id
    assert found.derived_from.hash == source.run.digest()
    assert found.derived_from.targets == pytest.approx({each.name: each.value for each in source.targets}, abs=1e-3)
    (record,) = maps(tmp_path)
    assert [each["candidate"] for each in record["tries"]] == ["kept", "sample 1", "sample 2", "variation 1"]
    assert record["tries"][1]["misfit"] == pytest.approx(found.derived_from.misfit, abs=1e-3)
    assert record["tries"][1]["constants"]["timer_scale"] == found.timer_scale
    assert record["tries"][2]["misfit"] is None
    assert "found no valid trial of fair" in record["tries"][2]["why"]
    assert set(record["targets"]) == set(record["tries"][0]["found"])
    assert "try 4 of 4: variation 1" in screen
    assert "found no valid trial of fair, expected one of each cell; best so far" in screen.replace("\n", " ")
    assert "to be met" in screen


def test_an_interruption_keeps_what_there_is(source, make_run, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        derived(source, tmp_path, Lab(make_run, stops_at=3))
    (record,) = maps(tmp_path)
    assert [each["candidate"] for each in record["tries"]] == ["kept", "sample 1"]


def test_a_search_without_valid_tries_has_no_best(source, make_run, tmp_path):
    found, screen = derived(source, tmp_path, Lab(make_run, spoilt=(1, 2)), tries=2)
    assert found is None
    assert "spoilt" in screen


def test_an_undilated_run_is_refused(run, capsys):
    assert main(["calibrate", "--from", str(run.path)]) == 1
    assert "found a dilation of 1, expected a run with one above 1" in capsys.readouterr().err
