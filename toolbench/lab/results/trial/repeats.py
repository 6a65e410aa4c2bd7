"""The repeats of a trial: its cell's trials, and those that went alike as one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import F

from toolbench.lab.models import Step, Trial
from toolbench.lab.results.trial.index import mark

MOST_REPEATS = 500
Calls = tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    id: int
    index: int
    mark: str
    here: bool


@dataclass(frozen=True, slots=True)
class RepeatFold:
    """Repeats with the same outcome, calls and first fault. `calls` are their tools, (name, ok) in order; `distinct` is
    the number of different answers, texts and arguments included."""

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
class Repeats:
    """`distinct` answers of them all."""

    every: tuple[Repeat, ...]
    folds: tuple[RepeatFold, ...]
    distinct: int


def get_repeats(trial: Trial) -> Repeats:
    """The first MOST_REPEATS of its cell, itself among them. Two queries."""
    columns = ("index", "outcome", "state", "answer_hash", "duration_ms", "sentence", "cell_id")
    every = list(Trial.objects.filter(cell_id=trial.cell_id).only(*columns).order_by("index")[:MOST_REPEATS])
    return Repeats(
        every=tuple(Repeat(one.pk, one.index, mark(one), one.pk == trial.pk) for one in every),
        folds=_folds([one for one in every if one.state == Trial.State.DONE], trial),
        distinct=_distinct(one for one in every if one.state == Trial.State.DONE),
    )


def _folds(repeats: Sequence[Trial], trial: Trial) -> tuple[RepeatFold, ...]:
    groups: dict[tuple[str, Calls, str], list[Trial]] = defaultdict(list)
    calls = _calls_of([one.pk for one in repeats])
    for one in repeats:
        groups[one.outcome, tuple(calls.get(one.pk, ())), one.sentence].append(one)
    folds = (_fold(outcome, own, trial=trial, calls=made) for (outcome, made, _), own in groups.items())
    return tuple(sorted(folds, key=lambda fold: (-len(fold.indexes), fold.indexes)))


def _distinct(repeats: Iterable[Trial]) -> int:
    """Of trials without an answer, those with another sentence."""
    return len({(one.outcome, one.answer_hash or one.sentence) for one in repeats})


def _fold(outcome: str, own: list[Trial], *, trial: Trial, calls: Calls) -> RepeatFold:
    times = [one.duration_ms for one in own if one.duration_ms is not None]
    return RepeatFold(
        mark=outcome,
        indexes=tuple(one.index for one in own),
        exemplar=own[0].pk,
        here=any(one.pk == trial.pk for one in own),
        calls=calls,
        ending=own[0].sentence,
        distinct=_distinct(own),
        fastest=min(times, default=None),
        slowest=max(times, default=None),
    )


def _calls_of(trials: Sequence[int]) -> dict[int, list[tuple[str, bool]]]:
    found: dict[int, list[tuple[str, bool]]] = defaultdict(list)
    rows = Step.objects.filter(trial__in=trials, kind=Step.Kind.TOOL, execution=F("trial__execution"))
    for pk, name, ok in rows.order_by("trial", "ordinal").values_list("trial", "tool_name", "ok"):
        found[pk].append((name, bool(ok)))
    return found
