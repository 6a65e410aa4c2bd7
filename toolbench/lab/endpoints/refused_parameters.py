"""Parameters that a model's endpoint refused in runs, offered as a setting of the model."""

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
    """A parameter to leave out.

    Attributes:
        why: the answer of the endpoint.
        differs: how requests without the parameter differ.
        run_id: the newest run in which the endpoint refused it.
    """

    name: str
    why: str
    differs: str
    run_id: int


def get_suggested_omissions(model: Model) -> tuple[SuggestedOmission, ...]:
    """Return the refused parameters that the model's workarounds do not leave out yet.

    At most two queries.
    """
    rows = RefusedParameter.objects.filter(provider=model.provider_id, model_name=model.name, run__deleted_at=None)
    found = {
        row.name: SuggestedOmission(row.name, row.why, describe_difference(row.name), row.run_id)
        for row in rows.order_by("pk")
    }
    if not found:
        return ()
    presets = Preset.objects.filter(name__in=model.workarounds).values_list("patch", flat=True)
    taken = {name for patch in presets for name in _list_omitted(patch)}
    return tuple(offer for name, offer in found.items() if name not in taken)


@transaction.atomic
def adopt_omissions(model_id: int) -> Preset:
    """Leave out all suggested parameters, with a preset among the model's workarounds.

    Strategy production uses it from the next launch on; existing runs keep their settings.

    Raises:
        NothingToAdoptError: no parameter is suggested.
        Model.DoesNotExist: there is no such model.
    """
    model = Model.objects.select_for_update().get(pk=model_id)
    offers = get_suggested_omissions(model)
    if not offers:
        raise NothingToAdoptError(
            "No run has found a parameter that this endpoint refuses, or all are left out already."
        )
    preset, _ = Preset.objects.select_for_update().get_or_create(name=f"left-out-{slugify(model.name)[:50]}-{model.pk}")
    names = dict.fromkeys((*_list_omitted(preset.patch), *(offer.name for offer in offers)))
    runs = ", ".join(str(run) for run in sorted({offer.run_id for offer in offers}))
    preset.patch = {POLICY_KEY: list(names)}
    preset.description = f"Parameters that the endpoint of {model.name} refused; the last ones in run {runs}."
    preset.save()
    model.workarounds = list(dict.fromkeys([*model.workarounds, preset.name]))
    model.save(update_fields=["workarounds"])
    return preset


def _list_omitted(patch: Any) -> tuple[str, ...]:
    names = patch.get(POLICY_KEY) if isinstance(patch, dict) else None
    return tuple(names) if isinstance(names, list) else ()
