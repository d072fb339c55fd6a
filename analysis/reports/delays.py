# SPDX-License-Identifier: Apache-2.0
"""The attributed delays of a run, stored beside its summary, as a section of its report."""

from contextlib import suppress

from pydantic import ValidationError

from analysis.attribution import attribution_tables as shown
from analysis.attribution.attribution import Attribution
from analysis.render.page import (
    Html,
    captioned_table_html,
    concatenate,
    figure_html,
    list_html,
    markdown_html,
    paragraph,
)
from roundabout.store import Run, StoreError
from roundabout.store.files import read_json, write_json

NAME = "delays.json"
CAPTION = "Each bar has the parts of a job's delay that are at least 1 % of its iteration alone."


def store_delays(run: Run, found: Attribution) -> None:
    """Store the delays in the run's folder, with the digest of the trials that they are of. Raises StoreError."""
    write_json(run.path / NAME, {"digest": run.digest(), "attribution": found.record()})


def stored_delays(run: Run) -> Attribution | None:
    """Return the stored delays, or None if there are none, or if they are of other trials or another version."""
    with suppress(StoreError, ValidationError, KeyError, TypeError):
        content = read_json(run.path / NAME)
        if content["digest"] == run.digest():
            return Attribution.model_validate(content["attribution"])
    return None


def delays_html(run: Run) -> Html:
    """Return the section of a run's report, empty without stored delays."""
    found = stored_delays(run)
    if found is None:
        return Html("")
    return concatenate(
        [
            markdown_html("## Why jobs were slow"),
            list_html("The mean delay of an iteration against the profile, and its causes:", shown.sentences(found)),
            figure_html(shown.figure(found), CAPTION, "parts of each job's delay"),
            captioned_table_html(shown.table(found)),
            paragraph(f"{shown.origin(found)}."),
        ]
    )
