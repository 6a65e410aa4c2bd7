"""Which weights a model is: two models that bear the same name for them are one thing at two providers."""

from toolbench.lab.models import Model
from toolbench.lab.plain_text import clean_text
from toolbench.lab.traces.step_facts import to_column_text

MAX_NAME_CHARS = 200


def set_canonical_name(model_id: int, name: str) -> str | None:
    """Counts from the next run on; runs keep what they froze. Returns the name as it is kept, None for an unknown
    model. A blank name says that nobody knows."""
    kept = to_column_text(clean_text(name), MAX_NAME_CHARS).lower()
    return kept if Model.objects.filter(pk=model_id).update(canonical=kept) else None


def list_canonical_names() -> tuple[str, ...]:
    """Every name in use. One query."""
    named = Model.objects.exclude(canonical="").order_by("canonical").values_list("canonical", flat=True)
    return tuple(named.distinct())
