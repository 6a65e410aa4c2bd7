"""What-ifs: how stored answers would be judged under other settings. No request is sent.

Each trial passes, fails, or is unknown from a step on.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Count, Min, QuerySet

from toolbench.evals.statistics.intervals import FIXED_STOPPING, StoppingDesign
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.models import Cell, Trial
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.replays.execute import ReplayedTrial

UNKNOWN = "unknown"
SCOPE_KINDS = ("trial", "cell", "run")
_DEADLINE_END = "DEADLINE_EXCEEDED"


class NothingToReplayError(Exception):
    """The trial, cell or run does not exist or has no finished trial."""


@dataclass(frozen=True, slots=True)
class ReplayScope:
    """The trials to replay: one trial, or those of a cell or a run."""

    kind: str
    id: int

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "ReplayScope":
        """Return the scope of the first kind that the URL parameters name.

        Raises:
            NothingToReplayError: the parameters name none.
        """
        for kind in SCOPE_KINDS:
            number = parse_whole_number(query.get(kind, ""))
            if number is not None:
                return cls(kind, number)
        raise NothingToReplayError("Choose a trial, a cell or a run: open one and follow its link What if.")

    def trials(self) -> QuerySet[Trial]:
        """Return the finished trials in the order of the plan."""
        name = "pk" if self.kind == "trial" else f"{self.kind}_id"
        done = Trial.objects.filter(state=Trial.State.DONE, run__deleted_at=None)
        return done.filter(**{name: self.id}).order_by("position")

    def stopping(self) -> StoppingDesign:
        """Return the stopping design of the cells, which decides the method of intervals."""
        cells = Cell.objects.filter(pk__in=self.trials().order_by().values("cell_id"))
        ended = cells.aggregate(error=Min("error"), cells=Count("pk"))
        return StoppingDesign(ended["error"], ended["cells"])


@dataclass(frozen=True, slots=True)
class TrialChange:
    """The outcome of one trial before and after.

    Attributes:
        after: an outcome, or UNKNOWN.
        left_out_before: whether the trial ended at the deadline, which success given an answer leaves out.
        unknown_from: number of the first unknown step; None if the end is known.
        why: what is not known, or the sentence of the verdict.
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
    def flips(self) -> bool:
        """Whether the outcome is known and differs."""
        return self.after not in (self.before, UNKNOWN)


@dataclass(frozen=True, slots=True)
class SuccessBounds:
    """Success given an answer under other settings, with all unknown trials counted as failures, and as passes."""

    least: Rate
    most: Rate

    @property
    def known(self) -> bool:
        """Whether both bounds are equal."""
        return self.least.k == self.most.k


@dataclass(frozen=True, slots=True)
class ChangeTotals:
    """Totals over trials.

    Attributes:
        flips: outcome before, outcome after, number of trials.
    """

    before: Rate
    after: SuccessBounds
    flips: tuple[tuple[str, str, int], ...]  # before, after, how many
    unknown: int
    same: int

    @property
    def sentence(self) -> str:
        """The totals in one sentence."""
        parts = [f"{count} {before} → {after}" for before, after, count in self.flips]
        parts += [f"{self.unknown} unknown"] if self.unknown else []
        parts += [f"{self.same} unchanged"] if self.same else []
        return ", ".join(parts)


def build_change(replayed: ReplayedTrial) -> TrialChange:
    """Return the change of one replayed trial."""
    trial, columns = replayed.trial, replayed.columns
    unknown = replayed.unknown_from is not None
    after = UNKNOWN if unknown else trial.outcome if replayed.never_sent else columns["outcome"]
    end = trial.end if unknown or replayed.never_sent else columns["end"]
    return TrialChange(
        trial=trial.pk,
        scenario=trial.scenario,
        index=trial.index,
        before=trial.outcome,
        after=after,
        left_out_before=trial.end == _DEADLINE_END,
        left_out_after=not unknown and end == _DEADLINE_END,
        unknown_from=replayed.unknown_from,
        why=replayed.why if unknown or replayed.never_sent else columns["sentence"],
        assumed=replayed.assumed,
    )


ChangeCounts = Counter[tuple[str, str, bool, bool]]


def count_changes(changes: Iterable[TrialChange]) -> ChangeCounts:
    """Count trials by outcome before and after, and by whether success given an answer leaves them out."""
    return Counter((change.before, change.after, change.left_out_before, change.left_out_after) for change in changes)


def compute_totals(counts: ChangeCounts, stopping: StoppingDesign = FIXED_STOPPING) -> ChangeTotals:
    """Return the totals of the counts.

    Args:
        counts: numbers of trials.
        stopping: the stopping design of the trials, which other settings do not change.
    """

    def those(place: int, words: tuple[str, ...]) -> int:
        return sum(count for key, count in counts.items() if key[place] in words and not key[place + 2])

    flips: Counter[tuple[str, str]] = Counter()
    for (before, after, *_), count in counts.items():
        if after not in (before, UNKNOWN):
            flips[before, after] += count
    unknown = those(1, (UNKNOWN,))
    answered, passed = those(1, ("pass", "fail", UNKNOWN)), those(1, ("pass",))
    return ChangeTotals(
        before=build_rate(those(0, ("pass",)), those(0, ("pass", "fail")), stopping=stopping),
        after=SuccessBounds(
            build_rate(passed, answered, stopping=stopping), build_rate(passed + unknown, answered, stopping=stopping)
        ),
        flips=tuple((*pair, count) for pair, count in flips.most_common()),
        unknown=unknown,
        same=counts.total() - unknown - flips.total(),
    )
