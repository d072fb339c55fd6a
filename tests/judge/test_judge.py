# SPDX-License-Identifier: Apache-2.0
"""Judging a congestion control: what it needs, what figures say, what a condition is, and broken ones of our own."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.expectations.judge_metrics import job_figures
from analysis.render import screen
from roundabout.checks import report
from roundabout.checks.check import Verdict
from roundabout.checks.judge import experiment
from roundabout.checks.judge.figures import (
    NAMES,
    QUANTITIES,
    SCENES,
    Figures,
    add_ratios_to_cubic,
    failed_conditions,
    parse_measured_condition,
)
from roundabout.checks.judge.judgement import CHARTS, Judgement
from roundabout.checks.judge.kernel_requirements import RUNNING, Requirements, check_kernels
from roundabout.checks.judge.measurement.iperf_flows import FlowResults
from roundabout.checks.judge.run import verdicts_by_part
from roundabout.checks.judge.session import RefusedError, Session
from roundabout.checks.judge.verdicts import verdicts
from roundabout.cli.main import main
from roundabout.core.btf import Btf, Field
from roundabout.core.elf import Elf
from roundabout.core.errors import UsageError
from roundabout.runner.run import Runner
from roundabout.runner.transports import build_transport
from roundabout.spec import load_experiment
from roundabout.testbeds import undo
from roundabout.testbeds.lab.provider import LabProvider
from tests.computed_runs import RUNNER
from tests.observers import Silent

pytestmark = pytest.mark.unit

PROGRAMS = Path(__file__).parent / "programs"
BUILT = Path(__file__).parents[2] / "build/bpf"


def flows(*gbps: float, **other: Any) -> FlowResults:
    reported: dict[str, Any] = {"course_gbps": (), "rtt_ms": 1.0, "windows_kb": (), "retransmitted": 0, "sent_bytes": 1}
    return FlowResults(gbps, **{**reported, "cpu_s": 1.0, **other})


def test_a_programs_needs_are_read_from_it() -> None:
    needs, (kernel,) = check_kernels(BUILT / "mltcp_cubic.bpf.o")
    assert "cubictcp_cong_avoid" in needs.functions
    assert "tcp_sock.snd_cwnd" in needs.fields
    assert (kernel.name, kernel.lacks) == ("this one", ())


def test_structures_that_a_kernel_lacks_are_named(tmp_path: Path) -> None:
    """A program's own BTF stands for that of a kernel which has the structures that it uses, and no others."""
    program = BUILT / "mltcp_cubic.bpf.o"
    (tmp_path / "old").write_bytes(Elf(program.read_bytes()).section(".BTF") or b"")
    _, (kernel,) = check_kernels(BUILT / "dcqcn.bpf.o", (tmp_path / "old",))
    assert kernel.name == "old"
    assert kernel.lacks == ("inet_connection_sock.icsk_ack.pending", "inet_connection_sock.icsk_ca_priv")
    (tmp_path / "old").write_text("no BTF, and long enough for its header")
    with pytest.raises(UsageError, match="old: found magic .*, expected a kernel's BTF"):
        check_kernels(program, (tmp_path / "old",))
    (tmp_path / "old").write_bytes(b"")
    with pytest.raises(UsageError, match="old: found damaged BTF, .*, expected a kernel's BTF"):
        check_kernels(program, (tmp_path / "old",))
    _, (kernel,) = check_kernels(program, (program,))  # an ELF file with BTF, as a kernel before it is booted
    assert not kernel.lacks


def test_members_of_nameless_structures_are_found() -> None:
    kernel = Btf(RUNNING.read_bytes())
    assert kernel.has_field(Field("sock", ("__sk_common", "skc_net", "net")))
    assert kernel.has_field(Field("sock_common", ("skc_daddr",)))  # in a nameless structure of a nameless union
    assert not kernel.has_field(Field("sock", ("__sk_common", "nothing")))


def test_jains_index_and_falls() -> None:
    assert flows(1, 1, 1).jain == pytest.approx(1)
    assert flows(1, 0, 0, 0).jain == pytest.approx(0.25)
    assert flows(0).jain == 0
    assert flows(1, course_gbps=(1.0,) * 18 + (0.25,) * 2).dip == pytest.approx(0.25 / 0.925)
    assert flows(1, windows_kb=((10, 20, 10, 20, 14, 28),)).window_fall == pytest.approx(0.6)
    assert flows(1, windows_kb=((10, 20, 30),)).window_fall is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jain_8", "expected QUANTITY < NUMBER"),
        ("jain_8 = 1", "expected QUANTITY < NUMBER"),
        ("jain_8 < 90 %", r"expected QUANTITY < NUMBER \(or"),
        ("jain_9 < 1", "found the quantity 'jain_9', expected one of"),
        ("jain_8 < much", "found the bound 'much'"),
        ("jain_8 < nan", "found the bound 'nan'"),
        ("incast > 3", "which incast measures, expected that among --only"),
    ],
)
def test_an_invalid_condition_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_measured_condition(text, ("fairness",))


def test_conditions_hold_or_not() -> None:
    for text, holds in {"jain_8 < 0.9": True, "jain_8 >= 0.8": True, "jain_8>0.8": False, "jain_2 < 0": True}.items():
        condition = parse_measured_condition(text, SCENES)
        assert failed_conditions([condition], {"jain_8": 0.8, "jain_2": None}) == [condition] * holds


GOOD: Figures = {"gbps": 9.9, "cpu_us": 2.2, "jain_8": 0.99, "queue_marks_ms": 0.6, "use_marks": 0.97}
PEERS: dict[str, Figures] = {"cubic": {"gbps": 10.0, "cpu_us": 2.0, "queue_marks_ms": 0.7}}


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({}, []),
        ({"gbps": 0.3}, [("throughput", "3%", "at least 90%"), ("gbps", "0.30", "at least 1.00")]),
        ({"cpu_us": 3.2}, [("cost", "1.60", "at most 1.50")]),
        ({"jain_8": 0.5}, [("jain_8", "0.50", "at least 0.90")]),
        ({"gbps": None}, [("gbps", "no figure: its flows got stuck", "a figure")]),
        ({"queue_marks_ms": 40.0}, [("queue_marks_ms", "40.0", "at most 3.1")]),
    ],
)
def test_the_judge_names_the_broken_rule(change: Figures, broken: list[tuple[str, str, str]]) -> None:
    figures = {"mine": GOOD | change, **{name: dict(each) for name, each in PEERS.items()}}
    assert [(each.name, each.found, each.expected) for each in failures(figures)] == broken


def failures(figures: dict[str, Figures]) -> list[Verdict]:
    """Return the failed verdicts on the first contestant's figures beside cubic's."""
    add_ratios_to_cubic(figures)
    by_scene = verdicts(next(iter(figures.values())), {"cubic": figures["cubic"]})
    return [each for found in by_scene.values() for each in found if each.verdict == "fail"]


MINE = {"name": "mine", "program": "mine.bpf.c", "system": "Linux"}


def test_every_figure_is_shown() -> None:
    figures: dict[str, Figures] = {name: dict.fromkeys(NAMES, 0.5) for name in ("mine", "cubic")}
    figures["mine"]["window_marks"] = None
    found = Judgement(**MINE, needs=Requirements(("f",), ("sock.x",)), figures=figures)
    found.parts = verdicts_by_part(found)
    tables = list(report.tables(found))
    for table in tables:
        screen.table_renderable(table)
    shown = {table.title: table for table in tables if table.title}
    assert list(shown) == [Judgement.TITLES[part] for part in ("program", *SCENES)]
    for scene in SCENES:
        table = shown[Judgement.TITLES[scene]]
        assert [column.title for column in table.columns[1:]] == [
            each.title for each in QUANTITIES if each.scene == scene
        ]
        assert [row[0].value for section in table.sections for row in section.rows] == ["mine", "cubic"]
    page = report.render_page(found)
    assert page.count("<title>cubic: 0.5</title>") == sum(len(names) for names in CHARTS.values())
    assert "use of the link, 8 flows" in page
    assert "A lab&#39;s verdict is not a NIC&#39;s" in page
    assert "<b>jain_8</b> Jain&#39;s, 8 flows: fairness index" in page
    assert json.loads(json.dumps(found.record()))["figures"]["mine"]["jain_8"] == 0.5


def test_jobs_that_share_fairly_never_interleave(tmp_path: Path) -> None:
    """What the fluid model computes: (150 + 2 x 106.9) ms of 293 for two jobs, and none of them hurt more."""
    jobs = load_experiment(experiment.write_experiment(PROGRAMS / "still.bpf.c", "still", ["two-jobs"], 12, tmp_path))
    run = RUNNER.start(jobs, "jobs.yaml", tmp_path / "runs")
    reported = job_figures(run)
    assert set(reported) == {experiment.variant_name("two-jobs", name) for name in ("still", *experiment.PEERS)}
    assert reported["still-2"]["interleaved"] is None
    assert reported["still-2"]["mean"] == reported["still-2"]["worst"] == pytest.approx(363.8 / 293, abs=0.001)


def test_without_a_file_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge"]) == 0
    assert "dcqcn (stands for RDMA)" in capsys.readouterr().out
    assert main(["judge", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed["dcqcn"]["program"].endswith("/transports/dcqcn/dcqcn.bpf.c")
    assert listed["dcqcn"]["parameters"][0]["home"].endswith("/transports/dcqcn")
    assert main(["judge", "--fail-if", "jain_8 < 1"]) == 2
    assert "without a file, expected FILE.bpf.c" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.bpf.c", "no such file or directory, expected the source of a transport"),
        ("mine.c", "expected a file called NAME.bpf.c"),
        ("cubic.bpf.c", "expected a name that no other transport has"),
        ("dcqcn.bpf.c", "expected a name that no other transport has"),
        (
            "averylongprogramname.bpf.c",
            "averylongprogramname.bpf.c: found the name 'averylongprogramname', expected a file",
        ),
        ("Mine.bpf.c", "Mine.bpf.c: found the name 'Mine', expected a file called NAME.bpf.c, NAME at most 12 of a-z"),
        ("my prog.bpf.c", "my prog.bpf.c: found the name 'my prog', expected a file"),
        ("mine.bpf.o", "mine.bpf.o: found 'mine.bpf.o', expected a file called NAME.bpf.c"),
        (".bpf.c", "found the name '', expected a file called NAME.bpf.c"),
        ("", "expected a file called NAME.bpf.c"),
    ],
)
def test_a_file_that_cannot_be_judged_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    assert main(["judge", str(tmp_path / name), "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert "jobs.yaml" not in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"", 1, "found no struct tcp_congestion_ops, expected one with name and flags"),
        (b"int nothing;\n", 1, "found no struct tcp_congestion_ops, expected one with name and flags"),
        (b"no C at all\n", 1, "does not build"),
        (b"\xff\xfe\0", 2, "found text that is not UTF-8, expected the source of a transport"),
        (lambda path: path.mkdir(), 2, "found a folder, expected the source of a transport"),
        (os.mkfifo, 2, "found a pipe or a device, expected the source of a transport"),
        (lambda path: path.symlink_to(path), 2, "found too many levels of symbolic links, expected the source"),
    ],
)
def test_a_file_without_a_congestion_control_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: bytes | Callable[[Path], None],
    status: int,
    message: str,
) -> None:
    program = tmp_path / "Träumerei 🙂 #1: {x}" / "none.bpf.c"
    program.parent.mkdir()
    program.write_bytes(content) if isinstance(content, bytes) else content(program)
    assert main(["judge", str(program), "--only", "alone", "--runs", str(tmp_path / "runs")]) == status
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert "none.bpf.c" in said and "jobs.yaml" not in said


def test_a_transport_that_does_not_compile_fails_with_a_stored_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "typo.bpf.c"
    program.write_text((PROGRAMS / "still.bpf.c").read_text().replace("still", "typo").replace("snd_cwnd", "snd_cwdn"))
    assert main(["judge", str(program), "--runs", str(tmp_path / "runs"), "--json"]) == 1
    said = capsys.readouterr()
    assert "typo.bpf.c does not build" in said.err
    reported = json.loads(said.out)
    assert "no member named 'snd_cwdn'" in reported["refused"]
    assert [each["verdict"] for each in reported["parts"]["program"]] == ["fail"]
    (page,) = (tmp_path / "runs/judge").glob("*/report.html")
    assert "no member named" in page.read_text()


class Judge:
    """Judges one of ours beside cubic alone, with a machine's state of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __call__(self, name: str, *wanted: Any) -> dict[str, Figures]:
        program = PROGRAMS / f"{name}.bpf.c"
        jobs = load_experiment(experiment.write_experiment(program, name, wanted, 5, self._home))
        trials = {each: cell.spec for cell in jobs.cells for each in cell.spec.transports if each in (name, "cubic")}
        declared = trials[name].transports[name].declaration
        assert declared
        build_transport(declared)
        runner = Runner(LabProvider(), Silent(), undo, state=self._home / "run", journals=self._home / "journals")
        figures, _ = Session(runner, LabProvider(), trials, lambda _: None).measure(wanted, self._home / "t-judge")
        assert not any((self._home / "journals").glob("*"))
        add_ratios_to_cubic(figures)
        return figures


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setattr("roundabout.checks.judge.session.ROUNDS", 1)
    monkeypatch.setattr("roundabout.checks.judge.session.SECONDS", {"alone": 1, "cost": 1})
    return Judge(tmp_path)


def test_a_window_that_never_grows_is_reported(judge: Judge) -> None:
    figures = judge("still", "alone")
    assert "gbps" in [each.name for each in failures(figures)]


def test_a_transport_that_the_verifier_refuses_fails(judge: Judge) -> None:
    with pytest.raises(RefusedError, match="invalid mem access 'map_value_or_null'") as caught:
        judge("crooked", "alone")
    found = Judgement(**MINE, refused=caught.value.message)
    found.parts = verdicts_by_part(found)
    assert [each.name for each in found.failures] == ["verifier"]
    assert "map_value_or_null" in report.render_page(found)


@pytest.mark.proof
@pytest.mark.quiet
def test_a_transport_that_ignores_marks_fails(judge: Judge) -> None:
    figures = judge("deaf", "marks")
    assert "queue_marks_ms" in [each.name for each in failures(figures)]
