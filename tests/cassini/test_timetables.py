# SPDX-License-Identifier: Apache-2.0
"""From a trial's jobs to timetables: on one link and on two, with periods that fit and with none."""

import pytest

from analysis.reading.trial_inputs import resolve_inputs
from roundabout.cli.main import main
from roundabout.models.cassini import CassiniError, LoopError, best_rotations, timetables, unified_circles
from roundabout.models.fluid import stretch_timetables
from roundabout.spec import Profile, SpecError, load_experiment
from roundabout.spec.cassini import Clock, Timetable

pytestmark = pytest.mark.unit

HEAD = """
name: shifted
about: Jobs that are shifted in time
transport: {name: dcqcn}
iterations: 20
"""


@pytest.fixture
def spec_of(tmp_path):
    """The only trial of an experiment, by topology and jobs: name -> (profile, workers)."""

    def make(topology, **jobs):
        topology += "" if "cassini:" in topology else "\ncassini: {}"
        lines = [f"  {name}: {{profile: {profile}, workers: {workers}}}" for name, (profile, workers) in jobs.items()]
        path = tmp_path / "shifted.yaml"
        path.write_text("\n".join([HEAD, f"topology: {topology}", "jobs:", *lines]))
        return load_experiment(path).cells[0].spec

    return make


def pair(spec_of, one, other):
    return spec_of("dumbbell-2x2", j1=(one, "[s0, s2]"), j2=(other, "[s1, s3]"))


def test_compatible_jobs_are_shifted_to_the_middle_of_their_room(spec_of):
    found = timetables(pair(spec_of, "vgg19-fig1", "vgg19-fig1"))
    assert [each.period_ms for each in found.values()] == [293, 293]
    assert (found["j1"].shift_ms, found["j2"].shift_ms) == (0, pytest.approx(293 / 2, abs=293 / 72))
    assert found["j1"].threshold_ms == pytest.approx(0.01 * 293)


def test_a_timetables_period_is_at_least_the_isolated_time(spec_of):
    spec = spec_of(
        "dumbbell-3x3",
        j1=("vgg19-1400", "[s0, s3]"),
        j2=("vgg16-1700", "[s1, s4]"),
        j3=("resnet50-1600", "[s2, s5]"),
    )
    found = timetables(spec)
    assert all(found[name].period_ms >= job.profile.alone_ms for name, job in spec.jobs.items())
    assert found["j1"].period_ms == pytest.approx(2 * found["j3"].period_ms)


def test_on_two_links_one_constant_moves_all_jobs_of_each(spec_of):
    three = {"j1": ("vgg16-1400", "[s0, s2]"), "j2": ("vgg19-fig1", "[s1, s4]"), "j3": ("vgg16-fig3", "[s3, s5]")}
    spec = spec_of("chain-2-2-2", **three)
    found, links = timetables(spec), best_rotations(spec)
    assert [[circle.job for circle in each.unified.circles] for each in links.values()] == [["j1", "j2"], ["j2", "j3"]]
    for each in links.values():
        (one, other), (turns, others) = (circle.job for circle in each.unified.circles), each.unified.turns
        around_ms = found[one].period_ms * turns
        assert around_ms == pytest.approx(found[other].period_ms * others)
        requested_ms = (each.steps[1] - each.steps[0]) / each.sectors * around_ms
        constants = [found[one].shift_ms + turn * found[one].period_ms for turn in range(others)]
        assert any(
            (found[other].shift_ms - requested_ms - c + 1e-6) % found[other].period_ms < 1e-5 for c in constants
        ), "one c with t_j = t_j^l + c (mod the period of j) for both"


def test_jobs_without_a_common_period_or_with_a_loop_are_refused(spec_of, tmp_path, capsys):
    spec = pair(spec_of, "vgg19-fig1", "vgg19-fig1")
    forward, allreduce = spec.jobs["j2"].profile.phases
    slow = Profile(name="slow", model="any", phases=(forward.model_copy(update={"compute_ms": 12000.0}), allreduce))
    jobs = {**spec.jobs, "j2": spec.jobs["j2"].model_copy(update={"profile": slow})}
    with pytest.raises(CassiniError, match=r"no common multiple of the iteration times \(j1 293 ms, j2 12143 ms\)"):
        unified_circles(spec.model_copy(update={"jobs": jobs}))
    around = {"j1": "[s0, s3]", "j2": "[s1, s6]", "j3": "[s4, s7]"}
    with pytest.raises(LoopError, match="j3 - tor1 - j1 - tor0 - j2 - tor2 - j3"):
        unified_circles(spec_of("cluster-24-1cable", **{job: ("vgg19-fig1", hosts) for job, hosts in around.items()}))
    assert main(["validate", str(tmp_path / "shifted.yaml")]) == 1
    assert "shifted.yaml: cassini: found a loop in the affinity graph: j3 - tor1 - j1 - " in capsys.readouterr().err


def test_two_links_of_the_same_jobs_require_the_time_shifts_of_one(spec_of):
    one = pair(spec_of, "vgg16-1400", "vgg19-fig1")
    two = spec_of("chain-2-2-2", j1=("vgg16-1400", "[s0, s4]"), j2=("vgg19-fig1", "[s1, s5]"))
    assert timetables(two) == timetables(one)
    assert best_rotations(two)["L1"].steps == best_rotations(two)["L2"].steps


def test_cassini_with_one_job_at_a_time_is_refused(spec_of):
    with pytest.raises(SpecError, match="either cassini or one_job_at_a_time"):
        spec_of("dumbbell-2x2\none_job_at_a_time: true", j1=("bert-8", "[s0, s2]"))


GIVEN = "{j2: {shift_ms: 20, period_ms: 300, threshold_ms: 1}}"


@pytest.mark.parametrize(
    ("cassini", "complaint"),
    [
        (GIVEN.replace("j2", "j3"), "there is no j3"),
        (f"{GIVEN}, threshold: 0.1", "either timetables, which are held as they are"),
        (GIVEN.replace("300", "0"), "more than 0"),
    ],
)
def test_timetables_may_be_given(spec_of, cassini, complaint):
    twins = {"j1": ("vgg19-fig1", "[s0, s2]"), "j2": ("vgg19-fig1", "[s1, s3]")}
    found = resolve_inputs(None, spec_of(f"dumbbell-2x2\ncassini: {{timetables: {GIVEN}}}", **twins), ())
    assert {job: {field: value.value for field, value in fields.items()} for job, fields in found.items()} == {
        "j2": {"timetable": Timetable(shift_ms=20, period_ms=300, threshold_ms=1)}
    }
    with pytest.raises(SpecError, match=complaint):
        spec_of(f"dumbbell-2x2\ncassini: {{timetables: {cassini}}}", **twins)


def test_a_trial_without_given_timetables_has_the_key_that_it_had(spec_of):
    spec = pair(spec_of, "vgg19-fig1", "vgg19-fig1")
    assert spec.model_dump(mode="json")["cassini"] == {"profiles": None, "threshold": 0.01}


def test_timetables_that_no_one_can_keep_are_stretched_or_given_up(spec_of):
    fits, partly, never = (
        pair(spec_of, *names)
        for names in (("vgg19-fig1", "vgg19-fig1"), ("vgg19-1024", "vgg16-1200"), ("bert-8", "vgg19-1200"))
    )
    (held,) = {each.period_ms for each in stretch_timetables(fits, timetables(fits)).values()}
    assert 293 < held < 295
    (held,) = {each.period_ms for each in stretch_timetables(partly, timetables(partly)).values()}
    assert 230 < held < 300  # alone 220
    assert stretch_timetables(never, timetables(never)) == {}


def test_periods_leave_room_for_jitter(spec_of):
    fits = pair(spec_of, "vgg19-fig1", "vgg19-fig1")

    def period_ms(jitter):
        jobs = {name: job.model_copy(update={"jitter": jitter}) for name, job in fits.jobs.items()}
        spec = fits.model_copy(update={"jobs": jobs})
        (found,) = {each.period_ms for each in stretch_timetables(spec, timetables(spec)).values()}
        return found

    assert 1.001 * 293 < period_ms(0.0) < period_ms(0.02) < 1.05 * 293


def test_a_slow_clock_delays_and_stretches_its_timetable():
    kept = Timetable(shift_ms=10, period_ms=100, threshold_ms=2).as_kept_by(Clock(behind_ms=3, slow_ppm=1000))
    assert (kept.shift_ms, kept.period_ms) == (13, pytest.approx(100.1))


def test_only_jobs_have_clocks(spec_of):
    variants = "factors: {variant: {wrong: {cassini: {clocks: {j9: {behind_ms: 1}}}}}}"
    with pytest.raises(SpecError, match=r"clocks\.j9: found 'j9', expected a job \(j1\)"):
        spec_of(f"dumbbell-2x2\n{variants}", j1=("bert-8", "[s0, s2]"))


def test_timetables_are_not_kept_by_whoever_misses_every_second_turn(spec_of):
    """Two that send 140 of 200 ms at all that the link carries need 280 ms, and a little more as they meet."""
    spec = spec_of(
        "dumbbell-2x2\nresized: {compute: 0.4}", j1=("saturating", "[s0, s2]"), j2=("saturating", "[s1, s3]")
    )
    (held,) = {each.period_ms for each in stretch_timetables(spec, timetables(spec)).values()}
    assert 280 < held < 300


@pytest.mark.parametrize(
    ("at_ms", "delay_ms"), [(10, 0), (8, 0), (30, 0), (7.5, 2.5), (31, 79), (110, 0), (209, 0), (207, 3), (60, 50)]
)
def test_early_and_very_late_iterations_wait_for_the_next_instant(at_ms, delay_ms):
    assert Timetable(shift_ms=10, period_ms=100, threshold_ms=2).delay_ms(at_ms) == pytest.approx(delay_ms)
