# SPDX-License-Identifier: Apache-2.0
"""docs/reference/cluster.md: its tables are what models.yaml and traces come to. Run as a program, this prints them.

Scores of pairs stand in docs/results/schedulers.md.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import get_args

import pytest
from pydantic import TypeAdapter

from roundabout.models.cassini import circle_of, rotate, unify
from roundabout.models.cluster.models import MODELS_FILE, make_profile, read_models
from roundabout.models.cluster.state import Request
from roundabout.models.cluster.traces import trace_requests
from roundabout.spec.job_mix import JobMix
from roundabout.spec.profile import Profile
from roundabout.spec.reader.yaml_source import parse, read_document
from roundabout.spec.trace import ListedJob, Range, SubmittedJob, Trace

pytestmark = pytest.mark.unit

TRACES = TypeAdapter(Trace)
DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = DOCS / "reference/cluster.md"
PAIRS_DOCUMENT = DOCS / "results/schedulers.md"
GPUS = 24
WORKERS = (2, 6, 12)
SEEDS = range(50)
PAIRS = (
    ("WideResNet101", "VGG16", "compatible (4.2)"),
    ("BERT", "VGG19", "not (4.2)"),
    ("XLM", "WideResNet101", "not (4.5.2)"),
    ("GPT1", "GPT2-A", "compatible (4.5.2, 4.5.4)"),
    ("GPT3", "DLRM", "compatible (4.5.4)"),
    ("GPT3", "GPT2-A", "not (4.5.2, 4.5.4)"),
    ("GPT1", "DLRM", "not (4.5.4)"),
)


def rows_of_models() -> Iterator[str]:
    """What Table 4.2 says of each model, and iterations alone at the middle of its batches."""
    for name, model in read_models().models.items():
        memory, batch = map(between, (model.memory_mb, model.batch))
        cells = []
        for workers in WORKERS:
            stated = at_middle(name, workers)
            drawn = sorted(at_middle(name, workers, seed).alone_ms for seed in SEEDS)
            share = stated.comm_ms / stated.alone_ms
            cells.append(f"{stated.alone_ms:.0f} ({drawn[0]:.0f} to {drawn[-1]:.0f}), {share:.0%}")
        yield f"| {name} | {model.plan} | {memory} | {batch} | {' | '.join(cells)} |"


def between(ends: tuple[int, int]) -> str:
    return " to ".join(f"{each:,}" for each in dict.fromkeys(ends))


def rows_of_figures() -> Iterator[str]:
    """Every figure of models.yaml."""
    for path, figure in figures(read_document(MODELS_FILE).root):
        least, most = figure.get("least"), figure.get("most")
        range_ = f"{least:,} to {most:,}" if least else ""
        yield f"| `{path}` | {figure['value']:,} | {range_} | {figure.get('source') or figure['guess']} |"


def figures(block: Mapping, path: str = "") -> Iterator[tuple[str, Mapping]]:
    if "value" in block:
        yield path.removeprefix("models."), block
        return
    for name, each in block.items():
        if isinstance(each, Mapping):
            yield from figures(each, f"{path}.{name}".removeprefix("."))


def rows_of_pairs() -> Iterator[str]:
    """How well two jobs of as many workers fit beside each other on a link, beside what the thesis says of them."""
    for one, other, said in PAIRS:
        scores = []
        for workers in WORKERS:
            circles = [circle_of(at_middle(name, workers), name) for name in (one, other)]
            scores.append(f"{rotate(unify(circles), 50.0, 5.0).score:.2f}")
        yield f"| {one}, {other} | {said} | {' | '.join(scores)} |"


def at_middle(name: str, workers: int, guesses: int | None = None) -> Profile:
    return make_profile(name, workers, sum(read_models().models[name].batch) // 2, guesses)


def rows_of_loads() -> Iterator[str]:
    """The share of GPUs that jobs use until the last one comes, dedicated: of 60 and 1,000 jobs, and one by one."""
    for name in ("mixed", "model-parallel"):
        for load in (0.8, 0.9, 1.0):
            few = [drawn(name, load, 60, seed) for seed in SEEDS]
            many = [drawn(name, load, 1000, seed) for seed in range(5)]
            minutes = fmean(jobs[-1].arrives_s for jobs in few) / 60
            queued = [used(jobs, in_turn(jobs)) for jobs in few]
            shares = [fmean(each) for each in (map(used, few), map(used, many), queued)]
            yield f"| {name} | {load} | {minutes:.0f} | " + " | ".join(f"{share:.2f}" for share in shares) + " |"


def drawn(models: str, load: float, jobs: int, seed: int) -> tuple[Request, ...]:
    content = {"kind": "poisson", "load": load, "jobs": jobs, "models": [models]}
    return trace_requests(TRACES.validate_python(content), GPUS, seed)


def used(jobs: tuple[Request, ...], begin_s: tuple[float, ...] = ()) -> float:
    """The share of GPUs in use until the last job comes, if each begins when it comes (or then)."""
    end_s = jobs[-1].arrives_s
    begins_s = begin_s or tuple(job.arrives_s for job in jobs)
    spent = (job.workers * min(alone_s(job), max(end_s - at_s, 0.0)) for job, at_s in zip(jobs, begins_s, strict=True))
    return sum(spent) / (end_s * GPUS)


def alone_s(job: Request) -> float:
    return job.iterations * make_profile(job.model, job.workers, job.batch).alone_ms / 1000


def in_turn(jobs: tuple[Request, ...]) -> tuple[float, ...]:
    """When each begins on the GPUs that there are, no job before one that came earlier."""
    free_s, now_s, begin_s = [0.0] * GPUS, 0.0, []
    for job in jobs:
        free_s.sort()
        now_s = max(now_s, job.arrives_s, free_s[job.workers - 1])
        free_s[: job.workers] = [now_s + alone_s(job)] * job.workers
        begin_s.append(now_s)
    return tuple(begin_s)


TABLES = {rows_of_models: DOCUMENT, rows_of_pairs: PAIRS_DOCUMENT, rows_of_figures: DOCUMENT, rows_of_loads: DOCUMENT}


@pytest.mark.parametrize("rows", TABLES)
def test_the_document_has_these_rows_and_no_others(rows):
    text = TABLES[rows].read_text()
    expected = list(rows())
    begin = text.index(expected[0])
    assert text[begin:].partition("\n\n")[0].splitlines() == expected


def test_the_documents_example_traces_are_valid():
    examples = [part.partition("```")[0] for part in DOCUMENT.read_text().split("```yaml\n")[1:]]
    assert len(examples) == 5
    rows = [SubmittedJob(name="job", at_s=0.0, gpus=1)]  # of the one whose file a user brings
    for text in examples:
        trace = TRACES.validate_python(parse(text, DOCUMENT.name).root["trace"])
        assert isinstance(trace, JobMix) or trace_requests(trace, GPUS, 1, submitted=rows)


def test_every_field_of_a_trace_is_documented():
    documented = set(re.findall(r"`(\w+)`", DOCUMENT.read_text()))
    kinds = get_args(get_args(Trace)[0])
    assert {name for kind in (*kinds, ListedJob, Range) for name in kind.model_fields} <= documented


if __name__ == "__main__":
    for rows in TABLES:
        print("\n".join(rows()), end="\n\n")
