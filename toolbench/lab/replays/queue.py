"""Queue of what-ifs and re-judgings that take longer than a page view.

A worker works through each row in batches and stores its progress. The sweep finds rows without a worker.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from types import MappingProxyType
from urllib.parse import parse_qs
from uuid import uuid4

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from toolbench.engine.errors import PolicyError
from toolbench.lab.models import Judgement, Replay, Run
from toolbench.lab.replays.execute import replay_trials
from toolbench.lab.replays.rejudge import RejudgeResult, list_run_trials, rejudge_in_batches, rejudge_trials
from toolbench.lab.replays.what_if import UNKNOWN, ChangeCounts, ReplayScope, TrialChange, build_change, count_changes
from toolbench.lab.replays.what_if_settings import WhatIfSettings
from toolbench.lab.worker.database_thread import is_unavailable
from toolbench.lab.worker.job_failures import record_failures
from toolbench.lab.worker.queue import notify_workers_of_replays

TRIALS_PER_BATCH = 40
LEASE_DURATION = timedelta(seconds=60)
MAX_ATTEMPTS = 4  # by workers that were stopped, or lost the database
MAX_REJUDGED_AT_ONCE = 200  # while a page is waited for
MAX_CHANGES_LISTED = 500  # flips and unknowns that are kept one by one; every trial is counted


@dataclasses.dataclass(frozen=True, slots=True)
class ReplayKind:
    """What a worker does for rows of one kind.

    Attributes:
        job: names a failure on /health/.
        stopped: what the row says when MAX_ATTEMPTS workers stopped at it.
        work: does the work of a row; given also the row as long as this worker has its lease.
        clean_up: removes what the row needs only until its end.
    """

    job: str
    stopped: str
    work: Callable[[Replay, QuerySet[Replay]], None]
    clean_up: Callable[[Replay], None] = lambda row: None


def request_replay(scope: ReplayScope, settings: WhatIfSettings, run: Run) -> Replay:
    """Return the row of these settings: a new one, one that a worker works on, or a finished one.

    A worker is notified if the row has none. A finished row is done again if the trials have changed or some were
    judged again since.
    """
    total = scope.trials().count()
    with transaction.atomic():
        row, made = Replay.objects.select_for_update().get_or_create(
            kind=scope.kind,
            scope_id=scope.id,
            query=settings.query(),
            defaults={"total": total, "requests_before": run.requests_reserved},
        )
        if row.state == Replay.State.DONE and (row.total != total or _has_newer_judgement(scope, row)):
            row.delete()
            return request_replay(scope, settings, run)
        waiting = Replay.objects.filter(pk=row.pk).filter(_build_unclaimed_filter())
        if made or waiting.exists():
            transaction.on_commit(lambda: notify_workers_of_replays([row.pk]))
    return row


def _has_newer_judgement(scope: ReplayScope, row: Replay) -> bool:
    trials = scope.trials().order_by().values("pk")
    return Judgement.objects.filter(trial__in=trials, judged_at__gt=row.finished_at).exists()


def delete_failed_replays(scope: ReplayScope, settings: WhatIfSettings) -> None:
    """Delete failed rows of these settings, so that the next page view requests the replay again."""
    rows = Replay.objects.filter(kind=scope.kind, scope_id=scope.id, query=settings.query())
    rows.filter(state=Replay.State.DONE).exclude(refused="").delete()


def request_rejudging(run: Run) -> RejudgeResult | None:
    """Judge a small run at once and return the result; queue a larger one for a worker and return None."""
    ids = list(list_run_trials(run.pk).values_list("pk", flat=True))
    if len(ids) <= MAX_REJUDGED_AT_ONCE:
        return rejudge_trials(ids)
    with transaction.atomic():
        rows = Replay.objects.filter(kind=Replay.REJUDGE, scope_id=run.pk)
        rows.filter(state=Replay.State.DONE).delete()
        row, _ = rows.get_or_create(
            kind=Replay.REJUDGE, scope_id=run.pk, defaults={"total": len(ids), "requests_before": run.requests_reserved}
        )
        transaction.on_commit(lambda: notify_workers_of_replays([row.pk]))
    return None


def find_rejudging(run: Run) -> Replay | None:
    """Return the run's re-judging that is not finished or has failed; None if there is none."""
    rows = Replay.objects.filter(kind=Replay.REJUDGE, scope_id=run.pk)
    return rows.exclude(state=Replay.State.DONE, refused="").first()


def list_waiting_replays() -> tuple[int, ...]:
    """Return the rows that no worker works on, because a notification or a worker was lost."""
    return tuple(Replay.objects.filter(_build_unclaimed_filter()).order_by("pk").values_list("pk", flat=True))


def run_replay(replay_id: int, kinds: Mapping[str, ReplayKind] = MappingProxyType({})) -> None:
    """Claim the row and do its work; return at once if another worker has it or it is done.

    An exception of the work is logged and counted. If the database cannot be reached, the row is left to the next
    attempt; any other exception ends it.

    Args:
        replay_id: the row.
        kinds: the kinds of rows that this module does not know.

    Raises:
        django.db.Error: the database cannot be reached; the sweep finds the row when its lease has ended.
    """
    lease = uuid4()
    claimed = {"lease": lease, "lease_until": Now() + LEASE_DURATION, "attempts": F("attempts") + 1}
    rows = Replay.objects.filter(pk=replay_id)
    if not rows.filter(_build_unclaimed_filter()).update(state=Replay.State.RUNNING, done=0, **claimed):
        return
    row, held = rows.get(), rows.filter(lease=lease)
    kind = {**kinds, Replay.REJUDGE: _REJUDGE_KIND}.get(row.kind, _WHAT_IF_KIND)
    if row.attempts > MAX_ATTEMPTS:
        _end_refused(held, kind.stopped)
        kind.clean_up(row)
        return
    with record_failures(kind.job):
        try:
            kind.work(row, held)
        except Exception as error:
            if not is_unavailable(error):
                _end_refused(held, f"Toolbench itself failed ({type(error).__name__}); the worker's log has more.")
            raise


def _end_refused(held: QuerySet[Replay], reason: str) -> None:
    held.update(state=Replay.State.DONE, refused=reason, finished_at=Now(), lease=None)


def _run_rejudging(row: Replay, held: QuerySet[Replay]) -> None:
    """Judge the trials in batches; each batch is stored, so that the next attempt finds it judged."""
    done = RejudgeResult()
    for _ in rejudge_in_batches(list(list_run_trials(row.scope_id).values_list("pk", flat=True)), done):
        if not held.update(done=done.processed, lease_until=Now() + LEASE_DURATION):
            return
    held.update(state=Replay.State.DONE, finished_at=Now(), lease=None)


def _run_what_if(row: Replay, held: QuerySet[Replay]) -> None:
    settings = WhatIfSettings.from_query(parse_qs(row.query))
    ids = ReplayScope(row.kind, row.scope_id).trials().values_list("pk", flat=True)
    counts: ChangeCounts = Counter()
    listed: list[TrialChange] = []
    assumed: set[str] = set()
    try:
        replayed = replay_trials(list(ids), settings.apply)
        while batch := [build_change(replayed_trial) for replayed_trial in islice(replayed, TRIALS_PER_BATCH)]:
            counts += count_changes(batch)
            changed = [change for change in batch if change.flips or change.after == UNKNOWN]
            listed += changed[: MAX_CHANGES_LISTED - len(listed)]
            assumed.update(name for change in batch for name in change.assumed)
            if not held.update(done=counts.total(), lease_until=Now() + LEASE_DURATION):
                return
    except PolicyError as error:
        held.update(refused=f"These settings do not go together: {error}")
    held.update(
        state=Replay.State.DONE,
        counts=[[*key, count] for key, count in counts.items()],
        listed=[dataclasses.asdict(change) for change in listed],
        assumed=sorted(assumed),
        finished_at=Now(),
        lease=None,
    )


def read_counts(row: Replay) -> ChangeCounts:
    """Return the stored counts of changes."""
    return Counter({tuple(key): count for *key, count in row.counts})


def read_changes(row: Replay) -> tuple[TrialChange, ...]:
    """Return the stored changes of single trials."""
    return tuple(_read_change(change) for change in row.listed)


def _read_change(stored: Mapping[str, object]) -> TrialChange:
    assumed = stored["assumed"]
    assert isinstance(assumed, Sequence)
    return TrialChange(**{**stored, "assumed": tuple(assumed)})  # type: ignore[arg-type]  # as asdict wrote it


def _build_unclaimed_filter() -> Q:
    return Q(state=Replay.State.QUEUED) | Q(state=Replay.State.RUNNING, lease_until__lt=Now())


_WHAT_IF_KIND = ReplayKind(
    "a what-if", "The worker stopped four times at this what-if. There is no result.", _run_what_if
)
_REJUDGE_KIND = ReplayKind(
    "judging again",
    "The worker stopped four times while it judged this run again. Verdicts it had stored by then are kept.",
    _run_rejudging,
)
