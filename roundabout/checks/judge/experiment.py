# SPDX-License-Identifier: Apache-2.0
"""The experiment of a judgement, with two and three training jobs over each contestant."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roundabout.checks.judge.figures import JOBS, Scene
from roundabout.store.files import write_text

PEERS = ("cubic", "dctcp", "dcqcn")
WORKERS = {"j1": ["s0", "s3"], "j2": ["s1", "s4"], "j3": ["s2", "s5"]}
PROFILES: dict[Scene, str] = {"two-jobs": "vgg19-fig1", "three-jobs": "thirds"}
COUNTS: dict[Scene, int] = {"two-jobs": 2, "three-jobs": 3}


def variant_name(scene: Scene, contestant: str) -> str:
    """Return the name of the variant for `contestant` in `scene`."""
    return f"{contestant}-{COUNTS[scene]}"


def write_experiment(program: Path, name: str, scenes: Sequence[Scene], iterations: int, folder: Path) -> Path:
    """Write the experiment `name` into `folder`, and return its file. It has a variant for each contestant and scene.

    `program` is the judged program. At least one scene of jobs must be given.
    """
    counts = [scene for scene in scenes if scene in JOBS] or list(JOBS[:1])
    transports: dict[str, Any] = {
        name: {"file": str(program)},
        **{peer: {"name": peer} for peer in PEERS if peer != name},
    }
    document = {
        "schema": 1,
        "name": f"cc-{name.replace('_', '-')}",
        "about": f"Training jobs over {name} and {', '.join(PEERS)}: do they interleave, is anyone hurt",
        "topology": "dumbbell-3x3",
        "profile": PROFILES["two-jobs"],
        "jobs": {job: {"workers": WORKERS[job]} for job in ("j1", "j2")},
        "iterations": iterations,
        "factors": {
            "variant": {
                variant_name(scene, contestant): {
                    "profile": PROFILES[scene],
                    "transport": transport,
                    "jobs": {job: {"workers": WORKERS[job]} for job in list(WORKERS)[: COUNTS[scene]]},
                }
                for scene in counts
                for contestant, transport in transports.items()
            }
        },
        "study": {"kind": "levels", "baseline": variant_name(counts[0], "cubic")},
    }
    path = folder / "jobs.yaml"
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False))  # JSON is YAML, too
    return path
