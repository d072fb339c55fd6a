# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile measure` on a stored run: what it shows, what it writes, and what it refuses."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from roundabout.cli.main import main
from roundabout.cli.profile import measure as command, stored_profile
from roundabout.spec import load_experiment, load_profile
from roundabout.store import schemas
from tests.analysis.synthetic_runs import as_older

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A user's folder, beside one that stands for experiments/."""
    (tmp_path / "experiments" / "profiles").mkdir(parents=True)
    (tmp_path / "user" / "profiles").mkdir(parents=True)
    monkeypatch.setattr(stored_profile, "EXPERIMENTS", tmp_path / "experiments")
    monkeypatch.chdir(tmp_path / "user")
    return tmp_path / "user"


def test_a_found_profile_is_shown_and_stored(make_run, library, capsys):
    run = make_run(repetitions=1)
    assert main(["profile", "measure", "j1", "--from", str(run.path), "--save", "seen"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[:-2])) <= 80
    assert "off by, at worst: period 0." in out
    stored = load_profile("seen", library)
    assert [phase.name for phase in stored.phases] == ["compute", "send"]
    assert stored.model == "VGG19"
    assert f"measured, run {run.id}: job j1 alone" in stored.source
    assert "emulated" not in stored.source and "lab at 1:50" in stored.source
    assert all(phase.source.startswith("measured: ") for phase in stored.phases)
    assert (run.path / "profiles" / "seen.yaml").read_text() == (library / "profiles" / "seen.yaml").read_text()
    result = json.loads((run.path / "profiles" / "seen.json").read_text())
    assert result["played"] == "vgg19-fig1"
    assert result["timed_ms"] == pytest.approx(result["found"]["period_ms"]["value"], rel=0.005)


def test_programs_get_json_and_nothing_else(make_run, capsys):
    run = make_run(repetitions=1)
    assert main(["profile", "measure", "j2", "--from", str(run.path), "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert (result["job"], result["run"]) == ("j2", run.id)
    assert result["difference"]["period_share"] < 0.02
    assert "off by" in captured.err
    assert load_profile("vgg19-fig1-measured", run.path).comm_ms == pytest.approx(143, rel=0.02)


@pytest.mark.parametrize("folder", ["profiles", "../experiments/profiles/own"])
def test_no_profile_is_overwritten(make_run, library, capsys, folder):
    run = make_run(repetitions=1)
    (library / folder).mkdir(exist_ok=True)
    kept = library / folder / "seen.yaml"
    kept.write_text("mine\n")
    assert main(["profile", "measure", "j1", "--from", str(run.path), "--save", "seen"]) == 2
    assert "seen.yaml exists, expected a new name" in capsys.readouterr().err
    assert kept.read_text() == "mine\n"


def test_a_profile_needs_a_name_that_can_be_one(library, capsys):
    assert main(["profile", "measure", "vgg19-fig1", "--save", "../elsewhere"]) == 2
    assert "'../elsewhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("job", "status", "said"),
    [
        ("no-such-profile", 2, "no-such-profile.yaml"),
        ("no-such-experiment:j1", 2, "no-such-experiment.yaml"),
        ("unfair-vgg19:j9", 2, "unfair-vgg19 has no job 'j9', expected one of j1, j2"),
    ],
)
def test_profile_names_a_missing_job_or_experiment(job, status, said, capsys):
    assert main(["profile", "measure", job]) == status
    assert said in capsys.readouterr().err


def test_only_a_valid_trial_alone_will_do(make_run, capsys):
    run = make_run(repetitions=1, spoilt={("alone", 1)})
    assert main(["profile", "measure", "j1", "--from", str(run.path)]) == 1
    complaint = capsys.readouterr().err
    assert "no valid trial of j1 alone" in complaint
    assert "CPU busy" in complaint


def test_a_counter_that_fell_is_no_measurement(make_run, capsys):
    run = as_older(make_run(repetitions=1))
    for path in run.path.glob("trials/*/counters.parquet"):
        table = pq.read_table(path)
        sent = np.where(np.arange(table.num_rows) % 97 == 96, 0, table["tx_bytes"].to_numpy())
        index = table.schema.get_field_index("tx_bytes")
        pq.write_table(table.set_column(index, schemas.schema("counters").field("tx_bytes"), [sent]), path)
    assert main(["profile", "measure", "j1", "--from", str(run.path)]) == 1
    assert "tx_bytes of s0 fell during trial" in capsys.readouterr().err


def test_a_job_of_an_experiment_keeps_its_settings(tmp_path):
    document = command.lone_job_document("unfair-vgg19:j1")
    job = document["jobs"]["j1"]
    assert (job["profile"], job["workers"], job["transport"]) == (
        "vgg19-fig1",
        ["s0", "s2"],
        {"name": "dcqcn", "set": "hotnets22", "T_us": 125.0},
    )
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(document))
    assert load_experiment(tmp_path / "own.yaml").cells[0].spec.jobs["j1"].transport.stands_for == "RDMA"
    assert document["name"] == "profile-unfair-vgg19-j1"
