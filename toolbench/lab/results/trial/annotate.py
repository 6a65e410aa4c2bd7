"""Saving of the label and the note of a trial, which change no verdict."""

from django.db import transaction

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import Trial
from toolbench.lab.query_params import clean_text, normalise_lines

MAX_LABEL_CHARS = 80
MAX_NOTE_CHARS = 20_000
CHANGED_NOTE = "This note was changed after you opened the page. Compare, then save again."


def annotate(trial_id: int, *, label: str, note: str, read_texts: tuple[str, str] | None = None) -> bool:
    """Save the label and the note of a trial, truncated to their maximum lengths.

    Args:
        trial_id: primary key of the trial.
        label: the new label.
        note: the new note.
        read_texts: label and note that the user has read and changed; None to replace whatever is stored.

    Returns:
        Whether the trial exists; otherwise, nothing is saved.

    Raises:
        InvalidFieldsError: the stored label and note are neither `read_texts` nor the new ones.
    """
    label, note = clean_text(label, MAX_LABEL_CHARS), clean_text(normalise_lines(note), MAX_NOTE_CHARS)
    with transaction.atomic():
        trials = Trial.objects.select_for_update(of=("self",)).filter(pk=trial_id, run__deleted_at=None)
        trial = trials.only("label", "note").first()
        if trial is None:
            return False
        if read_texts is not None and not any(_has_texts(trial, texts) for texts in (read_texts, (label, note))):
            raise InvalidFieldsError({"note": [CHANGED_NOTE]})
        Trial.objects.filter(pk=trial_id).update(label=label, note=note)
    return True


def _has_texts(trial: Trial, texts: tuple[str, str]) -> bool:
    """Return whether the trial has this label and note. Kinds of line breaks are not compared: browsers change them."""
    stored = (trial.label, trial.note)
    return all(left.splitlines() == clean_text(right).splitlines() for left, right in zip(stored, texts, strict=True))
