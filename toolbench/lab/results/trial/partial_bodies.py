"""What a page reads of stored steps: their facts, and the heads of their bodies, as far as the bytes go."""

from collections.abc import Mapping, Sequence

from django.db.models import BinaryField, F, Func, IntegerField, Value

from toolbench.lab.models import Step, StepBody
from toolbench.lab.results.trial.timeline import Facts
from toolbench.lab.traces.step_facts import load

BODY_HEAD = 200_000  # bytes of a body or a text that a page shows
MOST_FACTS = 400_000  # bytes of one step's facts
MOST_FACTS_READ = 4_000_000  # bytes of facts read for a page


def read_facts(steps: Sequence[Step], turn: int | None = None) -> Facts:
    """Facts by step id; those of `turn` first, then from the start as far as the bytes go. Two queries."""
    size = Func(F("facts"), function="octet_length", output_field=IntegerField())
    sizes = dict(StepBody.objects.filter(step__in=steps).annotate(size=size).values_list("pk", "size"))
    kept: list[int] = []
    left = MOST_FACTS_READ
    for step in sorted(steps, key=lambda step: (step.turn != turn, step.ordinal)):
        if sizes.get(step.pk, MOST_FACTS + 1) <= min(left, MOST_FACTS):
            kept.append(step.pk)
            left -= sizes[step.pk]
    rows = StepBody.objects.filter(pk__in=kept).values_list("pk", "facts")
    return {pk: load(facts) for pk, facts in rows}


def read_bodies(step: Step) -> tuple[bytes, bytes]:
    """The heads of the request and the response."""
    row = StepBody.objects.filter(pk=step.pk).values_list(_head("request"), _head("response")).first()
    return (bytes(row[0]), bytes(row[1])) if row else (b"", b"")


def read_side(steps: Sequence[Step], side: str) -> Mapping[int, bytes]:
    """The heads of the requests or of the responses, by step id. One query."""
    rows = StepBody.objects.filter(step__in=steps).values_list("pk", _head(side))
    return {pk: bytes(head) for pk, head in rows}


def _head(name: str) -> Func:
    return Func(F(name), Value(1), Value(BODY_HEAD), function="substring", output_field=BinaryField())
