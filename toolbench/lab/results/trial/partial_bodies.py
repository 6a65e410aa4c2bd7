"""Step details and truncated bodies of stored steps, within the byte limits of a page."""

from collections.abc import Mapping, Sequence

from django.db.models import BinaryField, F, Func, IntegerField, Value

from toolbench.lab.models import Step, StepBody
from toolbench.lab.results.trial.timeline import StepFacts
from toolbench.lab.traces.step_facts import load_details

MAX_BODY_BYTES = 200_000  # bytes of a body or a text that a page shows
MAX_FACTS_BYTES = 400_000  # bytes of one step's facts
MAX_TOTAL_FACTS_BYTES = 4_000_000  # bytes of facts read for a page


def read_facts(steps: Sequence[Step], turn: int | None = None) -> StepFacts:
    """Return step details by step id, with two queries.

    Steps of `turn` are read first, then the others from the start, up to MAX_TOTAL_FACTS_BYTES.
    """
    size = Func(F("facts"), function="octet_length", output_field=IntegerField())
    sizes = dict(StepBody.objects.filter(step__in=steps).annotate(size=size).values_list("pk", "size"))
    kept: list[int] = []
    left = MAX_TOTAL_FACTS_BYTES
    for step in sorted(steps, key=lambda step: (step.turn != turn, step.ordinal)):
        if sizes.get(step.pk, MAX_FACTS_BYTES + 1) <= min(left, MAX_FACTS_BYTES):
            kept.append(step.pk)
            left -= sizes[step.pk]
    rows = StepBody.objects.filter(pk__in=kept).values_list("pk", "facts")
    return {pk: load_details(facts) for pk, facts in rows}


def read_bodies(step: Step) -> tuple[bytes, bytes]:
    """Return the first MAX_BODY_BYTES of the request and of the response."""
    row = (
        StepBody.objects.filter(pk=step.pk)
        .values_list(_build_substring("request"), _build_substring("response"))
        .first()
    )
    return (bytes(row[0]), bytes(row[1])) if row else (b"", b"")


def read_partial_bodies(steps: Sequence[Step], side: str) -> Mapping[int, bytes]:
    """Return the first MAX_BODY_BYTES of the requests or of the responses by step id, with one query.

    Args:
        steps: the steps.
        side: "request" or "response".
    """
    rows = StepBody.objects.filter(step__in=steps).values_list("pk", _build_substring(side))
    return {pk: bytes(head) for pk, head in rows}


def _build_substring(name: str) -> Func:
    return Func(F(name), Value(1), Value(MAX_BODY_BYTES), function="substring", output_field=BinaryField())
