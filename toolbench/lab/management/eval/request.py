"""Conversion of the options of `manage.py eval` to a request for a run, as the launch form builds one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.engine.policy.layered_key import merge_objects
from toolbench.engine.policy.presets import build_openrouter_routing, get_preset
from toolbench.engine.types import JsonObject
from toolbench.evals.catalogue import MATRIX_STRATEGIES
from toolbench.evals.name_filter import ALL_WORDS
from toolbench.lab.interchange.report.labels import TAG_FALLBACK
from toolbench.lab.management.eval.names import (
    EvalError,
    check_tools,
    check_transforms,
    choose_models,
    choose_profiles,
    choose_scenarios,
    choose_strategies,
)
from toolbench.lab.management.eval.options import EvalOptions, split_words
from toolbench.lab.models import Model
from toolbench.lab.planning.run_request import STREAMS_BY_OPTION, RunRequest
from toolbench.lab.planning.strategies import ADD_PRESET, REMOVE_WORKAROUND

OPENROUTER = "openrouter"
NO_LIMIT_SECONDS = 24 * 3600.0  # timeout that stands for no limit


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """Request for a run, with the rows of its models."""

    request: RunRequest
    models: tuple[Model, ...]


def build_eval_request(options: EvalOptions) -> EvalRequest:
    """Build the request for a run from the options.

    Raises:
        EvalError: a name is unknown, the words of an option select nothing, or options contradict each other.
    """
    models = choose_models(options)
    slugs = choose_scenarios(options)
    check_tools(options, slugs)
    request = RunRequest(
        title=options.title,
        models=tuple(model.pk for model in models),
        profiles=choose_profiles(options.profiles),
        strategies=_list_strategies(options),
        methods=options.method,
        probe_unknown=options.probe,
        streams=STREAMS_BY_OPTION[options.stream],
        scenarios=slugs,
        trials=options.trials,
        until=options.until_decided or {},
        instance_kind=options.instances,
        tool_use_mode=options.tool_use_mode,
        tool_failure_policy=options.failure_policy,
        tool_allowlist=list_allowed_tools(options),
        tool_denylist=options.deny,
        overrides=build_overrides(options, models),
        request_cap=options.request_cap,
        token_cap=options.token_cap,
        deadline_seconds=options.deadline,
        **build_run_limits(options),
        seed=options.seed,
        purpose="cli",
        enforce_applicability=options.enforce_applicability,
    )
    check_transforms(request.overrides)
    return EvalRequest(request, models)


def list_allowed_tools(options: EvalOptions) -> tuple[str, ...]:
    """Return the names of the only tools that are offered; () for every tool."""
    return () if any(word.lower() in ALL_WORDS for word in options.allow) else options.allow


def build_run_limits(options: EvalOptions) -> JsonObject:
    """Return the timeouts and the concurrency limit that the options set, by column of Run.

    A timeout of 0 or less means no limit and becomes NO_LIMIT_SECONDS, which is also the maximum.
    """
    read_timeout = options.read_timeout if options.read_timeout is not None else options.timeout
    limits = {
        "connect_seconds": _convert_timeout(options.open_timeout),
        "read_seconds": _convert_timeout(read_timeout),
        "jobs": options.jobs,
    }
    return _drop_unset(limits)


def _convert_timeout(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    return min(seconds, NO_LIMIT_SECONDS) if seconds > 0 else NO_LIMIT_SECONDS


def _list_strategies(options: EvalOptions) -> tuple[str, ...]:
    chosen = MATRIX_STRATEGIES if options.strategy_matrix else choose_strategies(options.strategies)
    if not options.fallback_matrix:
        return chosen
    return tuple(f"{name}{sign}{TAG_FALLBACK}" for name in chosen for sign in (REMOVE_WORKAROUND, ADD_PRESET))


def build_overrides(options: EvalOptions, models: Sequence[Model]) -> JsonObject:
    """Return the policy patch of all options that override profile and workarounds.

    The patch in `options.overrides` has precedence over the other options.

    Raises:
        EvalError: an option of OpenRouter's routing is set, and one of `models` belongs to another provider.
    """
    sampling = {"temperature": options.temperature, "top_p": options.top_p, "top_k": options.top_k}
    sampling["min_p"] = options.min_p
    loop_settings = {"fallback_retry_count": options.fallback_retries, "fix_empty_final": options.fix_empty_final}
    patch: JsonObject = _drop_unset(loop_settings)
    if options.tag_fallback and not options.fallback_matrix:
        patch = merge_objects(patch, get_preset(TAG_FALLBACK))
    patch = merge_objects(patch, _build_routing(options, models))
    if options.request_overrides:
        patch = merge_objects(patch, {"request_overrides": options.request_overrides})
    if llm_options := {**(options.llm_options or {}), **_drop_unset(sampling)}:
        patch = merge_objects(patch, {"llm_options_defaults": llm_options})
    return merge_objects(patch, options.overrides or {})


def _drop_unset(values: Mapping[str, object]) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _build_routing(options: EvalOptions, models: Sequence[Model]) -> JsonObject:
    """Return the policy patch with OpenRouter's routing.

    Raises:
        EvalError: routing is set, and one of `models` belongs to another provider.
    """
    keyword = options.transforms.strip().lower()
    names = list(split_words(options.transforms))
    patch = build_openrouter_routing(
        route=options.route,
        transforms=None if keyword in ("", "auto") else [] if keyword == "none" else names,
        only=options.provider_only,
        order=options.provider_order,
        ignore=options.provider_ignore,
    )
    other_providers = {model.provider.name for model in models if model.provider.template != OPENROUTER}
    if patch and other_providers:
        raise EvalError(
            f"Route, transforms and upstreams apply to OpenRouter only. Leave them out for "
            f"{', '.join(sorted(other_providers))}."
        )
    return patch
