# SPDX-License-Identifier: Apache-2.0
"""A transport is loaded once, counted by its users, and refused while another build is in use."""

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.machine.process_leftovers import process_name
from tests.transports.killing import is_killed_after

pytestmark = [pytest.mark.lab, pytest.mark.quiet]


def available() -> str:
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()


def test_loading_registers_and_unloading_takes_out(tools: Any, dcqcn: str) -> None:
    assert "rb_dcqcn" in available()
    (entry,) = json.loads(tools.transport("list").stdout)
    assert entry["transport"] == "dcqcn" and dcqcn in entry["users"]


def test_the_last_user_unloads(tools: Any, dcqcn: str) -> None:
    tools.transport("load", "dcqcn", "--owner", process_name("test-second"))
    first = json.loads(tools.transport("unload", "dcqcn", "--owner", dcqcn).stdout)
    assert first["loaded"] and dcqcn not in first["users"]
    tools.transport("unload", "dcqcn", "--owner", process_name("test-second"))
    assert ("rb_dcqcn" in available()) == bool(json.loads(tools.transport("list").stdout))


def test_another_build_in_use_is_refused(tools: Any, dcqcn: str, tmp_path: Path) -> None:
    for built in (tools.build / "bpf").glob("dcqcn*.bpf.o"):
        other = tmp_path / built.name
        shutil.copy(built, other)
        other.write_bytes(other.read_bytes() + b"\0")
    refused = tools.transport("load", "dcqcn", "--owner", process_name("test-other"), "--objects", str(tmp_path))
    assert refused.returncode == 3
    assert "in use by" in refused.stderr and dcqcn in refused.stderr and "expected build" in refused.stderr


@pytest.mark.parametrize("owner", ['a"b', "a\\b", "a\nb", "a b", "", ".hidden", "a/b", "caf\u00e9"])
def test_an_owner_that_json_or_a_path_would_escape_is_refused(tools: Any, owner: str) -> None:
    for action in ("load", "unload"):
        refused = tools.transport(action, "dcqcn", "--owner", owner)
        assert refused.returncode == 2
        assert "expected names of letters, digits and ._:@+-" in refused.stderr


def test_a_transport_whose_user_cannot_be_counted_is_not_loaded(tools: Any) -> None:
    """An owner's name that is too long for a file cannot be counted."""
    before = json.loads(tools.transport("list").stdout)
    refused = tools.transport("load", "dctcp", "--owner", "a" * 300)
    assert refused.returncode == 1
    assert "File name too long" in refused.stderr
    assert json.loads(tools.transport("list").stdout) == before


def test_many_users_are_all_listed(tools: Any, dcqcn: str) -> None:
    """Let the names take more than a page, 4,096 bytes."""
    owners = [process_name(f"test-{number}-{'x' * 200}") for number in range(25)]
    for owner in owners:
        assert tools.transport("load", "dcqcn", "--owner", owner).returncode == 0
    (entry,) = json.loads(tools.transport("list").stdout)
    for owner in owners:
        left = json.loads(tools.transport("unload", "dcqcn", "--owner", owner).stdout)
    assert set(entry["users"]) == {dcqcn, *owners}
    assert left["users"] == [dcqcn]


def test_unknown_transports_and_owners_are_named(tools: Any) -> None:
    assert "unknown transport 'mystery'" in tools.transport("load", "mystery", "--owner", "test").stderr
    assert tools.transport("load", "../dcqcn", "--owner", "test").returncode == 2
    assert tools.transport("get", "mystery").returncode == 1


NEEDY = """
#include "transport.h"
char _license[] SEC("license") = "Dual BSD/GPL";
extern void no_such_function(struct sock *sk) __ksym;
SEC("struct_ops/needy_init")
void BPF_PROG(needy_init, struct sock *sk) { no_such_function(sk); }
SEC(".struct_ops")
struct tcp_congestion_ops needy = {.init = (void *)needy_init, .name = KERNEL_NAME(needy)};
"""


def test_a_function_that_the_kernel_lacks_is_named(tools: Any, tmp_path: Path) -> None:
    (tmp_path / "needy.bpf.c").write_text(NEEDY)
    tools.compiled(tmp_path / "needy.bpf.c", tmp_path / "needy.bpf.o")
    tools.compiled(tmp_path / "needy.bpf.c", tmp_path / "needy.before_6_10.bpf.o", "CONG_CONTROL_BEFORE_6_10")
    refused = tools.transport("load", "needy", "--owner", "test", "--objects", str(tmp_path))
    assert refused.returncode == 1
    assert "calls a function that this kernel does not offer to eBPF" in refused.stderr
    assert "no_such_function" in refused.stderr


def test_both_signatures_of_cong_control_are_built(tools: Any) -> None:
    names = {path.name for path in (tools.build / "bpf").glob("dcqcn*")}
    assert names == {"dcqcn.bpf.o", "dcqcn.before_6_10.bpf.o"}


BRIEF = """
#include "transport.h"
char _license[] SEC("license") = "Dual BSD/GPL";
struct brief_params { PARAMETER(__u32, any, "us", experiment, 1, 1, 9, "nothing"); };
PER_HOST(params, struct brief_params);
SEC("struct_ops/brief_init")
void BPF_PROG(brief_init, struct sock *sk) { entry_of(&params, host_of(sk)); }
SEC("struct_ops/brief_cong_avoid")
void BPF_PROG(brief_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {}
SEC("struct_ops/brief_ssthresh")
__u32 BPF_PROG(brief_ssthresh, struct sock *sk) { return 2; }
SEC("struct_ops/brief_undo_cwnd")
__u32 BPF_PROG(brief_undo_cwnd, struct sock *sk) { return 2; }
SEC(".struct_ops")
struct tcp_congestion_ops brief = {.init = (void *)brief_init, .cong_avoid = (void *)brief_cong_avoid,
    .ssthresh = (void *)brief_ssthresh, .undo_cwnd = (void *)brief_undo_cwnd, .name = KERNEL_NAME(brief)};
"""


@pytest.fixture
def brief(tools: Any, tmp_path: Path) -> Iterator[Callable[[str], list[str]]]:
    """Return the command line that loads or unloads a transport which nothing else uses."""
    (tmp_path / "brief.bpf.c").write_text(BRIEF)
    for variant in ("brief.bpf.o", "brief.before_6_10.bpf.o"):
        tools.compiled(tmp_path / "brief.bpf.c", tmp_path / variant)
    words = ["brief", "--owner", process_name("test"), "--objects", str(tmp_path)]
    yield lambda action: [str(tools.build / "bin/transport"), action, *words]
    tools.transport("unload", *words)


@pytest.mark.parametrize("killed", ["load", "unload"])
@pytest.mark.parametrize(
    ("points", "mended_by"),
    [
        ((1, 2), "unload"),
        ((2, 2), "load"),
        pytest.param((1, 1), "unload", marks=pytest.mark.proof),
        pytest.param((1, 1), "load", marks=pytest.mark.proof),
    ],
)
def test_the_next_call_repairs_what_a_killed_call_left(
    tools: Any, brief: Callable[[str], list[str]], killed: str, points: tuple[int, int], mended_by: str
) -> None:
    """Kill a call after its first system call or its second, and every `points[1]` calls from there."""
    mended = 0
    for calls in count(*points):
        if killed == "unload":
            tools.run(*brief("load"))
        if not is_killed_after(calls, ["bpf", "unlink", "rmdir"], brief(killed)):
            break
        if "rb_brief" not in available() and "brief" not in tools.transport("list").stdout:
            continue
        tools.run(*brief(mended_by))
        assert ("rb_brief" in available()) == (mended_by == "load")
        tools.run(*brief("unload"))
        assert "rb_brief" not in available()
        mended += 1
    assert mended > 3 // points[1]
