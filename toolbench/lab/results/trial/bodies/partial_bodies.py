"""Reading of step details and bodies within the byte limits of a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step
from toolbench.lab.results.trial.timeline import StepFacts
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.step_facts import load_details

MAX_BODY_BYTES = 200_000  # of one body or text
MAX_FACTS_BYTES = 400_000  # of the details of one step
MAX_TOTAL_FACTS_BYTES = 4_000_000  # of the details of all steps of a trial
_READ_STEP_BODIES = load_statement("results/trial/read_step_bodies")


@dataclass(frozen=True, slots=True)
class StoredBodies:
    """Step details and bodies of a step, as far as they were read.

    Attributes:
        facts: step details; None if they were not read, since they are too large for the page.
        request: the first MAX_BODY_BYTES of the request; empty if it was not read.
        response: the first MAX_BODY_BYTES of the response; empty if it was not read.
    """

    facts: JsonObject | None = None
    request: bytes = b""
    response: bytes = b""


def read_step_bodies(
    steps: Sequence[Step], *, turn: int | None = None, requests: Sequence[int] = (), responses: Sequence[int] = ()
) -> Mapping[int, StoredBodies]:
    """Return step details and bodies by step id, with one query. Steps without a stored body are left out.

    Args:
        steps: steps of one or two trials. Of each trial, at most MAX_TOTAL_FACTS_BYTES of details are read.
        turn: number of the turn whose details are read first; None to read the details in the order of the steps.
        requests: ids of the steps whose requests are read.
        responses: ids of the steps whose responses are read.
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
