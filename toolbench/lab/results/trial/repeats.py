"""Repeats of a trial: the trials of its cell, grouped by outcome, calls and sentence."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from django.db.models.functions import JSONObject

from toolbench.lab.models import Step, Trial
from toolbench.lab.results.trial_list.index import choose_mark

MAX_REPEATS = 500
Calls = tuple[tuple[str, bool], ...]  # (name of the tool, whether the call succeeded) of each call in order


@dataclass(frozen=True, slots=True)
class TrialRepeat:
    """Trial of the cell.

    Attributes:
        index: number of the repeat within its cell, from 1.
        mark: outcome; `running` or `queued` until the trial has ended.
        is_current: whether it is the trial of the page.
    """

    id: int
    index: int
    mark: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class RepeatGroup:
    """Group of ended repeats with the same outcome, calls and sentence.

    Attributes:
        mark: outcome of the repeats.
        indexes: numbers of the repeats.
        exemplar: primary key of the first repeat of the group.
        is_current: whether the group contains the trial of the page.
        calls: calls in order, as (name of the tool, whether the call succeeded); a refused call did not succeed.
        sentence: sentence about the first problem; empty without a problem.
        distinct: number of distinct answers; answers with different texts or arguments are distinct.
        fastest_ms: shortest duration; None if no duration is known.
        slowest_ms: longest duration; None if no duration is known.
    """

    mark: str
    indexes: tuple[int, ...]
    exemplar: int
    is_current: bool
    calls: Calls
    sentence: str
    distinct: int
    fastest_ms: float | None
    slowest_ms: float | None


@dataclass(frozen=True, slots=True)
class TrialRepeats:
    """Repeats of a trial.

    Attributes:
        all_repeats: the first MAX_REPEATS trials of the cell; they may lack the trial itself.
        repeat_groups: groups of the ended repeats, the largest first.
        distinct: number of distinct answers of the ended repeats.
    """

    all_repeats: tuple[TrialRepeat, ...]
    repeat_groups: tuple[RepeatGroup, ...]
    distinct: int


def get_repeats(trial: Trial) -> TrialRepeats:
    """Return the first MAX_REPEATS trials of the trial's cell and their groups, with one query."""
    columns = ("index", "outcome", "state", "answer_hash", "duration_ms", "sentence", "cell_id")
    tool_steps = Step.objects.filter(trial=OuterRef("pk"), kind=Step.Kind.TOOL, execution=OuterRef("execution"))
    calls = tool_steps.order_by("ordinal").values_list(JSONObject(name="tool_name", ok="ok"))
    rows = Trial.objects.filter(cell_id=trial.cell_id).annotate(calls_made=ArraySubquery(calls))
    repeats = list(rows.only(*columns).order_by("index")[:MAX_REPEATS])
    calls_by_trial = {
        repeat.pk: tuple((str(call["name"]), bool(call["ok"])) for call in repeat.calls_made) for repeat in repeats
    }
    ended = [repeat for repeat in repeats if repeat.state == Trial.State.DONE]
    return TrialRepeats(
        all_repeats=tuple(
            TrialRepeat(repeat.pk, repeat.index, choose_mark(repeat), repeat.pk == trial.pk) for repeat in repeats
        ),
        repeat_groups=_group_repeats(ended, trial, calls_by_trial),
        distinct=_count_distinct_answers(ended),
    )


def _group_repeats(
    repeats: Sequence[Trial], trial: Trial, calls_by_trial: Mapping[int, Calls]
) -> tuple[RepeatGroup, ...]:
    groups: dict[tuple[str, Calls, str], list[Trial]] = defaultdict(list)
    for repeat in repeats:
        groups[repeat.outcome, calls_by_trial[repeat.pk], repeat.sentence].append(repeat)
    rows = (
        _build_group(outcome, group_trials, trial=trial, calls=calls)
        for (outcome, calls, _), group_trials in groups.items()
    )
    return tuple(sorted(rows, key=lambda group: (-len(group.indexes), group.indexes)))


def _count_distinct_answers(repeats: Iterable[Trial]) -> int:
    """Return the number of distinct answers; trials without an answer are distinguished by their sentence."""
    return len({(repeat.outcome, repeat.answer_hash or repeat.sentence) for repeat in repeats})


def _build_group(outcome: str, trials: list[Trial], *, trial: Trial, calls: Calls) -> RepeatGroup:
    durations = [repeat.duration_ms for repeat in trials if repeat.duration_ms is not None]
    return RepeatGroup(
        mark=outcome,
        indexes=tuple(repeat.index for repeat in trials),
        exemplar=trials[0].pk,
        is_current=any(repeat.pk == trial.pk for repeat in trials),
        calls=calls,
        sentence=trials[0].sentence,
        distinct=_count_distinct_answers(trials),
        fastest_ms=min(durations, default=None),
        slowest_ms=max(durations, default=None),
    )
