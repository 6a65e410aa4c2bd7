"""The what-if page: a trial, a cell or a run, other settings, and what they would have made of its answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.errors import PolicyError
from toolbench.engine.formats import names as format_names
from toolbench.engine.policy.presets import STRATEGIES
from toolbench.lab.models import Replay, Run, Trial
from toolbench.lab.replays.ablation import Ablation, ablate, transforms_in
from toolbench.lab.replays.execute import replay
from toolbench.lab.replays.queue import ask_replay, changes_of, counts_of
from toolbench.lab.replays.what_if import Change, NothingToReplay, Scope, Totals, change_of, counted, totals
from toolbench.lab.replays.what_if_settings import LIMITS, WhatIf, all_presets

MOST_AT_ONCE = 100  # trials replayed while a page is waited for
MOST_ABLATIONS = 400  # replays of one trial for the table of what verdicts hang on
TOO_MANY = "These are too many trials to leave out each transform: ask for it at “What if” of one cell or one trial."
FEW_LISTED = "Only trials that flip or are unknown are listed, at most 500 of them."
NOTHING_LEFT_OUT = "These settings apply no transform and no repair, so there is none to leave out."


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    """`changes` is () and `totals` None before anything was chosen: what flips comes first, what is unknown next, each
    with its configuration, "" where all have the same. `refused` says why it cannot be replayed; `failed` is
    the worker's row for which it says so. `requests` is what the run had sent before, and has sent now."""

    scope: Scope
    asked: WhatIf
    run: Run
    trials: int
    requests: tuple[int, int]
    strategies: tuple[str, ...]
    presets: tuple[str, ...]
    formats: tuple[str, ...]
    limits: tuple[tuple[str, int | None], ...]
    changes: tuple[tuple[Change, str], ...] = ()
    totals: Totals | None = None
    ablations: tuple[Ablation, ...] = ()
    assumed: tuple[str, ...] = ()
    refused: str = ""
    hint: str = ""
    waiting: Replay | None = None
    failed: Replay | None = None


def get_what_if(scope: Scope, asked: WhatIf, *, with_ablation: bool = False) -> WhatIfPage:
    """Many trials are replayed by a worker: then `waiting` is its row. Raises NothingToReplay. To be called in a
    thread without an event loop."""
    ids = list(scope.trials().values_list("pk", flat=True)[: MOST_AT_ONCE + 1])
    if not ids:
        raise NothingToReplay(f"There is no finished trial to replay in {scope.kind} {scope.id}.")
    run = Run.objects.get(trials=ids[0])
    if len(ids) > MOST_AT_ONCE:
        return _by_a_worker(_blank(scope, asked, run, scope.trials().count()), with_ablation=with_ablation)
    page = _blank(scope, asked, run, len(ids))
    try:
        changes = tuple(change_of(one) for one in replay(ids, asked.apply))
        names = transforms_in(ids, asked) if with_ablation else ()
        few = len(names) * len(ids) <= MOST_ABLATIONS
        ablations = ablate(ids, asked, names, changes) if names and few else ()
    except PolicyError as error:
        return replace(page, refused=f"These settings do not go together: {error}")
    return replace(
        page,
        requests=(page.requests[0], _requests(run)),
        changes=_listed(changes),
        totals=totals(counted(changes), scope.stopping()),
        ablations=ablations,
        hint=_hint(names, few=few) if with_ablation else "",
        assumed=tuple(sorted({name for one in changes for name in one.assumed})),
    )


def _hint(names: Sequence[str], *, few: bool) -> str:
    return NOTHING_LEFT_OUT if not names else "" if few else TOO_MANY


def _by_a_worker(page: WhatIfPage, *, with_ablation: bool) -> WhatIfPage:
    if page.asked == WhatIf():
        return replace(
            page, hint="Choose other settings; a worker will replay these trials, and this page shows how far."
        )
    row = ask_replay(page.scope, page.asked, page.run)
    if row.refused:
        return replace(page, failed=row, refused=row.refused)
    if row.state != Replay.State.DONE:
        return replace(page, waiting=row)
    return replace(
        page,
        requests=(row.requests_before, page.requests[1]),
        changes=_listed(changes_of(row)),
        totals=totals(counts_of(row), page.scope.stopping()),
        hint=f"{FEW_LISTED} {TOO_MANY}" if with_ablation else FEW_LISTED,
        assumed=tuple(row.assumed),
    )


def _listed(changes: Sequence[Change]) -> tuple[tuple[Change, str], ...]:
    asked = Trial.objects.filter(pk__in=[one.trial for one in changes]).select_related("config")
    named = {trial.pk: str(trial.config) for trial in asked.defer("rendered_prompt", "config__layers")}
    several = len(set(named.values())) > 1
    ordered = sorted(changes, key=lambda one: (not one.flips, one.unknown_from is None))
    return tuple((one, named[one.trial] if several else "") for one in ordered)


def _requests(run: Run) -> int:
    """How many requests the run has counted before they were sent."""
    return int(Run.objects.values_list("requests_reserved", flat=True).get(pk=run.pk))


def _blank(scope: Scope, asked: WhatIf, run: Run, trials: int) -> WhatIfPage:
    given = dict(asked.limits)
    sent = _requests(run)
    return WhatIfPage(
        scope=scope,
        asked=asked,
        run=run,
        trials=trials,
        requests=(sent, sent),
        strategies=tuple(STRATEGIES),
        presets=tuple(all_presets()),
        formats=tuple(format_names()),
        limits=tuple((name, given.get(name)) for name in LIMITS),
    )
