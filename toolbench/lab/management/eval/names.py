"""Selection of rows and scenarios by name for `manage.py eval`; an unknown name prevents the launch."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from toolbench.engine import repairs, transforms
from toolbench.engine.policy.keys import normalise_name
from toolbench.engine.policy.presets import STRATEGIES as _STRATEGIES
from toolbench.engine.policy.presets import list_preset_names
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.catalogue import STRATEGIES, Strategy
from toolbench.evals.name_filter import ALL_WORDS, filter_by_names, find_similar_words, list_unmatched_words
from toolbench.lab.management.eval.options import EvalOptions
from toolbench.lab.models import Case, Model, Preset, Provider, SamplingProfile
from toolbench.lab.planning.strategies import ADD_PRESET, REMOVE_WORKAROUND, parse_strategy
from toolbench.lab.scenarios.case_sets import SET_PREFIX, find_slugs_by_word, list_nonempty_sets
from toolbench.lab.scenarios.catalogue import find_scenarios

Item = TypeVar("Item")

DEFAULT_PROVIDERS = f"!{Provider.Kind.SIMULATED},!{Provider.Kind.LOCAL}"
MAX_NAMES = 12  # in one sentence


class EvalError(Exception):
    """A request that cannot be met; the message says why, and for unknown names which ones exist."""


def choose_models(options: EvalOptions) -> tuple[Model, ...]:
    """Return the selected models of the selected providers, by provider, oldest models first.

    A name without its vendor (`gpt-5.2` for `openai/gpt-5.2`) is accepted if no other model has it.

    Raises:
        EvalError: a word names no provider or model, or all words together select none.
    """
    all_providers = tuple(Provider.objects.all())
    there = [provider.name for provider in all_providers]
    unknown = list_unmatched_words(all_providers, options.provider, names=_list_provider_names)
    _check_known("provider", unknown, _list_words(all_providers, _list_provider_names), there)
    providers = filter_by_names(all_providers, options.provider or DEFAULT_PROVIDERS, names=_list_provider_names)
    if not providers:
        raise EvalError(f"No provider matches {options.provider!r}; {_describe_available(there)}.")
    rows = Model.objects.filter(provider__in=providers).select_related("provider")
    offered = tuple(rows.order_by("provider__name", "pk"))
    alone = {bare for bare, whole in _map_bare_names(offered).items() if len(whole) == 1}

    def names(model: Model) -> Sequence[str]:
        return (*_list_model_names(model), *(alone & _map_bare_names([model]).keys()))

    where = ", ".join(provider.name for provider in providers)
    _check_models(options, list_unmatched_words(offered, options.models, names=names), offered, where)
    models = filter_by_names(offered, options.models, names=names)
    if not models:
        left = _describe_available([model.name for model in offered])
        raise EvalError(f"No model at {where} matches {options.models!r}; {left}.")
    return tuple(models)


def choose_profiles(words: str) -> tuple[str, ...]:
    """Return the names of the selected sampling profiles in the order of the catalogue.

    Raises:
        EvalError: a word names no profile, or all words together select none.
    """
    rows = tuple(SamplingProfile.objects.filter(archived_at=None))
    _check_known(
        "sampling profile",
        list_unmatched_words(rows, words, names=_list_profile_names),
        _list_words(rows, _list_profile_names),
    )
    found = filter_by_names(rows, words, names=_list_profile_names)
    if not found:
        raise EvalError(f"No sampling profile matches {words!r}; there are {_join_names([row.name for row in rows])}.")
    return tuple(row.name for row in found)


def choose_strategies(text: str) -> tuple[str, ...]:
    """Return the selected strategies, presets and strategy expressions.

    An expression adds presets to a strategy (`+`) or leaves out workarounds (`!`). `all` means the three strategies of
    the case study; others and presets are selected by name.

    Raises:
        EvalError: a word names no strategy or preset, or all words together select none.
    """
    presets = [*list_preset_names(), *Preset.objects.filter(archived_at=None).values_list("name", flat=True)]
    listed = [strategy.name for strategy in STRATEGIES]
    by_name = {name.lower(): name for name in (*presets, *_STRATEGIES) if name not in listed}
    given = [word.strip() for word in text.split(",") if word.strip()]
    mixed = [word for word in given if {ADD_PRESET, REMOVE_WORKAROUND} & set(word[1:])]
    words = [word for word in given if word.lower() not in by_name and word not in mixed]
    unknown = [part for word in mixed for part in parse_strategy(word).unknown(_STRATEGIES, presets)]
    unknown += list_unmatched_words(STRATEGIES, words, names=_list_strategy_names)
    _check_known(
        "strategy or preset", unknown, (*_list_words(STRATEGIES, _list_strategy_names), *by_name.values()), _STRATEGIES
    )
    chosen = [strategy.name for strategy in filter_by_names(STRATEGIES, words, names=_list_strategy_names)]
    chosen += [by_name[word.lower()] for word in given if word.lower() in by_name]
    if not chosen and not mixed:
        raise EvalError(f"No strategy or preset matches {text!r}; there are {_join_names(_STRATEGIES)}.")
    return tuple(dict.fromkeys((*chosen, *mixed)))


def choose_scenarios(options: EvalOptions) -> tuple[str, ...]:
    """Return the slugs of the selected scenarios and test cases.

    With tools disabled, only the selected controls are returned, or `chat_only` if there are none: other scenarios need
    tools.

    Raises:
        EvalError: a word names no scenario, set or test case.
    """
    given = [word.strip() for word in options.scenarios.split(",") if word.strip()]
    cases = find_slugs_by_word(given)
    words = [word for word in given if word not in cases]
    if unknown := scenarios.list_unknown_words(words):
        slugs = [scenario.slug for scenario in scenarios.list_scenarios()]
        sets = [f"{SET_PREFIX}{group}" for group, _ in list_nonempty_sets()]
        known = (*scenarios.list_words(), *sets, *Case.objects.filter(deleted_at=None).values_list("slug", flat=True))
        _check_known("scenario", unknown, known, [*slugs, *sets])
    found = () if cases and not words else scenarios.select_scenarios(words)
    if options.tool_use_mode == "disabled":
        found = tuple(scenario for scenario in found if scenario.control) or (scenarios.lookup_scenario("chat_only"),)
        return tuple(scenario.slug for scenario in found)
    chosen = (*(scenario.slug for scenario in found), *(slug for slugs in cases.values() for slug in slugs))
    return tuple(dict.fromkeys(chosen))


def check_tools(options: EvalOptions, slugs: Sequence[str]) -> None:
    """Check that every tool allowed or denied is offered by one of the scenarios.

    Raises:
        EvalError: a tool is offered by none of them.
    """
    words = [word for word in (*options.allow, *options.deny) if word.lower() not in ALL_WORDS]
    if not words:
        return
    drawn = [scenario.draw_instance(0, kind="parity") for scenario in find_scenarios(slugs).values()]
    offered = [
        tool.name
        for instance in drawn
        for tool in (*instance.tools, *(new for message in instance.further for new in message.tools))
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
        given = patch.get(key) or ()
        words = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else ()
        unknown = [
            word for word in words if isinstance(word, str) and word.strip() and normalise_name(word) not in names
        ]
        _check_known(f"entry of {key}", unknown, names)


def _check_known(noun: str, unknown: Sequence[str], known: Iterable[str], there: Sequence[str] = ()) -> None:
    """Raise EvalError for unknown words, with similar known words.

    If no known word is similar, the message lists those in `there`, or all known words.
    """
    if not unknown:
        return
    known = tuple(known)
    messages = [
        f"No {noun} matches {word.strip()!r}; {_describe_nearest(word, known) or _describe_available(there or known)}."
        for word in unknown
    ]
    raise EvalError(" ".join(messages))


def _describe_nearest(word: str, known: Iterable[str]) -> str:
    found = find_similar_words(word.strip(), known)
    return f"the nearest: {_join_names(found)}" if found else ""


def _describe_available(names: Sequence[str]) -> str:
    return f"there are {_join_names(names)}" if names else "there are none"


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"{', '.join(f'“{name}”' for name in names[:MAX_NAMES])}{more}"


def _list_words(items: Iterable[Item], names: Callable[[Item], Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for item in items for name in names(item)))


def _list_strategy_names(strategy: Strategy) -> Sequence[str]:
    return strategy.names


def _list_profile_names(profile: SamplingProfile) -> Sequence[str]:
    return (profile.name, *profile.tags)


def _list_provider_names(provider: Provider) -> Sequence[str]:
    return (provider.name, provider.template or provider.name, provider.kind, provider.service or provider.name)


def _list_model_names(model: Model) -> Sequence[str]:
    name = model.name
    return (name, name.partition(":")[0], name.partition("/")[0], model.canonical or name, *model.tags)


def _map_bare_names(models: Iterable[Model]) -> Mapping[str, tuple[str, ...]]:
    """Return whole names without `:variant`, by each name without its vendor in lower case."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for model in models:
        whole = model.name.partition(":")[0]
        for name in (whole, model.name):
            found[name.rpartition("/")[2].lower()][whole] = None
    return {bare: tuple(whole) for bare, whole in found.items()}


def _check_models(options: EvalOptions, unknown: Sequence[str], offered: Sequence[Model], where: str) -> None:
    """Raise EvalError for words that name no model, or several by their name without a vendor."""
    if not unknown:
        return
    bare = _map_bare_names(offered)
    known = _list_words(offered, _list_model_names)
    messages: list[str] = []
    for word in unknown:
        several = bare.get(word.lstrip("!"), ())
        if several:
            messages.append(f"{word!r} may be {' or '.join(f'“{name}”' for name in several)}: write the whole name.")
            continue
        near = _describe_nearest(word, (*known, *bare)) or _describe_available([model.name for model in offered])
        messages.append(f"No model at {where} matches {word!r}; {near}.{_suggest_provider(options, word)}")
    raise EvalError(" ".join(messages))


def _suggest_provider(options: EvalOptions, word: str) -> str:
    if options.provider:
        return ""
    models = tuple(Model.objects.select_related("provider"))
    found = filter_by_names(models, [word.lstrip("!")], names=_list_model_names)
    return f" {found[0].provider.name} has one: add --provider." if found else ""
