"""Text about the support for the sampling seed at the endpoints of a paired comparison."""

from collections import defaultdict

from toolbench.engine.capabilities.record import EffectiveCapabilities
from toolbench.lab.endpoints.capabilities import get_capabilities_by_model
from toolbench.lab.models import Model, RunConfig
from toolbench.lab.results.compare.comparison import Comparison

SEED_SUPPORT_TEXTS = {
    "honoured": "honoured by {models}",
    "ignored": "ignored by {models}",
    "unknown": "unknown for {models} (run a probe)",
}


def describe_seed_support(comparison: Comparison) -> str:
    """Return sentences about the support for the sampling seed; "" for a comparison that is not paired.

    The function sends three SQL queries, up to seven for many models, and none for a comparison that is not paired.
    """
    if comparison.how != "paired":
        return ""
    config_ids = {pk for side in comparison.sides for pk in side.config_ids}
    model_ids = RunConfig.objects.filter(pk__in=config_ids).values("model")
    models = list(Model.objects.filter(pk__in=model_ids).select_related("provider").order_by("pk"))
    capabilities = get_capabilities_by_model(models)
    names_by_support: dict[str, list[str]] = defaultdict(list)
    for model in models:
        support = _classify_seed_support(capabilities[model.pk])
        names_by_support[support].append(f"{model.name} at {model.provider.name}")
    parts = [
        text.format(models=", ".join(names_by_support[support]))
        for support, text in SEED_SUPPORT_TEXTS.items()
        if names_by_support[support]
    ]
    support_text = f" Seed: {'; '.join(parts)}." if parts else ""
    return (
        "Paired trials share the instance. They share random choices only if the endpoint honours the seed."
        f"{support_text}"
    )


def _classify_seed_support(effective: EffectiveCapabilities) -> str:
    """Return the key of SEED_SUPPORT_TEXTS for the capabilities of a model."""
    capabilities = effective.capabilities
    if "seed" in (capabilities.honours or ()):
        return "honoured"
    return "ignored" if "seed" in (capabilities.ignores or ()) else "unknown"
