"""Default titles of runs."""

from collections.abc import Collection, Iterable

from toolbench.evals import scenarios
from toolbench.lab.planning.run_request import Plan

MAX_NAMES = 2  # shown of models, profiles, scenarios and methods each; the others are counted
DEFAULT_METHOD = "native"


def build_run_title(plan: Plan) -> str:
    """Return a title of at most 200 characters: models × profiles · scenarios.

    Methods are added unless all configurations use native. Example: `perfect, glm-4.7 and 3 more × default · typical`.
    """
    models = _join_names(config.model_name.rpartition("/")[2] for config in plan.configs)
    profiles = _join_names(config.profile for config in plan.configs)
    scenario_names = _describe_scenarios(dict.fromkeys(cell.scenario for cell in plan.cells))
    methods = tuple(dict.fromkeys(config.method for config in plan.configs))
    method_names = "" if methods == (DEFAULT_METHOD,) else f" · {_join_names(methods)}"
    return f"{models} × {profiles} · {scenario_names}{method_names}"[:200]


def _describe_scenarios(slugs: Collection[str]) -> str:
    """Return the name of the set with exactly these scenarios, or else the first slugs and the number of others."""
    chosen = set(slugs)
    set_name = next(
        (name for name in scenarios.SETS if {scenario.slug for scenario in scenarios.select_scenarios(name)} == chosen),
        "",
    )
    return set_name or _join_names(slugs)


def _join_names(names: Iterable[str]) -> str:
    unique = tuple(dict.fromkeys(names))
    more = f" and {len(unique) - MAX_NAMES} more" if len(unique) > MAX_NAMES else ""
    return ", ".join(unique[:MAX_NAMES]) + more
