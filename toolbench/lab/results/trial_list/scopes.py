"""Scopes of the list of trials: own, simulated and imported runs. A filter is the same in every scope."""

from collections.abc import Mapping
from dataclasses import replace

from toolbench.lab.results.table_layout import USUAL_LAYOUT
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials, has_named_runs
from toolbench.lab.results.trial_list.index import MAX_COUNTED_TRIALS

SCOPES = ("real", "demo", "imported")  # in the order of the pages
SCOPE_FIELDS = ("scope", "demo", "imported")


def get_scope(trial_filter: TrialFilter) -> str:
    """Return one of SCOPES or ALL_SCOPES; "" if runs, cells or configurations are given, which have no scope."""
    if has_named_runs(trial_filter):
        return ""
    if trial_filter.scope:
        return trial_filter.scope
    return "imported" if trial_filter.imported else "demo" if trial_filter.demo else "real"


def select_scope(trial_filter: TrialFilter, scope: str) -> TrialFilter:
    """Return the filter in one of SCOPES, without its runs, cells and configurations."""
    unnamed = replace(trial_filter, run=None, runs="", cell=None, cells="", config=None, configs="")
    demo, imported = ("1" if scope == name else "" for name in ("demo", "imported"))
    return replace(unnamed, scope="", demo=demo, imported=imported)


def clear_filter(trial_filter: TrialFilter) -> TrialFilter:
    """Return a filter with only the scope and the layout of this one."""
    cleared = TrialFilter(scope=trial_filter.scope, demo=trial_filter.demo, imported=trial_filter.imported)
    return replace(cleared, layout=trial_filter.layout)


def is_narrowed(trial_filter: TrialFilter) -> bool:
    """Return whether more than the scope selects trials; the order and the layout do not count."""
    unscoped = replace(trial_filter, scope="", demo="", imported="", sort="failed")
    return bool(unscoped.query(layout=USUAL_LAYOUT))


def count_other_scopes(trial_filter: TrialFilter) -> Mapping[str, int]:
    """Return the number of matching trials in each of the other SCOPES that has any, with one query each.

    Returns:
        Numbers of at most MAX_COUNTED_TRIALS + 1, which stands for more; empty for a filter without one of SCOPES.
    """
    current = get_scope(trial_filter)
    if current not in SCOPES:
        return {}
    counts = {
        scope: filter_trials(select_scope(trial_filter, scope)).order_by()[: MAX_COUNTED_TRIALS + 1].count()
        for scope in SCOPES
        if scope != current
    }
    return {scope: count for scope, count in counts.items() if count}
