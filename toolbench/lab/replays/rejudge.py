"""Re-judging of stored trials after a scenario or a judging rule was corrected. No request is sent.

Both verdicts are kept with their versions, and the new one becomes current.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from django.db import connection, transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils import timezone

from toolbench.engine.types import JsonObject
from toolbench.evals.judging import verdict as judging
from toolbench.lab.metrics.cells import mark_stale, recompute_all_stale
from toolbench.lab.models import Judgement, Run, Trial
from toolbench.lab.models.counters import TRIAL_COUNTERS
from toolbench.lab.replays.reclassify import reclassify_trials
from toolbench.lab.replays.stored_trials import (
    VERDICT_COLUMNS,
    ReplayedTrial,
    list_differences,
    read_judging_version,
    replay_trials,
)
from toolbench.lab.scenarios.catalogue import load_judging_scenario
from toolbench.lab.sql import load_statement

TRIALS_PER_BATCH = 40
_COUNT_JUDGING_VERSIONS = load_statement("replays/count_judging_versions")
MAX_CHANGES_LISTED = 200  # changed trials that are listed; all are counted


@dataclass(frozen=True, slots=True)
class RejudgedTrial:
    """A trial whose outcome has changed.

    Attributes:
        trial: id of the trial.
        before: the outcome before.
        after: the outcome after.
        sentence: the sentence of the new verdict.
    """

    trial: int
    scenario: str
    before: str
    after: str
    sentence: str


@dataclass(slots=True)
class RejudgeResult:
    """Numbers of trials by the result of re-judging them. The object is updated while trials are processed.

    Attributes:
        judged: trials with a new verdict.
        unchanged: trials with a new verdict and the same outcome.
        current: trials that keep their verdict: the current versions gave it and give the same one again, or a newer
            version gave it.
        unknown: trials that cannot be judged, since their replay stopped early, for instance because the task changed.
        without_bodies: trials that cannot be judged, since their bodies were removed.
        unversioned: trials whose verdict would change although no version has; it is not stored, since a trial has one
            verdict for each pair of versions.
        changed_outcomes: trials with a changed outcome, by outcome before and after.
        changed: the first MAX_CHANGES_LISTED trials with a changed outcome.
        processed: trials processed so far, including those that no other number counts, since they sent no request,
            were ended without a verdict, or were executed again or deleted in the meantime.
    """

    judged: int = 0
    unchanged: int = 0
    current: int = 0
    unknown: int = 0
    without_bodies: int = 0
    unversioned: int = 0
    changed_outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    changed: list[RejudgedTrial] = field(default_factory=list)
    processed: int = 0

    @property
    def sentence(self) -> str:
        """The numbers in words, and that no request was sent."""
        changes = [f"{count:,} {before} → {after}" for (before, after), count in self.changed_outcomes.most_common()]
        counts = (
            (self.unchanged, "as before"),
            (self.current, "already judged by the current or newer versions"),
            (self.unknown, "cannot be judged: their replay stopped early, as after a change of the task"),
            (self.without_bodies, "cannot be judged: their bodies were removed"),
            (self.unversioned, "would change without a new version and were not stored"),
        )
        parts = [f"{self.judged:,} trial{'' if self.judged == 1 else 's'} re-judged", *changes]
        parts += [f"{count:,} {text}" for count, text in counts if count]
        return f"{', '.join(parts)}. No request was sent."


@dataclass(frozen=True, slots=True)
class JudgingState:
    """Numbers of trials of a run.

    Attributes:
        outdated: trials with bodies whose verdict was given by older versions than the current ones.
        rejudged: trials that were re-judged.
        without_bodies: trials that cannot be re-judged, since their bodies were removed.
    """

    outdated: int
    rejudged: int
    without_bodies: int


@dataclass(frozen=True, slots=True)
class JudgingVersions:
    """The versions of the scenario and of the judging rules that gave a verdict."""

    scenario: int
    judging: int

    def is_older_than(self, other: "JudgingVersions") -> bool:
        """Return whether one or both of these versions are older than those of `other`, and neither is newer.

        A verdict can have a newer version than this installation if it was imported from another one.
        """
        return self != other and self.scenario <= other.scenario and self.judging <= other.judging


def rejudge_trials(trial_ids: Iterable[int]) -> RejudgeResult:
    """Re-judge these trials; those that have not ended are skipped. Must not be called from a running event loop."""
    result = RejudgeResult()
    for _ in rejudge_in_batches(trial_ids, result):
        pass
    return result


def rejudge_in_batches(trial_ids: Iterable[int], result: RejudgeResult) -> Iterator[None]:
    """Re-judge these trials, and yield after each batch is stored; trials that have not ended are skipped.

    Stale cells of the runs with new verdicts are recomputed at the end. Must not be called from a running event loop.

    Args:
        trial_ids: the trials.
        result: the numbers, to which each batch is added.
    """
    replayed = replay_trials(trial_ids, use_current_scenarios=True)
    run_ids: set[int] = set()
    while batch := list(islice(replayed, TRIALS_PER_BATCH)):
        with transaction.atomic():
            rejudged = _store_verdicts(batch, result)
            reclassify_trials(trial.pk for trial in rejudged)
            mark_stale(trial.cell_id for trial in rejudged)
        run_ids.update(trial.run_id for trial in rejudged)
        result.processed += len(batch)
        yield
    for run_id in sorted(run_ids):
        recompute_all_stale(run_id)


def list_run_trials(run_id: int) -> QuerySet[Trial]:
    """Return the finished trials of a run in the order of the plan."""
    return Trial.objects.filter(run_id=run_id, state=Trial.State.DONE, run__deleted_at=None).order_by("position")


def list_scenario_trials(slug: str) -> QuerySet[Trial]:
    """Return the finished trials of a scenario, ordered by run."""
    done = Trial.objects.filter(scenario=slug, state=Trial.State.DONE, run__deleted_at=None)
    return done.order_by("run_id", "position")


def get_judging_state(run_id: int) -> JudgingState:
    """Return the judging state of a run, with one query beside those that load its scenarios."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_JUDGING_VERSIONS, [run_id])
        rows = cursor.fetchall()
    current = {key: _find_current_version(*key) for key in {(slug, tried) for slug, tried, *_ in rows}}
    outdated = rejudged = without_bodies = 0
    for slug, tried_version, stored_judging, scenario_version, judging_version, has_bodies, count in rows:
        verdict = {} if stored_judging is None else {"judging": stored_judging}
        stored_versions = (tried_version, read_judging_version(verdict))
        judged_by = JudgingVersions(*((scenario_version, judging_version) if scenario_version else stored_versions))
        version = current[slug, tried_version]
        is_outdated = version is not None and judged_by.is_older_than(JudgingVersions(version, judging.VERSION))
        outdated += count if is_outdated and has_bodies else 0
        without_bodies += 0 if has_bodies else count
        rejudged += count if scenario_version else 0
    return JudgingState(outdated, rejudged, without_bodies)


def get_judgements(trial: Trial) -> tuple[Judgement, ...]:
    """Return all verdicts on the trial's last execution, oldest first; () unless it was re-judged."""
    return tuple(Judgement.objects.filter_last_executions().filter(trial=trial))


def get_changes(run: Run) -> tuple[tuple[Judgement, Judgement], ...]:
    """Return (first verdict, current verdict) of up to MAX_CHANGES_LISTED trials whose outcome changed.

    The call takes two queries.
    """
    judgements = Judgement.objects.filter_last_executions()
    first = judgements.filter(trial=OuterRef("trial")).order_by("judged_at", "pk")
    current = judgements.filter(trial__run=run, current=True).annotate(
        first_id=Subquery(first.values("pk")[:1]), first_outcome=Subquery(first.values("outcome")[:1])
    )
    changed = current.exclude(outcome=F("first_outcome")).order_by("trial_id")
    pairs = list(changed.values_list("first_id", "pk")[:MAX_CHANGES_LISTED])
    rows = Judgement.objects.select_related("trial").defer("trial__rendered_prompt")
    by_id = rows.in_bulk([judgement_id for pair in pairs for judgement_id in pair])
    return tuple((by_id[first_id], by_id[current_id]) for first_id, current_id in pairs)


def _store_verdicts(batch: Sequence[ReplayedTrial], result: RejudgeResult) -> list[Trial]:
    """Store the verdicts of new versions, update the result, and return the trials with a new verdict.

    Call it in a transaction, since it locks the trials.
    """
    ids = [replayed.trial.pk for replayed in batch]
    locked = {trial.pk: trial for trial in Trial.objects.select_for_update().filter(pk__in=ids).order_by("pk")}
    rows = Judgement.objects.filter_last_executions().filter(trial__in=ids, current=True)
    current_judgements = {row.trial_id: row for row in rows}
    rejudged: list[Trial] = []
    for replayed in batch:
        trial, judged_by = locked.get(replayed.trial.pk), JudgingVersions(replayed.version, judging.VERSION)
        if trial is None or trial.execution != replayed.trial.execution or trial.state != Trial.State.DONE:
            continue
        if replayed.is_not_replayable or trial.bodies_removed_at is not None:
            result.without_bodies += trial.bodies_removed_at is not None
            continue
        if replayed.unknown_from is not None:
            result.unknown += 1
        elif _get_versions(trial, current_judgements.get(trial.pk)).is_older_than(judged_by):
            _store_judgement(replayed, trial, result)
            rejudged.append(trial)
        elif _get_versions(trial, current_judgements.get(trial.pk)) == judged_by and list_differences(replayed):
            result.unversioned += 1
        else:
            result.current += 1
    return rejudged


def _get_versions(trial: Trial, row: Judgement | None) -> JudgingVersions:
    """Return the versions of the trial's current verdict; `row` is its current Judgement, if it was re-judged."""
    if row is not None:
        return JudgingVersions(row.scenario_version, row.judging_version)
    return JudgingVersions(trial.scenario_version, read_judging_version(trial.verdict))


def _store_judgement(replayed: ReplayedTrial, trial: Trial, result: RejudgeResult) -> None:
    """Make the replayed verdict and its counts current, keep the first verdict as a row, and update the result."""
    rows = Judgement.objects.filter(trial=trial)
    if trial.finished_at is not None:
        rows.filter(judged_at__lt=trial.finished_at).delete()  # verdicts on earlier executions
    if not rows.exists():
        verdict_columns = {name: getattr(trial, name) for name in VERDICT_COLUMNS}
        _build_judgement(trial, _get_versions(trial, None), verdict_columns).save()
    rows.update(current=False)
    versions = JudgingVersions(replayed.version, judging.VERSION)
    rows.filter(scenario_version=versions.scenario, judging_version=versions.judging).delete()
    _build_judgement(trial, versions, replayed.columns, current=True).save()
    counts = {name: count for name, count in replayed.counts.items() if name in TRIAL_COUNTERS}
    Trial.objects.filter(pk=trial.pk).update(**replayed.columns, **counts, text_stale=True)
    result.judged += 1
    before, after = trial.outcome, replayed.columns["outcome"]
    if before == after:
        result.unchanged += 1
        return
    result.changed_outcomes[before, after] += 1
    if len(result.changed) < MAX_CHANGES_LISTED:
        result.changed.append(RejudgedTrial(trial.pk, trial.scenario, before, after, replayed.columns["sentence"]))


def _build_judgement(
    trial: Trial, versions: JudgingVersions, columns: JsonObject, *, current: bool = False
) -> Judgement:
    """Build an unsaved row for the current verdict or, if `current` is False, for the first one.

    The first verdict is dated with the trial's end, the current one with the present time. An imported trial may have
    ended in the future: then both are dated with its end. If its end is unknown, both have the present time.
    """
    now = timezone.now()
    ended_at = trial.finished_at or now
    return Judgement(
        trial=trial,
        scenario_version=versions.scenario,
        judging_version=versions.judging,
        current=current,
        outcome=columns["outcome"],
        columns=columns,
        judged_at=max(now, ended_at) if current else ended_at,
    )


def _find_current_version(slug: str, tried_version: int) -> int | None:
    """Return the version that judges trials of `tried_version` now; None if the scenario no longer exists."""
    try:
        return load_judging_scenario(slug, tried_version).version
    except KeyError:
        return None
