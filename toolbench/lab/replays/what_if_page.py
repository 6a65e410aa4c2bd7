"""Data of the what-if page: the trials, other settings, and what these would change."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.errors import PolicyError
from toolbench.engine.formats import list_format_names
from toolbench.engine.policy.presets import STRATEGIES
from toolbench.lab.models import Replay, Run, Trial
from toolbench.lab.replays.ablation import Ablation, list_transforms, run_ablation
from toolbench.lab.replays.execute import replay_trials
from toolbench.lab.replays.queue import read_changes, read_counts, request_replay
from toolbench.lab.replays.what_if import (
    ChangeTotals,
    NothingToReplayError,
    ReplayScope,
    TrialChange,
    build_change,
    compute_totals,
    count_changes,
)
from toolbench.lab.replays.what_if_settings import LIMIT_KEYS, WhatIfSettings, get_all_presets

MAX_TRIALS_AT_ONCE = 100  # trials replayed while a page is waited for
MAX_ABLATION_REPLAYS = 400  # replays of one trial for the table of what verdicts hang on
TOO_MANY_TRIALS_TEXT = (
    "These are too many trials to leave out each transform: ask for it at “What if” of one cell or one trial."
)
PARTIAL_LIST_TEXT = "Only trials that flip or are unknown are listed, at most 500 of them."
NO_TRANSFORMS_TEXT = "These settings apply no transform and no repair, so there is none to leave out."


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    """Everything that the what-if page shows.

    Attributes:
        requests: requests that the run had sent before the replay, and after it.
        limits: the limits that can be changed, with the requested value or None.
        changes: trials that flip, then unknown ones, then others, each with its configuration; the configuration is ""
            if all have the same. Empty before settings are chosen.
        totals: None before settings are chosen.
        refused: why the trials cannot be replayed; "" if they can.
        waiting: the queued row of a worker that is not finished.
        failed: the row of a worker that failed.
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
    """Return the page; more than MAX_TRIALS_AT_ONCE trials are queued for a worker. Call it without an event loop.

    Raises:
        NothingToReplayError: there is no finished trial.
    """
    ids = list(scope.trials().values_list("pk", flat=True)[: MAX_TRIALS_AT_ONCE + 1])
    if not ids:
        raise NothingToReplayError(f"There is no finished trial to replay in {scope.kind} {scope.id}.")
    run = Run.objects.get(trials=ids[0])
    if len(ids) > MAX_TRIALS_AT_ONCE:
        return _build_queued_page(
            _build_page(scope, settings, run, scope.trials().count()), with_ablation=with_ablation
        )
    page = _build_page(scope, settings, run, len(ids))
    try:
        changes = tuple(build_change(replay_trial) for replay_trial in replay_trials(ids, settings.apply))
        names = list_transforms(ids, settings) if with_ablation else ()
        few = len(names) * len(ids) <= MAX_ABLATION_REPLAYS
        ablations = run_ablation(ids, settings, names, changes) if names and few else ()
    except PolicyError as error:
        return replace(page, refused=f"These settings do not go together: {error}")
    return replace(
        page,
        requests=(page.requests[0], _get_request_count(run)),
        changes=_list_changes(changes),
        totals=compute_totals(count_changes(changes), scope.stopping()),
        ablations=ablations,
        hint=_choose_hint(names, few=few) if with_ablation else "",
        assumed=tuple(sorted({name for change in changes for name in change.assumed})),
    )


def _choose_hint(names: Sequence[str], *, few: bool) -> str:
    return NO_TRANSFORMS_TEXT if not names else "" if few else TOO_MANY_TRIALS_TEXT


def _build_queued_page(page: WhatIfPage, *, with_ablation: bool) -> WhatIfPage:
    if page.settings == WhatIfSettings():
        return replace(
            page, hint="Choose other settings; a worker will replay these trials, and this page shows how far."
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
        totals=compute_totals(read_counts(row), page.scope.stopping()),
        hint=f"{PARTIAL_LIST_TEXT} {TOO_MANY_TRIALS_TEXT}" if with_ablation else PARTIAL_LIST_TEXT,
        assumed=tuple(row.assumed),
    )


def _list_changes(changes: Sequence[TrialChange]) -> tuple[tuple[TrialChange, str], ...]:
    changed_trials = Trial.objects.filter(pk__in=[change.trial for change in changes]).select_related("config")
    named = {trial.pk: str(trial.config) for trial in changed_trials.defer("rendered_prompt", "config__layers")}
    several = len(set(named.values())) > 1
    ordered = sorted(changes, key=lambda change: (not change.flips, change.unknown_from is None))
    return tuple((change, named[change.trial] if several else "") for change in ordered)


def _get_request_count(run: Run) -> int:
    """Return the number of requests that the run has reserved."""
    return int(Run.objects.values_list("requests_reserved", flat=True).get(pk=run.pk))


def _build_page(scope: ReplayScope, settings: WhatIfSettings, run: Run, trials: int) -> WhatIfPage:
    given = dict(settings.limits)
    sent = _get_request_count(run)
    return WhatIfPage(
        scope=scope,
        settings=settings,
        run=run,
        trials=trials,
        requests=(sent, sent),
        strategies=tuple(STRATEGIES),
        presets=tuple(get_all_presets()),
        formats=tuple(list_format_names()),
        limits=tuple((name, given.get(name)) for name in LIMIT_KEYS),
    )
