"""Repeats of a trial: the trials of its cell, grouped where they are alike."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from django.db.models.functions import JSONObject

from toolbench.lab.models import Step, Trial
from toolbench.lab.results.trial_list.index import choose_mark

MAX_REPEATS = 500
Calls = tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class TrialRepeat:
    """A trial of the cell.

    Attributes:
        here: True for the trial that the page shows.
    """

    id: int
    index: int
    mark: str
    here: bool


@dataclass(frozen=True, slots=True)
class RepeatGroup:
    """Repeats with the same outcome, calls and sentence.

    Attributes:
        exemplar: primary key of the first trial.
        here: True if the group has the trial that the page shows.
        calls: tools as (name, ok) in order.
        distinct: number of different answers, texts and arguments included.
        fastest: duration of the fastest trial in milliseconds; None if none is known.
        slowest: duration of the slowest trial in milliseconds; None if none is known.
    """

    mark: str
    indexes: tuple[int, ...]
    exemplar: int
    here: bool
    calls: tuple[tuple[str, bool], ...]
    ending: str
    distinct: int
    fastest: float | None
    slowest: float | None


@dataclass(frozen=True, slots=True)
class TrialRepeats:
    """The repeats of a trial.

    Attributes:
        distinct: number of different answers of all repeats.
    """

    all_repeats: tuple[TrialRepeat, ...]
    repeat_groups: tuple[RepeatGroup, ...]
    distinct: int


def get_repeats(trial: Trial) -> TrialRepeats:
    """Return the first MAX_REPEATS trials of the cell with one query."""
    columns = ("index", "outcome", "state", "answer_hash", "duration_ms", "sentence", "cell_id")
    tool_steps = Step.objects.filter(trial=OuterRef("pk"), kind=Step.Kind.TOOL, execution=OuterRef("execution"))
    calls = tool_steps.order_by("ordinal").values_list(JSONObject(name="tool_name", ok="ok"))
    found = Trial.objects.filter(cell_id=trial.cell_id).annotate(calls_made=ArraySubquery(calls))
    trials = list(found.only(*columns).order_by("index")[:MAX_REPEATS])
    calls_by_trial = {
        repeated.pk: tuple((str(call["name"]), bool(call["ok"])) for call in repeated.calls_made) for repeated in trials
    }
    return TrialRepeats(
        all_repeats=tuple(
            TrialRepeat(repeated.pk, repeated.index, choose_mark(repeated), repeated.pk == trial.pk)
            for repeated in trials
        ),
        repeat_groups=_group_repeats(
            [repeated for repeated in trials if repeated.state == Trial.State.DONE], trial, calls_by_trial
        ),
        distinct=_count_distinct_answers(repeated for repeated in trials if repeated.state == Trial.State.DONE),
    )


def _group_repeats(
    repeats: Sequence[Trial], trial: Trial, calls_by_trial: Mapping[int, Calls]
) -> tuple[RepeatGroup, ...]:
    groups: dict[tuple[str, Calls, str], list[Trial]] = defaultdict(list)
    for repeat in repeats:
        groups[repeat.outcome, calls_by_trial[repeat.pk], repeat.sentence].append(repeat)
    folds = (
        _build_group(outcome, group_trials, trial=trial, calls=made)
        for (outcome, made, _), group_trials in groups.items()
    )
    return tuple(sorted(folds, key=lambda fold: (-len(fold.indexes), fold.indexes)))


def _count_distinct_answers(repeats: Iterable[Trial]) -> int:
    """Return the number of different answers; trials without an answer differ by their sentence."""
    return len({(repeat.outcome, repeat.answer_hash or repeat.sentence) for repeat in repeats})


def _build_group(outcome: str, trials: list[Trial], *, trial: Trial, calls: Calls) -> RepeatGroup:
    times = [repeated.duration_ms for repeated in trials if repeated.duration_ms is not None]
    return RepeatGroup(
        mark=outcome,
        indexes=tuple(repeated.index for repeated in trials),
        exemplar=trials[0].pk,
        here=any(repeated.pk == trial.pk for repeated in trials),
        calls=calls,
        ending=trials[0].sentence,
        distinct=_count_distinct_answers(trials),
        fastest=min(times, default=None),
        slowest=max(times, default=None),
    )
