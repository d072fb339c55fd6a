# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/add/transport.md: a program from outside the tree, in a real kernel and a real lab."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.reading.data import filter_rows
from roundabout.checks.judge.kernel_requirements import check_kernels
from roundabout.core.errors import RoundaboutError
from roundabout.runner import transports
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec import SpecError, load_experiment
from roundabout.store import Run
from roundabout.testbeds.lab.provider import LabProvider

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

ROOT = Path(__file__).parents[2]

PAGE = (ROOT / "docs/how-to/add/transport.md").read_text()
PROGRAM = PAGE.partition("```c\n")[2].partition("```")[0]
EXPERIMENT = """
name: steady
about: A job at a fixed rate
topology: dumbbell-2x2
jobs: {{j1: {{profile: vgg19-fig1, workers: [s0, s2]}}}}
iterations: 3
transport: {transport}
"""
FROM_FILE = "{file: ./steady.bpf.c, rate_mbps: 20000}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "steady.bpf.c").write_text(PROGRAM)
    return tmp_path


def write(folder: Path, transport: str = FROM_FILE) -> Path:
    path = folder / "steady.yaml"
    path.write_text(EXPERIMENT.format(transport=transport))
    return path


def change(folder: Path, passage: str, replacement: str) -> None:
    assert passage in PROGRAM
    (folder / "steady.bpf.c").write_text(PROGRAM.replace(passage, replacement))


def build(folder: Path) -> dict[str, str]:
    return transports.build_plugins(load_experiment(write(folder)).transports.values())


@pytest.mark.proof
def test_a_transport_takes_one_file(folder: Path) -> None:
    experiment = write(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["steady.bpf.c", "steady.yaml"]  # one file, and its use
    command = [sys.executable, "-m", "roundabout.cli.main", "run", str(experiment), "--testbed", "lab", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    run = Run.open("last", folder / "runs")
    assert {"build/outside/steady/steady.bpf.o", "build/outside/steady/steady.before_6_10.bpf.o"} <= set(
        run.manifest["artefacts"]
    )
    (trial,) = run.trials()
    for host in ("s0", "s2"):
        settings = trial["settings"][host]["after"]
        assert settings["transport"] == {"steady": {"rate_mbps": 200}}  # the lab's rates are a hundredth
        assert settings["sysctl"]["net.ipv4.tcp_congestion_control"] == "rb_steady"
    reactions = filter_rows(run.table("reactions", valid_only=False), host="s0").to_pylist()
    assert {each["transport"] for each in reactions} == {"steady"}
    assert {each["counter"] for each in reactions} == {"acks", "segments", "segments_per_ack"}
    (segments,) = (each for each in reactions if each["counter"] == "segments")
    assert segments["after"] - segments["before"] > 1000
    sampled = filter_rows(run.table("device_counters", valid_only=False), host="s0", device="steady").to_pylist()
    assert {(each["counter"], each["unit"]) for each in sampled} == {("acks", "segments"), ("segments", "segments")}
    values = [each["value"] for each in sampled if each["counter"] == "segments"]
    assert max(value for value in values if value is not None) == segments["after"]
    # 574.68 MB at 20 Gbit/s, with headers, after 150 ms of computing.
    times_ms = run.table("iterations", valid_only=False).to_pylist()
    assert all((each["comm_end_ns"] - each["compute_end_ns"]) / 1e6 > 225 for each in times_ms)
    assert "steady" not in subprocess.run([transports.TOOL, "list"], capture_output=True, text=True).stdout


def test_a_folder_of_the_path_is_known_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "outside/transports/steady"
    home.mkdir(parents=True)
    shutil.move(folder / "steady.bpf.c", home / "steady.bpf.c")
    path = write(folder, "{name: steady}")
    with pytest.raises(SpecError, match="found 'steady', expected 'dcqcn' or"):
        load_experiment(path)
    monkeypatch.setenv("ROUNDABOUT_PATH", str(folder / "outside"))
    assert (
        "of every flow"
        in subprocess.run(
            [sys.executable, "-m", "roundabout.cli.main", "judge"], capture_output=True, text=True, check=True
        ).stdout
    )
    (transport,) = load_experiment(path).transports.values()
    assert transport.parameters == {"rate_mbps": 10000}
    assert set(transports.build_plugins([transport])) == {
        "build/outside/steady/steady.bpf.o",
        "build/outside/steady/steady.before_6_10.bpf.o",
    }


def test_a_plugin_transports_parameters_are_checked_in_experiments(folder: Path) -> None:
    wrong = {
        "{file: ./steady.bpf.c, rate_mbsp: 1}": (
            "the unknown field 'rate_mbsp'",
            "rate_mbps",
            "did you mean rate_mbps?",
        ),
        "{file: ./steady.bpf.c, rate_mbps: 0}": ("0", "a number from 1 to 1e+06 (of every flow)", None),
        "{file: ./missing.bpf.c}": ("no such file", "the source of a transport", None),
        "{file: ./dcqcn.bpf.c}": ("'dcqcn'", "a name that no other transport has", None),
        "{file: ./steady.c}": ("'./steady.c'", "a file called NAME.bpf.c", None),
    }
    for transport, (found, expected, hint) in wrong.items():
        with pytest.raises(SpecError) as caught:
            load_experiment(write(folder, transport))
        assert found in caught.value.found
        assert expected in caught.value.expected
        assert caught.value.hint == hint
        assert caught.value.field.startswith("transport.")


def test_a_transports_hash_changes_with_its_program(folder: Path) -> None:
    before = build(folder)
    assert build(folder) == before
    change(folder, "snd_cwnd = 1000", "snd_cwnd = 2000")
    assert all(build(folder)[name] != digest for name, digest in before.items())


def test_the_compilers_words_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(folder, "c->acks++", "c->akcs++")
    with pytest.raises(RoundaboutError, match=r"steady\.bpf\.c does not build$") as caught:
        build(folder)
    assert re.match(r"steady\.bpf\.c:\d+:\d+: error: no member", str(caught.value.hint))
    change(folder, "PER_HOST(counters, struct steady_counters);", "PER_HOST(counters, struct steady_params);")
    with pytest.raises(RoundaboutError, match="found rate_mbps in its map `counters`, expected what is declared: acks"):
        build(folder)
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(RoundaboutError, match="found no clang, expected it to build .*steady.bpf.c") as caught:
        build(folder)
    assert caught.value.hint == "run ./bootstrap"


WINDOW = PAGE.partition("### With a congestion window")[2].partition("```c\n")[2].partition("```")[0]


def test_the_example_with_a_congestion_window_has_what_this_kernel_offers(folder: Path) -> None:
    (folder / "halving.bpf.c").write_text(WINDOW)
    (folder / "halving.yaml").write_text(EXPERIMENT.format(transport="{file: ./halving.bpf.c}"))
    (transport,) = load_experiment(folder / "halving.yaml").transports.values()
    assert transport.declaration
    built, _ = transports.build_transport(transport.declaration)
    needs, (kernel,) = check_kernels(built)
    assert {"tcp_sock.snd_cwnd_cnt", "tcp_sock.is_cwnd_limited", "tcp_sock.snd_ssthresh"} <= set(needs.fields)
    assert kernel.lacks == ()


def test_the_page_names_the_members_of_tcp_sock_that_the_header_declares() -> None:
    header = (ROOT / "transports/common/kernel.h").read_text()
    declared = re.findall(r"(\w+)(?: : \d+)?;", header.partition("struct tcp_sock {")[2].partition("}")[0])
    passage = PAGE.partition("Of `struct tcp_sock` these are ")[2].partition(".")[0]
    assert re.findall(r"`(\w+)`", passage) == declared


@pytest.fixture
def loaded(folder: Path) -> Iterator[Any]:
    """Loads the program as a run does, and takes it out again."""
    provider = LabProvider()

    def load() -> None:
        (transport,) = load_experiment(write(folder)).transports.values()
        transports.build_plugins([transport])
        provider.load_transport(transport, process_name("test-steady"))

    yield load
    provider.undo({"kind": "transport", "name": "steady", "owner": process_name("test-steady")})


def test_the_verifiers_words_are_shown(folder: Path, loaded: Any) -> None:
    change(folder, "  if (!p || !c)\n    return;\n", "")
    with pytest.raises(RoundaboutError) as caught:
        loaded()
    message = caught.value.message
    assert "steady.bpf.o" in message
    assert "invalid mem access 'map_value_or_null'" in message
    assert "c->acks++" in message  # the line of the source
    assert len(message.splitlines()) < 30


def test_a_program_gets_our_name_whatever_it_calls_itself(folder: Path, loaded: Any) -> None:
    """And lab hosts may use it, even if its author did not think of namespaces."""
    (folder / "steady.bpf.c").write_text(
        PROGRAM.replace("KERNEL_NAME(steady)", '"a_long_name_ofs"').replace("TCP_CONG_NON_RESTRICTED", "0")
    )
    loaded()
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    assert "rb_steady" in allowed
    assert "a_long_name_ofs" not in allowed


def test_the_first_struct_ops_that_the_kernel_accepts_is_used(folder: Path, loaded: Any) -> None:
    lacking = """
SEC(".struct_ops")
struct tcp_congestion_ops almost = {
    .init = (void *)steady_init,
    .name = "almost",
};
"""
    program = PROGRAM.replace('SEC(".struct_ops")', f'{lacking}\nSEC(".struct_ops")')
    (folder / "steady.bpf.c").write_text(program)
    loaded()
    assert "rb_steady" in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def test_a_program_without_congestion_control_is_refused(folder: Path) -> None:
    change(folder, 'SEC(".struct_ops")', 'SEC(".other")')
    with pytest.raises(RoundaboutError, match="found no struct tcp_congestion_ops, expected one with name and flags"):
        build(folder)


def test_links_in_a_loop_are_no_folder_of_the_path_and_no_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = folder / "loop.bpf.c"
    loop.symlink_to(loop)
    monkeypatch.setenv("ROUNDABOUT_PATH", str(loop))
    with pytest.raises(SpecError, match="too many levels of symbolic links, expected the source of a transport"):
        load_experiment(write(folder, "{file: ./loop.bpf.c}"))
