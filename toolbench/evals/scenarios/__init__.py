"""The built-in scenarios: lookup, selection and groups.

PACKS are the names of groups of similar tasks, SETS the names of selections across groups. `load_example_sets` returns
the few-shot sets of a scenario.
"""

from toolbench.evals.few_shot import load_sets as load_example_sets
from toolbench.evals.scenarios.registry import (
    PACKS,
    SETS,
    group_scenarios,
    is_published,
    list_scenarios,
    list_unknown_words,
    list_versions,
    list_words,
    lookup_scenario,
    select_scenarios,
)

__all__ = [
    "PACKS",
    "SETS",
    "group_scenarios",
    "is_published",
    "list_scenarios",
    "list_unknown_words",
    "list_versions",
    "list_words",
    "load_example_sets",
    "lookup_scenario",
    "select_scenarios",
]
