"""The decision page: the candidates of a scope, their assessments by the rule, and the decision."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Q, QuerySet

from toolbench.evals.decisions.assessments import Assessment
from toolbench.evals.decisions.choice import Decision, choose_config
from toolbench.evals.statistics.quantiles import Quantile, compute_quantile
from toolbench.lab.metrics.rate import Rate, build_pooled_rate
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, Run, RunConfig
from toolbench.lab.results.decide.candidates import (
    Candidate,
    CandidatePool,
    find_candidate_version,
    get_candidate_pool,
)
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.run_choices import list_run_choices

MAX_SHOWN_ROWS = 30
MARK_BY_STATE = {"qualified": "pass", "refused": "fail", "open": "na", "confirm": "infra"}
LABEL_BY_STATE = {"qualified": "qualified", "refused": "refused", "open": "not decided", "confirm": "to be confirmed"}


@dataclass(frozen=True, slots=True)
class DecideRow:
    """A candidate with its assessment.

    Attributes:
        number: position among all rows, starting with 1; the chart shows it too.
        end_to_end: end-to-end success.
        end_to_end_against_target: end-to-end success with the success that the rule requires as target.
        answered: answered success.
        p50: median duration of answered trials in milliseconds; None without such trials.
        on_front: whether the candidate is on the Pareto front of the decision.
        is_leader: whether the candidate is the chosen one.
    """

    assessment: Assessment
    number: int
    candidate: Candidate
    end_to_end: Rate
    end_to_end_against_target: Rate
    answered: Rate
    p50: Quantile | None
    on_front: bool
    is_leader: bool

    @property
    def state_label(self) -> str:
        """Return the label of the assessment's state."""
        return LABEL_BY_STATE[self.assessment.state]

    @property
    def mark(self) -> str:
        """Return the trial outcome whose mark the page shows for the state."""
        return MARK_BY_STATE[self.assessment.state]

    @property
    def trials_query(self) -> str:
        """Return the query string of the list of exactly the trials that the row counts."""
        return self.candidate.trial_filter.query()


@dataclass(frozen=True, slots=True)
class DecidePage:
    """The decision page.

    Attributes:
        query: the scope and the rule; if the URL names no goal, with the default goal.
        rows: all candidates, the best first.
        runs_in_progress: primary keys, ascending, of the runs with queued or running trials of a candidate that lacks
            trials.
        promotable: result of `find_promotable` for the configurations of the shown rows.
        runs: the runs to choose from.
    """

    query: DecideQuery
    pool: CandidatePool
    decision: Decision
    rows: tuple[DecideRow, ...]
    runs_in_progress: tuple[int, ...]
    promotable: frozenset[int]
    runs: tuple[Run, ...]

    @property
    def shown(self) -> tuple[DecideRow, ...]:
        """Return the rows that the page shows: the first MAX_SHOWN_ROWS, or all of them if the query says so."""
        return self.rows if self.query.shows_all else self.rows[:MAX_SHOWN_ROWS]

    @property
    def hidden_count(self) -> int:
        """Return the number of rows that the page does not show."""
        return len(self.rows) - len(self.shown)

    @property
    def state_counts(self) -> Mapping[str, int]:
        """Return the number of rows by label of their state, the best state first; states without a row are absent."""
        labels = [row.state_label for row in self.rows]
        return {label: labels.count(label) for label in dict.fromkeys(labels)}

    @property
    def leader(self) -> DecideRow | None:
        """Return the row of the chosen candidate; None if no candidate qualifies."""
        return next((row for row in self.rows if row.is_leader), None)

    @property
    def is_only_local(self) -> bool:
        """Return whether the models of all candidates are local, so that the decision uses no p95."""
        return all(row.candidate.measured.is_local for row in self.rows)

    @property
    def simulated(self) -> bool:
        """Return whether any candidate has a simulated model."""
        return any(row.candidate.simulated for row in self.rows)


_pages: VersionCache[DecidePage] = VersionCache(max_entries=16)


def get_decide_page(query: DecideQuery) -> DecidePage:
    """Return the decision page with a number of SQL queries that does not depend on the number of runs.

    The decision is kept in memory until a figure of a run in scope changes, unless such a run is still in progress.
    Choices of runs and promotable configurations are read on each call, because they also depend on other runs and on
    models.
    """
    version = find_candidate_version(query)
    page = _pages.get(version, replace(query, rows=""), lambda: _build_page(query, version))
    shown_page = replace(page, query=replace(page.query, rows=query.rows))
    shown_configs = _filter_promotable(row.candidate.config_id for row in shown_page.shown)
    in_scope = Run.COUNTED & Q(imported=False, simulated=query.demo)
    run_choices = Run.objects.filter(in_scope | Q(pk__in=query.runs), deleted_at=None)
    # The runs of the candidates are among the choices, so one query reads both.
    runs = list_run_choices(run_choices.annotate(promotable=ArraySubquery(shown_configs)), query.runs)
    promotable = getattr(runs[0], "promotable", None) if runs else None  # None also if no row is shown
    return replace(shown_page, promotable=frozenset(promotable or ()), runs=runs)


def _build_page(query: DecideQuery, version: UUID | None) -> DecidePage:
    """Return the page without `promotable` and `runs`."""
    pool = get_candidate_pool(query, version)
    query = query.with_default_goal(
        has_cost=any(candidate.measured.cost and candidate.measured.cost.value for candidate in pool.candidates)
    )
    decision = choose_config((candidate.measured for candidate in pool.candidates), query.rule)
    by_key = {candidate.measured.key: candidate for candidate in pool.candidates}
    rows = tuple(
        _build_row(number, assessment, by_key[assessment.measured.key], decision)
        for number, assessment in enumerate(decision.assessments, start=1)
    )
    return DecidePage(query, pool, decision, rows, _find_runs_in_progress(rows, decision), frozenset(), ())


def find_promotable(config_ids: Iterable[int]) -> frozenset[int]:
    """Return the ids of the configurations that can be promoted, because their model is connected here."""
    return frozenset(_filter_promotable(config_ids))


def _filter_promotable(config_ids: Iterable[int]) -> QuerySet[RunConfig, int]:
    return RunConfig.objects.filter(pk__in=config_ids, model__isnull=False).order_by().values_list("pk", flat=True)


def _find_runs_in_progress(rows: Iterable[DecideRow], decision: Decision) -> tuple[int, ...]:
    """Return `DecidePage.runs_in_progress`, with one SQL query, or with none if no such trial is in progress."""
    keys = {assessment.measured.key for assessment in decision.more.assessments} if decision.more else set()
    candidates = [row.candidate for row in rows if row.assessment.measured.key in keys and row.candidate.pending_trials]
    if not candidates:
        return ()
    cell_ids = [pk for candidate in candidates for pk in candidate.cell_ids]
    unfinished = Cell.objects.filter(Q(queued__gt=0) | Q(running__gt=0), pk__in=cell_ids)
    return tuple(unfinished.order_by("run_id").values_list("run_id", flat=True).distinct())


def _build_row(number: int, assessment: Assessment, candidate: Candidate, decision: Decision) -> DecideRow:
    measured = assessment.measured
    distinct, withheld = candidate.tally.distinct or None, measured.has_repeated_answers
    end_to_end = build_pooled_rate(
        measured.end_to_end_successes, measured.tried, measured.end_to_end_pool, distinct=distinct, withheld=withheld
    )
    return DecideRow(
        assessment=assessment,
        number=number,
        candidate=candidate,
        end_to_end=end_to_end,
        end_to_end_against_target=replace(end_to_end, target=decision.rule.success),
        answered=build_pooled_rate(
            measured.passed, measured.answered, measured.answered_pool, distinct=distinct, withheld=withheld
        ),
        p50=compute_quantile(measured.times, 0.5) if measured.times else None,
        on_front=measured.key in decision.front,
        is_leader=assessment is decision.leader,
    )
