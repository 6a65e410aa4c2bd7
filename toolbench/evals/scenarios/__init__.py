"""The scenarios: lookup, selection and groups.

PACKS are groups of tasks of one kind, SETS are selections across groups; `example_sets` are a scenario's few-shot sets.
"""

from toolbench.evals.few_shot import load_sets as example_sets
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
    "example_sets",
    "group_scenarios",
    "is_published",
    "list_scenarios",
    "list_unknown_words",
    "list_versions",
    "list_words",
    "lookup_scenario",
    "select_scenarios",
]
