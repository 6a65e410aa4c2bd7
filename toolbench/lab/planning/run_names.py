"""What a run is called when nobody gave it a title: what it tries."""

from collections.abc import Collection, Iterable

from toolbench.evals import scenarios
from toolbench.lab.planning.run_request import Plan

NAMED = 2  # models, profiles, scenarios or methods spelled out; the rest is counted
USUAL_METHOD = "native"


def derived_name(plan: Plan) -> str:
    """Models × profiles · scenarios, at most 200 characters: `perfect, glm-4.7 and 3 more × default · typical`."""
    models = _listed(config.model_name.rpartition("/")[2] for config in plan.configs)
    profiles = _listed(config.profile for config in plan.configs)
    tried = _scenarios(dict.fromkeys(cell.scenario for cell in plan.cells))
    methods = tuple(dict.fromkeys(config.method for config in plan.configs))
    how = "" if methods == (USUAL_METHOD,) else f" · {_listed(methods)}"
    return f"{models} × {profiles} · {tried}{how}"[:200]


def _scenarios(slugs: Collection[str]) -> str:
    chosen = set(slugs)
    named = next((name for name in scenarios.SETS if {one.slug for one in scenarios.select(name)} == chosen), "")
    return named or _listed(slugs)


def _listed(names: Iterable[str]) -> str:
    found = tuple(dict.fromkeys(names))
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(found[:NAMED]) + more
