"""Canonical names of models.

Models with the same canonical name have the same weights at several providers.
"""

from toolbench.lab.models import Model
from toolbench.lab.query_params import clean_text
from toolbench.lab.traces.step_facts import to_column_text

MAX_NAME_CHARS = 200


def set_canonical_name(model_id: int, name: str) -> str | None:
    """Set the canonical name of a model; the new name applies from the next run on.

    Existing runs keep the name with which they were launched. A blank name means that the weights are unknown.

    Returns:
        The name as it is stored: cleaned, in lower case, at most 200 characters. None for an unknown model.
    """
    canonical_name = normalise_canonical_name(name)
    return canonical_name if Model.objects.filter(pk=model_id).update(canonical=canonical_name) else None


def normalise_canonical_name(name: str) -> str:
    """Clean a name, change it to lower case, which may lengthen it, and truncate it to 200 characters."""
    return to_column_text(clean_text(name).lower(), MAX_NAME_CHARS)


def list_canonical_names() -> tuple[str, ...]:
    """Return every canonical name in use, in alphabetical order, with one query."""
    names = Model.objects.exclude(canonical="").order_by("canonical").values_list("canonical", flat=True)
    return tuple(names.distinct())
