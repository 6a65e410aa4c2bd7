"""What-ifs: outcomes that stored answers would have under other settings. No request is sent.

The outcome of a trial is unknown if the other settings would have led to a request that was never sent.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Count, Min, QuerySet

from toolbench.evals.statistics.intervals import FIXED_STOPPING, StoppingDesign
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.models import Cell, Trial
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.replays.stored_trials import ReplayedTrial

UNKNOWN = "unknown"
SCOPE_KINDS = ("trial", "cell", "run")
_DEADLINE_END = "DEADLINE_EXCEEDED"


class NothingToReplayError(Exception):
    """Raised if there is no finished trial to replay; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class ReplayScope:
    """The trials to replay: one trial, or those of a cell or a run.

    Attributes:
        kind: one of SCOPE_KINDS.
        id: id of the trial, cell or run.
    """

    kind: str
    id: int

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "ReplayScope":
        """Return the scope that the URL parameters name; a trial comes before a cell, and a cell before a run.

        Raises:
            NothingToReplayError: no parameter names a scope.
        """
        for kind in SCOPE_KINDS:
            number = parse_whole_number(query.get(kind, ""))
            if number is not None:
                return cls(kind, number)
        raise NothingToReplayError("No trial, cell or run is chosen: open one and follow its link What if.")

    def get_trials(self) -> QuerySet[Trial]:
        """Return the finished trials in the order of the plan."""
        name = "pk" if self.kind == "trial" else f"{self.kind}_id"
        done = Trial.objects.filter(state=Trial.State.DONE, run__deleted_at=None)
        return done.filter(**{name: self.id}).order_by("position")

    def get_stopping(self) -> StoppingDesign:
        """Return the stopping design of the cells of the trials, which decides the method of intervals."""
        cells = Cell.objects.filter(pk__in=self.get_trials().order_by().values("cell_id"))
        design = cells.aggregate(error=Min("error"), cells=Count("pk"))
        return StoppingDesign(design["error"], design["cells"])


@dataclass(frozen=True, slots=True)
class TrialChange:
    """The outcome of one trial by its stored verdict and under other settings.

    Attributes:
        trial: id of the trial.
        index: number of the repeat, from 1.
        before: the stored outcome.
        after: the outcome under the other settings, or UNKNOWN.
        left_out_before: whether answered success leaves the trial out, since it ended at the deadline.
        left_out_after: the same under the other settings.
        unknown_from: number of the first unknown step; 1 after an error; None if the outcome is known.
        why: why the end is unknown or the trial cannot be replayed; otherwise the sentence of the new verdict.
        assumed: names of fields in which requests differ without an effect on the model.
    """

    trial: int
    scenario: str
    index: int
    before: str
    after: str
    left_out_before: bool
    left_out_after: bool
    unknown_from: int | None
    why: str
    assumed: tuple[str, ...]

    @property
    def has_changed(self) -> bool:
        """Whether the outcome is known and differs."""
        return self.after not in (self.before, UNKNOWN)


@dataclass(frozen=True, slots=True)
class SuccessBounds:
    """Bounds of answered success under other settings.

    Attributes:
        lowest: the rate if all unknown trials failed.
        highest: the rate if all unknown trials passed.
    """

    lowest: Rate
    highest: Rate

    @property
    def is_exact(self) -> bool:
        """Whether both bounds are equal."""
        return self.lowest.k == self.highest.k


@dataclass(frozen=True, slots=True)
class ChangeTotals:
    """Totals over trials.

    Attributes:
        before: answered success by the stored verdicts.
        after: answered success under the other settings.
        changed_outcomes: outcome before, outcome after and number of trials, the most frequent first.
        unknown: number of trials whose outcome is unknown.
        same: number of trials with the same outcome.
    """

    before: Rate
    after: SuccessBounds
    changed_outcomes: tuple[tuple[str, str, int], ...]
    unknown: int
    same: int

    @property
    def sentence(self) -> str:
        """The totals in one sentence."""
        parts = [f"{count} {before} → {after}" for before, after, count in self.changed_outcomes]
        parts += [f"{self.unknown} unknown"] if self.unknown else []
        parts += [f"{self.same} unchanged"] if self.same else []
        return ", ".join(parts)


def build_change(replayed: ReplayedTrial) -> TrialChange:
    """Build the change of a replayed trial. A trial that cannot be replayed keeps its outcome."""
    trial = replayed.trial
    is_unknown = replayed.unknown_from is not None
    after, end, why = trial.outcome, trial.end, replayed.reason
    if is_unknown:
        after = UNKNOWN
    elif not replayed.is_not_replayable:
        after, end, why = (replayed.columns[name] for name in ("outcome", "end", "sentence"))
    return TrialChange(
        trial=trial.pk,
        scenario=trial.scenario,
        index=trial.index,
        before=trial.outcome,
        after=after,
        left_out_before=trial.end == _DEADLINE_END,
        left_out_after=not is_unknown and end == _DEADLINE_END,
        unknown_from=replayed.unknown_from,
        why=why,
        assumed=replayed.differing_fields,
    )


# Number of trials by `before`, `after`, `left_out_before` and `left_out_after`.
ChangeCounts = Counter[tuple[str, str, bool, bool]]


def count_changes(changes: Iterable[TrialChange]) -> ChangeCounts:
    """Count trials by `before`, `after`, `left_out_before` and `left_out_after`."""
    return Counter((change.before, change.after, change.left_out_before, change.left_out_after) for change in changes)


def compute_totals(counts: ChangeCounts, stopping: StoppingDesign = FIXED_STOPPING) -> ChangeTotals:
    """Return the totals of the counts.

    Args:
        counts: numbers of trials, as returned by `count_changes`.
        stopping: the stopping design of the trials, which other settings do not change.
    """

    def count_answered(key_index: int, outcomes: tuple[str, ...]) -> int:
        """Count trials by their outcome before (index 0) or after (index 1).

        Trials that answered success leaves out before or after, respectively, are not counted.
        """
        return sum(count for key, count in counts.items() if key[key_index] in outcomes and not key[key_index + 2])

    changed: Counter[tuple[str, str]] = Counter()
    for (before, after, *_), count in counts.items():
        if after not in (before, UNKNOWN):
            changed[before, after] += count
    unknown = count_answered(1, (UNKNOWN,))
    answered, passed = count_answered(1, ("pass", "fail", UNKNOWN)), count_answered(1, ("pass",))
    return ChangeTotals(
        before=build_rate(count_answered(0, ("pass",)), count_answered(0, ("pass", "fail")), stopping=stopping),
        after=SuccessBounds(
            build_rate(passed, answered, stopping=stopping), build_rate(passed + unknown, answered, stopping=stopping)
        ),
        changed_outcomes=tuple((*pair, count) for pair, count in changed.most_common()),
        unknown=unknown,
        same=counts.total() - unknown - changed.total(),
    )
