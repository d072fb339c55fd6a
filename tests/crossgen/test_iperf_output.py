# SPDX-License-Identifier: Apache-2.0
"""Output of iperf, in every form and damaged: a result, or one IperfError with one message."""

import json
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from crossgen import iperf
from crossgen.iperf import Iperf2, Iperf3, IperfError

pytestmark = pytest.mark.unit

OLD = "20260101000000,10.0.0.1,40000,10.0.0.2,5001,{id},{start}-{end},{bytes},{speed}"
ENHANCED = "+0000:20260101000000.128,10.0.0.1,40000,10.0.0.2,5001,{id},{start}-{end},{bytes},{speed},-1,-1,-1,-1,0,0"
HEADING = (
    "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,"
    "writecnt,writeerr,tcpretry,tcpcwnd,tcppcwnd,tcprtt,tcprttvar"
)
NEW = (
    "+0000:20260101000000.955,10.0.0.1,40000,10.0.0.2,5001,{id},{start},{end},{bytes},{speed},-1,-1,4294967295,-1,0,0,0"
)
FORMS = {"old": ("", OLD), "enhanced": ("", ENHANCED), "2.2": (HEADING + "\n", NEW), "2.2 without heading": ("", NEW)}


def printed(form: str, *reports: tuple[int, float, float, int], end: str = "\n") -> str:
    """Return iperf 2's output of reports: connection, start, end, bytes."""
    heading, row = FORMS[form]
    rows = [row.format(id=id_, start=start, end=stop, bytes=size, speed=8 * size) for id_, start, stop, size in reports]
    return heading + "".join(row + end for row in rows)


def refusal(parse: Any, out: str) -> str:
    with pytest.raises(IperfError) as raised:
        parse(out)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_form_of_iperf_2_is_read(form: str, end: str) -> None:
    one = [(1, 0.0, 1.0, 1000), (1, 1.0, 2.0, 3000), (1, 2.0, 2.0, 0), (1, 0.0, 2.0, 4000)]
    other = [(2, 0.0, 1.0, 500), (2, 0.0, 2.0, 500)]
    both = [(-1, start, stop, 99999) for _, start, stop, _ in one]
    told = Iperf2.summarise(printed(form, *one, *other, *both, end=end))
    assert told["achieved_gbps"] == pytest.approx(8e-9 * 4500 / 2)
    assert told["seconds"] == [
        {"start_s": 0.0, "end_s": 1.0, "gbps": pytest.approx(8e-9 * 1500)},
        {"start_s": 1.0, "end_s": 2.0, "gbps": pytest.approx(8e-9 * 3000)},
    ]


def test_columns_are_found_by_their_heading() -> None:
    out = "bytes,speed,transferid,iend,istart\n1000,8000,1,1.0,0.0\n"
    assert Iperf2.summarise(out)["achieved_gbps"] == pytest.approx(8e-6)
    assert "expected reports" in refusal(Iperf2.summarise, "bytes,speed,transferid,iend,istart\n1000,8000\n")
    assert "the end of" in refusal(Iperf2.summarise, "transferid,istart,bytes,speed\n1,0,5,6\n")


def test_one_second_is_one_report_or_two() -> None:
    for reports in ([(1, 0.0, 1.0, 1000)], [(1, 0.0, 1.0, 1000)] * 2):
        told = Iperf2.summarise(printed("old", *reports))
        assert (told["achieved_gbps"], len(told["seconds"])) == (pytest.approx(8e-6), 1)


def test_without_a_total_the_load_is_the_mean() -> None:
    told = Iperf2.summarise(printed("2.2", (1, 0.0, 1.0, 1000), (1, 1.0, 2.0, 3000)))
    assert told["achieved_gbps"] == pytest.approx(8e-9 * 2000)


@pytest.mark.parametrize("form", FORMS)
def test_the_receivers_report_over_udp_is_the_total_and_no_interval(form: str) -> None:
    told = Iperf2.summarise(printed(form, (3, 0, 1, 1000), (3, 1, 2, 1000), (3, 0, 2, 2000), (3, 0, 2, 1500)))
    assert told["achieved_gbps"] == pytest.approx(8e-9 * 750)
    assert [each["gbps"] for each in told["seconds"]] == [pytest.approx(8e-9 * 1000)] * 2


@pytest.mark.parametrize("form", FORMS)
def test_a_load_that_no_link_has_is_refused(form: str) -> None:
    assert "8.0e+11 Gbit/s, expected less than 1e+09" in refusal(Iperf2.summarise, printed(form, (1, 0, 1, 10**20 - 1)))


@pytest.mark.parametrize("form", FORMS)
def test_a_report_over_no_time_is_left_out(form: str) -> None:
    assert refusal(Iperf2.summarise, printed(form, (3, 0.0, 0.0, 0))).startswith("iperf: expected reports")


def test_words_of_iperf_2_are_told() -> None:
    assert refusal(Iperf2.summarise, "") == (
        "iperf: expected reports of what was sent, found none: is its server there?"
    )
    for heading in ("", HEADING + "\n"):
        said = refusal(Iperf2.summarise, heading + "tcp connect failed:\nConnection refused\n")
        assert "tcp connect failed: Connection refused" in said


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "said"), [("start", "the start"), ("end", "the end"), ("bytes", "the number of bytes")]
)
@pytest.mark.parametrize("value", ["nan", "inf", "-1", "", "1e999", "9" * 400, "1_0", "words", "\N{SUPERSCRIPT TWO}"])
def test_an_odd_number_of_iperf_2_is_named(form: str, name: str, said: str, value: str) -> None:
    heading, row = FORMS[form]
    fields = {"id": "1", "start": "0.0", "end": "1.0", "bytes": "1000", "speed": "8000", name: value}
    assert f"iperf: {said} of `" in refusal(Iperf2.summarise, heading + row.format(**fields) + "\n")


def test_an_interval_that_ends_before_it_starts_is_refused() -> None:
    assert "ends before it starts" in refusal(Iperf2.summarise, printed("2.2", (1, 2.0, 1.0, 5)))


def three(gbps: Any = 0.5, **more: Any) -> dict[str, Any]:
    """Return iperf3's JSON, as far as it is read."""
    sums = [{"sum": {"start": second, "end": second + 1.0, "bits_per_second": 1e9}} for second in range(2)]
    rate = gbps * 1e9 if isinstance(gbps, float) else gbps
    return {"start": {}, "intervals": sums, "end": {"sum_received": {"bits_per_second": rate}}, **more}


@pytest.mark.parametrize("indent", [None, "\t"])
@pytest.mark.parametrize("before", ["", "warning: {a} JSON data length overflow\n", "a word "])
@pytest.mark.parametrize("behind", ["", "\n", "\niperf3: interrupt {done}\n"])
def test_words_around_iperf3s_json_are_skipped(indent: str | None, before: str, behind: str) -> None:
    told = Iperf3.summarise(before + json.dumps(three(), indent=indent) + behind)
    assert told["achieved_gbps"] == 0.5
    assert told["seconds"][1] == {"start_s": 1.0, "end_s": 2.0, "gbps": 1.0}


def test_an_error_of_iperf3_is_told_however_it_is_said() -> None:
    for out in (
        json.dumps(three(error="unable to receive results: ")),
        "warning: something\n" + json.dumps({"error": "unable to receive\nresults"}),
        "iperf3: unable to receive\n  results\n",
    ):
        assert refusal(Iperf3.summarise, out) == "iperf3: unable to receive results"
    assert refusal(Iperf3.summarise, "\n") == "iperf3: it printed nothing, expected JSON"
    assert refusal(Iperf3.summarise, '{"error": null}') == "iperf3: it failed, and did not say why"
    assert refusal(Iperf3.summarise, '{"error": ""}') == "iperf3: it failed, and did not say why"


@pytest.mark.parametrize("value", [None, "5", True, math.nan, math.inf, -1, 10**30, 10**400, [], {}])
def test_an_odd_number_of_iperf3_is_named(value: Any) -> None:
    said = refusal(Iperf3.summarise, json.dumps(three(value)))
    assert said.startswith("iperf3: end.sum_received.bits_per_second is ")
    for name in ("start", "end", "bits_per_second"):
        interval = {"sum": {"start": 0, "end": 1, "bits_per_second": 1, name: value}}
        said = refusal(Iperf3.summarise, json.dumps(three(intervals=[interval])))
        assert said.startswith(f"iperf3: sum.{name} is ")


@pytest.mark.parametrize("way", ["end", "intervals"])
@pytest.mark.parametrize("value", [None, 5, "text", [5], {"sum": 5}])
def test_other_json_of_iperf3_is_refused(way: str, value: Any) -> None:
    assert refusal(Iperf3.summarise, json.dumps({**three(), way: value})).startswith("iperf3: ")


def test_an_interval_of_no_time_is_left_out() -> None:
    interval = {"sum": {"start": 2.0, "end": 2.0, "bits_per_second": 0}}
    assert Iperf3.summarise(json.dumps(three(intervals=[interval])))["seconds"] == []


def test_json_that_cannot_be_read_is_said() -> None:
    assert refusal(Iperf3.summarise, "[" * 9 + "{" * 9).startswith("iperf3: its JSON cannot be read")
    assert refusal(Iperf3.summarise, '{"a":' * 50_000) == (
        "iperf3: its JSON cannot be read (too deep or too long): was it cut?"
    )


def test_cut_json_is_said() -> None:
    whole = json.dumps(three(), indent=1)
    for length in range(1, len(whole)):
        assert refusal(Iperf3.summarise, whole[:length]).startswith("iperf3: its JSON cannot be read (")


def mutated(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        until = draw(st.integers(at, min(len(text), at + 20)))
        text = (
            text[:at]
            + draw(st.sampled_from(["", "-", ",", "9" * 30, "{", "}", '"', "\n", "nan", "é", "e"]))
            + text[until:]
        )
    return text


@st.composite
def outputs(draw: st.DrawFn) -> tuple[Any, str]:
    """Draw a parser, and what iperf could have printed for it, damaged."""
    if draw(st.booleans()):
        whole = json.dumps(three(), indent=draw(st.sampled_from([None, 1])))
        return Iperf3.summarise, mutated(draw, "warning: words\n" + whole + "\nmore\n")
    reports = [(1, 0.0, 1.0, 1000), (2, 0.0, 1.0, 1000), (1, 0.0, 1.0, 1000), (2, 0.0, 1.0, 1000)]
    return Iperf2.summarise, mutated(draw, printed(draw(st.sampled_from(sorted(FORMS))), *reports))


def check(parse: Any, out: str) -> None:
    """Give a parser anything: a result of sound numbers, or one message."""
    try:
        told = parse(out)
    except IperfError as error:
        said = str(error)
        assert said.startswith("iperf") and "\n" not in said and len(said) < 1000, said
        return
    assert 0 <= told["achieved_gbps"] < math.inf
    for second in told["seconds"]:
        assert 0 <= second["start_s"] < second["end_s"] < math.inf and 0 <= second["gbps"] < math.inf


@settings(max_examples=300)
@given(outputs())
def test_damaged_output_is_a_result_or_one_message(drawn: tuple[Any, str]) -> None:
    check(*drawn)


@settings(max_examples=100)
@given(st.text(alphabet="[]SUM 0123456789.-secKbits/", max_size=80))
def test_any_line_is_a_second_or_none(line: str) -> None:
    for text in (
        line,
        f"[SUM]   0.00-1.00  sec  {line} MBytes  39845 Kbits/sec",
        f"[  5] {line}  sec  1 MBytes  5 Kbits/sec",
    ):
        second = Iperf3.second(text)
        assert second is None or second["end_s"] > second["start_s"]


@pytest.mark.parametrize("load", ["0", "nan", "inf", "-1", "1e-9", "words"])
def test_a_load_that_iperf_would_take_for_no_limit_is_bad_usage(load: str) -> None:
    words = ["client", "--to", "10.0.0.1", "--duration-s", "1", "--load-gbps", load]
    done = subprocess.run([sys.executable, iperf.__file__, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert "argument --load-gbps" in done.stderr


def test_a_start_that_is_no_instant_is_said() -> None:
    words = [sys.executable, iperf.__file__, "load", "--to", "10.0.0.1", "--load-gbps", "1"]
    done = subprocess.run(words, input="start soon\n", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "iperf.py: found `start soon`, expected `start MONOTONIC_NS` on standard input\n",
    )


def test_the_way_to_iperf_fails_with_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IperfError, match=r"^sh failed: status 3, without a word$"):
        iperf.output(["sh", "-c", "exit 3"], 10)
    with pytest.raises(IperfError, match=r"^sh failed: a b$"):
        iperf.output(["sh", "-c", "printf 'a\n b\n' >&2; exit 1"], 10)
    assert iperf.output(["sh", "-c", "printf '\\377x\n'"], 10) == "\N{REPLACEMENT CHARACTER}x\n"
    monkeypatch.setattr(iperf, "output", lambda argv, limit_s: "connect failed")
    for tool in iperf.TOOLS.values():
        with pytest.raises(IperfError, match="connect failed"):
            tool.measure("10.0.0.1", 1, 1.0, 1, 1)
