"""The decision page: a rule applied to measured configurations, their assessments and the result."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from toolbench.evals.decisions.assessments import Assessment, IntervalEstimate
from toolbench.evals.decisions.choice import Decision, choose_config, get_target_figure
from toolbench.evals.statistics.quantiles import Quantile, compute_quantile
from toolbench.lab.metrics.rate import Rate, build_pooled_rate
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Run
from toolbench.lab.results.decide.candidates import (
    Candidate,
    CandidatePool,
    find_candidate_version,
    get_candidate_pool,
)
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.run_choices import list_run_choices

MARK_BY_STATE = {"qualified": "pass", "refused": "fail", "open": "na", "confirm": "infra"}
MAX_SHOWN_ROWS = 30
WORD_BY_STATE = {"qualified": "qualified", "refused": "refused", "open": "not decided", "confirm": "to be confirmed"}


@dataclass(frozen=True, slots=True)
class DecideRow:
    """One configuration with its assessment.

    Attributes:
        number: position among all rows, from 1; the chart has it, too.
        delivered: end-to-end success.
        judged: the same, with the required success as its target.
        given: answered success.
        p50: median time of an answered trial; None without one.
        figure: the figure that the rule's goal ranks by.
        on_front: True if the configuration is on the front of the decision.
        leads: True for the chosen configuration.
    """

    standing: Assessment
    number: int
    candidate: Candidate
    delivered: Rate
    judged: Rate
    given: Rate
    p50: Quantile | None
    figure: IntervalEstimate | None
    on_front: bool
    leads: bool

    @property
    def word(self) -> str:
        """Return the name of the state."""
        return WORD_BY_STATE[self.standing.state]

    @property
    def mark(self) -> str:
        """Return the outcome whose mark stands for the state."""
        return MARK_BY_STATE[self.standing.state]

    @property
    def trials_query(self) -> str:
        """Return the query string of exactly the trials that the row counts."""
        return self.candidate.trials.query()


@dataclass(frozen=True, slots=True)
class DecidePage:
    """Everything that the decision page shows."""

    query: DecideQuery
    pool: CandidatePool
    decision: Decision
    rows: tuple[DecideRow, ...]
    runs: tuple[Run, ...]

    @property
    def shown(self) -> tuple[DecideRow, ...]:
        """Return the rows that the page shows: all of them only if the query asks for all."""
        return self.rows if self.query.shows_all else self.rows[:MAX_SHOWN_ROWS]

    @property
    def hidden_count(self) -> int:
        """Return how many rows the page does not show."""
        return len(self.rows) - len(self.shown)

    @property
    def state_counts(self) -> Mapping[str, int]:
        """Return the number of rows of each state that has any, the best state first."""
        words = [row.word for row in self.rows]
        return {word: words.count(word) for word in dict.fromkeys(words)}

    @property
    def leader(self) -> DecideRow | None:
        """Return the row of the chosen configuration, or None."""
        return next((row for row in self.rows if row.leads), None)

    @property
    def only_local(self) -> bool:
        """Return whether all configurations are local, so that no p95 takes part."""
        return all(row.candidate.measured.local for row in self.rows)

    @property
    def runs_in_progress(self) -> tuple[int, ...]:
        """Return the runs with pending trials of configurations that are not decided yet."""
        more = self.decision.more
        keys = {assessment.measured.key for assessment in more.assessments} if more else set()
        rows = (row.candidate for row in self.rows if row.standing.measured.key in keys)
        return tuple(sorted({row.run_ids[-1] for row in rows if row.pending_trials}))

    @property
    def simulated(self) -> bool:
        """Return whether any configuration is simulated."""
        return any(row.candidate.simulated for row in self.rows)


_pages: VersionCache[DecidePage] = VersionCache(max_entries=16)


def get_decide_page(query: DecideQuery) -> DecidePage:
    """Return the decision page with eight queries, whatever the number of runs.

    A decision over ended runs is kept in memory until their sums change.
    """
    version = find_candidate_version(query)
    page = _pages.get(version, replace(query, rows=""), lambda: _build_page(query, version))
    kept = Run.objects.filter(Run.COUNTED, deleted_at=None, imported=False, simulated=query.demo)
    return replace(page, query=replace(page.query, rows=query.rows), runs=list_run_choices(kept, query.runs))


def _build_page(query: DecideQuery, version: UUID | None) -> DecidePage:
    """Return the page without the runs to choose from."""
    pool = get_candidate_pool(query, version)
    query = query.with_default_want(priced=any(candidate.measured.cost for candidate in pool.candidates))
    decision = choose_config((candidate.measured for candidate in pool.candidates), query.rule)
    by_key = {candidate.measured.key: candidate for candidate in pool.candidates}
    rows = tuple(
        _build_row(number, standing, by_key[standing.measured.key], decision)
        for number, standing in enumerate(decision.assessments, start=1)
    )
    return DecidePage(query, pool, decision, rows, ())


def _build_row(number: int, standing: Assessment, candidate: Candidate, decision: Decision) -> DecideRow:
    measured = standing.measured
    delivered = build_pooled_rate(
        measured.end_to_end_successes, measured.tried, measured.end_to_end_pool, withheld=measured.repeating
    )
    return DecideRow(
        standing=standing,
        number=number,
        candidate=candidate,
        delivered=delivered,
        judged=replace(delivered, target=decision.rule.success),
        given=build_pooled_rate(
            measured.passed, measured.answered, measured.answered_pool, withheld=measured.repeating
        ),
        p50=compute_quantile(measured.times, 0.5) if measured.times else None,
        figure=get_target_figure(standing, decision.rule),
        on_front=measured.key in decision.front,
        leads=standing is decision.leader,
    )
