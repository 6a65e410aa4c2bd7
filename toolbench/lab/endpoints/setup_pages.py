"""Data of the set-up pages: providers, models, presets and sampling profiles."""

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from urllib.parse import urlencode

from django.db.models import Count, Exists, F, OuterRef, Q

from toolbench.engine.policy.presets import get_preset_description
from toolbench.lab.credentials.keys import KeyUnavailableError, read_endpoint_headers, read_endpoint_key
from toolbench.lab.credentials.provider_secrets import list_provider_secrets
from toolbench.lab.endpoints.capabilities import get_capabilities_by_model
from toolbench.lab.endpoints.connect import is_builtin
from toolbench.lab.endpoints.rate_control import RateControlPage, get_rate_control
from toolbench.lab.endpoints.urls import mask_provider_url
from toolbench.lab.metrics.provider_budget import ProviderBudget, get_provider_budget, load_budgets
from toolbench.lab.models import Model, Preset, Provider, RunConfig, SamplingProfile, ServiceAddress
from toolbench.providers.templates import ProviderTemplate, list_templates_with_key, load_templates

MAX_CHOSEN_MODELS = 12  # if a provider has more, the user chooses the models of the first run
# A local server has an address only while it runs.
_IS_RUNNING = Exists(ServiceAddress.objects.filter(name=OuterRef("service")))
_ARCHIVED_LAST = F("archived_at").asc(nulls_first=True)


@dataclass(frozen=True, slots=True)
class DetectedKey:
    """A variable of this process's environment that contains the key for a template.

    Attributes:
        variable: name of the variable.
        provider_id: primary key of a provider that uses the variable; None without one.
    """

    template: ProviderTemplate
    variable: str
    provider_id: int | None


def list_templates() -> tuple[ProviderTemplate, ...]:
    """Return the templates of providers, in the order of their file."""
    return tuple(load_templates().values())


def list_detected_keys(providers: Iterable[Provider]) -> tuple[DetectedKey, ...]:
    """Return the variables that contain a key, without their values.

    Args:
        providers: all providers.
    """
    provider_ids = {provider.key_env: provider.pk for provider in providers}
    return tuple(
        DetectedKey(template, template.key_env, provider_ids.get(template.key_env))
        for template in list_templates_with_key(os.environ)
    )


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """One provider.

    Attributes:
        key: the source of the key in words, or the name of its environment variable.
        state: an outcome mark: "pass", "infra" or "na". A wrong key is not detected before it is used.
        state_text: the state in words, such as why the provider cannot be used.
        model_count: the number of models that are not retired.
        run_count: the number of runs that use the provider, deleted ones included; 0 in the list of providers.
        rate_control: the rate control; None in the list of providers, or if the provider has none.
        budget: the budget and the spending of this month; None in the list of providers, or if there is no budget.
        plan_query: query string of the page that plans a first run of the provider's models; "" in the list of
            providers, or if there are no models.
    """

    provider: Provider
    key: str
    state: str
    state_text: str
    model_count: int
    run_count: int = 0
    rate_control: RateControlPage | None = None
    budget: ProviderBudget | None = None
    plan_query: str = ""

    @property
    def address(self) -> str:
        """The base URL, or the name of the local server.

        Keys in the URL are masked, since earlier versions may have stored them there.
        """
        return mask_provider_url(self.provider.base_url, list_provider_secrets(self.provider)) or self.provider.service

    @property
    def is_connected(self) -> bool:
        """Whether a user connected the provider and can edit and delete it.

        The other providers are installed with Toolbench.
        """
        return not is_builtin(self.provider)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model.

    Attributes:
        constraint: the constraint that the method `constrained` uses; "" if none is known.
    """

    model: Model
    constraint: str


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """The models of one provider."""

    provider: Provider
    models: tuple[ModelRow, ...]

    @property
    def retired_count(self) -> int:
        """The number of retired models."""
        return sum(row.model.retired for row in self.models)

    @property
    def count(self) -> int:
        """The number of models that are not retired, as on the other pages."""
        return len(self.models) - self.retired_count


@dataclass(frozen=True, slots=True)
class PresetRow:
    """One preset.

    Attributes:
        settings: the names of the settings that the preset changes.
        used_by: the models that have the preset as a workaround.
    """

    name: str
    description: str
    settings: tuple[str, ...]
    builtin: bool
    archived: bool
    used_by: tuple[Model, ...]


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One sampling profile.

    Attributes:
        applies_to: pattern of the names of models to which the profile applies, such as qwen*.
        options: (name, value as JSON) of each sampling option.
        model_count: the number of different model names to which the profile applies, without retired models.
    """

    name: str
    applies_to: str
    options: tuple[tuple[str, str], ...]
    tags: tuple[str, ...]
    model_count: int
    builtin: bool
    archived: bool


def get_providers() -> tuple[ProviderRow, ...]:
    """Return all providers by name, with one query, and two more if any has a budget."""
    model_count = Count("models", filter=Q(models__retired=False))
    providers = tuple(Provider.objects.annotate(model_count=model_count, is_running=_IS_RUNNING))
    budget_by_provider = {budget.provider: budget for budget in load_budgets(providers)}
    return tuple(
        _build_provider_row(provider, provider.is_running, provider.model_count, budget_by_provider.get(provider.name))
        for provider in providers
    )


def get_provider(provider_id: int) -> ProviderRow:
    """Return one provider with the number of its runs, its rate control, its budget and `plan_query`.

    It takes three queries, two more if the provider has a budget, and two more if it has rate control.

    Raises:
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.annotate(is_running=_IS_RUNNING).get(pk=provider_id)
    model_ids = provider.models.filter(retired=False).order_by("name").values_list("pk", flat=True)
    budget = get_provider_budget(provider)
    return replace(
        _build_provider_row(provider, provider.is_running, len(model_ids), budget),
        run_count=RunConfig.objects.filter(provider=provider).values("run_id").distinct().count(),
        rate_control=get_rate_control(provider),
        budget=budget,
        plan_query=_render_plan_query(tuple(model_ids)),
    )


def _render_plan_query(model_ids: tuple[int, ...]) -> str:
    """Return the query string of a plan of the typical scenarios with these models; "" without models.

    More than MAX_CHOSEN_MODELS models are not named, so that the user chooses some of them.
    """
    if not model_ids:
        return ""
    chosen = model_ids if len(model_ids) <= MAX_CHOSEN_MODELS else ()
    return urlencode([*(("models", model_id) for model_id in chosen), ("set", "typical")])


def _build_provider_row(
    provider: Provider, is_running: bool, model_count: int, budget: ProviderBudget | None
) -> ProviderRow:
    """Return the row of a provider for the list, in which the budget only decides the state."""
    state, sentence = _find_state(provider, is_running, model_count, budget)
    key = {
        Provider.KeySource.ENVIRONMENT: provider.key_env,
        Provider.KeySource.STORED: "stored, encrypted",
    }.get(Provider.KeySource(provider.key_source), "none needed")
    return ProviderRow(provider=provider, key=key, state=state, state_text=sentence, model_count=model_count)


def _find_state(
    provider: Provider, is_running: bool, model_count: int, budget: ProviderBudget | None
) -> tuple[str, str]:
    """Return the mark of a provider's state and the state in words.

    `is_running` counts only if the provider has a local server, `model_count` only if it has none.
    """
    try:
        read_endpoint_key(provider)
        read_endpoint_headers(provider)
    except KeyUnavailableError as error:
        return "infra", str(error)
    if provider.paused_reason:
        return "infra", provider.paused_reason
    if budget is not None and budget.is_reached:
        return "infra", budget.sentence
    if provider.service:
        return ("pass", "running") if is_running else ("na", "not running")
    return ("pass", "ready") if model_count else ("na", "no model added yet")


def get_models(search: str = "") -> tuple[ProviderModels, ...]:
    """Return the models of each provider that has any, retired models last.

    It takes four queries, or up to eight if more than `capabilities.MAX_UNCACHED_MODELS` models are returned. Models of
    one provider share its Provider object, since there are many models and few providers.

    Args:
        search: text that the name or the canonical name of a model contains, in any case; "" for all models.
    """
    rows = Model.objects.prefetch_related("provider").order_by("provider__name", "retired", "name")
    models = list(rows.filter(Q(name__icontains=search) | Q(canonical__icontains=search)) if search else rows)
    grouped = groupby(build_model_rows(models), key=lambda row: row.model.provider)
    return tuple(ProviderModels(provider, tuple(provider_rows)) for provider, provider_rows in grouped)


def build_model_rows(models: Collection[Model]) -> tuple[ModelRow, ...]:
    """Return a row for each model, in the same order; the providers of the models must be loaded."""
    effective = get_capabilities_by_model(models)
    return tuple(ModelRow(model, (effective[model.pk].capabilities.constrained or ("",))[0]) for model in models)


def get_presets() -> tuple[PresetRow, ...]:
    """Return all presets with two queries: by name, then the archived ones by the time of archiving."""
    models_by_preset: dict[str, list[Model]] = defaultdict(list)
    for model in Model.objects.exclude(workarounds=[]).only("name", "workarounds"):
        for name in model.workarounds:
            models_by_preset[name].append(model)
    return tuple(
        PresetRow(
            name=preset.name,
            description=preset.description or (get_preset_description(preset.name) if preset.builtin else ""),
            settings=tuple(preset.patch),
            builtin=preset.builtin,
            archived=preset.archived_at is not None,
            used_by=tuple(models_by_preset[preset.name]),
        )
        for preset in Preset.objects.order_by(_ARCHIVED_LAST, "name")
    )


def get_profiles() -> tuple[ProfileRow, ...]:
    """Return all sampling profiles with two queries: in their order, then those archived, by the time of archiving."""
    model_names = list(Model.objects.filter(retired=False).order_by().values_list("name", flat=True).distinct())
    return tuple(
        _build_profile_row(profile, model_names)
        for profile in SamplingProfile.objects.order_by(_ARCHIVED_LAST, "order", "name")
    )


def _build_profile_row(profile: SamplingProfile, model_names: list[str]) -> ProfileRow:
    return ProfileRow(
        name=profile.name,
        applies_to=profile.applies_to,
        options=tuple((key, json.dumps(value)) for key, value in profile.options.items()),
        tags=tuple(profile.tags),
        model_count=sum(fnmatchcase(name, profile.applies_to) for name in model_names),
        builtin=profile.builtin,
        archived=profile.archived_at is not None,
    )
