"""Choices of the launch form: models, profiles, scenarios, strategies and methods, each with a hint."""

import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from toolbench.evals import scenarios
from toolbench.evals.statistics.stopping import RATE_NAMES
from toolbench.evals.types import Scenario
from toolbench.lab.endpoints.setup_pages import get_providers
from toolbench.lab.models import Case, CaseSet, Model, Preset, Provider, SamplingProfile
from toolbench.lab.planning.lookup import DEFAULT_PROFILE, METHODS
from toolbench.lab.scenarios.case_sets import build_set_word, list_nonempty_sets
from toolbench.providers.simulated.personas import load_personas

STRATEGY_CHOICES = (
    ("production", "all layers of workarounds"),
    ("baseline", "infrastructure and provider defaults, no model workarounds"),
    ("raw", "as a naive client would ask"),
    ("wire_standard", "as raw, and only calls in the shape of the published wire standards are read"),
)
MAX_CASES = 100
MAX_MODELS_EXPANDED = 24  # models of a provider; more are folded
RATE_CHOICES = tuple(RATE_NAMES.items())
METHOD_HINTS = {  # of methods
    "auto": "the first that the endpoint is able to take; one nobody knows is probed first",
    "native": "tools in the request",
    "text_json": "one fenced JSON template in the prompt; deprecated: for models without native tools",
    "template": "our prompt in the model's own turn tokens, to a raw completion endpoint",
    "constrained": "the endpoint may only write a valid call",
}


@dataclass(frozen=True, slots=True)
class FormChoice:
    """One choice: value, label and hint."""

    value: str
    label: str
    hint: str = ""
    muted: bool = False
    heading: str = ""  # of the choices from here on

    def matches(self, words: Sequence[str]) -> bool:
        """Return whether label or hint contain all words."""
        return all(word in f"{self.label} {self.hint}".casefold() for word in words)


@dataclass(frozen=True, slots=True)
class ChoiceList:
    """Choices that are shown together; a list with a `fold` is collapsed until it is opened or chosen from."""

    choices: tuple[FormChoice, ...]
    fold: str = ""


def list_choices(lists: tuple[ChoiceList, ...]) -> list[FormChoice]:
    """Return the choices of all lists."""
    return [choice for choices in lists for choice in choices.choices]


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """Models of one provider that are shown together; `title` is "" where they need no heading."""

    title: str
    models: tuple[FormChoice, ...]


@dataclass(frozen=True, slots=True)
class ProviderChoices:
    """The models of one provider.

    Attributes:
        open: whether all models are shown. Of simulated models and of long lists, only chosen ones are, until you
            search.
        away: why the provider is not available now, "" if it is.
    """

    pk: int
    provider: str
    kind: str
    simulated: bool
    groups: tuple[ModelGroup, ...]
    open: bool
    away: str

    @property
    def models(self) -> tuple[FormChoice, ...]:
        """All models of the provider."""
        return tuple(model for group in self.groups for model in group.models)

    def filter_models(self, words: str, keep: Container[str]) -> "ProviderChoices":
        """Keep the models that have all words in name or hint, and those in `keep`."""
        words_folded = words.casefold().split()
        groups = (
            replace(
                group,
                models=tuple(model for model in group.models if model.value in keep or model.matches(words_folded)),
            )
            for group in self.groups
        )
        left = tuple(group for group in groups if group.models)
        return replace(self, groups=left, open=self.open or bool(words_folded))


@dataclass(frozen=True, slots=True)
class LaunchChoices:
    """All choices of the launch form."""

    providers: tuple[ProviderChoices, ...]
    profiles: tuple[ChoiceList, ...]
    scenarios: tuple[ChoiceList, ...]
    sets: tuple[tuple[str, tuple[str, ...]], ...]  # of scenarios, with their slugs
    strategies: tuple[ChoiceList, ...]
    methods: tuple[ChoiceList, ...]


def get_launch_choices() -> LaunchChoices:
    """Read the choices with seven queries, without providers that have no models."""
    return LaunchChoices(
        providers=_list_providers(),
        profiles=_list_profiles(),
        scenarios=_list_scenarios(),
        sets=tuple(
            (name, tuple(scenario.slug for scenario in scenarios.select_scenarios(name)))
            for name in (*scenarios.SETS, *scenarios.PACKS)
        ),
        strategies=_list_strategies(),
        methods=(ChoiceList(tuple(FormChoice(name, name, METHOD_HINTS[name]) for name in METHODS)),),
    )


def _list_providers() -> tuple[ProviderChoices, ...]:
    """Return the providers by name: those that are available first, simulated models after others."""
    rows = Model.objects.select_related("provider").order_by("provider__name", "retired", "name")
    away = {line.provider.pk: line.state_text for line in get_providers() if line.state != "pass"}
    grouped = ((provider, tuple(models)) for provider, models in groupby(rows, key=lambda row: row.provider))
    found = (
        ProviderChoices(
            pk=provider.pk,
            provider=provider.name,
            kind=provider.kind,
            simulated=provider.kind == Provider.Kind.SIMULATED,
            open=provider.kind != Provider.Kind.SIMULATED and len(models) <= MAX_MODELS_EXPANDED,
            groups=_group_models(provider, models),
            away=away.get(provider.pk, ""),
        )
        for provider, models in grouped
    )
    return tuple(sorted(found, key=lambda choices: (bool(choices.away), choices.simulated, choices.provider)))


def _group_models(provider: Provider, models: tuple[Model, ...]) -> tuple[ModelGroup, ...]:
    """Group simulated models by their group, in the order of the catalogue; other models are one group."""
    if provider.kind != Provider.Kind.SIMULATED:
        return (ModelGroup("", tuple(_build_model_choice(model) for model in models)),)
    cast = load_personas()
    found: dict[str, list[FormChoice]] = {persona.group: [] for persona in cast.values()}
    for model in models:
        persona = cast.get(model.name.rpartition("/")[2])
        found.setdefault(persona.group if persona else "Others", []).append(_build_model_choice(model))
    return tuple(ModelGroup(title, tuple(choices)) for title, choices in found.items() if choices)


def _build_model_choice(model: Model) -> FormChoice:
    hints = [
        "retired" if model.retired else "",
        "mixed upstreams" if model.mixed_upstreams else "",
        f"workaround {', '.join(model.workarounds)}" if model.workarounds else "",
        model.note,
    ]
    return FormChoice(str(model.pk), model.name, " · ".join(hint for hint in hints if hint), muted=model.retired)


def _list_strategies() -> tuple[ChoiceList, ...]:
    presets = tuple(
        FormChoice(preset.name, preset.name, preset.description) for preset in Preset.objects.filter(archived_at=None)
    )
    return _collapse_lists(
        tuple(FormChoice(name, name, hint) for name, hint in STRATEGY_CHOICES), (("preset", "presets"), presets)
    )


def _list_profiles() -> tuple[ChoiceList, ...]:
    first: list[FormChoice] = []
    others: list[FormChoice] = []
    for profile in SamplingProfile.objects.filter(archived_at=None):
        (first if profile.name == DEFAULT_PROFILE else others).append(_build_profile_choice(profile))
    return _collapse_lists(tuple(first), (("more profile", "more profiles"), tuple(others)))


def _collapse_lists(
    spread: tuple[FormChoice, ...], *folded: tuple[tuple[str, str], tuple[FormChoice, ...]]
) -> tuple[ChoiceList, ...]:
    """Return the visible list, then each collapsed list with its number and name; empty lists are left out."""
    lists = (ChoiceList(choices, f"{len(choices)} {names[len(choices) != 1]}") for names, choices in folded)
    return tuple(choice_list for choice_list in (ChoiceList(spread), *lists) if choice_list.choices)


def _build_profile_choice(profile: SamplingProfile) -> FormChoice:
    options = ", ".join(f"{name} {json.dumps(value)}" for name, value in profile.options.items()) or "no overrides"
    scope = "" if profile.applies_to == "*" else f" · {profile.applies_to} only"
    return FormChoice(profile.name, profile.name, options + scope)


def _list_scenarios() -> tuple[ChoiceList, ...]:
    """Return scenarios by group, each list collapsed; the first of each group has its heading."""
    own_choices: list[FormChoice] = []
    packs: list[FormChoice] = []
    for name, members in scenarios.group_scenarios().items():
        first, *others = (_build_scenario_choice(scenario) for scenario in members)
        found = packs if name in scenarios.PACKS else own_choices
        found += [replace(first, heading=name), *others]
    return _collapse_lists(
        (),
        (("scenario of the case study", "scenarios of the case study"), tuple(own_choices)),
        (("scenario of the packs", "scenarios of the packs"), tuple(packs)),
        (("set of cases", "sets of cases"), tuple(_iter_case_sets())),
        (("case of your own", "cases of your own"), tuple(_iter_user_cases())),
    )


def _iter_case_sets() -> Iterator[FormChoice]:
    for group, cases in list_nonempty_sets():
        hint = f"{cases} case{'' if cases == 1 else 's'}, {'public' if group.public else 'private'}"
        yield FormChoice(build_set_word(group), group.name, hint)


def _iter_user_cases() -> Iterator[FormChoice]:
    """Yield the newest user cases."""
    cases = Case.objects.filter(set__kind=CaseSet.Kind.OWN, deleted_at=None).order_by("-pk")[:MAX_CASES]
    for case in cases:
        yield FormChoice(case.slug, case.slug, case.title)


def _build_scenario_choice(scenario: Scenario) -> FormChoice:
    return FormChoice(scenario.slug, scenario.slug, scenario.intent, muted=scenario.control)
