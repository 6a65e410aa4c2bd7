"""Query strings that fill in the launch form with the settings of the sides of a comparison."""

import math
from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from toolbench.lab.models import RunConfig
from toolbench.lab.results.compare.baseline import BaselineComparison

MAX_TRIALS = 2_000  # of a cell, in the launch form
MAX_QUERY_CHARACTERS = 4_000


def build_plan_query(found: BaselineComparison) -> str:
    """Return a query string that plans the trials that the sides lack, with one query of the database.

    Returns:
        "" where they lack none, one of their models is gone, or there are too many settings for an address.
    """
    counted = [found.pool.select(side) for side in found.lines]
    cells = {pk for side in counted for line in side for pk in line.cells}
    if not (found.needed.more and found.scenarios and cells):
        return ""
    each = math.ceil(found.needed.more / found.scenarios)
    settings = RunConfig.objects.filter(cells__in=cells).select_related("run").defer("layers", "options", "routing")
    configs = list(settings.distinct().order_by("pk"))
    if each > MAX_TRIALS or not configs or any(config.model_id is None for config in configs):
        return ""
    scenarios = sorted({line.scenario for line in counted[0]})
    query = build_launch_query(configs, {config.strategy for config in configs}, scenarios, each)
    return query if len(query) <= MAX_QUERY_CHARACTERS else ""


def build_launch_query(
    configs: Sequence[RunConfig], strategies: Iterable[str], scenarios: Iterable[str], trials: int
) -> str:
    """Return the settings of configurations for the launch form; those of the first where a run has only one value.

    Args:
        configs: with their runs; each has a model.
        strategies: replace those of the configurations.
        scenarios: slugs.
        trials: of each cell.
    """
    run = configs[0].run
    chosen: list[tuple[str, object]] = [("strategies", name) for name in sorted(strategies)]
    chosen += [
        ("trials", trials),
        ("instance_kind", run.instance_kind),
        ("tool_use_mode", configs[0].tool_use_mode),
        ("tool_failure_policy", run.request.get("tool_failure_policy", "fatal")),
        ("stream", "streamed" if configs[0].stream else "none"),
    ]
    chosen += [("models", pk) for pk in sorted({config.model_id for config in configs if config.model_id})]
    chosen += [("profiles", name) for name in sorted({config.profile for config in configs})]
    chosen += [("methods", name) for name in sorted({config.method for config in configs})]
    return urlencode([*chosen, *(("scenarios", slug) for slug in scenarios)])
