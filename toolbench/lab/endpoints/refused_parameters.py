"""Parameters that a model's endpoint refused in runs, and the preset that leaves them out."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.text import slugify

from toolbench.engine.policy.optional_parameters import describe_difference
from toolbench.lab.endpoints.adopt_preset import NothingToAdoptError
from toolbench.lab.models import Model, Preset, RefusedParameter

POLICY_KEY = "left_out_parameters"


@dataclass(frozen=True, slots=True)
class SuggestedOmission:
    """A refused parameter that a preset could leave out.

    Attributes:
        why: the endpoint's error message, possibly truncated.
        differs: a sentence on how trials without the parameter differ; "" if nothing that is measured differs.
        run_id: the run of the newest refusal.
    """

    name: str
    why: str
    differs: str
    run_id: int


def get_suggested_omissions(model: Model) -> tuple[SuggestedOmission, ...]:
    """Return the refused parameters that the model's workarounds do not leave out yet, with at most two queries."""
    rows = RefusedParameter.objects.filter(provider=model.provider_id, model_name=model.name, run__deleted_at=None)
    omissions = {
        row.name: SuggestedOmission(row.name, row.why, describe_difference(row.name), row.run_id)
        for row in rows.order_by("pk")
    }
    if not omissions:
        return ()
    presets = Preset.objects.filter(name__in=model.workarounds).values_list("patch", flat=True)
    omitted = {name for patch in presets for name in _list_omitted(patch)}
    return tuple(omission for name, omission in omissions.items() if name not in omitted)


@transaction.atomic
def adopt_omissions(model_id: int) -> Preset:
    """Save a preset that leaves out all suggested parameters, and add it to the model's workarounds.

    If an earlier call created the preset, its parameters stay in it; an archived preset becomes active again. The
    strategy production uses the preset from the next launch on; existing runs keep their settings.

    Raises:
        NothingToAdoptError: no parameter is suggested.
        Model.DoesNotExist: there is no such model.
    """
    model = Model.objects.select_for_update().get(pk=model_id)
    omissions = get_suggested_omissions(model)
    if not omissions:
        raise NothingToAdoptError(
            "No run has found a parameter that this endpoint refuses, or all are left out already."
        )
    preset, _ = Preset.objects.select_for_update().get_or_create(name=f"left-out-{slugify(model.name)[:50]}-{model.pk}")
    names = dict.fromkeys((*_list_omitted(preset.patch), *(omission.name for omission in omissions)))
    runs = ", ".join(str(run) for run in sorted({omission.run_id for omission in omissions}))
    preset.patch, preset.archived_at = {POLICY_KEY: list(names)}, None
    preset.description = f"Parameters that the endpoint of {model.name} refused; the last ones in run {runs}."
    preset.save()
    model.workarounds = list(dict.fromkeys([*model.workarounds, preset.name]))
    model.save(update_fields=["workarounds"])
    return preset


def _list_omitted(patch: Any) -> tuple[str, ...]:
    names = patch.get(POLICY_KEY) if isinstance(patch, dict) else None
    return tuple(names) if isinstance(names, list) else ()
