"""Query strings that prefill the launch form with settings of the sides of a comparison."""

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from urllib.parse import urlencode

from toolbench.evals.few_shot import list_scenarios_by_set
from toolbench.lab.models import Run, RunConfig
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, NO_EXAMPLES, STREAMS_BY_OPTION
from toolbench.lab.results.compare.baseline import BaselineComparison
from toolbench.lab.results.compare.strata import collect_cell_ids

MAX_QUERY_CHARACTERS = 4_000
_OPTION_BY_STREAMS = {streams: option for option, streams in STREAMS_BY_OPTION.items()}


def build_plan_query(comparison: BaselineComparison) -> str:
    """Return the query string with which the launch form plans the trials that the sides lack.

    The function sends at most one SQL query.

    Returns:
        The query string; "" if the sides lack no trials or have none, and if the launch form cannot plan them in one
        run. It cannot if a configuration has an unknown example set, has no model here or is of the playground, if the
        tool-use modes differ, or if the plan exceeds MAX_CELL_TRIALS or the query string MAX_QUERY_CHARACTERS.
    """
    strata_by_side = [comparison.pool.select(strata) for strata in comparison.strata]
    cell_ids = collect_cell_ids(chain.from_iterable(strata_by_side))
    if not (comparison.required_trials.more and comparison.scenarios and cell_ids):
        return ""
    trials_per_cell = math.ceil(comparison.required_trials.more / comparison.scenarios)
    rows = RunConfig.objects.filter(cells__in=cell_ids).select_related("run").defer("layers", "options", "routing")
    configs = list(rows.distinct().order_by("pk"))
    if trials_per_cell > MAX_CELL_TRIALS or not configs:
        return ""
    if any(config.model_id is None or config.run.purpose == Run.PLAYGROUND for config in configs):
        return ""
    if not {config.examples for config in configs} <= {"", *list_scenarios_by_set()}:
        return ""
    if len({config.tool_use_mode for config in configs}) > 1:  # a run has only one
        return ""
    scenarios = sorted({stratum.scenario for stratum in strata_by_side[0]})
    query = build_launch_query(configs, {config.strategy for config in configs}, scenarios, trials_per_cell)
    return query if len(query) <= MAX_QUERY_CHARACTERS else ""


def build_launch_query(
    configs: Sequence[RunConfig], strategies: Iterable[str], scenarios: Iterable[str], trials_per_cell: int
) -> str:
    """Return the query string that prefills the launch form with the settings of these configurations.

    Settings that a run has only once are those of the first configuration.

    Args:
        configs: at least one configuration. Each has a model, and its run is loaded.
        strategies: strategies of the new run, in place of those of the configurations.
        scenarios: slugs of the scenarios.
        trials_per_cell: trials of each configuration in each scenario.
    """
    run = configs[0].run
    pairs: list[tuple[str, object]] = [("strategies", name) for name in sorted(strategies)]
    pairs += [
        ("trials", trials_per_cell),
        ("instance_kind", run.instance_kind),
        ("tool_use_mode", configs[0].tool_use_mode),
        ("tool_failure_policy", run.request.get("tool_failure_policy", "fatal")),
        ("stream", _OPTION_BY_STREAMS[tuple(sorted({config.stream for config in configs}))]),
    ]
    pairs += [("models", pk) for pk in sorted({config.model_id for config in configs if config.model_id})]
    pairs += [("profiles", name) for name in sorted({config.profile for config in configs})]
    pairs += [("methods", name) for name in sorted({config.method for config in configs})]
    pairs += [("examples", name or NO_EXAMPLES) for name in sorted({config.examples for config in configs})]
    return urlencode([*pairs, *(("scenarios", slug) for slug in scenarios)])
