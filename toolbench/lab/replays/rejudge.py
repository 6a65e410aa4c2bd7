"""Judge stored trials again after a scenario or a rule was corrected, without a request.

Both verdicts are kept with their versions; the new one is current.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from toolbench.engine.types import JsonObject
from toolbench.evals.judging import verdict as judging
from toolbench.lab.metrics.cells import mark_stale, recompute_all_stale
from toolbench.lab.models import Judgement, Run, Trial
from toolbench.lab.replays.execute import (
    VERDICT_COLUMNS,
    ReplayedTrial,
    list_differences,
    read_judging_version,
    replay_trials,
)
from toolbench.lab.replays.reclassify import reclassify_trials
from toolbench.lab.scenarios.catalogue import load_judging_scenario
from toolbench.lab.sql import load_statement

TRIALS_PER_BATCH = 40
_COUNT_JUDGING_VERSIONS = load_statement("replays/count_judging_versions")
MAX_CHANGES_LISTED = 200  # listed; every one is counted


@dataclass(frozen=True, slots=True)
class RejudgedTrial:
    """A trial whose outcome changed."""

    trial: int
    scenario: str
    before: str
    after: str
    sentence: str


@dataclass(slots=True)
class RejudgeResult:
    """Counts of judging trials again.

    Attributes:
        current: trials already judged by the current versions.
        unknown: trials that cannot be judged, since the task changed.
        unversioned: trials whose verdict differs although no version changed; they are not written, since a version has
            one verdict.
        flips: number of trials by outcome before and after.
        processed: trials done so far.
    """

    judged: int = 0
    unchanged: int = 0
    current: int = 0
    unknown: int = 0
    unversioned: int = 0
    flips: Counter[tuple[str, str]] = field(default_factory=Counter)
    changed: list[RejudgedTrial] = field(default_factory=list)
    processed: int = 0

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        flips = [f"{count} {before} → {after}" for (before, after), count in self.flips.most_common()]
        parts = [f"{self.judged} trial{'' if self.judged == 1 else 's'} judged again", *flips]
        parts += [f"{self.unchanged} as before"] if self.unchanged else []
        parts += [f"{self.current} already judged by these versions"] if self.current else []
        parts += [f"{self.unknown} cannot be judged: the task itself changed"] if self.unknown else []
        parts += [f"{self.unversioned} come out otherwise without a new version: not written"] * bool(self.unversioned)
        return f"{', '.join(parts)}. No request was sent."


@dataclass(frozen=True, slots=True)
class JudgingState:
    """State of a run: number of trials judged by older versions than the current ones, and of trials judged again."""

    outdated: int
    again: int


@dataclass(frozen=True, slots=True)
class JudgingVersions:
    """The versions of scenario and judging rules that a verdict comes from."""

    scenario: int
    judging: int


def rejudge_trials(trial_ids: Iterable[int]) -> RejudgeResult:
    """Judge finished trials again; other trials are left out. Call it in a thread without an event loop."""
    done = RejudgeResult()
    for _ in rejudge_in_batches(trial_ids, done):
        pass
    return done


def rejudge_in_batches(trial_ids: Iterable[int], done: RejudgeResult) -> Iterator[None]:
    """Judge finished trials again in batches, counting in `done`.

    Each batch is stored before the next one begins; cells are recomputed at the end.
    """
    replayed = replay_trials(trial_ids, anew=True)
    while batch := list(islice(replayed, TRIALS_PER_BATCH)):
        with transaction.atomic():
            written = _store_verdicts(batch, done)
            reclassify_trials(trial.pk for trial in written)
            mark_stale(trial.cell_id for trial in written)
        done.processed += len(batch)
        yield
    recompute_all_stale()


def list_run_trials(run_id: int) -> QuerySet[Trial]:
    """Return the finished trials of a run in order."""
    return Trial.objects.filter(run_id=run_id, state=Trial.State.DONE, run__deleted_at=None).order_by("position")


def list_scenario_trials(slug: str) -> QuerySet[Trial]:
    """Return the finished trials of a scenario, by run."""
    done = Trial.objects.filter(scenario=slug, state=Trial.State.DONE, run__deleted_at=None)
    return done.order_by("run_id", "position")


def count_outdated(run_id: int) -> int:
    """Return how many finished trials of the run were judged by older versions than the current ones."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_JUDGING_VERSIONS, [run_id])
        rows = cursor.fetchall()
    current = {key: _find_current_version(*key) for key in {(slug, tried) for slug, tried, *_ in rows}}
    outdated = 0
    for slug, tried, first_judging, scenario_version, judging_version, count in rows:
        verdict = {} if first_judging is None else {"judging": first_judging}
        judged_by = (scenario_version, judging_version) if scenario_version else (tried, read_judging_version(verdict))
        version = current[slug, tried]
        outdated += count if version and judged_by != (version, judging.VERSION) else 0
    return outdated


def get_judging_state(run_id: int) -> JudgingState:
    """Return the judging state of a run."""
    again = Judgement.objects.filter(trial__run_id=run_id, current=True).count()
    return JudgingState(count_outdated(run_id), again)


def get_judgements(trial: Trial) -> tuple[Judgement, ...]:
    """Return all verdicts on the trial's execution that counts, the first one first; empty if it was judged once."""
    return tuple(Judgement.objects.filter(trial=trial, judged_at__gte=trial.finished_at or timezone.now()))


def get_changes(run: Run) -> tuple[tuple[Judgement, Judgement], ...]:
    """Return the first and the current verdict of each trial whose outcome changed, at most MAX_CHANGES_LISTED."""
    rows = Judgement.objects.filter(trial__run=run).select_related("trial").defer("trial__rendered_prompt")
    first: dict[int, Judgement] = {}
    current: dict[int, Judgement] = {}
    for row in rows:
        first.setdefault(row.trial_id, row)
        if row.current:
            current[row.trial_id] = row
    pairs = ((first[trial], row) for trial, row in current.items())
    return tuple(islice((pair for pair in pairs if pair[0].outcome != pair[1].outcome), MAX_CHANGES_LISTED))


def _store_verdicts(batch: Sequence[ReplayedTrial], done: RejudgeResult) -> list[Trial]:
    """Store new verdicts and return the trials that have one."""
    ids = [replayed_trial.trial.pk for replayed_trial in batch]
    locked = {trial.pk: trial for trial in Trial.objects.select_for_update().filter(pk__in=ids).order_by("pk")}
    there = {row.trial_id: row for row in Judgement.objects.filter(trial__in=ids, current=True)}
    written: list[Trial] = []
    for replayed_trial in batch:
        trial = locked.get(replayed_trial.trial.pk)
        if trial is None or trial.execution != replayed_trial.trial.execution or trial.state != Trial.State.DONE:
            continue
        if replayed_trial.never_sent:
            continue
        if replayed_trial.unknown_from is not None:
            done.unknown += 1
        elif _has_new_version(replayed_trial, trial, there.get(trial.pk), done):
            _write_judgement(replayed_trial, trial, done)
            written.append(trial)
    return written


def _has_new_version(replayed: ReplayedTrial, trial: Trial, row: Judgement | None, done: RejudgeResult) -> bool:
    before = _get_versions(trial, row)
    if before != JudgingVersions(replayed.version, judging.VERSION):
        return True
    done.current += not list_differences(replayed)
    done.unversioned += bool(list_differences(replayed))
    return False


def _get_versions(trial: Trial, row: Judgement | None) -> JudgingVersions:
    """Return the versions of the current verdict."""
    if row is not None and trial.finished_at is not None and row.judged_at >= trial.finished_at:
        return JudgingVersions(row.scenario_version, row.judging_version)
    return JudgingVersions(trial.scenario_version, read_judging_version(trial.verdict))


def _write_judgement(replayed: ReplayedTrial, trial: Trial, done: RejudgeResult) -> None:
    rows = Judgement.objects.filter(trial=trial)
    rows.filter(judged_at__lt=trial.finished_at).delete()  # of an execution before this one
    if not rows.exists():
        verdict_columns = {name: getattr(trial, name) for name in VERDICT_COLUMNS}
        _build_judgement(trial, _get_versions(trial, None), verdict_columns).save()
    rows.update(current=False)
    now = JudgingVersions(replayed.version, judging.VERSION)
    rows.filter(scenario_version=now.scenario, judging_version=now.judging).delete()
    _build_judgement(trial, now, replayed.columns, current=True).save()
    Trial.objects.filter(pk=trial.pk).update(**replayed.columns, text_stale=True)
    done.judged += 1
    before, after = trial.outcome, replayed.columns["outcome"]
    if before == after:
        done.unchanged += 1
        return
    done.flips[before, after] += 1
    if len(done.changed) < MAX_CHANGES_LISTED:
        done.changed.append(RejudgedTrial(trial.pk, trial.scenario, before, after, replayed.columns["sentence"]))


def _build_judgement(
    trial: Trial, versions: JudgingVersions, columns: JsonObject, *, current: bool = False
) -> Judgement:
    """Return an unsaved row. The first verdict is dated by the trial's end."""
    return Judgement(
        trial=trial,
        scenario_version=versions.scenario,
        judging_version=versions.judging,
        current=current,
        outcome=columns["outcome"],
        columns=columns,
        judged_at=timezone.now() if current else trial.finished_at or timezone.now(),
    )


def _find_current_version(slug: str, tried: int) -> int | None:
    """Return the version that judges trials of version `tried` now; None if the scenario does not exist any more."""
    try:
        return load_judging_scenario(slug, tried).version
    except KeyError:
        return None
