# SPDX-License-Identifier: Apache-2.0
"""What `--set`, `--only` and `--repetitions` change, and what is recorded of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from roundabout.cli.overrides import parse_overrides
from roundabout.spec import Experiment, SpecError, load_experiment
from roundabout.spec.assembly.overrides import overrides_from_values

pytestmark = pytest.mark.unit

Rich = Callable[..., Path]


def changed(path: Path | str, *fields: str, only: Sequence[str] = (), repetitions: int | None = None) -> Experiment:
    return load_experiment(path, changes=parse_overrides(fields, only, repetitions))


def test_set_overrides_every_level() -> None:
    experiment = changed("unfair-vgg19", "jobs.j1.transport.T_us=90")
    found = [cell.spec.jobs["j1"].transport.parameters["T_us"] for cell in experiment.cells]
    assert found == [90] * 5
    assert {cell.spec.jobs["j2"].transport.parameters["T_us"] for cell in experiment.cells} == {125}


def test_a_list_factors_path_sets_its_levels(rich: Rich) -> None:
    assert changed(rich(), "jobs.j2.flows=[1, 2]", "exclude=[]").factors["jobs.j2.flows"] == (1, 2)
    assert changed(rich(), "jobs.j2.flows=1", "exclude=[]").factors["jobs.j2.flows"] == (1,)
    more = changed("unfair-vgg19", "factors.jobs.j1.jitter=[0, 0.01]")
    assert more.factors["jobs.j1.jitter"] == (0, 0.01)
    assert {cell.spec.jobs["j1"].jitter for cell in more.cells} == {0, 0.01}


def test_set_overrides_fields_of_the_whole_experiment() -> None:
    experiment = changed("unfair-vgg19", "seed=7", "study.baseline=alone", repetitions=2)
    assert (experiment.seed, experiment.study.baseline, experiment.repetitions) == (7, "alone", 2)


def test_setting_the_name_changes_nothing_else() -> None:
    experiment = changed("unfair-vgg19", "name=aggressive", "jobs.j1.transport.T_us=90")
    assert experiment.name == "aggressive"
    assert experiment.about == load_experiment("unfair-vgg19").about
    assert experiment.altered_fields == {"jobs.j1.transport.T_us": 90}


def test_null_removes(rich: Rich) -> None:
    experiment = changed("unfair-vgg19", "jobs.j2=null", "expect=[]")
    assert {tuple(cell.spec.jobs) for cell in experiment.cells} == {("j1",)}


def test_only_keeps_variants_and_what_they_need(rich: Rich) -> None:
    experiment = changed(rich(), only=["unfair"])
    assert {cell.variant for cell in experiment.cells} == {"alone", "unfair"}
    assert experiment.variants == ("alone", "unfair")
    assert experiment.expect == ()
    assert [each.of for each in changed(rich(), only=["unfair", "fair"]).expect] == ["fair", "unfair"]


def test_only_keeps_levels_of_other_factors(rich: Rich) -> None:
    experiment = changed(rich(), "jobs.j1.transport.T_us=90", only=["unfair", "small"])
    assert {(cell.variant, cell.levels["size"]) for cell in experiment.cells} == {
        ("alone", "small"),
        ("unfair", "small"),
    }
    levels = {"variant": ("alone", "unfair"), "jobs.j2.flows": (1, 4), "size": ("small",)}
    assert experiment.factors == levels
    assert [each.what for each in changed(rich(), only=["small"]).expect] == ["share"]
    assert [each.what for each in changed(rich(), only=["large"]).expect] == ["speedup of median iteration time"]
    assert {cell.levels["jobs.j2.flows"] for cell in changed(rich(), only=["4"]).cells} == {4}
    with pytest.raises(
        SpecError, match=r"found 'tiny', expected a variant \(.*\), or a level of another factor \(1, 4, small"
    ):
        changed(rich(), only=["tiny"])
    excluded = rich("{variant: [cubic, fair], jobs.j2.flows: 4}", "{variant: cubic, size: large}")
    with pytest.raises(SpecError, match="--only: found cubic, large, expected levels that are run together"):
        changed(excluded, "iterations=5", only=["cubic", "large"])
    with pytest.raises(SpecError, match="--set size: found the unknown field") as caught:
        changed(rich(), "size=small")
    assert caught.value.hint == "--only chooses levels"


def test_a_baseline_that_is_left_out_is_no_mistake() -> None:
    assert changed("unfair-vgg19", "study.baseline=alone", only=["unfair"]).study.baseline is None


def test_the_runs_own_file_gives_the_same_trials(rich: Rich, tmp_path: Path) -> None:
    experiment = changed(rich(), "jobs.j1.transport.T_us=90", "seed=9", only=["unfair"], repetitions=2)
    assert experiment.changes == {"jobs.j1.transport.T_us": 90, "seed": 9, "only": ["unfair"], "repetitions": 2}
    own = tmp_path / "elsewhere" / "experiment.yaml"
    own.parent.mkdir()
    own.write_text(yaml.safe_dump(experiment.document, sort_keys=False))
    assert load_experiment(own).cells == experiment.cells
    # As a run is resumed.
    assert load_experiment(rich(), changes=overrides_from_values(experiment.changes)).cells == experiment.cells


WRONG = [
    ("jobs.j1.transport.T_us=0.5", "--set jobs.j1.transport.T_us: found 0.5, expected a number from 1"),
    ("jobs.j9.jitter=0", "--set jobs.j9.jitter: found no j9 among jobs, expected j1, j2"),
    ("jobs.j9=null", "--set jobs.j9: found no j9 among jobs, expected j1, j2"),
    ("jbs.j1.jitter=0", "--set jbs.j1.jitter: found the unknown field 'jbs', expected one of topology"),
    ("variant=fair", "--set variant: found the unknown field 'variant'"),
    ("jobs.j1={workers: [s0, s9]}", r"--set jobs.j1.workers\[1\]: found 's9', expected a host of dumbbell-2x2"),
    ("jobs={j1: null}", "--set jobs: found it above the factor jobs.j2.flows, expected levels of jobs.j2.flows"),
    ("seed=[1, ", "--set seed: found the end, expected the node content"),
    ("seed=*a", "--set seed: found an alias"),
    ("repetitions=0", "--set repetitions: found 0, expected at least 1"),
    ("iterations=", "iterations: found nothing"),
]


@pytest.mark.parametrize(("field", "said"), WRONG)
def test_a_wrong_change_is_refused_with_its_option(rich: Rich, field: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        changed(rich(), field)


def test_a_wrong_variant_is_refused_with_its_option(rich: Rich) -> None:
    with pytest.raises(SpecError, match=r"--only: found 'unfare', expected a variant \(alone, fair"):
        changed(rich(), only=["fair", "unfare"])


def test_rates_can_be_factors() -> None:
    experiment = changed("unfair-vgg19", "factors.payload_rate_gbps=[43, 45]", only=["fair", "fig-1"])
    assert [cell.spec.topology.bottleneck.payload_rate_gbps for cell in experiment.cells] == [43, 45]
    assert {link.line_rate_gbps for cell in experiment.cells for link in cell.spec.topology.links} == {50}
    faster = changed("unfair-vgg19", "line_rate_gbps=100").cells[0].spec.topology
    assert (faster.line_rate_gbps, faster.bottleneck.payload_rate_gbps) == (100, 86)


def test_links_with_rates_of_their_own_keep_them(rich: Rich, tmp_path: Path) -> None:
    host = "{name: %s, ends: [%s, tor]}"
    links = ", ".join(host % (name, name) for name in ("s1", "s2", "s3"))
    own = "{name: s0, ends: [s0, tor], payload_rate_gbps: 40}"
    (tmp_path / "star.yaml").write_text(
        "name: star\nabout: one switch\nline_rate_gbps: 50\npayload_rate_gbps: 43\nqueue: lossless\n"
        f"hosts: [s0, s1, s2, s3]\nswitches: [tor]\nlinks: [{own}, {links}]\n"
    )
    topology = changed(rich(), "topology=star", "payload_rate_gbps=45").cells[0].spec.topology
    assert [link.payload_rate_gbps for link in topology.links] == [40, 45, 45, 45]
