"""Support for the sampling seed at the endpoints of a paired comparison, as far as a probe has found out."""

from collections import defaultdict

from toolbench.engine.capabilities.record import EffectiveCapabilities
from toolbench.lab.endpoints.capabilities import get_capabilities_by_model
from toolbench.lab.models import Model, RunConfig
from toolbench.lab.results.compare.comparison import Comparison

SEED_SUPPORT_TEXTS = {
    "honoured": "honoured by {who}",
    "ignored": "ignored by {who}",
    "unknown": "unknown for {who} (run a probe)",
}


def describe_seed_support(page: Comparison) -> str:
    """Return a text about the sampling seed, with four queries; an empty string if nothing is paired."""
    if page.how != "paired":
        return ""
    used = {pk for side in page.sides for pk in side.config_ids}
    ids = RunConfig.objects.filter(pk__in=used).values("model")
    models = list(Model.objects.filter(pk__in=ids).select_related("provider").order_by("pk"))
    effective = get_capabilities_by_model(models)
    kinds: dict[str, list[str]] = defaultdict(list)
    for model in models:
        kinds[_classify_seed_support(effective[model.pk])].append(f"{model.name} at {model.provider.name}")
    parts = [words.format(who=", ".join(kinds[kind])) for kind, words in SEED_SUPPORT_TEXTS.items() if kinds[kind]]
    known = f" Seed: {'; '.join(parts)}." if parts else ""
    return f"Paired trials share the instance. They share random choices only if the endpoint honours the seed.{known}"


def _classify_seed_support(effective: EffectiveCapabilities) -> str:
    known = effective.capabilities
    if "seed" in (known.honours or ()):
        return "honoured"
    return "ignored" if "seed" in (known.ignores or ()) else "unknown"
