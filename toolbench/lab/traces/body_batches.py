"""Loading of the bodies of steps for many trials, in batches that fit into memory."""

from collections.abc import Iterable, Iterator

from toolbench.lab.models import Step, StepBody, Trial

MAX_BODY_BYTES = 32 << 20  # size of the bodies at which a batch ends; its last trial may make it larger


def load_bodies(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Yield the trials with the bodies of their steps; the bodies are dropped when the next batch is loaded.

    One query loads the bodies of a batch. A batch ends with the trial that reaches MAX_BODY_BYTES.

    Args:
        trials: trials whose steps are prefetched.
    """
    batch: list[Trial] = []
    size = 0
    for trial in trials:
        batch.append(trial)
        size += sum(step.request_bytes + step.response_bytes for step in trial.steps.all())
        if size >= MAX_BODY_BYTES:
            yield from _load_batch(batch)
            batch, size = [], 0
    yield from _load_batch(batch)


def _load_batch(trials: list[Trial]) -> Iterator[Trial]:
    steps = [step for trial in trials for step in trial.steps.all()]
    _set_bodies(steps, StepBody.objects.in_bulk([step.pk for step in steps]))
    yield from trials
    _set_bodies(steps, {})


def _set_bodies(steps: Iterable[Step], bodies: dict[int, StepBody]) -> None:
    """Cache the body of each step, or that it has none, so that reading `step.body` sends no query."""
    relation = Step._meta.get_field("body")
    for step in steps:
        relation.set_cached_value(step, bodies.get(step.pk))
