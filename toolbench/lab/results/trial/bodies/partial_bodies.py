"""Step details and truncated bodies of stored steps, within the byte limits of a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step
from toolbench.lab.results.trial.timeline import StepFacts
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.step_facts import load_details

MAX_BODY_BYTES = 200_000  # bytes of a body or a text that a page shows
MAX_FACTS_BYTES = 400_000  # bytes of one step's facts
MAX_TOTAL_FACTS_BYTES = 4_000_000  # bytes of one trial's facts read for a page
_READ_STEP_BODIES = load_statement("results/trial/read_step_bodies")


@dataclass(frozen=True, slots=True)
class StoredBodies:
    """What was read of a step.

    Attributes:
        facts: None if the step details are too large for the page.
        request: the first MAX_BODY_BYTES; empty if it was not read.
        response: the first MAX_BODY_BYTES; empty if it was not read.
    """

    facts: JsonObject | None = None
    request: bytes = b""
    response: bytes = b""


def read_step_bodies(
    steps: Sequence[Step], *, turn: int | None = None, requests: Sequence[int] = (), responses: Sequence[int] = ()
) -> Mapping[int, StoredBodies]:
    """Return step details and bodies by step id, with one query.

    Args:
        steps: steps of one or two trials. Their details are read up to MAX_TOTAL_FACTS_BYTES of each trial.
        turn: the turn whose details are read first.
        requests: ids of the steps whose request is read.
        responses: ids of the steps whose response is read.
    """
    parameters: dict[str, int | list[int]] = {
        "steps": [step.pk for step in steps],
        "turn": -1 if turn is None else turn,
        "requests": list(requests),
        "responses": list(responses),
        "max_total": MAX_TOTAL_FACTS_BYTES,
        "max_facts": MAX_FACTS_BYTES,
        "max_body": MAX_BODY_BYTES,
    }
    with connection.cursor() as cursor:
        cursor.execute(_READ_STEP_BODIES, parameters)
        return {
            pk: StoredBodies(None if facts is None else load_details(facts), bytes(request), bytes(response))
            for pk, facts, request, response in cursor.fetchall()
        }


def select_facts(stored: Mapping[int, StoredBodies]) -> StepFacts:
    """Return the step details that were read, by step id."""
    return {pk: bodies.facts for pk, bodies in stored.items() if bodies.facts is not None}
