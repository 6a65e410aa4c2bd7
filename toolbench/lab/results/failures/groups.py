"""Failure groups, each with an example: failed trials with the same cause, JSON path and turn."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from toolbench.lab.metrics.cause_pools import CauseLine
from toolbench.lab.models import Trial
from toolbench.lab.results.failures.counts import FailureCounts
from toolbench.lab.results.failures.heat_map import HeatCause, build_trials_query, load_heat_causes
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.trial.diff_page import find_nearest_passes

MAX_FAILURE_GROUPS = 40
_SEPARATOR = " · "
_TURN_SEPARATOR = " · turn "
GroupKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failed trials with the same cause, path and turn.

    Attributes:
        signature: stored text with code, scenario, path and turn; "" for a group that may span several scenarios.
        cause: cause or failure class; None if the current table lacks it.
        scenario: slug; "" for a group that may span several scenarios.
        version: version of the scenario; 0 for a group that may span several scenarios.
        place: path and turn as in the signature; signatures of failure classes have no turn.
        count: number of trials.
        models: names of the models without the vendor, most trials first.
        run_count: number of runs with these trials.
        first_seen: when the first of the trials finished; None if no time is known.
        exemplar: smallest primary key of the trials; this trial is the example of the group.
        sentence: what went wrong first in the example.
        is_infra: whether all trials had an infrastructure error.
        nearest: primary key of the passed trial to compare the example with; None if the run of the example has no
            passed trial of the same scenario with stored bodies.
        query: query string that lists the trials.
    """

    signature: str
    cause: HeatCause | None
    scenario: str
    version: int
    place: str
    count: int
    models: tuple[str, ...]
    run_count: int
    first_seen: datetime | None
    exemplar: int
    sentence: str
    is_infra: bool
    nearest: int | None
    query: str

    @property
    def path(self) -> str:
        """Return the JSON path without list indices."""
        return self.place.rpartition(_TURN_SEPARATOR)[0] or self.place

    @property
    def turn(self) -> str:
        """Return the number of the turn as text, from 1; "" if it is unknown."""
        return self.place.rpartition(_TURN_SEPARATOR)[2] if _TURN_SEPARATOR in self.place else ""


@dataclass(frozen=True, slots=True)
class FailureGroups:
    """The largest failure groups, and how many there are in all.

    Attributes:
        shown: the groups that the page shows, at most MAX_FAILURE_GROUPS, most trials first.
        total: number of all groups.
    """

    shown: tuple[FailureGroup, ...]
    total: int


def list_failure_groups(query: FailuresQuery, counts: FailureCounts) -> FailureGroups:
    """Return the largest groups, most trials first.

    SQL queries are sent only for the examples and their nearest passes.
    """
    groups: dict[GroupKey, list[CauseLine]] = {}
    for line in counts.lines:
        if _select_signature(query, line):
            groups.setdefault(_build_group_key(query, line), []).append(line)
    totals = {key: sum(line.count for line in lines) for key, lines in groups.items()}
    largest = sorted(groups, key=lambda key: (-totals[key], key))[:MAX_FAILURE_GROUPS]
    examples = {key: min(line.first_trial for line in groups[key]) for key in largest}
    trials = Trial.objects.only("sentence").in_bulk(examples.values())
    nearest = find_nearest_passes(list(trials))
    shown = [
        _build_group(query, counts, groups[key], trials[examples[key]], nearest)
        for key in largest
        if examples[key] in trials  # a missing trial was deleted after the lines were read
    ]
    return FailureGroups(tuple(shown), len(groups))


def _select_signature(query: FailuresQuery, line: CauseLine) -> str:
    return line.signature if query.counts_failure_classes else line.cause_signature


def _select_code(query: FailuresQuery, line: CauseLine) -> str:
    return line.failure_class if query.counts_failure_classes else line.cause


def _find_place(query: FailuresQuery, line: CauseLine) -> str | None:
    """Return the part of the signature after code and scenario; None if the signature does not begin with them."""
    start = f"{_select_code(query, line)}{_SEPARATOR}{line.scenario}{_SEPARATOR}"
    signature = _select_signature(query, line)
    return signature.removeprefix(start) if signature.startswith(start) else None


def _build_group_key(query: FailuresQuery, line: CauseLine) -> GroupKey:
    """Return the key of a line's group; a signature that does not begin with code and scenario has its own group."""
    place = _find_place(query, line)
    model = (line.provider, line.model) if query.by == "model" else ()
    if query.by == "scenario" or place is None:
        return (_select_signature(query, line), str(line.version), *model)
    return (_select_code(query, line), place, *model)


def _build_group(
    query: FailuresQuery,
    counts: FailureCounts,
    lines: Sequence[CauseLine],
    trial: Trial,
    nearest: Mapping[int, int],
) -> FailureGroup:
    """Return the group of these lines.

    Args:
        query: the scope and the grouping.
        counts: all counts of the page.
        lines: the counts of the group, at least one.
        trial: the example of the group.
        nearest: primary key of the nearest passed trial, by that of the example; an example without one is missing.
    """
    first = lines[0]
    code, place = _select_code(query, first), _find_place(query, first)
    has_one_scenario = query.by == "scenario" or place is None
    group_fields = _build_signature_fields(query, first) if has_one_scenario else {"place": place}
    model = (first.provider, first.model) if query.by == "model" else None
    by_model = Counter[str]()
    for line in lines:
        by_model[line.model.rpartition("/")[2]] += line.count
    return FailureGroup(
        signature=_select_signature(query, first) if has_one_scenario else "",
        cause=load_heat_causes(query).get(code),
        scenario=first.scenario if has_one_scenario else "",
        version=first.version if has_one_scenario else 0,
        place=_SEPARATOR.join(_select_signature(query, first).split(_SEPARATOR)[2:]) if place is None else place,
        count=sum(line.count for line in lines),
        models=tuple(name for name, _ in by_model.most_common()),
        run_count=len(set().union(*(line.run_ids for line in lines))),
        first_seen=min((line.first_seen for line in lines if line.first_seen), default=None),
        exemplar=trial.pk,
        sentence=trial.sentence,
        is_infra=all(line.outcome == Trial.Outcome.INFRA for line in lines),
        nearest=nearest.get(trial.pk),
        query=build_trials_query(query, counts, code, model=model, **group_fields),
    )


def _build_signature_fields(query: FailuresQuery, line: CauseLine) -> dict[str, object]:
    name = "signature" if query.counts_failure_classes else "cluster"
    return {name: _select_signature(query, line), "version": line.version}
