"""From what `manage.py eval` was asked to the same request that the launch form makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.layering import merged
from toolbench.engine.policy.presets import openrouter_routing, preset, preset_names
from toolbench.evals import scenarios
from toolbench.evals.catalogue import STRATEGIES, STRATEGY_MATRIX
from toolbench.evals.filters import EVERYTHING, choose, unmatched
from toolbench.lab.command.eval_options import EvalOptions
from toolbench.lab.models import Model, Preset, Provider, SamplingProfile
from toolbench.lab.planning.case_sets import slugs_by_word
from toolbench.lab.planning.run_request import STREAMS, RunRequest
from toolbench.lab.planning.strategies import WITH, WITHOUT

TAG_FALLBACK = "content_tag_tool_call_fallback"
OPENROUTER = "openrouter"
USUAL_PROVIDERS = f"!{Provider.Kind.SIMULATED},!{Provider.Kind.LOCAL}"
NO_LIMIT_SECONDS = 24 * 3600.0
NAMED = 12  # names in a sentence


class EvalRefused(Exception):
    """Something asked for that is not there; its text says what is."""


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """`notes` are sentences about words that were passed over."""

    request: RunRequest
    models: tuple[Model, ...]
    notes: tuple[str, ...]

    @property
    def providers(self) -> tuple[Provider, ...]:
        return tuple({model.provider_id: model.provider for model in self.models}.values())


def ask(options: EvalOptions) -> EvalRequest:
    """Raises EvalRefused when a filter matches nothing."""
    models = chosen_models(options)
    slugs, unknown = _scenarios(options)
    profiles, notes = _profiles(options.profiles)
    request = RunRequest(
        title=options.title,
        models=tuple(model.pk for model in models),
        profiles=profiles,
        strategies=_strategies(options),
        methods=options.method,
        probe_unknown=options.probe,
        streams=STREAMS[options.stream],
        scenarios=slugs,
        trials=options.trials,
        until=options.until_decided or {},
        instance_kind=options.instances,
        tool_use_mode=options.tool_use_mode,
        tool_failure_policy=options.failure_policy,
        tool_allowlist=() if any(word.lower() in EVERYTHING for word in options.allow) else options.allow,
        tool_denylist=options.deny,
        overrides=_overrides(options, models),
        request_cap=options.request_cap,
        token_cap=options.token_cap,
        deadline_seconds=options.deadline,
        **run_limits(options),
        seed=options.seed,
        purpose="cli",
        enforce_applicability=options.enforce_applicability,
    )
    passed_over = (f"Passed over: there is no scenario {', '.join(unknown)}.",) if unknown else ()
    return EvalRequest(request, models, (*notes, *passed_over))


def run_limits(options: EvalOptions) -> JsonObject:
    """What was said of timeouts and of trials at once, by the run's columns; a timeout of 0 is none."""
    read = options.read_timeout if options.read_timeout is not None else options.timeout
    limits = {"connect_seconds": _seconds(options.open_timeout), "read_seconds": _seconds(read), "jobs": options.jobs}
    return _said(limits)


def _seconds(given: float | None) -> float | None:
    return NO_LIMIT_SECONDS if given is not None and given <= 0 else given


def chosen_models(options: EvalOptions) -> tuple[Model, ...]:
    """Models of the providers chosen, in the order they were added. Raises EvalRefused."""
    providers = choose(tuple(Provider.objects.all()), options.provider or USUAL_PROVIDERS, names=_provider_names)
    if not providers:
        there = Provider.objects.values_list("name", flat=True)
        raise EvalRefused(f"No provider matches {options.provider!r}; there are {_listed(tuple(there))}.")
    offered = Model.objects.filter(provider__in=providers).select_related("provider").order_by("provider__name", "pk")
    models = choose(tuple(offered), options.models, names=_model_names)
    if not models:
        raise EvalRefused(_no_model(options, providers, tuple(offered)))
    return tuple(models)


def _provider_names(provider: Provider) -> Sequence[str]:
    return (provider.name, provider.template or provider.name, provider.kind, provider.service or provider.name)


def _model_names(model: Model) -> Sequence[str]:
    return (
        model.name,
        model.name.partition(":")[0],
        model.name.partition("/")[0],
        model.canonical or model.name,
        *model.tags,
    )


def _no_model(options: EvalOptions, providers: Sequence[Provider], offered: Sequence[Model]) -> str:
    where = ", ".join(provider.name for provider in providers)
    names = tuple(model.name for model in offered)
    there = f"there are {_listed(names)}" if names else "there are none"
    elsewhere = choose(tuple(Model.objects.select_related("provider")), options.models, names=_model_names)
    hint = f" {elsewhere[0].provider.name} has one: add --provider." if elsewhere and not options.provider else ""
    return f"No model at {where} matches {options.models!r}; {there}.{hint}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(f'“{name}”' for name in names[:NAMED])}{more}"


def _profiles(words: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names in the catalogue's order, and what was passed over."""
    rows = tuple(SamplingProfile.objects.all())
    found = choose(rows, words, names=_profile_names)
    if not found:
        raise EvalRefused(f"No sampling profile matches {words!r}; there are {_listed([row.name for row in rows])}.")
    unknown = unmatched(rows, words, names=_profile_names)
    notes = (f"Passed over: no sampling profile matches {', '.join(unknown)}.",) if unknown else ()
    return tuple(row.name for row in found), notes


def _profile_names(profile: SamplingProfile) -> Sequence[str]:
    return (profile.name, *profile.tags)


def _strategies(options: EvalOptions) -> tuple[str, ...]:
    """`all` means the three strategies; presets are chosen by name."""
    if options.strategy_matrix:
        chosen = list(STRATEGY_MATRIX)
    else:
        chosen = [one.name for one in choose(STRATEGIES, options.strategies, names=lambda one: one.names)]
        words = {word.strip().lower() for word in options.strategies.split(",")}
        presets = dict.fromkeys([*preset_names(), *Preset.objects.values_list("name", flat=True)])
        chosen += [name for name in presets if name.lower() in words]
    if not chosen:
        raise EvalRefused(f"No strategy or preset matches {options.strategies!r}; there are raw, baseline, production.")
    if not options.fallback_matrix:
        return tuple(chosen)
    return tuple(f"{name}{sign}{TAG_FALLBACK}" for name in chosen for sign in (WITHOUT, WITH))


def _scenarios(options: EvalOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Slugs, and words that mean none. With tools off only the controls say anything."""
    given = [word for word in options.scenarios.split(",") if word.strip()]
    cases = slugs_by_word(given)
    words = [word for word in given if word not in cases]
    unknown = scenarios.unknown(words)
    if given and len(unknown) == len(given):
        slugs = ", ".join(scenario.slug for scenario in scenarios.all())
        raise EvalRefused(f"No scenario matches {options.scenarios!r}; there are {slugs}, and cases by slug or set.")
    found = () if cases and len(unknown) == len(words) else scenarios.select(words)
    if options.tool_use_mode == "disabled":
        found = tuple(one for one in found if one.control) or (scenarios.find("chat_only"),)
        return tuple(one.slug for one in found), unknown
    chosen = (*(one.slug for one in found), *(slug for slugs in cases.values() for slug in slugs))
    return tuple(dict.fromkeys(chosen)), unknown


def _overrides(options: EvalOptions, models: Sequence[Model]) -> JsonObject:
    """One patch of everything that lies above profile and workarounds; what was written as policy comes last."""
    sampling = {"temperature": options.temperature, "top_p": options.top_p, "top_k": options.top_k}
    sampling["min_p"] = options.min_p
    loop = {"fallback_retry_count": options.fallback_retries, "fix_empty_final": options.fix_empty_final}
    patch: JsonObject = _said(loop)
    if options.tag_fallback and not options.fallback_matrix:
        patch = merged(patch, preset(TAG_FALLBACK))
    patch = merged(patch, _routing(options, models))
    if options.request_overrides:
        patch = merged(patch, {"request_overrides": options.request_overrides})
    if defaults := {**(options.llm_options or {}), **_said(sampling)}:
        patch = merged(patch, {"llm_options_defaults": defaults})
    return merged(patch, options.overrides or {})


def _said(values: Mapping[str, object]) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _routing(options: EvalOptions, models: Sequence[Model]) -> JsonObject:
    """Raises EvalRefused where somebody else than OpenRouter would be sent its words."""
    words = options.transforms.strip().lower()
    listed = [word.strip() for word in options.transforms.split(",") if word.strip()]
    patch = openrouter_routing(
        route=options.route,
        transforms=None if words in ("", "auto") else [] if words == "none" else listed,
        only=options.provider_only,
        order=options.provider_order,
        ignore=options.provider_ignore,
    )
    others = {model.provider.name for model in models if model.provider.template != OPENROUTER}
    if patch and others:
        raise EvalRefused(f"Route, transforms and upstreams steer OpenRouter only, not {', '.join(sorted(others))}.")
    return patch
