"""What the launch form offers: every model, profile, scenario, strategy and method, with a hint beside each."""

import json
from dataclasses import dataclass
from itertools import groupby

from toolbench.evals import scenarios
from toolbench.evals.trials import Scenario
from toolbench.lab.models import Model, Preset, Provider, SamplingProfile

STRATEGIES = (
    ("production", "all layers of workarounds"),
    ("baseline", "infrastructure and provider defaults, no model workarounds"),
    ("raw", "as a naive client would ask"),
)
METHODS = (
    ("native", "tools in the request"),
    (
        "text_json",
        "one fenced JSON template in the prompt, no tools in the request; deprecated: for models without tools",
    ),
    ("constrained", "the endpoint may only write a valid call"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: str
    hint: str = ""
    muted: bool = False


@dataclass(frozen=True, slots=True)
class ProviderChoices:
    provider: str
    kind: str
    simulated: bool
    models: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class LaunchChoices:
    providers: tuple[ProviderChoices, ...]
    profiles: tuple[Choice, ...]
    scenarios: tuple[Choice, ...]
    strategies: tuple[Choice, ...]
    methods: tuple[Choice, ...]


def get_launch_choices() -> LaunchChoices:
    """Three queries. Providers without models are left out."""
    return LaunchChoices(
        providers=_providers(),
        profiles=tuple(_profile(profile) for profile in SamplingProfile.objects.all()),
        scenarios=tuple(_scenario(scenario) for scenario in scenarios.all()),
        strategies=tuple(Choice(name, name, hint) for name, hint in STRATEGIES)
        + tuple(Choice(preset.name, preset.name, preset.description) for preset in Preset.objects.all()),
        methods=tuple(Choice(name, name, hint) for name, hint in METHODS),
    )


def _providers() -> tuple[ProviderChoices, ...]:
    rows = Model.objects.select_related("provider").order_by("provider__name", "retired", "name")
    grouped = ((provider, tuple(models)) for provider, models in groupby(rows, key=lambda row: row.provider))
    return tuple(
        ProviderChoices(
            provider=provider.name,
            kind=provider.kind,
            simulated=provider.kind == Provider.Kind.SIMULATED,
            models=tuple(_model(model) for model in models),
        )
        for provider, models in grouped
    )


def _model(model: Model) -> Choice:
    hints = [
        "retired" if model.retired else "",
        "mixed upstreams" if model.mixed_upstreams else "",
        f"workaround {', '.join(model.workarounds)}" if model.workarounds else "",
        model.note,
    ]
    return Choice(str(model.pk), model.name, " · ".join(hint for hint in hints if hint), muted=model.retired)


def _profile(profile: SamplingProfile) -> Choice:
    options = ", ".join(f"{name} {json.dumps(value)}" for name, value in profile.options.items()) or "no overrides"
    scope = "" if profile.applies_to == "*" else f" · {profile.applies_to} only"
    return Choice(profile.name, profile.name, options + scope)


def _scenario(scenario: Scenario) -> Choice:
    return Choice(scenario.slug, scenario.slug, scenario.intent, muted=scenario.control)
