# SPDX-License-Identifier: Apache-2.0
"""What an experiment file comes to, and what is said of a wrong one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from roundabout.spec import Experiment, SpecError, StudyChoice, load_experiment

pytestmark = pytest.mark.unit

Rich = Callable[..., Path]
PLAIN = (
    "name: plain\nabout: one\ntopology: dumbbell-2x2\niterations: 2\ntransport: {name: reno}\n"
    "jobs: {j1: {profile: bert-8, workers: [s0, s1]}}\n"
)


def test_the_flagship_is_what_the_design_says() -> None:
    experiment = load_experiment("unfair-vgg19")
    assert experiment.factors == {"figure": ("fig-1", "fig-2"), "variant": ("alone", "fair", "unfair")}
    assert experiment.trial_count == 5 * (2 + 1 + 1) + 5 * (1 + 1)
    alone, fair, unfair, *others = experiment.cells
    profiles = [{job.profile.name for job in cell.spec.jobs.values()} for cell in experiment.cells]
    assert profiles == [{"vgg19-fig1"}] * 3 + [{"vgg19-fig2"}] * 2
    assert [(cell.variant, cell.spec.iterations) for cell in others] == [("fair", 8), ("unfair", 8)]
    assert alone.spec.one_job_at_a_time
    assert (alone.spec.iterations, fair.spec.iterations) == (4, 16)
    assert (experiment.dilation, experiment.transport_dilation) == (3, 16)
    assert [job.transport.parameters["T_us"] for job in fair.spec.jobs.values()] == [125, 125]
    assert [job.transport.parameters["T_us"] for job in unfair.spec.jobs.values()] == [100, 125]
    assert [(each.what, each.basis) for each in experiment.expect[:2]] == [
        ("speedup of median iteration time", "fitted"),
        ("first-iteration bandwidth share j1/j2", "fitted"),
    ]


def test_overlays_reach_jobs_transports_and_expectations(rich: Rich) -> None:
    experiment = load_experiment(rich())
    cells = {tuple(cell.levels.values()): cell for cell in experiment.cells}
    assert len(cells) == 4 * 2 * 2 - 2 * 2
    unfair = cells["unfair", 4, "large"]
    assert unfair.depends_on == ("alone",)
    j1, j2 = unfair.spec.jobs.values()
    assert j1.transport.parameters == {"T_us": 100, "F": 5}
    assert j2.transport.parameters == {"T_us": 125, "F": 5}
    assert (j1.profile.name, j2.profile.name, j2.flows) == ("vgg19-fig1", "vgg19-1400", 4)
    cubic = cells["cubic", 1, "small"]
    assert {job.transport.name for job in cubic.spec.jobs.values()} == {"cubic"}
    assert cubic.spec.jobs["j1"].transport.parameters == {}


def test_an_expectation_in_a_level_holds_at_that_level(rich: Rich) -> None:
    share, speedup = load_experiment(rich()).expect
    assert (share.what, share.at) == ("share", {"size": "small"})
    assert (speedup.what, speedup.at) == ("speedup of median iteration time", {"jobs.j2.flows": 1, "size": "large"})


def test_a_dcqcn_job_has_the_timer_that_the_papers_testbed_has(rich: Rich) -> None:
    cell = next(cell for cell in load_experiment(rich("T_us: 125, ", "")).cells if cell.variant == "fair")
    assert cell.spec.jobs["j2"].transport.parameters["T_us"] == 125


def test_an_overlong_experiment_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(PLAIN + "factors: {variant: {" + "a: {}, " * 900_000)
    with pytest.raises(SpecError, match="more than 6000000 bytes, expected 6000000 bytes at most"):
        load_experiment(path)


def test_a_manifest_gives_the_experiment_back(rich: Rich) -> None:
    experiment = load_experiment(rich())
    assert Experiment.model_validate_json(experiment.model_dump_json()) == experiment
    assert Experiment.model_validate(experiment.model_dump(mode="json")) == experiment


def test_an_experiment_without_factors_has_one_variant(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text(PLAIN)
    experiment = load_experiment(path)
    assert (experiment.variants, experiment.trial_count) == (("base",), 1)


UNFAIR = "factors.variant.unfair"
WRONG = [
    # passage, replacement, line, field, found, expected, hint
    ("iterations: 50", "iteration: 50", 10, "iteration", "unknown field 'iteration'", "one of", "iterations"),
    ("iterations: 50", "iterations: fifty", 10, "iterations", "'fifty'", "a whole number", None),
    ("iterations: 50", "iterations: 0", 10, "iterations", "0", "at least 1", None),
    ("iterations: 50", "", 1, "iterations", "nothing", "the field is required", None),
    ("iterations: 50", "iterations: 50\niterations: 60", 11, "iterations", "second time (first in line 10)", "", None),
    ("flows: 2", "flow: 2", 8, "jobs.j1.flow", "unknown field 'flow'", "one of profile", "flows"),
    ("flows: 2", "flows: true", 8, "jobs.j1.flows", "true", "a whole number", None),
    ("s2]", "s9]", 8, "jobs.j1.workers[1]", "'s9'", "a host of dumbbell-2x2 (s0, s1, s2, s3)", None),
    ("s2]", "s0]", 8, "jobs.j1.workers[1]", "s0, already a worker of j1 (with", "each host once", "worker: s1"),
    ("[s1, s3]", "[s1, s2]", 9, "jobs.j2.workers[1]", "s2, already a worker of j1", "each host once", "s3"),
    ("[s1, s3]", "[s1]", 9, "jobs.j2.workers", "a list of 1", "at least 2", None),
    ("bert-8", "bert-9", 9, "jobs.j2.profile", "'bert-9'", "one of those in", "bert-8"),
    ("vgg19-1400", "vgg19-140", 21, "factors.size.large.jobs.j2.profile", "'vgg19-140'", "one of those", "vgg19-1400"),
    ("dumbbell-2x2", "dumbell-2x2", 5, "topology", "'dumbell-2x2'", "one of those", "dumbbell-2x2"),
    ("name: dcqcn", "name: dcqnc", 11, "transport.name", "'dcqnc'", "'dcqcn'", "dcqcn"),
    ("name: dcqcn, ", "", 11, "transport.name", "nothing", "required", None),
    ("{name: cubic}", "{name: cubic, F: 2}", 17, "factors.variant.cubic.transport.F", "unknown", "no param", None),
    ("T_us: 100", "T_ms: 100", 16, "factors.variant.unfair.jobs.j1.transport.T_ms", "unknown field", "T_us", "T_us"),
    ("T_us: 100", "T_us: -1", 16, "factors.variant.unfair.jobs.j1.transport.T_us", "-1", "a number from 1 to", None),
    ("variant:\n", "variant:\n    " + "x" * 65 + ": {}\n", 13, "factors.variant", "the name", "at most 64", None),
    ("jobs.j2.flows: [1, 4]", "job.j2.flows: [1]", 18, "factors.job.j2.flows", "'job'", "one of topology", "jobs"),
    ("[1, 4]", "[1, 1]", 18, "factors.jobs.j2.flows[1]", "1 a second time", "once", None),
    ("[1, 4]", "[]", 18, "factors.jobs.j2.flows", "a list of 0", "levels", None),
    ("[1, 4]", "[1, [2]]", 18, "factors.jobs.j2.flows[1]", "a list of 1", "a name or a number", None),
    ("[1, 4]", "[4, 999]", 18, "factors.jobs.j2.flows[1]", "999", "at most 64", None),
    ("one_job_at", "one_jobs_at", 14, "factors.variant.alone.one_jobs_at_a_time", "unknown", "", "one_job_at_a_time"),
    ("depends_on: [alone]", "depends_on: [alon]", 16, f"{UNFAIR}.depends_on[0]", "'alon'", "a variant run", None),
    ("depends_on: [alone]", "depends_on: [unfair]", 16, f"{UNFAIR}.depends_on[0]", "depends on unfair", "circle", None),
    ("[cubic, fair]", "[cubic, fare]", 23, "exclude[0].variant", "'fare'", "a level of variant", "fair"),
    ("{variant: [cubic, fair], jobs.j2.flows: 4}", "{size: large}", 22, "exclude", "size large left out", "one", None),
    ("{variant: [cubic, fair]", "{varient: [cubic]", 23, "exclude[0].varient", "'varient'", "a factor", "variant"),
    ("of: unfair", "of: unfare", 27, "expect[0].of", "'unfare'", "a variant (alone, fair", "unfair"),
    ("over: fair, ", "over: fare, ", 27, "expect[0].over", "'fare'", "a variant (alone, fair", "fair"),
    ("paper: 1.2", "papper: 1.2", 27, "expect[0]", "a mapping", "one of paper, at_least", None),
    ("paper: 1.2", "paper: much", 28, "expect[0].paper", "'much'", "a number, or the name of a printed", None),
    ("paper: 1.2", "paper: .nan", 28, "expect[0].paper", "nan", "a number, or the name of a printed", None),
    ("paper: 1.2, tolerance: 0.1", "paper: 1.2", 27, "expect[0]", "a mapping", "one of `tolerance` and", None),
    ("paper: 1.2", "paper: 1.2, within: 0.1", 27, "expect[0]", "a mapping", "one of `tolerance` and", None),
    ("paper: 1.2", "paper: 1.2, tolerence: 1", 28, "expect[0].tolerence", "the unknown field", "paper", "tolerance"),
    ("paper: 1.2, tolerance: 0.1", "at_most: a lot", 28, "expect[0].at_most", "'a lot'", "a number, or", None),
    ("paper: 1.2, tolerance: 0.1", "at_most:", 27, "expect[0]", "a mapping", "`at_least`, `at_most` or both", None),
    ("paper: 1.2,", "curve: [[1, 2]],", 28, "expect[0].curve", "a list of 1", "points [x, y], two at least", None),
    ("paper: 1.2,", "curve: [[1, 2], [3]],", 28, "expect[0].curve", "a list of 2", "points [x, y]", None),
    ("paper: 1.2,", "row: {},", 28, "expect[0].row", "a mapping of 0", "figures (or at_least", None),
    ("paper: 1.2,", "row: {a: {at_lest: 1}},", 28, "expect[0].row", "a mapping of 1", "figures (or at_least", None),
    ("paper: 1.2, tolerance: 0.1", "order: [fair]", 28, "expect[0].order", "a list of 1", "at least 2", None),
    ("paper: 1.2, tolerance: 0.1", "order: [fair, fare]", 28, "expect[0].order[1]", "'fare'", "a variant", "fair"),
    (", basis: fitted", "", 27, "expect[0].basis", "nothing", "the field is required", None),
    (", basis: fitted", ", basis: null", 28, "expect[0].basis", "nothing", "one of predicted, fitted, by con", None),
    ("basis: fitted", "basis: fited", 28, "expect[0].basis", "'fited'", "'predicted', 'fitted'", "fitted"),
    ("job: j2", "job: j3", 27, "expect[0].job", "'j3'", "a job of unfair (j1, j2)", None),
    ("{jobs.j2.flows: 1}", "{jobs.j2.flows: 3}", 28, "expect[0].at.jobs.j2.flows", "3", "a level of", None),
    ("{jobs.j2.flows: 1}", "{load: 1}", 28, "expect[0].at.load", "'load'", "a factor", None),
    ("{jobs.j2.flows: 1}", "{jobs.j2.flows: 4}", 27, "expect[0]", "no trial of fair", "one that", None),
    ("repetitions: 3", "repetitions: many", 24, "repetitions", "'many'", "a whole number", None),
    ("schema: 1", "schema: 2", 1, "schema", "2", "1", None),
    ("name: rich", "name: .x", 2, "name", "'.x'", "letters, digits", None),
    ("about: Uses", "about: *uses", 3, "", "an alias", "the value itself", None),
    ("about: Uses", "about: !!python/name:os.system", 3, "about", "the tag", "without a tag", None),
    ("about: Uses", "about: [Uses", 4, "", "':'", "',' or ']'", None),
    ("seed: 7", "seed: " + "7" * 5000, 25, "seed", "7", "ordinary size", None),
    ("seed: 7", "\tseed: 7", 25, "", "a tab", "spaces", None),
    ("jobs.j2.flows: [1, 4]", "jitter: [0, 0.1]", 18, "factors.jitter", "'jitter'", "one of top", "jobs.j1.jitter"),
    ("jobs.j2.flows: [1, 4]", "T_us: [90]", 18, "factors.T_us", "'T_us'", "one of", "jobs.j1.transport.T_us"),
    ("variant:\n", "variant: [alone, fair]\n  treatment:\n", 13, "factors.variant", "'variant'", "", "{alone: {}"),
    ("jobs.j2.flows: [1, 4]", "kind: [a, b]", 18, "factors.kind", "'kind'", "one of", "to what each changes: {a"),
    ("T_us: 125", "T_us: 1.25e-4", 11, "transport.T_us", "0.000125", "a number from 1 to", None),
    ("iterations: 50", "iterations: 50\npayload_rate_gbps: 49", 11, "payload_rate_gbps", "49 Gbi", "at most 4", None),
]  # fmt: skip


@pytest.mark.parametrize(("passage", "replacement", "line", "field", "found", "expected", "hint"), WRONG)
def test_a_wrong_file_gets_one_message(  # noqa: PLR0917
    rich: Rich, passage: str, replacement: str, line: int, field: str, found: str, expected: str, hint: str | None
) -> None:
    path = rich(passage, replacement)
    with pytest.raises(SpecError) as caught:
        load_experiment(path)
    error = caught.value
    assert (error.line, error.field) == (line, field), error.message
    assert found in error.found
    assert expected in error.expected
    assert error.message.startswith(f"{path}:{line}: ")
    assert "\n" not in error.message
    assert (hint or "") in (error.hint or "")


def test_a_demand_that_the_link_cannot_carry_is_refused(library: Path) -> None:
    profile = library / "profiles" / "greedy.yaml"
    phases = "phases: [{name: send, bytes: 1_000_000_000, alone_ms: 100, source: none}]"
    profile.write_text(f"name: greedy\nmodel: none\n{phases}\n")
    path = library / "greedy.yaml"
    path.write_text((library / "catalog" / "rich.yaml").read_text().replace("vgg19-fig1", "greedy"))
    with pytest.raises(SpecError, match=r"'send' of greedy sending at 80.0 Gbit/s .*at most the 43 Gbit/s"):
        load_experiment(path, library)


def test_an_unknown_experiment_is_answered_with_its_neighbours() -> None:
    with pytest.raises(
        SpecError, match=r"no unfair-vgg\.yaml, expected one of astra-sim-collectives, base-states"
    ) as caught:
        load_experiment("unfair-vgg")
    assert caught.value.hint == "did you mean unfair-vgg19 or unfair-table1?"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.write_bytes(b"name: \xff\n"), lambda path: None])
def test_an_unreadable_experiment_file_is_named(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "odd.yaml")
    with pytest.raises(SpecError, match=r"odd\.yaml"):
        load_experiment(tmp_path / "odd.yaml")


def test_a_file_in_the_catalogue_bears_its_name(library: Path) -> None:
    (library / "profiles" / "other.yaml").write_text((library / "profiles/cassini/bert-8.yaml").read_text())
    path = library / "named.yaml"
    path.write_text((library / "catalog" / "rich.yaml").read_text().replace("bert-8", "other"))
    with pytest.raises(SpecError, match=r"other\.yaml:3: name: found 'bert-8', expected 'other'"):
        load_experiment(path, library)


def test_a_study_may_be_named_and_given_what_to_compare(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"

    def study_of(written: str) -> StudyChoice:
        path.write_text(f"{PLAIN}factors: {{variant: {{one: {{}}}}, flows: {{few: {{}}}}}}\n{written}\n")
        return load_experiment(path).study

    assert study_of("") == StudyChoice(kind=None, baseline=None, over=None)
    assert study_of("study: load-sweep") == StudyChoice(kind="load-sweep")
    assert study_of("study: {kind: mine, baseline: one, over: flows}") == StudyChoice(
        kind="mine", baseline="one", over="flows"
    )
    with pytest.raises(SpecError, match=r"study\.baseline: found 'ome', expected a variant"):
        study_of("study: {baseline: ome}")
    with pytest.raises(SpecError, match=r"study\.over: found 'flow', expected a factor"):
        study_of("study: {over: flow}")
