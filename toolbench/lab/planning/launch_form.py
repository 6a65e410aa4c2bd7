"""Choices of the launch form: models, profiles, scenarios, strategies, methods and examples, each with a hint."""

import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from toolbench.evals import few_shot, scenarios
from toolbench.evals.statistics.stopping import RATE_NAMES
from toolbench.evals.types import Scenario
from toolbench.lab.endpoints.setup_pages import get_providers
from toolbench.lab.models import Case, CaseSet, Model, Preset, Provider, SamplingProfile
from toolbench.lab.planning.lookup import DEFAULT_PROFILE, METHODS
from toolbench.lab.planning.run_request import NO_EXAMPLES
from toolbench.lab.scenarios.case_sets import build_set_word, list_nonempty_sets
from toolbench.providers.simulated.personas import load_personas

STRATEGY_CHOICES = (
    ("production", "all layers of workarounds"),
    ("baseline", "infrastructure and provider defaults, no model workarounds"),
    ("raw", "requests of a simple client, without workarounds"),
    ("wire_standard", "as raw, and only calls in the form of the published API standards are read"),
)
MAX_CASES = 100
MAX_MODELS_EXPANDED = 24  # a provider with more models is collapsed
RATE_CHOICES = tuple(RATE_NAMES.items())
METHOD_HINTS = {
    "auto": "the first method that the endpoint supports; an unknown endpoint is probed first",
    "native": "tools in the request",
    "text_json": "one fenced JSON template in the prompt; deprecated: for models without native tools",
    "template": "a prompt in the model's own turn tokens, sent to a raw completion endpoint",
    "constrained": "the endpoint lets the model write only valid calls",
}


@dataclass(frozen=True, slots=True)
class FormChoice:
    """One choice of a form field.

    Attributes:
        muted: whether it is shown less prominently.
        heading: a heading to show above it; "" for none.
    """

    value: str
    label: str
    hint: str = ""
    muted: bool = False
    heading: str = ""

    def matches(self, words: Sequence[str]) -> bool:
        """Return whether label and hint contain all words, which are in lower case."""
        return all(word in f"{self.label} {self.hint}".casefold() for word in words)


@dataclass(frozen=True, slots=True)
class ChoiceList:
    """Choices that are shown together.

    Attributes:
        collapsed_title: title of a collapsed list; "" for a list that is always shown.
    """

    choices: tuple[FormChoice, ...]
    collapsed_title: str = ""


def list_choices(lists: tuple[ChoiceList, ...]) -> list[FormChoice]:
    """Return the choices of all lists, in order."""
    return [choice for choices in lists for choice in choices.choices]


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """Models of one provider that are shown together; `title` is "" if they have no heading."""

    title: str
    models: tuple[FormChoice, ...]


@dataclass(frozen=True, slots=True)
class ProviderChoices:
    """The models of one provider.

    Attributes:
        provider: name of the provider.
        open: whether the list of models is expanded; otherwise only chosen models and search results are shown.
        unavailable_reason: why the provider is not available; "" if it is.
    """

    pk: int
    provider: str
    kind: str
    simulated: bool
    groups: tuple[ModelGroup, ...]
    open: bool
    unavailable_reason: str

    @property
    def models(self) -> tuple[FormChoice, ...]:
        """All models of the provider."""
        return tuple(model for group in self.groups for model in group.models)

    def filter_models(self, search_text: str, kept_values: Container[str]) -> "ProviderChoices":
        """Return the choices with only the models that match a search, and without empty groups.

        If the search has a word, all remaining models are shown.

        Args:
            search_text: words that all have to be in the label or hint of a model, in upper or lower case.
            kept_values: values of models that are kept even if they do not match.
        """
        lower_words = search_text.casefold().split()
        groups = (
            replace(
                group,
                models=tuple(
                    model for model in group.models if model.value in kept_values or model.matches(lower_words)
                ),
            )
            for group in self.groups
        )
        remaining = tuple(group for group in groups if group.models)
        return replace(self, groups=remaining, open=self.open or bool(lower_words))


@dataclass(frozen=True, slots=True)
class LaunchChoices:
    """All choices of the launch form.

    Attributes:
        sets: names of sets of scenarios, each with the slugs of its scenarios.
    """

    providers: tuple[ProviderChoices, ...]
    profiles: tuple[ChoiceList, ...]
    scenarios: tuple[ChoiceList, ...]
    sets: tuple[tuple[str, tuple[str, ...]], ...]
    strategies: tuple[ChoiceList, ...]
    methods: tuple[ChoiceList, ...]
    examples: tuple[ChoiceList, ...]


def get_launch_choices() -> LaunchChoices:
    """Read all choices. Providers without models are left out.

    It takes six queries, and two more if any provider has a budget.
    """
    return LaunchChoices(
        providers=_list_providers(),
        profiles=list_profile_choices(),
        scenarios=_list_scenarios(),
        sets=tuple(
            (name, tuple(scenario.slug for scenario in scenarios.select_scenarios(name)))
            for name in (*scenarios.SETS, *scenarios.PACKS)
        ),
        strategies=list_strategy_choices(),
        methods=(ChoiceList(tuple(FormChoice(name, name, METHOD_HINTS[name]) for name in METHODS)),),
        examples=(ChoiceList(tuple(_iter_example_sets())),),
    )


def _iter_example_sets() -> Iterator[FormChoice]:
    yield FormChoice(NO_EXAMPLES, NO_EXAMPLES, "the prompt of the scenario alone")
    for name, slugs in few_shot.list_scenarios_by_set().items():
        yield FormChoice(name, name, f"solved examples before the prompt; only for {', '.join(slugs)}")


def _list_providers() -> tuple[ProviderChoices, ...]:
    """Return the providers: available ones first, among these real ones before simulated ones, then by name."""
    rows = Model.objects.select_related("provider").order_by("provider__name", "retired", "name")
    reasons = {row.provider.pk: row.state_text for row in get_providers() if row.state != "pass"}
    grouped = ((provider, tuple(models)) for provider, models in groupby(rows, key=lambda row: row.provider))
    providers = (
        ProviderChoices(
            pk=provider.pk,
            provider=provider.name,
            kind=provider.kind,
            simulated=provider.kind == Provider.Kind.SIMULATED,
            open=provider.kind != Provider.Kind.SIMULATED and len(models) <= MAX_MODELS_EXPANDED,
            groups=_group_models(provider, models),
            unavailable_reason=reasons.get(provider.pk, ""),
        )
        for provider, models in grouped
    )
    return tuple(
        sorted(providers, key=lambda choices: (bool(choices.unavailable_reason), choices.simulated, choices.provider))
    )


def _group_models(provider: Provider, models: tuple[Model, ...]) -> tuple[ModelGroup, ...]:
    """Return simulated models in the groups of their data file, in its order; other models are one group.

    Simulated models that the file lacks are the last group.
    """
    if provider.kind != Provider.Kind.SIMULATED:
        return (ModelGroup("", tuple(_build_model_choice(model) for model in models)),)
    personas = load_personas()
    groups: dict[str, list[FormChoice]] = {persona.group: [] for persona in personas.values()}
    for model in models:
        persona = personas.get(model.name.rpartition("/")[2])
        groups.setdefault(persona.group if persona else "Others", []).append(_build_model_choice(model))
    return tuple(ModelGroup(title, tuple(choices)) for title, choices in groups.items() if choices)


def _build_model_choice(model: Model) -> FormChoice:
    hints = [
        "retired" if model.retired else "",
        "mixed upstreams" if model.mixed_upstreams else "",
        f"workaround {', '.join(model.workarounds)}" if model.workarounds else "",
        model.note,
    ]
    return FormChoice(str(model.pk), model.name, " · ".join(hint for hint in hints if hint), muted=model.retired)


def list_strategy_choices() -> tuple[ChoiceList, ...]:
    """Return the strategies, and the presets that are not archived, with one query."""
    presets = tuple(
        FormChoice(preset.name, preset.name, preset.description) for preset in Preset.objects.filter(archived_at=None)
    )
    return _collapse_lists(
        tuple(FormChoice(name, name, hint) for name, hint in STRATEGY_CHOICES), (("preset", "presets"), presets)
    )


def list_profile_choices() -> tuple[ChoiceList, ...]:
    """Return the sampling profiles that are not archived, with one query."""
    first: list[FormChoice] = []
    others: list[FormChoice] = []
    for profile in SamplingProfile.objects.filter(archived_at=None):
        (first if profile.name == DEFAULT_PROFILE else others).append(_build_profile_choice(profile))
    return _collapse_lists(tuple(first), (("more profile", "more profiles"), tuple(others)))


def _collapse_lists(
    visible: tuple[FormChoice, ...], *collapsed: tuple[tuple[str, str], tuple[FormChoice, ...]]
) -> tuple[ChoiceList, ...]:
    """Return a list that is always shown and collapsed lists, without empty lists.

    Args:
        visible: choices that are always shown.
        collapsed: ((noun in the singular, noun in the plural), choices) of each collapsed list, whose title is the
            number of its choices with the noun.
    """
    lists = (
        ChoiceList(choices, f"{len(choices)} {singular if len(choices) == 1 else plural}")
        for (singular, plural), choices in collapsed
    )
    return tuple(choice_list for choice_list in (ChoiceList(visible), *lists) if choice_list.choices)


def _build_profile_choice(profile: SamplingProfile) -> FormChoice:
    options = ", ".join(f"{name} {json.dumps(value)}" for name, value in profile.options.items()) or "no overrides"
    scope = "" if profile.applies_to == "*" else f" · {profile.applies_to} only"
    return FormChoice(profile.name, profile.name, options + scope)


def _list_scenarios() -> tuple[ChoiceList, ...]:
    """Return the scenarios and test cases in collapsed lists.

    The first scenario of a group has the name of the group as its heading.
    """
    case_study: list[FormChoice] = []
    packs: list[FormChoice] = []
    for name, members in scenarios.group_scenarios().items():
        first, *others = (_build_scenario_choice(scenario) for scenario in members)
        choices = packs if name in scenarios.PACKS else case_study
        choices += [replace(first, heading=name), *others]
    return _collapse_lists(
        (),
        (("scenario of the case study", "scenarios of the case study"), tuple(case_study)),
        (("scenario of the packs", "scenarios of the packs"), tuple(packs)),
        (("set of test cases", "sets of test cases"), tuple(_iter_case_sets())),
        (("test case of yours", "test cases of yours"), tuple(_iter_user_cases())),
    )


def _iter_case_sets() -> Iterator[FormChoice]:
    for case_set, count in list_nonempty_sets():
        hint = f"{count} test case{'' if count == 1 else 's'}, {'public' if case_set.public else 'private'}"
        yield FormChoice(build_set_word(case_set), case_set.name, hint)


def _iter_user_cases() -> Iterator[FormChoice]:
    """Yield the newest MAX_CASES test cases of users."""
    cases = Case.objects.filter(set__kind=CaseSet.Kind.OWN, deleted_at=None).order_by("-pk")[:MAX_CASES]
    for case in cases:
        yield FormChoice(case.slug, case.slug, case.title)


def _build_scenario_choice(scenario: Scenario) -> FormChoice:
    return FormChoice(scenario.slug, scenario.slug, scenario.intent, muted=scenario.control)
