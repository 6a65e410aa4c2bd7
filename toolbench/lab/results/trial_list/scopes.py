"""Scopes of the list of trials: real, simulated and imported runs. A filter can be applied in each scope."""

from collections.abc import Mapping
from dataclasses import replace

from django.db.models import Count, F, Q

from toolbench.lab.models import Run
from toolbench.lab.results.scopes import IMPORTED, REAL, SIMULATED, TRIAL_SCOPES
from toolbench.lab.results.trial_list.filter import (
    ALL_SCOPES,
    TrialFilter,
    filter_trials,
    has_named_runs,
)
from toolbench.lab.results.trial_list.index import MAX_COUNTED_TRIALS
from toolbench.lab.results.trial_list.sort_columns import DEFAULT_SORT

SCOPE_FIELDS = ("scope", "demo", "imported")
_CONDITIONS = {
    REAL: Q(is_imported=False, is_simulated=False),
    SIMULATED: Q(is_imported=False, is_simulated=True),
    IMPORTED: Q(is_imported=True),
}


def get_scope(trial_filter: TrialFilter) -> str:
    """Return one of TRIAL_SCOPES, or "all"; "" if runs, cells or configurations are given, which have no scope."""
    if has_named_runs(trial_filter):
        return ""
    if trial_filter.scope:
        return trial_filter.scope
    return IMPORTED if trial_filter.imported else SIMULATED if trial_filter.demo else REAL


def select_scope(trial_filter: TrialFilter, scope: str) -> TrialFilter:
    """Return the filter in one of TRIAL_SCOPES, without its runs, cells and configurations."""
    unnamed = replace(trial_filter, run=None, runs="", cell=None, cells="", config=None, configs="")
    demo, imported = ("1" if scope == name else "" for name in (SIMULATED, IMPORTED))
    return replace(unnamed, scope="", demo=demo, imported=imported)


def clear_filter(trial_filter: TrialFilter) -> TrialFilter:
    """Return a filter with only the scope and the layout of this one."""
    cleared = TrialFilter(scope=trial_filter.scope, demo=trial_filter.demo, imported=trial_filter.imported)
    return replace(cleared, layout=trial_filter.layout)


def is_narrowed(trial_filter: TrialFilter) -> bool:
    """Return whether more than the scope selects trials; the order and the layout do not count."""
    return not replace(trial_filter, scope="", demo="", imported="", sort=DEFAULT_SORT).is_empty


def list_other_scopes(trial_filter: TrialFilter) -> tuple[str, ...]:
    """Return TRIAL_SCOPES without the scope of the filter; () if the filter has none of them."""
    current = get_scope(trial_filter)
    return tuple(scope for scope in TRIAL_SCOPES if scope != current) if current in TRIAL_SCOPES else ()


def count_by_scope(trial_filter: TrialFilter) -> Mapping[str, int] | None:
    """Return the number of trials in each of TRIAL_SCOPES that match the rest of the filter, with at most one query.

    Returns:
        None if more than MAX_COUNTED_TRIALS match; for a search, which is repeated after each pause in typing; and for
        an `alike` filter, which would take two queries.
    """
    if trial_filter.search or trial_filter.alike:
        return None
    matching = filter_trials(replace(select_scope(trial_filter, REAL), scope=ALL_SCOPES))
    counted = matching.exclude(run__purpose=Run.PLAYGROUND).order_by()
    scoped = counted.annotate(is_imported=F("run__imported"), is_simulated=F("run__simulated"))
    counts = scoped.values("is_imported", "is_simulated")[: MAX_COUNTED_TRIALS + 1].aggregate(
        **{scope: Count("is_imported", filter=condition) for scope, condition in _CONDITIONS.items()}
    )
    return counts if sum(counts.values()) <= MAX_COUNTED_TRIALS else None
