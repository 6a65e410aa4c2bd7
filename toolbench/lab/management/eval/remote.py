"""Launch of a run on another installation for `manage.py eval --server`, and the results of the run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolbench.client import (
    RemoteModel,
    RemotePlan,
    RemoteRunDetail,
    ToolbenchClient,
    ToolbenchError,
    UnreachableError,
)
from toolbench.client.documents import RemoteCell, RemoteConfig
from toolbench.client.errors import is_temporary
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.catalogue import MATRIX_STRATEGIES, STRATEGIES
from toolbench.evals.name_filter import filter_by_names, list_unmatched_words
from toolbench.lab.management.eval.baseline import BaselineGate, build_gate
from toolbench.lab.management.eval.gate_files import GateResults
from toolbench.lab.management.eval.names import (
    DEFAULT_PROVIDERS,
    MAX_NAMES_SHOWN,
    EvalError,
    build_name_lister,
    describe_ambiguous_word,
    list_control_slugs,
)
from toolbench.lab.management.eval.options import OPTIONS, VARIABLE_PREFIX, EvalOptions, split_words
from toolbench.lab.management.eval.output import render_skipped_lines
from toolbench.lab.management.eval.request import build_overrides, build_run_limits, list_allowed_tools
from toolbench.lab.management.eval.results import CellResult
from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.planning.run_request import STREAMS_BY_OPTION
from toolbench.lab.scenarios.case_sets import SET_PREFIX

# Options of EvalOptions that are refused with --server.
LOCAL_ONLY_OPTIONS = (
    "out",
    "fallback_matrix",
    "tag_fallback",
    "route",
    "transforms",
    "provider_only",
    "provider_order",
    "provider_ignore",
)
# Options of EvalOptions that are also refused with --server and --resume together.
LAUNCH_ONLY_OPTIONS = ("key", "jobs", "timeout", "open_timeout", "read_timeout")


@dataclass(frozen=True, slots=True)
class RemoteRequest:
    """Request for a run on another installation, and its plan.

    Attributes:
        body: fields of the body of POST /runs/plan.
        plan: the plan that the installation made from `body`.
    """

    body: JsonObject
    plan: RemotePlan

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines about the plan that the command prints."""
        plan = self.plan
        paid = (f"up to {count:,} of them to {name}, which may charge" for name, count in plan.paid_requests.items())
        return (
            f"{len(plan.configs)} configurations, {plan.cells} cells, {plan.trials:,} trials",
            f"{plan.least_requests:,} to {plan.most_requests:,} requests",
            *paid,
            *render_skipped_lines([(row["what"], row["why"]) for row in plan.skipped]),
        )


def check_remote_options(options: EvalOptions, *, resumes: bool) -> None:
    """Check that all options that are given work with --server.

    Raises:
        EvalError: an option does not work with --server, or not with --server and --resume together.
    """
    defaults = EvalOptions()
    for name in (*LOCAL_ONLY_OPTIONS, *(LAUNCH_ONLY_OPTIONS if resumes else ())):
        if getattr(options, name) != getattr(defaults, name):
            row, where = OPTIONS[name], "--server" if name in LOCAL_ONLY_OPTIONS else "--resume and --server"
            variable = f" ({VARIABLE_PREFIX}{row.variable})" if row.variable else ""
            raise EvalError(f"Leave {row.flag}{variable} out: it does not work with {where}.")


def use_remote_baseline_seed(client: ToolbenchClient, options: EvalOptions) -> EvalOptions:
    """Return the options with the seed of the baseline on the other installation, unless a seed is given.

    With the same seed, both runs have the same instances.

    Raises:
        NotFoundError: there is no run with the baseline's id.
    """
    if options.baseline is None:
        return options
    baseline = client.get_run(options.baseline).run
    return replace(options, seed=baseline.seed) if options.seed is None else options


def plan_remotely(client: ToolbenchClient, options: EvalOptions) -> RemoteRequest:
    """Plan the run of the options on another installation.

    Raises:
        EvalError: a name is unknown, or the words of an option select nothing.
        ToolbenchError: the installation refused the request.
    """
    body: JsonObject = {
        "title": options.title,
        "models": [model.id for model in _choose_models(client, options)],
        "profiles": _choose_profiles(client, options.profiles),
        "strategies": list(MATRIX_STRATEGIES) if options.strategy_matrix else _choose_strategies(options.strategies),
        "methods": list(options.method),
        "streams": list(STREAMS_BY_OPTION[options.stream]),
        "scenarios": _choose_scenarios(client, options),
        "trials": options.trials,
        "until": options.until_decided or {},
        "instance_kind": options.instances,
        "tool_use_mode": options.tool_use_mode,
        "tool_failure_policy": options.failure_policy,
        "tool_allowlist": list(list_allowed_tools(options)),
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


def resume_remotely(client: ToolbenchClient, options: EvalOptions, run_id: int, *, agreed: int = 0) -> None:
    """Resume a paused run of another installation, with the limits of the options, if any.

    A run that is not paused stays as it is, also with a limit, so that the command can wait for its end and check its
    gates.

    Args:
        client: client of the installation.
        options: all options.
        run_id: the run.
        agreed: number of paid requests that may be sent; ConflictError names the number to confirm.

    Raises:
        ToolbenchError: there is no such run, it cannot be resumed, or the limit cannot be set.
    """
    run = client.get_run(run_id).run
    if run.state != "paused":
        return
    if options.request_cap or options.token_cap:
        limits = {
            "request_cap": options.request_cap or run.request_cap,
            "token_cap": options.token_cap or run.token_cap,
            **({"agreed": agreed} if agreed else {}),
        }
        client.request("POST", f"/runs/{run_id}/limits", limits)
    else:
        client.resume(run_id)


def _choose_models(client: ToolbenchClient, options: EvalOptions) -> list[RemoteModel]:
    """Return the models that --provider and --models select; model names are accepted as in a local run.

    Raises:
        EvalError: the words select none, a word names nothing, or one stands for several models.
    """
    providers = _choose_documents(
        "provider", client.request("GET", "/providers"), options.provider or DEFAULT_PROVIDERS, _list_provider_names
    )
    ids = [provider["id"] for provider in providers]
    offered = [model for model in client.list_models() if model.provider_id in ids]
    list_names = build_name_lister(offered)
    unknown = list_unmatched_words(offered, options.models, names=list_names)
    if ambiguities := [text for word in unknown if (text := describe_ambiguous_word(word, offered))]:
        raise EvalError(" ".join(ambiguities))
    chosen = filter_by_names(offered, options.models, names=list_names)
    if unknown or not chosen:
        names = ", ".join(sorted({f"{model.provider}: {model.name}" for model in offered})[:MAX_NAMES_SHOWN])
        raise EvalError(
            f"No model on the server matches {', '.join(unknown) or options.models!r}; there are {names or 'none'}."
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
    is_default = words == DEFAULT_PROVIDERS  # it may name kinds that the installation does not have
    unknown = [] if is_default else list_unmatched_words(rows, words, names=list_names)
    chosen = filter_by_names(rows, words, names=list_names)
    if unknown or not chosen:
        names = ", ".join([row["name"] for row in rows][:MAX_NAMES_SHOWN])
        raise EvalError(
            f"No {noun} on the server matches {', '.join(unknown) or words!r}; there are {names or 'none'}."
        )
    return chosen


def _list_provider_names(provider: JsonObject) -> Sequence[str]:
    return (provider["name"], provider["template"] or provider["name"], provider["kind"])


def _list_profile_names(profile: JsonObject) -> Sequence[str]:
    return (profile["name"], *profile["tags"])


def _choose_profiles(client: ToolbenchClient, words: str) -> list[str]:
    rows = [profile for profile in client.request("GET", "/profiles") if not profile["archived"]]
    return [profile["name"] for profile in _choose_documents("sampling profile", rows, words, _list_profile_names)]


def _choose_strategies(text: str) -> list[str]:
    """Return names of strategies: those of the case study for words that select them, then all other words.

    The other installation may have strategies and presets that are unknown here, so other words are sent unchanged.

    Raises:
        EvalError: an unknown word begins with `!` or contains `*`.
    """
    words = split_words(text)
    unknown = list_unmatched_words(STRATEGIES, words, names=lambda strategy: strategy.names)
    unchanged = [word for word in words if word.lower() in unknown]
    _check_plain_names("strategies", unchanged)
    study_words = [word for word in words if word not in unchanged]
    chosen = filter_by_names(STRATEGIES, study_words, names=lambda strategy: strategy.names)
    return [*(strategy.name for strategy in chosen), *unchanged]


def _choose_scenarios(client: ToolbenchClient, options: EvalOptions) -> list[str]:
    """Return slugs of scenarios: those in code for words that select them, then all other words.

    The other installation may have test cases that are unknown here, so other words are sent unchanged, except that
    names of sets become their numbers. If tools are disabled, only controls are returned, as in a local run.

    Raises:
        EvalError: an unknown word begins with `!` or contains `*`.
    """
    words = split_words(options.scenarios)
    unknown = list(scenarios.list_unknown_words(words))
    _check_plain_names("scenarios", unknown)
    code_words = [word for word in words if word not in unknown]
    selected = scenarios.select_scenarios(code_words) if code_words else ()
    if options.tool_use_mode == "disabled":
        return list(list_control_slugs(selected))
    return [*(scenario.slug for scenario in selected), *_number_sets(client, unknown)]


def _number_sets(client: ToolbenchClient, words: Sequence[str]) -> list[str]:
    """Replace names of sets of test cases by numbers, which the API requires: `set:Mails` becomes `set:3`."""
    if not any(word.lower().startswith(SET_PREFIX) for word in words):
        return list(words)
    sets = {f"{SET_PREFIX}{row['name']}".lower(): f"{SET_PREFIX}{row['id']}" for row in client.request("GET", "/cases")}
    return [sets.get(word.lower(), word) for word in words]


def _check_plain_names(option: str, words: Sequence[str]) -> None:
    """Check that words that are sent unchanged are plain names.

    Raises:
        EvalError: a word begins with `!` or contains `*`.
    """
    if patterns := [word for word in words if word.startswith("!") or "*" in word]:
        raise EvalError(
            f"Write names instead of {', '.join(patterns)} in --{option}: patterns select only {option} that are known "
            "here, and none of these matches."
        )


def wait_for_results(client: ToolbenchClient, run_id: int, options: EvalOptions) -> GateResults:
    """Wait for the end of a run and return its results; Ctrl-C pauses the run and ends the wait.

    If the installation stops answering or is overloaded, the results have no cells and say how to continue. If only the
    comparison with the baseline fails, the results have the cells, and their gate says why.

    Raises:
        ToolbenchError: the installation refused a request.
    """
    title, advice = f"Run {run_id}", f"Continue it with --resume {run_id}."
    try:
        detail = _wait_for_run(client, run_id)
    except (ToolbenchError, UnreachableError) as error:
        if not is_temporary(error):
            raise
        unfinished = f"{title} may still be running. {error} {advice}"
        return GateResults(title, (), options.fail_under, unfinished=unfinished)
    run, unfinished = detail.run, ""
    if run.state != "finished":
        parts = (f"{title} is {run.state}.", run.stopped_reason, "" if run.has_ended else advice)
        unfinished = " ".join(part for part in parts if part)
    cells = tuple(_build_result(config, cell) for config in detail.configs for cell in config.cells)
    gate = _build_remote_gate(client, detail, options.baseline) if options.baseline is not None else None
    return GateResults(title, cells, options.fail_under, gate, unfinished)


def _wait_for_run(client: ToolbenchClient, run_id: int) -> RemoteRunDetail:
    try:
        return client.wait_for_run(run_id)
    except KeyboardInterrupt:
        client.pause(run_id)
        return client.get_run(run_id)


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


def _build_remote_gate(client: ToolbenchClient, detail: RemoteRunDetail, baseline_id: int) -> BaselineGate:
    """Compare a run with a baseline; if the comparison fails, return a gate that says so."""
    try:
        return _compare_remotely(client, detail, baseline_id)
    except (ToolbenchError, UnreachableError) as error:
        run = detail.run
        problem = f"Run {run.id} is {run.state}, but the comparison with run {baseline_id} failed: {error}"
        return BaselineGate(baseline_id, (), (), f"{problem} Repeat it with --resume {run.id}.")


def _compare_remotely(client: ToolbenchClient, detail: RemoteRunDetail, baseline_id: int) -> BaselineGate:
    """Compare a run with a baseline, both on the other installation, separately for each group of scenarios."""
    groups = sorted({config.group for config in detail.configs if not all(cell.control for cell in config.cells)})
    sides = {"a_run": baseline_id, "b_run": detail.run.id}
    documents = [client.request("GET", "/compare", **sides, group=group)["table"] for group in groups or [""]]
    tables = [ExportTable(table["title"], table["notes"], table["columns"], table["rows"]) for table in documents]
    return build_gate(baseline_id, tables)
