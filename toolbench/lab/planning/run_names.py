"""Default titles of runs."""

from collections.abc import Collection, Iterable

from toolbench.evals import scenarios
from toolbench.lab.planning.run_request import Plan

MAX_NAMES = 2  # models, profiles, scenarios or methods spelled out; the rest is counted
DEFAULT_METHOD = "native"


def build_run_title(plan: Plan) -> str:
    """Return models × profiles · scenarios in at most 200 characters.

    Example: `perfect, glm-4.7 and 3 more × default · typical`.
    """
    models = _join_names(config.model_name.rpartition("/")[2] for config in plan.configs)
    profiles = _join_names(config.profile for config in plan.configs)
    tried = _describe_scenarios(dict.fromkeys(cell.scenario for cell in plan.cells))
    methods = tuple(dict.fromkeys(config.method for config in plan.configs))
    how = "" if methods == (DEFAULT_METHOD,) else f" · {_join_names(methods)}"
    return f"{models} × {profiles} · {tried}{how}"[:200]


def _describe_scenarios(slugs: Collection[str]) -> str:
    chosen = set(slugs)
    named = next(
        (name for name in scenarios.SETS if {scenario.slug for scenario in scenarios.select_scenarios(name)} == chosen),
        "",
    )
    return named or _join_names(slugs)


def _join_names(names: Iterable[str]) -> str:
    found = tuple(dict.fromkeys(names))
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    return ", ".join(found[:MAX_NAMES]) + more
