"""What is tried. `find`, `versions`, `all`, `groups` and `select` are the way in; PACKS are groups of
tasks of one kind, SETS choices across groups; `example_sets` are a scenario's few-shot sets."""

from toolbench.evals.few_shot import sets_for as example_sets
from toolbench.evals.scenarios.registry import (
    PACKS,
    SETS,
    all,
    find,
    groups,
    is_published,
    select,
    unknown,
    versions,
    words,
)

__all__ = [
    "PACKS",
    "SETS",
    "all",
    "example_sets",
    "find",
    "groups",
    "is_published",
    "select",
    "unknown",
    "versions",
    "words",
]
