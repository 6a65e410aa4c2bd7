"""Failure groups: failed trials that are equal in cause, JSON path and turn, with an example and the nearest pass."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from toolbench.lab.metrics.cause_pools import CauseLine
from toolbench.lab.models import Trial
from toolbench.lab.results.failures.counts import FailureCounts
from toolbench.lab.results.failures.heat_map import HeatCause, build_trials_query, load_problems
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.trial.diff_page import find_nearest_passes

MAX_FAILURE_GROUPS = 40
_SEPARATOR = " · "
_TURN = " · turn "
GroupKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one cause, path and turn, with the first trial and the nearest passed one.

    Attributes:
        signature: the stored text that groups failures, which names the scenario; "" for a group of several scenarios.
        scenario: "" for a group of several scenarios.
        version: of the scenario; 0 for a group of several scenarios.
        place: path and turn as the signature has them; a failure class has no turn.
        models: names of the models, most trials first.
        exemplar: the first trial.
        sentence: what went wrong first in it.
        is_infra: whether all trials had an infrastructure error.
        nearest: a passed trial; None if there is none in its run.
        query: the query string that lists the trials.
    """

    signature: str
    cause: HeatCause | None
    scenario: str
    version: int
    place: str
    count: int
    models: tuple[str, ...]
    runs: int
    first_seen: datetime | None
    exemplar: int
    sentence: str
    is_infra: bool
    nearest: int | None
    query: str

    @property
    def path(self) -> str:
        """The JSON path, list indices left open."""
        return self.place.rpartition(_TURN)[0] or self.place

    @property
    def turn(self) -> str:
        """The turn, from 1; "" where none is known."""
        return self.place.rpartition(_TURN)[2] if _TURN in self.place else ""


@dataclass(frozen=True, slots=True)
class FailureGroups:
    """The largest groups, and how many there are."""

    shown: tuple[FailureGroup, ...]
    total: int


def list_failure_groups(query: FailuresQuery, counts: FailureCounts) -> FailureGroups:
    """Return the largest groups, most trials first, with two queries: examples and nearest passed trials."""
    found: dict[GroupKey, list[CauseLine]] = {}
    read_key = _choose_key(query)
    for line in counts.failed:
        if _get_signature(query, line):
            found.setdefault(read_key(line), []).append(line)
    totals = {key: sum(line.count for line in lines) for key, lines in found.items()}
    largest = sorted(found, key=lambda key: (-totals[key], key))[:MAX_FAILURE_GROUPS]
    examples = {key: min(line.first_trial for line in found[key]) for key in largest}
    trials = Trial.objects.only("sentence").in_bulk(examples.values())
    nearest = find_nearest_passes(list(trials))
    shown = [
        _build_group(query, counts, found[key], trials[examples[key]], nearest)
        for key in largest
        if examples[key] in trials  # else it was deleted meanwhile
    ]
    return FailureGroups(tuple(shown), len(found))


def _get_signature(query: FailuresQuery, line: CauseLine) -> str:
    return line.signature if query.is_first else line.cause_signature


def _get_code(query: FailuresQuery, line: CauseLine) -> str:
    return line.failure_class if query.is_first else line.cause


def _get_place(query: FailuresQuery, line: CauseLine) -> str | None:
    """Return what follows code and scenario in the signature; None if it does not begin with them."""
    start = f"{_get_code(query, line)}{_SEPARATOR}{line.scenario}{_SEPARATOR}"
    signature = _get_signature(query, line)
    return signature.removeprefix(start) if signature.startswith(start) else None


def _choose_key(query: FailuresQuery) -> Callable[[CauseLine], GroupKey]:
    """Return what is equal in a group. A signature of another form makes a group of its own."""

    def read_key(line: CauseLine) -> GroupKey:
        place, signature = _get_place(query, line), _get_signature(query, line)
        model = (line.provider, line.model) if query.by == "model" else ()
        if query.by == "scenario" or place is None:
            return (signature, str(line.version), *model)
        return (_get_code(query, line), place, *model)

    return read_key


def _build_group(
    query: FailuresQuery,
    counts: FailureCounts,
    lines: Sequence[CauseLine],
    trial: Trial,
    nearest: Mapping[int, int],
) -> FailureGroup:
    first = lines[0]
    code, place = _get_code(query, first), _get_place(query, first)
    is_split = query.by == "scenario" or place is None
    of_group = _name_signature(query, first) if is_split else {"place": place}
    model = (first.provider, first.model) if query.by == "model" else None
    by_model = Counter[str]()
    for line in lines:
        by_model[line.model.rpartition("/")[2]] += line.count
    return FailureGroup(
        signature=_get_signature(query, first) if is_split else "",
        cause=load_problems(query).get(code),
        scenario=first.scenario if is_split else "",
        version=first.version if is_split else 0,
        place=_SEPARATOR.join(_get_signature(query, first).split(_SEPARATOR)[2:]) if place is None else place,
        count=sum(line.count for line in lines),
        models=tuple(name for name, _ in by_model.most_common()),
        runs=len(set().union(*(line.run_ids for line in lines))),
        first_seen=min((line.first_seen for line in lines if line.first_seen), default=None),
        exemplar=trial.pk,
        sentence=trial.sentence,
        is_infra=all(line.outcome == Trial.Outcome.INFRA for line in lines),
        nearest=nearest.get(trial.pk),
        query=build_trials_query(query, counts, code, model=model, **of_group),
    )


def _name_signature(query: FailuresQuery, line: CauseLine) -> dict[str, object]:
    name = "signature" if query.is_first else "cluster"
    return {name: _get_signature(query, line), "version": line.version}
