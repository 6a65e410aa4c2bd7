"""Labels and notes that users add to a trial. They never change a verdict."""

from toolbench.lab.models import Trial
from toolbench.lab.query_params import clean_text

MAX_NOTE_CHARS = 20_000


def annotate(trial_id: int, *, label: str, note: str) -> bool:
    """Save label and note, truncated to their maximum lengths.

    Returns:
        False if there is no such trial.
    """
    clean = {name: clean_text(text) for name, text in (("label", label), ("note", note))}
    found = Trial.objects.filter(pk=trial_id, run__deleted_at=None)
    return bool(found.update(label=clean["label"][:80], note=clean["note"][:MAX_NOTE_CHARS]))
