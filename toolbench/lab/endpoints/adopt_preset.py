"""Adoption of the preset that a probe proposes, as a workaround of the model."""

from django.db import transaction
from django.utils.text import slugify

from toolbench.engine.capabilities.preset_proposal import propose_preset
from toolbench.lab.endpoints.capabilities import read_probe_capabilities
from toolbench.lab.models import Model, Preset, Probe


class NothingToAdoptError(Exception):
    """Raised if no preset can be adopted from the probe or the runs; the message says why."""


@transaction.atomic
def adopt_preset(probe_id: int) -> Preset:
    """Save the preset that a probe proposes and add it to the workarounds of the probe's model.

    Strategy production uses the preset from the next launch on; existing runs keep their settings. The preset replaces
    that of an earlier probe of the model, even an archived one.

    Raises:
        NothingToAdoptError: the probe proposes no preset.
        Probe.DoesNotExist: there is no such probe.
    """
    probe = Probe.objects.select_related("model").get(pk=probe_id)
    proposal = propose_preset(read_probe_capabilities(probe))
    if not proposal.patch:
        raise NothingToAdoptError(
            "This probe proposes no preset: the endpoint needs none, or the probe was inconclusive."
        )
    name = f"probe-{slugify(probe.model_name)[:50]}-{probe.model_id}"
    note = f"From probe {probe.pk} of {probe.model_name}: {' '.join(proposal.reasons)}"
    columns = {"patch": proposal.patch, "description": note, "archived_at": None}
    preset, _ = Preset.objects.update_or_create(name=name, defaults=columns)
    model = Model.objects.select_for_update().get(pk=probe.model_id)
    model.workarounds = list(dict.fromkeys([*model.workarounds, name]))
    model.save(update_fields=["workarounds"])
    Probe.objects.filter(pk=probe.pk).update(adopted=name)
    return preset
