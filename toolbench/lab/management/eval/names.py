"""Selection of models, profiles, strategies and scenarios by name for `manage.py eval`."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from toolbench.engine import repairs, transforms
from toolbench.engine.policy.keys import normalise_name
from toolbench.engine.policy.presets import STRATEGIES as ENGINE_STRATEGIES
from toolbench.engine.policy.presets import list_preset_names
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.catalogue import STRATEGIES, Strategy
from toolbench.evals.name_filter import ALL_WORDS, filter_by_names, find_similar_words, list_unmatched_words
from toolbench.evals.types import Scenario
from toolbench.lab.management.eval.options import EvalOptions, split_words
from toolbench.lab.models import Case, Model, Preset, Provider, SamplingProfile
from toolbench.lab.planning.strategies import ADD_PRESET, REMOVE_WORKAROUND, parse_strategy
from toolbench.lab.scenarios.case_sets import SET_PREFIX, find_slugs_by_word, list_nonempty_sets
from toolbench.lab.scenarios.catalogue import find_scenarios

Item = TypeVar("Item")

DEFAULT_PROVIDERS = f"!{Provider.Kind.SIMULATED},!{Provider.Kind.LOCAL}"  # filter: all except these kinds
MAX_NAMES_SHOWN = 12  # in one sentence


class EvalError(Exception):
    """Request that cannot be fulfilled; the message gives the reason and, for an unknown name, existing names."""


class NamedModel(Protocol):
    """Model of this or of another installation, with the texts that select it."""

    @property
    def name(self) -> str:
        """Name at the provider."""

    @property
    def canonical(self) -> str:
        """Canonical name; "" if it is unknown."""

    @property
    def tags(self) -> Sequence[str]:
        """Tags, which users and the catalogue set."""


def choose_models(options: EvalOptions) -> tuple[Model, ...]:
    """Return the selected models of the selected providers, sorted by the provider's name, then oldest first.

    A name without its vendor (`gpt-5.2` for `openai/gpt-5.2`) is accepted if it stands for one model only.

    Raises:
        EvalError: a word names no provider or model, a name without vendor stands for several models, or all words
            together select none.
    """
    all_providers = tuple(Provider.objects.all())
    provider_names = [provider.name for provider in all_providers]
    unknown = list_unmatched_words(all_providers, options.provider, names=_list_provider_names)
    _check_known("provider", unknown, _list_words(all_providers, _list_provider_names), provider_names)
    providers = filter_by_names(all_providers, options.provider or DEFAULT_PROVIDERS, names=_list_provider_names)
    if not providers:
        raise EvalError(f"No provider matches {options.provider!r}; {_describe_available(provider_names)}.")
    rows = Model.objects.filter(provider__in=providers).select_related("provider")
    offered = tuple(rows.order_by("provider__name", "pk"))
    list_names = build_name_lister(offered)
    providers_text = ", ".join(provider.name for provider in providers)
    _check_models(options, list_unmatched_words(offered, options.models, names=list_names), offered, providers_text)
    models = filter_by_names(offered, options.models, names=list_names)
    if not models:
        available = _describe_available([model.name for model in offered])
        raise EvalError(f"No model at {providers_text} matches {options.models!r}; {available}.")
    return tuple(models)


def choose_profiles(words: str) -> tuple[str, ...]:
    """Return the names of the sampling profiles that a comma-separated filter selects.

    Raises:
        EvalError: a word names no profile, or all words together select none.
    """
    rows = tuple(SamplingProfile.objects.filter(archived_at=None))
    _check_known(
        "sampling profile",
        list_unmatched_words(rows, words, names=_list_profile_names),
        _list_words(rows, _list_profile_names),
    )
    profiles = filter_by_names(rows, words, names=_list_profile_names)
    if not profiles:
        raise EvalError(f"No sampling profile matches {words!r}; there are {_join_names([row.name for row in rows])}.")
    return tuple(profile.name for profile in profiles)


def choose_strategies(text: str) -> tuple[str, ...]:
    """Return the strategies, presets and strategy expressions that a comma-separated filter selects.

    An expression adds presets to a strategy (`+`) or removes workarounds from it (`!`). `all` means the three
    strategies of the case study; other strategies and presets are selected by name. Strategies of the case study come
    first, then those selected by name, then expressions, each once.

    Raises:
        EvalError: a word names no strategy or preset, or all words together select none.
    """
    presets = [*list_preset_names(), *Preset.objects.filter(archived_at=None).values_list("name", flat=True)]
    study_names = [strategy.name for strategy in STRATEGIES]
    by_name = {name.lower(): name for name in (*presets, *ENGINE_STRATEGIES) if name not in study_names}
    words = split_words(text)
    # A `!` at the beginning of a word excludes what the word selects.
    expressions = [word for word in words if {ADD_PRESET, REMOVE_WORKAROUND} & set(word[1:])]
    study_words = [word for word in words if word.lower() not in by_name and word not in expressions]
    unknown = [
        part for word in expressions for part in parse_strategy(word).list_unknown_names(ENGINE_STRATEGIES, presets)
    ]
    unknown += list_unmatched_words(STRATEGIES, study_words, names=_list_strategy_names)
    known = (*_list_words(STRATEGIES, _list_strategy_names), *by_name.values())
    _check_known("strategy or preset", unknown, known, ENGINE_STRATEGIES)
    chosen = [strategy.name for strategy in filter_by_names(STRATEGIES, study_words, names=_list_strategy_names)]
    chosen += [by_name[word.lower()] for word in words if word.lower() in by_name]
    if not chosen and not expressions:
        raise EvalError(f"No strategy or preset matches {text!r}; there are {_join_names(ENGINE_STRATEGIES)}.")
    return tuple(dict.fromkeys((*chosen, *expressions)))


def choose_scenarios(options: EvalOptions) -> tuple[str, ...]:
    """Return the slugs of the selected scenarios and test cases.

    If tools are disabled, only the selected controls in code are returned, or `chat_only` if there are none, since
    other scenarios need tools.

    Raises:
        EvalError: a word names no scenario, set or test case.
    """
    all_words = split_words(options.scenarios)
    slugs_by_case_word = find_slugs_by_word(all_words)
    words = [word for word in all_words if word not in slugs_by_case_word]
    if unknown := scenarios.list_unknown_words(words):
        slugs = [scenario.slug for scenario in scenarios.list_scenarios()]
        sets = [f"{SET_PREFIX}{group}" for group, _ in list_nonempty_sets()]
        known = (*scenarios.list_words(), *sets, *Case.objects.filter(deleted_at=None).values_list("slug", flat=True))
        _check_known("scenario", unknown, known, [*slugs, *sets])
    selected = () if slugs_by_case_word and not words else scenarios.select_scenarios(words)
    if options.tool_use_mode == "disabled":
        return list_control_slugs(selected)
    case_slugs = (slug for slugs in slugs_by_case_word.values() for slug in slugs)
    return tuple(dict.fromkeys((*(scenario.slug for scenario in selected), *case_slugs)))


def list_control_slugs(selected: Iterable[Scenario]) -> tuple[str, ...]:
    """Return the slugs of the controls among scenarios in code, or `chat_only` if there are none."""
    controls = tuple(scenario.slug for scenario in selected if scenario.control)
    return controls or (scenarios.lookup_scenario("chat_only").slug,)


def check_tools(options: EvalOptions, slugs: Sequence[str]) -> None:
    """Check that every allowed or denied tool exists in one of the scenarios.

    Raises:
        EvalError: a tool exists in none of them.
    """
    words = [word for word in (*options.allow, *options.deny) if word.lower() not in ALL_WORDS]
    if not words:
        return
    instances = [scenario.draw_instance(0, kind="parity") for scenario in find_scenarios(slugs).values()]
    offered = [
        tool.name
        for instance in instances
        for tool in (*instance.tools, *(later for message in instance.further for later in message.tools))
    ]
    known = tuple(dict.fromkeys(offered))
    _check_known("tool of these scenarios", [word for word in words if word not in known], known)


def check_transforms(patch: JsonObject) -> None:
    """Check that the transforms and repairs named in a policy patch exist.

    Raises:
        EvalError: one of them does not exist.
    """
    known = {f"{kind}_transforms": transforms.list_names(kind) for kind in transforms.KINDS}
    for key, names in {**known, "argument_repairs": repairs.REPAIR_NAMES}.items():
        value = patch.get(key) or ()
        words = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
        unknown = [
            word for word in words if isinstance(word, str) and word.strip() and normalise_name(word) not in names
        ]
        _check_known(f"entry of {key}", unknown, names)


def _check_known(noun: str, unknown: Sequence[str], known: Iterable[str], examples: Sequence[str] = ()) -> None:
    """Raise an error if there are unknown words.

    Args:
        noun: what the words name.
        unknown: the unknown words.
        known: all known words, among which similar words are searched for.
        examples: words that the message lists if no known word is similar; all known words if empty.

    Raises:
        EvalError: there are unknown words.
    """
    if not unknown:
        return
    known = tuple(known)
    available = _describe_available(examples or known)
    messages = [
        f"No {noun} matches {word.strip()!r}; {_describe_nearest(word, known) or available}." for word in unknown
    ]
    raise EvalError(" ".join(messages))


def _describe_nearest(word: str, known: Iterable[str]) -> str:
    similar = find_similar_words(word.strip(), known)
    return f"the nearest: {_join_names(similar)}" if similar else ""


def _describe_available(names: Sequence[str]) -> str:
    return f"there are {_join_names(names)}" if names else "there are none"


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return f"{', '.join(f'“{name}”' for name in names[:MAX_NAMES_SHOWN])}{more}"


def _list_words(items: Iterable[Item], list_names: Callable[[Item], Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for item in items for name in list_names(item)))


def _list_strategy_names(strategy: Strategy) -> Sequence[str]:
    return strategy.names


def _list_profile_names(profile: SamplingProfile) -> Sequence[str]:
    return (profile.name, *profile.tags)


def _list_provider_names(provider: Provider) -> Sequence[str]:
    return (provider.name, provider.template or provider.name, provider.kind, provider.service or provider.name)


def build_name_lister(offered: Iterable[NamedModel]) -> Callable[[NamedModel], Sequence[str]]:
    """Return a function that lists the texts that select a model.

    Args:
        offered: the models to choose from. A name without vendor that stands for several of them selects none.
    """
    unique_bare_names = {bare for bare, full_names in _map_bare_names(offered).items() if len(full_names) == 1}

    def list_names(model: NamedModel) -> Sequence[str]:
        return (*_list_model_names(model), *(unique_bare_names & _map_bare_names([model]).keys()))

    return list_names


def describe_ambiguous_word(word: str, offered: Iterable[NamedModel]) -> str:
    """Describe what a name without vendor may stand for; return "" if no model has this name."""
    names = _map_bare_names(offered).get(word.lstrip("!"), ())
    return f"{word!r} may be {' or '.join(f'“{name}”' for name in names)}: write the whole name." if names else ""


def _list_model_names(model: NamedModel) -> Sequence[str]:
    name = model.name
    return (name, name.partition(":")[0], name.partition("/")[0], model.canonical or name, *model.tags)


def _map_bare_names(models: Iterable[NamedModel]) -> Mapping[str, tuple[str, ...]]:
    """Return the full names that each bare name stands for.

    A bare name is in lower case and without vendor, with or without a variant; a full name has the vendor and no
    variant. Example: `qwen3` and `qwen3:free` stand for `qwen/Qwen3`.
    """
    names_by_bare: dict[str, dict[str, None]] = defaultdict(dict)
    for model in models:
        full_name = model.name.partition(":")[0]
        for name in (full_name, model.name):
            names_by_bare[name.rpartition("/")[2].lower()][full_name] = None
    return {bare: tuple(names) for bare, names in names_by_bare.items()}


def _check_models(options: EvalOptions, unknown: Sequence[str], offered: Sequence[Model], providers_text: str) -> None:
    """Raise an error if words do not select models.

    Args:
        options: all options.
        unknown: words that name no model, or several models by a name without vendor.
        offered: the models of the selected providers.
        providers_text: names of the selected providers, separated by commas.

    Raises:
        EvalError: `unknown` is not empty.
    """
    if not unknown:
        return
    known = (*_list_words(offered, _list_model_names), *_map_bare_names(offered))
    messages: list[str] = []
    for word in unknown:
        if ambiguity := describe_ambiguous_word(word, offered):
            messages.append(ambiguity)
            continue
        nearest = _describe_nearest(word, known) or _describe_available([model.name for model in offered])
        messages.append(f"No model at {providers_text} matches {word!r}; {nearest}.{_suggest_provider(options, word)}")
    raise EvalError(" ".join(messages))


def _suggest_provider(options: EvalOptions, word: str) -> str:
    """Return a sentence that names another provider with the model; "" if none has it or --provider is given."""
    if options.provider:
        return ""
    models = tuple(Model.objects.select_related("provider"))
    matching = filter_by_names(models, [word.lstrip("!")], names=_list_model_names)
    return f" {matching[0].provider.name} has one: add --provider." if matching else ""
