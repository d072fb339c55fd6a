# SPDX-License-Identifier: Apache-2.0
"""docs/reference/store.md says what the schemas say, and its queries run."""

import re
from pathlib import Path

import duckdb
import pytest

from roundabout.store import Identity, Run, Units, build_table, schemas

pytestmark = pytest.mark.unit

DOCS = (Path(__file__).parents[2] / "docs/reference/store.md").read_text()


def documented(heading):
    section = re.split(r"^## ", DOCS, flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(f"{heading}\n"))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [tuple(cell.strip("| `") for cell in row) for row in rows]


def declared(columns):
    return [(each.name, str(each.type), each.unit, each.about.strip("`")) for each in columns]


@pytest.mark.parametrize("table", schemas.TABLES)
def test_tables_are_documented_as_they_are(table):
    assert documented(table) == declared(schemas.TABLES[table])


def test_common_columns_are_documented_as_they_are():
    assert documented("Columns of every table") == declared(schemas.COMMON)


def test_the_version_is_documented():
    assert f"version ({schemas.VERSION})" in DOCS


def test_the_queries_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run.create(
        Path("runs"), "unfair-vgg19", {"experiment": {}, "testbed": {}, "plan": []}, "20261121T093012Z-7f3a"
    )
    attempt = run.begin_attempt("k1")
    who = Identity(run.id, "k1", "fair", "{}", 1, 1)
    for name in ("iterations", "queue"):
        attempt.write(name, build_table(name, who, a_row(name), Units(50)))
    text = {"reason": "", "started_utc": "now"}
    nothing = {column.name: None for column in schemas.columns("trials")}
    attempt.commit({**nothing, **vars(who), **text, "valid": True, "spec": {}})
    run.refresh_trials()
    queries = re.findall(r"```sql\n(.*?)```", DOCS, re.DOTALL)
    assert len(queries) == 2
    assert duckdb.sql(queries[0]).fetchall() == [("fair", "j1", 300.0, 300.0, 2)]
    assert [row[-1] for row in duckdb.sql(queries[1]).fetchall()] == [40.0]


def a_row(name):
    """Two rows of a table, a millisecond apart; the first six columns say whose they are."""
    filled = {"host": "s0", "job": "j1", "link": "L1", "towards": "tor1", "interface": "p1", "iteration_ms": 300.0}
    values = {column.name: [filled.get(column.name, 0)] * 2 for column in schemas.columns(name)[6:]}
    return {**values, "controller_ns": [0, 1_000_000], "tx_bytes": [0, 100_000]}
