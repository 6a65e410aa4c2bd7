"""Data of the what-if page: the trials, the other settings and the changes that these settings would make."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.errors import PolicyError
from toolbench.engine.formats import list_format_names
from toolbench.engine.policy.presets import STRATEGIES
from toolbench.lab.models import Replay, Run, Trial
from toolbench.lab.replays.ablation import Ablation, list_transforms, run_ablation
from toolbench.lab.replays.queue import MAX_CHANGES_LISTED, read_changes, read_counts, request_replay
from toolbench.lab.replays.stored_trials import replay_trials
from toolbench.lab.replays.what_if import (
    ChangeTotals,
    NothingToReplayError,
    ReplayScope,
    TrialChange,
    build_change,
    compute_totals,
    count_changes,
)
from toolbench.lab.replays.what_if_settings import CONTRADICTION_TEXT, LIMIT_KEYS, WhatIfSettings, get_all_presets

MAX_TRIALS_AT_ONCE = 100  # trials that are replayed during a page view
MAX_ABLATION_REPLAYS = 400  # trials times transforms and repairs, for the ablation during a page view
TOO_MANY_TRIALS_TEXT = (
    "There are too many trials to leave out each transform in turn. Open “What if” of a cell or a trial instead."
)
PARTIAL_LIST_TEXT = f"Only changed and unknown trials are listed, at most {MAX_CHANGES_LISTED} of them."
NO_TRANSFORMS_TEXT = "These settings apply no transform and no repair, so none can be left out."


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    """Data of the what-if page.

    Attributes:
        trials: number of trials.
        requests: requests that the run had reserved before the replay, and after it.
        strategies: names that can be chosen.
        presets: names that can be chosen.
        formats: names of text formats that can be chosen.
        limits: policy keys of limits that can be changed, each with the chosen value; None keeps the value of the run.
        changes: changed trials, then unknown ones, then the others, each with its configuration; the configuration is
            "" if all have the same one. () if there is no result.
        totals: None if there is no result.
        ablations: results of leaving out transforms and repairs; () if they were not requested, or if `hint` says why
            there are none.
        assumed: names of fields in which requests differ without an effect on the model.
        refused: why the trials cannot be replayed; "" if they can.
        hint: why the page has no result, no ablation or not all changes, and what to do; "" for none.
        waiting: the row that a worker has not finished; None without one.
        failed: the row that failed; None without one.
    """

    scope: ReplayScope
    settings: WhatIfSettings
    run: Run
    trials: int
    requests: tuple[int, int]
    strategies: tuple[str, ...]
    presets: tuple[str, ...]
    formats: tuple[str, ...]
    limits: tuple[tuple[str, int | None], ...]
    changes: tuple[tuple[TrialChange, str], ...] = ()
    totals: ChangeTotals | None = None
    ablations: tuple[Ablation, ...] = ()
    assumed: tuple[str, ...] = ()
    refused: str = ""
    hint: str = ""
    waiting: Replay | None = None
    failed: Replay | None = None


def get_what_if_page(scope: ReplayScope, settings: WhatIfSettings, *, with_ablation: bool = False) -> WhatIfPage:
    """Return the data of the page. The replay of more than MAX_TRIALS_AT_ONCE trials is queued for a worker.

    Must not be called from a running event loop.

    Args:
        scope: the trials.
        settings: the other settings.
        with_ablation: whether to leave out each transform and repair in turn.

    Raises:
        NothingToReplayError: there is no finished trial.
    """
    ids = list(scope.get_trials().values_list("pk", flat=True)[: MAX_TRIALS_AT_ONCE + 1])
    if not ids:
        raise NothingToReplayError(f"There is no finished trial to replay in {scope.kind} {scope.id}.")
    run = Run.objects.get(trials=ids[0])
    if len(ids) > MAX_TRIALS_AT_ONCE:
        return _build_queued_page(
            _build_page(scope, settings, run, scope.get_trials().count()), with_ablation=with_ablation
        )
    page = _build_page(scope, settings, run, len(ids))
    try:
        changes = tuple(build_change(replayed) for replayed in replay_trials(ids, settings.apply))
        names = list_transforms(ids, settings) if with_ablation else ()
        is_allowed = len(names) * len(ids) <= MAX_ABLATION_REPLAYS
        ablations = run_ablation(ids, settings, names, changes) if names and is_allowed else ()
    except PolicyError as error:
        return replace(page, refused=CONTRADICTION_TEXT.format(error))
    return replace(
        page,
        requests=(page.requests[0], _get_request_count(run)),
        changes=_list_changes(changes),
        totals=compute_totals(count_changes(changes), scope.get_stopping()),
        ablations=ablations,
        hint=_choose_hint(names, is_allowed=is_allowed) if with_ablation else "",
        assumed=tuple(sorted({name for change in changes for name in change.assumed})),
    )


def _choose_hint(names: Sequence[str], *, is_allowed: bool) -> str:
    if not names:
        return NO_TRANSFORMS_TEXT
    return "" if is_allowed else TOO_MANY_TRIALS_TEXT


def _build_queued_page(page: WhatIfPage, *, with_ablation: bool) -> WhatIfPage:
    """Return the page with the state or the result of its row in the queue, which is created if there is none.

    If no settings are chosen, no row is created; the page then has only a hint.
    """
    if page.settings == WhatIfSettings():
        return replace(
            page, hint="Choose other settings. A worker will replay these trials, and this page will show its progress."
        )
    row = request_replay(page.scope, page.settings, page.run)
    if row.refused:
        return replace(page, failed=row, refused=row.refused)
    if row.state != Replay.State.DONE:
        return replace(page, waiting=row)
    return replace(
        page,
        requests=(row.requests_before, page.requests[1]),
        changes=_list_changes(read_changes(row)),
        totals=compute_totals(read_counts(row), page.scope.get_stopping()),
        hint=f"{PARTIAL_LIST_TEXT} {TOO_MANY_TRIALS_TEXT}" if with_ablation else PARTIAL_LIST_TEXT,
        assumed=tuple(row.assumed),
    )


def _list_changes(changes: Sequence[TrialChange]) -> tuple[tuple[TrialChange, str], ...]:
    """Return the changes in the order of the page, each with the name of its configuration.

    The name is "" if all have the same configuration.
    """
    trials = Trial.objects.filter(pk__in=[change.trial for change in changes]).select_related("config")
    config_names = {trial.pk: str(trial.config) for trial in trials.defer("rendered_prompt", "config__layers")}
    has_several_configs = len(set(config_names.values())) > 1
    ordered = sorted(changes, key=lambda change: (not change.has_changed, change.unknown_from is None))
    return tuple((change, config_names[change.trial] if has_several_configs else "") for change in ordered)


def _get_request_count(run: Run) -> int:
    """Return the number of requests that the run has reserved."""
    return int(Run.objects.values_list("requests_reserved", flat=True).get(pk=run.pk))


def _build_page(scope: ReplayScope, settings: WhatIfSettings, run: Run, trials: int) -> WhatIfPage:
    chosen_limits = dict(settings.limits)
    request_count = _get_request_count(run)
    return WhatIfPage(
        scope=scope,
        settings=settings,
        run=run,
        trials=trials,
        requests=(request_count, request_count),
        strategies=tuple(STRATEGIES),
        presets=tuple(get_all_presets()),
        formats=tuple(list_format_names()),
        limits=tuple((name, chosen_limits.get(name)) for name in LIMIT_KEYS),
    )
