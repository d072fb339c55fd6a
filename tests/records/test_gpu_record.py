# SPDX-License-Identifier: Apache-2.0
"""Computing measured on a GPU: how a measurement is chosen, which profile follows, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from analysis.records.call import RecordError
from analysis.records.gpu_record import (
    GpuMeasurement,
    GpuRecord,
    caveats,
    choose_measurement,
    profile_of_measurement,
    read_gpu_record,
)
from roundabout.cli.main import main
from roundabout.spec import EXPERIMENTS, load_profile
from roundabout.spec.training.computing_plan import plan_cases

pytestmark = pytest.mark.unit

H200 = Path(__file__).parent / "gpu-computing" / "h200.jsonl"
"""Four measurements and a failure of one run on an H200."""
SHIPPED = EXPERIMENTS / "gpu-records" / "h200.jsonl.gz"
PROFILES = sorted((EXPERIMENTS / "profiles" / "h200").glob("*.yaml"))


def spread(median: float) -> dict[str, float]:
    return {"median": median, "min": max(median - 0.5, 0), "max": median + 1}


def measurement_line(buckets: list[tuple[int, float]], **fields: Any) -> dict[str, Any]:
    """Return a measurement: 10 ms forward, 20 backward, 4 of the optimizer's step; buckets of bytes, ready at ms."""
    return {
        "format": "roundabout gpu computing",
        "schema": 1,
        "set": "table-4.2",
        "model": "VGG16",
        "batch": 512,
        "planned_batch": 512,
        "precision": "tf32",
        "input": {"image": 32},
        "shape": {"kind": "vgg"},
        "parameters": 1000,
        "optimizer": "SGD, momentum 0.9",
        "iterations": 20,
        "forward_ms": spread(10),
        "backward_ms": spread(20),
        "optimizer_ms": spread(4),
        "buckets": [{"bytes": size, "ready_ms": spread(ready)} for size, ready in buckets],
        "torch": "2.11.0",
        "program_sha256": "0123456789abcdef",
        "revision": "abc",
        "gpu": {"name": "NVIDIA H100", "driver": "580", "power_limit_w": 700.0},
        **fields,
    }


def measured(buckets: list[tuple[int, float]], **fields: Any) -> GpuMeasurement:
    return GpuMeasurement.model_validate(measurement_line(buckets, **fields))


@pytest.fixture(scope="module")
def shipped() -> GpuRecord:
    return read_gpu_record(SHIPPED)


@pytest.fixture
def record(tmp_path):
    def written(*lines: object) -> Path:
        path = tmp_path / "gpu.jsonl"
        path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines))
        return path

    return written


def parts(found: GpuMeasurement, workers: int = 2, payload_gbps: float = 8) -> list[tuple[str, float, int | None]]:
    profile = profile_of_measurement(found, "p", workers, payload_gbps)
    return [(phase.name, phase.duration_ms, phase.bytes) for phase in profile.phases]


def test_a_bucket_is_sent_when_it_is_ready_and_the_one_before_is_sent():
    # 8 Gbit/s are 1 MB a millisecond; two workers of a ring send each byte once. The second bucket waits for the first.
    found = measured([(8_000_000, 5), (4_000_000, 6), (2_000_000, 19)])
    assert parts(found) == [
        ("compute-1", 4 + 10 + 5, None),
        ("send-1", 12, 12_000_000),
        ("compute-2", 19 - 17, None),
        ("send-2", 2, 2_000_000),
    ]


def test_on_a_slow_network_all_buckets_are_one_phase():
    assert parts(measured([(8_000_000, 5), (2_000_000, 19)]), payload_gbps=0.8) == [
        ("compute", 19, None),
        ("send", 100, 10_000_000),
    ]


def test_four_workers_send_half_as_much_again():
    assert parts(measured([(8_000_000, 20)]), workers=4)[1] == ("send", 12, 12_000_000)


def test_computing_after_the_last_bucket_comes_before_the_next_iterations_optimizer():
    assert parts(measured([(1_000_000, 12)])) == [("compute", 4 + 10 + 12 + 7, None), ("send", 1, 1_000_000)]


def test_silence_of_less_than_a_sixtieth_of_the_iteration_is_no_phase():
    found = measured([(1_000_000, 10), (1_000_000, 11.4), (1_000_000, 19)])
    assert parts(found)[1] == ("send-1", pytest.approx(2.4), 2_000_000)


@given(
    buckets=st.lists(st.tuples(st.integers(1, 10**8), st.floats(0, 20)), min_size=1, max_size=30),
    payload_gbps=st.floats(0.1, 400),
)
def test_bytes_are_kept_and_an_iteration_lasts_as_long_as_its_last_part(buckets, payload_gbps):
    buckets = sorted(buckets, key=lambda each: each[1])
    profile = profile_of_measurement(measured(buckets), "p", 2, payload_gbps)
    free_ms = 0.0
    for size, ready_ms in buckets:
        free_ms = max(free_ms, 10 + ready_ms) + size * 8 / payload_gbps / 1e6
    assert profile.comm_bytes == sum(size for size, _ in buckets)
    assert profile.alone_ms == pytest.approx(max(free_ms, 30) + 4, abs=0.05)
    assert all(phase.demand_gbps <= payload_gbps * (1 + 1e-9) for phase in profile.phases)


def test_a_profile_is_stamped_with_its_gpu(record, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = record(measurement_line([(8_000_000, 5)]), measurement_line([(8_000_000, 5)], precision="fp32"))
    words = [str(path), "VGG16", "precision=tf32", "--payload-gbps", "8", "--save", "vgg16-h100"]
    assert main(["profile", "gpu", *words, "--json"]) == 0
    captured = capsys.readouterr()
    stored = load_profile("vgg16-h100", tmp_path)
    assert json.loads(captured.out)["profile"]["source"] == stored.source
    assert (stored.model, stored.batch, stored.alone_ms) == ("VGG16", 512, 34)
    for part in ("NVIDIA H100 (driver 580, power limit 700.0 W, PyTorch 2.11.0): tf32, batch 512, image 32", "abc"):
        assert part in stored.source
    assert "- Computing was measured alone" in captured.err


def test_without_a_model_all_measurements_and_failures_are_shown(record, capsys):
    failed = {**measurement_line([(1, 1)]), "model": "BERT", "error": "RuntimeError: CUDA out of memory"}
    assert main(["profile", "gpu", str(record(measurement_line([(8_000_000, 5)]), failed))]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "VGG16" in shown
    assert "- BERT tf32: RuntimeError: CUDA out of memory" in shown


def test_of_the_same_measurement_the_last_one_counts(record):
    path = record(measurement_line([(1, 1)]), measurement_line([(2, 1)]))
    assert choose_measurement(read_gpu_record(path), ["VGG16", "batch=512"]).buckets[0].bytes == 2


def test_a_real_record_has_all_gradients_in_the_order_in_which_they_come():
    record = read_gpu_record(H200)
    assert len(record.measurements) == 4
    assert [each.split(":")[0] for each in record.failures] == ["DLRM tf32"]
    for each in record.measurements:
        ready_ms = [bucket.ready_ms.median for bucket in each.buckets]
        assert ready_ms == sorted(ready_ms)
        assert 0.99 * each.backward_ms.median < ready_ms[-1] <= each.backward_ms.median
        size = 2 if each.precision == "bf16" else 4
        assert sum(bucket.bytes for bucket in each.buckets) == size * each.parameters


def test_a_real_record_makes_a_profile_whose_gaps_depend_on_the_link():
    resnet50 = choose_measurement(read_gpu_record(H200), ["ResNet50"])
    slow, fast = (profile_of_measurement(resnet50, "p", 2, gbps) for gbps in (4, 43))
    assert [phase.name for phase in slow.phases] == ["compute", "send"]
    assert len(fast.phases) == 8
    assert slow.comm_bytes == fast.comm_bytes == 4 * 25_557_032
    assert fast.compute_ms + fast.comm_ms == pytest.approx(resnet50.compute_ms + 7885056 * 8 / 43e6, abs=0.02)


def test_the_shipped_record_has_what_the_plan_names(shipped):
    planned = {(case["model"], tuple(case.get("share", {}).items())) for case in plan_cases()}
    measured = {(each.model, tuple(each.share.items())) for each in shipped.measurements}
    assert measured == planned


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_a_shipped_profile_is_what_the_shipped_record_makes(path, shipped):
    profile = load_profile(path.stem)
    of_model = [each for each in shipped.measurements if (each.model, each.batch) == (profile.model, profile.batch)]
    made = [profile_of_measurement(each, path.stem, 2, 43) for each in of_model]
    assert profile in made


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["VGG11"], "no measurement of 'VGG11', expected one of VGG16"),
        (["VGG16"], "2 measurements of VGG16, expected one of: batch=512 precision=tf32 image=32; batch=512 precision"),
        (["VGG16", "batch=8"], "0 measurements of VGG16 batch=8"),
        (["VGG16", "tf32"], "found 'tf32' after the model, expected FIELD=VALUE"),
    ],
)
def test_words_that_name_no_measurement_or_several_are_refused(record, words, message):
    found = read_gpu_record(record(measurement_line([(1, 1)]), measurement_line([(1, 1)], precision="bf16")))
    with pytest.raises(RecordError, match=message):
        choose_measurement(found, words)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "found no line, expected a measurement in each"),
        ("{", "line 1: found no JSON"),
        ({"format": "other"}, "line 1: found another format"),
        ({**measurement_line([(1, 1)]), "schema": 2}, "line 1: found schema 2, expected 1"),
        (measurement_line([(1, 1)], batch=0), "line 1: found batch = 0"),
        (
            measurement_line([(1, 1)], forward_ms={**spread(1), "median": float("nan")}),
            r"line 1: found forward_ms.median = nan",
        ),
        (measurement_line([]), "line 1: found buckets ="),
    ],
)
def test_a_damaged_record_is_refused_with_its_line(record, line, message):
    with pytest.raises(RecordError, match=message):
        read_gpu_record(record(line))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"drain_ms": 3.3}, "The host queued slower than the GPU computed"),
        ({"batch": 256}, "The batch of 512 did not fit the GPU's memory, one of 256 did."),
        ({"shape": {"kind": "dlrm"}}, "Exchanges of embeddings are left out"),
        ({"precision": "bf16"}, "Parameters and gradients have 16 bits"),
    ],
)
def test_what_a_measurement_lacks_is_said(fields, sentence):
    said = list(caveats(measured([(1, 1)], **fields)))
    assert len(said) == 3
    assert said[-1].startswith(sentence)


@pytest.mark.parametrize("fields", [{"drain_ms": 3.5}, {"drain_ms": 0.1, "gpu": None}, {}])
def test_a_gpu_that_still_works_was_not_waiting_for_its_host(fields):
    assert len(list(caveats(measured([(1, 1)], **fields)))) == 2


def test_a_layer_makes_no_profile():
    with pytest.raises(RecordError, match="found one layer of Llama3-70B, expected a whole model"):
        profile_of_measurement(measured([(1, 1)], model="Llama3-70B", layers=80), "p", 2, 43)
