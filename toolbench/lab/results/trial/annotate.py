"""Saving of the label and the note of a trial, which change no verdict."""

from toolbench.lab.models import Trial
from toolbench.lab.query_params import clean_text

MAX_LABEL_CHARS = 80
MAX_NOTE_CHARS = 20_000


def annotate(trial_id: int, *, label: str, note: str) -> bool:
    """Save the label and the note of a trial, truncated to their maximum lengths.

    Returns:
        Whether the trial exists; otherwise, nothing is saved.
    """
    trials = Trial.objects.filter(pk=trial_id, run__deleted_at=None)
    return bool(trials.update(label=clean_text(label)[:MAX_LABEL_CHARS], note=clean_text(note)[:MAX_NOTE_CHARS]))
