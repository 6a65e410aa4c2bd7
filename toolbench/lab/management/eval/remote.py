"""Launch of `manage.py eval --server` on another installation, and its results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolbench.client import RemoteModel, RemotePlan, RemoteRunDetail, ToolbenchClient
from toolbench.client.documents import RemoteCell, RemoteConfig
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.catalogue import MATRIX_STRATEGIES, STRATEGIES
from toolbench.evals.name_filter import filter_by_names, list_unmatched_words
from toolbench.lab.management.eval.baseline import BaselineGate, build_gate
from toolbench.lab.management.eval.names import DEFAULT_PROVIDERS, EvalError
from toolbench.lab.management.eval.options import EvalOptions
from toolbench.lab.management.eval.request import build_overrides, build_run_limits
from toolbench.lab.management.eval.results import CellResult
from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.planning.run_request import STREAMS_BY_OPTION

# Options of EvalOptions that are refused with --server.
LOCAL_ONLY_OPTIONS = (
    "out",
    "fallback_matrix",
    "tag_fallback",
    "route",
    "provider_only",
    "provider_order",
    "provider_ignore",
)
MAX_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class RemoteRequest:
    """Request for a run on another installation, and its plan.

    Attributes:
        body: fields of the body of POST /runs/plan.
        plan: the plan that the installation made from them.
    """

    body: JsonObject
    plan: RemotePlan

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines about the plan that the command prints."""
        plan = self.plan
        paid = (f"up to {count:,} of them to {name}, which may charge" for name, count in plan.paid_requests.items())
        skipped = (f"left out: {row['what']}. {row['why']}" for row in plan.skipped[:MAX_NAMES_SHOWN])
        return (
            f"{len(plan.configs)} configurations, {plan.cells} cells, {plan.trials:,} trials",
            f"{plan.least_requests:,} to {plan.most_requests:,} requests",
            *paid,
            *skipped,
        )


def adopt_remote_baseline(client: ToolbenchClient, options: EvalOptions) -> EvalOptions:
    """Return the options with the seed of the baseline on the other installation, unless a seed is given.

    With the same seed, both runs have the same instances.

    Raises:
        NotFoundError: there is no such run.
    """
    if options.baseline is None:
        return options
    baseline = client.get_run(options.baseline).run
    return replace(options, seed=baseline.seed) if options.seed is None else options


def plan_remotely(client: ToolbenchClient, options: EvalOptions) -> RemoteRequest:
    """Plan the run of the options on another installation.

    Raises:
        EvalError: an option works only with a local database, or words select no model.
        ToolbenchError: the installation refused the request.
    """
    for name in LOCAL_ONLY_OPTIONS:
        if getattr(options, name):
            raise EvalError(f"Leave --{name.replace('_', '-')} out: it does not work with --server.")
    body: JsonObject = {
        "title": options.title,
        "models": [model.id for model in _choose_models(client, options)],
        "profiles": _choose_profiles(client, options.profiles),
        "strategies": list(MATRIX_STRATEGIES) if options.strategy_matrix else _choose_strategies(options.strategies),
        "methods": list(options.method),
        "streams": list(STREAMS_BY_OPTION[options.stream]),
        "scenarios": _choose_scenarios(options.scenarios),
        "trials": options.trials,
        "until": options.until_decided or {},
        "instance_kind": options.instances,
        "tool_use_mode": options.tool_use_mode,
        "tool_failure_policy": options.failure_policy,
        "tool_allowlist": list(options.allow),
        "tool_denylist": list(options.deny),
        "overrides": build_overrides(options, ()),
        "request_cap": options.request_cap,
        "token_cap": options.token_cap,
        "deadline_seconds": options.deadline,
        **build_run_limits(options),
        "seed": options.seed,
        "enforce_applicability": options.enforce_applicability,
        "probe_unknown": options.probe,
    }
    return RemoteRequest(body, client.plan(**body))


def _split(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


def _choose_models(client: ToolbenchClient, options: EvalOptions) -> list[RemoteModel]:
    """Return the models that --provider and --models select; names without vendor or variant are accepted.

    Raises:
        EvalError: the words select none, or a word names nothing.
    """
    providers = _choose_documents(
        "provider", client.request("GET", "/providers"), options.provider or DEFAULT_PROVIDERS, _list_provider_names
    )
    ids = [provider["id"] for provider in providers]
    offered = [model for model in client.list_models() if not model.retired and model.provider_id in ids]
    unknown = list_unmatched_words(offered, options.models, names=_list_model_names)
    chosen = filter_by_names(offered, options.models, names=_list_model_names)
    if unknown or not chosen:
        names = ", ".join(sorted({f"{model.provider}: {model.name}" for model in offered})[:MAX_NAMES_SHOWN])
        raise EvalError(
            f"No model there matches {', '.join(unknown) or options.models!r}; there are {names or 'none'}."
        )
    return chosen


def _choose_documents(
    noun: str, rows: Sequence[JsonObject], words: str, list_names: Callable[[JsonObject], Sequence[str]]
) -> list[JsonObject]:
    """Return the documents that the words select by name.

    Args:
        noun: what a document is, for the message.
        rows: documents of the other installation, each with a `name`.
        words: words separated by commas.
        list_names: returns the names of a document.

    Raises:
        EvalError: the words select none, or a word names nothing.
    """
    is_default = words == DEFAULT_PROVIDERS
    unknown = [] if is_default else list_unmatched_words(rows, words, names=list_names)
    chosen = filter_by_names(rows, words, names=list_names)
    if unknown or not chosen:
        names = ", ".join([row["name"] for row in rows][:MAX_NAMES_SHOWN])
        raise EvalError(f"No {noun} there matches {', '.join(unknown) or words!r}; there are {names or 'none'}.")
    return chosen


def _list_provider_names(provider: JsonObject) -> Sequence[str]:
    return (provider["name"], provider["template"] or provider["name"], provider["kind"])


def _list_profile_names(profile: JsonObject) -> Sequence[str]:
    return (profile["name"], *profile["tags"])


def _list_model_names(model: RemoteModel) -> Sequence[str]:
    name, canonical = model.name, model.canonical or model.name
    parts = (name.partition(":")[0], name.partition("/")[0], name.rpartition("/")[2])
    return (name, *parts, canonical, *model.tags)


def _choose_profiles(client: ToolbenchClient, words: str) -> list[str]:
    rows = [profile for profile in client.request("GET", "/profiles") if not profile["archived"]]
    return [profile["name"] for profile in _choose_documents("sampling profile", rows, words, _list_profile_names)]


def _choose_strategies(text: str) -> list[str]:
    """Return names of strategies: those of the case study for words that select them, then all other words.

    The other installation may have strategies and presets that are unknown here, so other words are sent unchanged.

    Raises:
        EvalError: an unknown word is not a plain name.
    """
    words = _split(text)
    unknown = list_unmatched_words(STRATEGIES, words, names=lambda strategy: strategy.names)
    unchanged = [word for word in words if word.lower() in unknown]
    _check_plain_names("strategies", unchanged)
    study_words = [word for word in words if word not in unchanged]
    chosen = filter_by_names(STRATEGIES, study_words, names=lambda strategy: strategy.names)
    return [*(strategy.name for strategy in chosen), *unchanged]


def _choose_scenarios(text: str) -> list[str]:
    """Return slugs of scenarios: those in code for words that select them, then all other words.

    The other installation may have test cases that are unknown here, so other words are sent unchanged.

    Raises:
        EvalError: an unknown word is not a plain name.
    """
    words = _split(text)
    unknown = list(scenarios.list_unknown_words(words))
    _check_plain_names("scenarios", unknown)
    code_words = [word for word in words if word not in unknown]
    selected = scenarios.select_scenarios(code_words) if code_words else ()
    return [*(scenario.slug for scenario in selected), *unknown]


def _check_plain_names(option: str, words: Sequence[str]) -> None:
    """Check that words that are sent unchanged are plain names.

    Raises:
        EvalError: a word begins with `!` or contains `*`.
    """
    if patterns := [word for word in words if word.startswith("!") or "*" in word]:
        raise EvalError(f"Write names instead of {', '.join(patterns)} in --{option}: it matches nothing known here.")


def list_remote_results(detail: RemoteRunDetail) -> tuple[CellResult, ...]:
    """Return the results of all cells of a run."""
    return tuple(_build_result(config, cell) for config in detail.configs for cell in config.cells)


def _build_result(config: RemoteConfig, cell: RemoteCell) -> CellResult:
    parts = (config.model, config.profile, config.strategy, config.method, "streamed" if config.stream else "")
    answered = cell.answered
    if not answered.n:
        text = "no answer"
    elif answered.low is None or answered.high is None:
        text = f"{answered.k}/{answered.n}"
    else:
        text = Rate(answered.k, answered.n, answered.low, answered.high).text
    return CellResult(
        name=" · ".join([*(part for part in parts if part), cell.scenario]),
        passed=answered.k,
        answered=answered.n,
        text=text,
        is_applicable=cell.counts.not_applicable != cell.counts.trials,
    )


def compare_remotely(client: ToolbenchClient, detail: RemoteRunDetail, baseline_id: int) -> BaselineGate:
    """Compare a run with a baseline, both on the other installation, separately for each group of scenarios."""
    groups = sorted({config.group for config in detail.configs if not all(cell.control for cell in config.cells)})
    sides = {"a_run": baseline_id, "b_run": detail.run.id}
    documents = [client.request("GET", "/compare", **sides, group=group)["table"] for group in groups or [""]]
    tables = [ExportTable(table["title"], table["notes"], table["columns"], table["rows"]) for table in documents]
    return build_gate(baseline_id, tables)
