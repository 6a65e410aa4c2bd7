"""Queue of the jobs in the table Replay.

They are what-ifs and re-judgings that are too large for a page view, and imports of runs, which replay nothing. A
worker processes a row in batches and stores its progress. The sweep notifies workers of rows that none processes.
"""

import dataclasses
import hashlib
import json
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
from toolbench.evals.judging import verdict as judging
from toolbench.lab.engine_version import compute_engine_version
from toolbench.lab.models import Judgement, Replay, Run, RunConfig
from toolbench.lab.replays.rejudge import RejudgeResult, list_run_trials, rejudge_in_batches, rejudge_trials
from toolbench.lab.replays.stored_trials import replay_trials
from toolbench.lab.replays.what_if import UNKNOWN, ChangeCounts, ReplayScope, TrialChange, build_change, count_changes
from toolbench.lab.replays.what_if_settings import (
    CONTRADICTION_TEXT,
    WhatIfSettings,
    get_all_presets,
    get_template_and_workarounds,
)
from toolbench.lab.worker.database_thread import is_unavailable
from toolbench.lab.worker.job_failures import describe_internal_error, record_failures
from toolbench.lab.worker.queue import notify_workers_of_replays

TRIALS_PER_BATCH = 40
LEASE_DURATION = timedelta(seconds=60)
MAX_ATTEMPTS = 4  # claims of a row; a claim is lost if its worker stops or loses the database
MAX_REJUDGED_AT_ONCE = 200  # trials that are judged during a page view
MAX_CHANGES_LISTED = 500  # changed and unknown trials that are stored one by one; all trials are counted


@dataclasses.dataclass(frozen=True, slots=True)
class ReplayKind:
    """How a worker processes rows of one kind.

    Attributes:
        job: the name under which /health/ shows failures.
        abandoned_text: the reason stored in a row that was claimed MAX_ATTEMPTS times and not finished.
        work: processes a row. The query set finds the row only while this worker has its lease.
        clean_up: deletes the files of a row that ends because of MAX_ATTEMPTS. Otherwise `work` has to delete them.
    """

    job: str
    abandoned_text: str
    work: Callable[[Replay, QuerySet[Replay]], None]
    clean_up: Callable[[Replay], None] = lambda row: None


def request_replay(scope: ReplayScope, settings: WhatIfSettings, run: Run) -> Replay:
    """Return the row of a what-if, creating it if needed; notify workers if none processes it.

    A finished row is replaced by a new one if `compute_dependency_digest` returns another digest now, the number of
    finished trials has changed, or a trial was executed again or re-judged since the row was requested.
    """
    total = scope.get_trials().count()
    digest = compute_dependency_digest(settings, scope)
    with transaction.atomic():
        row, is_new = Replay.objects.select_for_update().get_or_create(
            kind=scope.kind,
            scope_id=scope.id,
            query=settings.render_query(),
            defaults={"total": total, "requests_before": run.requests_reserved, "settings_digest": digest},
        )
        is_done = row.state == Replay.State.DONE
        if is_done and ((row.total, row.settings_digest) != (total, digest) or _has_newer_verdict(scope, row)):
            row.delete()
            return request_replay(scope, settings, run)
        unclaimed = Replay.objects.filter(pk=row.pk).filter(_build_unclaimed_filter())
        if is_new or unclaimed.exists():
            transaction.on_commit(lambda: notify_workers_of_replays([row.pk]))
    return row


def compute_dependency_digest(settings: WhatIfSettings, scope: ReplayScope) -> str:
    """Return a digest of what decides the result of a what-if beside its query string and its trials.

    The digest covers the versions of the engine and of the judging rules and the patches of the presets that the
    settings name. If the settings name a strategy, it also covers the provider templates and the workarounds of the
    models, with the patches of the workarounds. The call takes one query; with a strategy, it takes two, and another
    one for each configuration whose model was deleted.

    Returns:
        64 hexadecimal digits.
    """
    configs = RunConfig.objects.filter(pk__in=scope.get_trials().order_by().values("config_id"))
    rows = configs.select_related("model__provider").order_by("pk") if settings.strategy else ()
    model_settings = [get_template_and_workarounds(row) for row in rows]
    workarounds = {name for _, names in model_settings for name in names}
    presets = get_all_presets()
    patches = {name: presets.get(name) for name in {settings.strategy, *settings.presets, *workarounds}}
    parts = [compute_engine_version(), judging.VERSION, model_settings, patches]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _has_newer_verdict(scope: ReplayScope, row: Replay) -> bool:
    """Return whether a trial ended or was re-judged after the row was requested; times in the future do not count."""
    trials = scope.get_trials().order_by()
    judgements = Judgement.objects.filter(trial__in=trials.values("pk"))
    return (
        trials.filter(finished_at__gt=row.asked_at, finished_at__lte=Now()).exists()
        or judgements.filter(judged_at__gt=row.asked_at, judged_at__lte=Now()).exists()
    )


def delete_failed_replays(scope: ReplayScope, settings: WhatIfSettings) -> None:
    """Delete failed rows of these settings, so that the next page view requests the replay again."""
    rows = Replay.objects.filter(kind=scope.kind, scope_id=scope.id, query=settings.render_query())
    rows.filter(state=Replay.State.DONE).exclude(refused="").delete()


def request_rejudging(run: Run) -> RejudgeResult | None:
    """Judge a small run at once and return the result; queue a larger one for a worker and return None."""
    trials = list_run_trials(run.pk)
    ids = list(trials.values_list("pk", flat=True)[: MAX_REJUDGED_AT_ONCE + 1])
    if len(ids) <= MAX_REJUDGED_AT_ONCE:
        return rejudge_trials(ids)
    columns = {"total": trials.count(), "requests_before": run.requests_reserved}
    with transaction.atomic():
        rows = Replay.objects.filter(kind=Replay.REJUDGE, scope_id=run.pk)
        rows.filter(state=Replay.State.DONE).delete()
        row, _ = rows.get_or_create(kind=Replay.REJUDGE, scope_id=run.pk, defaults=columns)
        transaction.on_commit(lambda: notify_workers_of_replays([row.pk]))
    return None


def find_rejudging(run: Run) -> Replay | None:
    """Return the re-judging of the run if it is queued, running or failed; None otherwise."""
    rows = Replay.objects.filter(kind=Replay.REJUDGE, scope_id=run.pk)
    return rows.exclude(state=Replay.State.DONE, refused="").first()


def list_waiting_replays() -> tuple[int, ...]:
    """Return the ids of the rows that are queued or whose lease has expired, the lowest first."""
    return tuple(Replay.objects.filter(_build_unclaimed_filter()).order_by("pk").values_list("pk", flat=True))


def run_replay(replay_id: int, kinds: Mapping[str, ReplayKind] = MappingProxyType({})) -> None:
    """Claim a row and process it; return at once if another worker has claimed it or it is done.

    A row that was claimed MAX_ATTEMPTS times before ends as failed. Exceptions are logged and counted. If the database
    is unavailable, the row stays claimed, and the sweep notifies workers once its lease has expired. Any other
    exception ends the row as failed.

    Args:
        replay_id: the row.
        kinds: further kinds by their name in Replay.kind, beside what-ifs and re-judgings.

    Raises:
        django.db.Error: the database is unavailable.
    """
    lease = uuid4()
    claimed = {"lease": lease, "lease_until": Now() + LEASE_DURATION, "attempts": F("attempts") + 1}
    rows = Replay.objects.filter(pk=replay_id)
    if not rows.filter(_build_unclaimed_filter()).update(state=Replay.State.RUNNING, done=0, **claimed):
        return
    row, leased = rows.get(), rows.filter(lease=lease)
    kind = {**kinds, Replay.REJUDGE: _REJUDGE_KIND}.get(row.kind, _WHAT_IF_KIND)
    if row.attempts > MAX_ATTEMPTS:
        _end_failed(leased, kind.abandoned_text)
        kind.clean_up(row)
        return
    with record_failures(kind.job):
        try:
            kind.work(row, leased)
        except Exception as error:
            if not is_unavailable(error):
                _end_failed(leased, describe_internal_error(error))
            raise


def _end_failed(leased: QuerySet[Replay], reason: str) -> None:
    leased.update(state=Replay.State.DONE, refused=reason, finished_at=Now(), lease=None)


def _run_rejudging(row: Replay, leased: QuerySet[Replay]) -> None:
    """Re-judge the trials of a run in batches; store the verdicts of a batch before the next one begins.

    A further attempt replays all trials again. It does not change the verdicts that are stored already.
    """
    result = RejudgeResult()
    for _ in rejudge_in_batches(list(list_run_trials(row.scope_id).values_list("pk", flat=True)), result):
        if not leased.update(done=result.processed, lease_until=Now() + LEASE_DURATION):
            return
    leased.update(state=Replay.State.DONE, finished_at=Now(), lease=None)


def _run_what_if(row: Replay, leased: QuerySet[Replay]) -> None:
    """Replay the trials in batches and store the counts and the first changes at the end.

    If the settings contradict each other, this is stored as the error of the row.
    """
    settings = WhatIfSettings.from_query(parse_qs(row.query))
    ids = ReplayScope(row.kind, row.scope_id).get_trials().values_list("pk", flat=True)
    counts: ChangeCounts = Counter()
    listed: list[TrialChange] = []
    assumed: set[str] = set()
    try:
        replayed = replay_trials(list(ids), settings.apply)
        while batch := [build_change(replayed_trial) for replayed_trial in islice(replayed, TRIALS_PER_BATCH)]:
            counts += count_changes(batch)
            changed = [change for change in batch if change.has_changed or change.after == UNKNOWN]
            listed += changed[: MAX_CHANGES_LISTED - len(listed)]
            assumed.update(name for change in batch for name in change.assumed)
            if not leased.update(done=counts.total(), lease_until=Now() + LEASE_DURATION):
                return
    except PolicyError as error:
        leased.update(refused=CONTRADICTION_TEXT.format(error))
    leased.update(
        state=Replay.State.DONE,
        counts=[[*key, count] for key, count in counts.items()],
        listed=[dataclasses.asdict(change) for change in listed],
        assumed=sorted(assumed),
        finished_at=Now(),
        lease=None,
    )


def read_counts(row: Replay) -> ChangeCounts:
    """Return the counts of a finished what-if."""
    return Counter({tuple(key): count for *key, count in row.counts})


def read_changes(row: Replay) -> tuple[TrialChange, ...]:
    """Return the stored changes of a finished what-if, at most MAX_CHANGES_LISTED."""
    return tuple(_read_change(change) for change in row.listed)


def _read_change(stored: Mapping[str, object]) -> TrialChange:
    assumed = stored["assumed"]
    assert isinstance(assumed, Sequence)
    return TrialChange(**{**stored, "assumed": tuple(assumed)})  # type: ignore[arg-type]  # as asdict wrote it


def _build_unclaimed_filter() -> Q:
    return Q(state=Replay.State.QUEUED) | Q(state=Replay.State.RUNNING, lease_until__lt=Now())


_WHAT_IF_KIND = ReplayKind(
    "a what-if", "The worker stopped four times during this what-if, so there is no result.", _run_what_if
)
_REJUDGE_KIND = ReplayKind(
    "re-judging",
    "The worker stopped four times while it re-judged this run. Verdicts that it had stored are kept.",
    _run_rejudging,
)
