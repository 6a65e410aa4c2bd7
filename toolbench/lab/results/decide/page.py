"""The decision page: a rule applied to measured configurations, their assessments and the result."""

from dataclasses import dataclass

from toolbench.evals.decisions.assessments import REFUSED, Assessment, IntervalEstimate
from toolbench.evals.decisions.choice import Decision, choose_config, get_target_figure
from toolbench.lab.metrics.rate import Rate, build_pooled_rate
from toolbench.lab.models import Run
from toolbench.lab.results.decide.candidates import Candidate, CandidatePool, get_candidate_pool
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.run_choices import list_run_choices

MARK_BY_STATE = {"qualified": "pass", "refused": "fail", "open": "na", "confirm": "infra"}
MAX_SHOWN_ROWS = 30  # of each table
WORD_BY_STATE = {"qualified": "qualified", "refused": "refused", "open": "not decided", "confirm": "to be confirmed"}


@dataclass(frozen=True, slots=True)
class DecideRow:
    """One configuration with its assessment.

    Attributes:
        delivered: end-to-end success.
        given: answered success.
        figure: the figure that the rule's goal ranks by.
        on_front: True if the configuration is on the front of the decision.
        leads: True for the chosen configuration.
    """

    standing: Assessment
    candidate: Candidate
    delivered: Rate
    given: Rate
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
class DecideTable:
    """A table of configurations, cut after MAX_SHOWN_ROWS rows unless all are asked for."""

    name: str
    rows: tuple[DecideRow, ...]
    shows_all: bool

    @property
    def shown(self) -> tuple[DecideRow, ...]:
        """Return the rows that the page shows."""
        return self.rows if self.shows_all else self.rows[:MAX_SHOWN_ROWS]

    @property
    def hidden_count(self) -> int:
        """Return how many rows the page does not show."""
        return len(self.rows) - len(self.shown)


@dataclass(frozen=True, slots=True)
class DecidePage:
    """Everything that the decision page shows."""

    query: DecideQuery
    pool: CandidatePool
    decision: Decision
    rows: tuple[DecideRow, ...]
    runs: tuple[Run, ...]

    @property
    def kept(self) -> tuple[DecideRow, ...]:
        """Return the rows that the rule does not refuse."""
        return tuple(row for row in self.rows if row.standing.state != REFUSED)

    @property
    def refused(self) -> tuple[DecideRow, ...]:
        """Return the rows that the rule refuses."""
        return tuple(row for row in self.rows if row.standing.state == REFUSED)

    @property
    def tables(self) -> tuple["DecideTable", ...]:
        """Return the tables of the page that have rows: configurations that are not refused, and refused ones."""
        kept = DecideTable("Configurations that are not refused", self.kept, self.query.shows_all)
        refused = DecideTable("Refused configurations", self.refused, self.query.shows_all)
        return kept, refused

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


def get_decide_page(query: DecideQuery) -> DecidePage:
    """Return the decision page with eight queries, whatever the number of runs."""
    pool = get_candidate_pool(query)
    query = query.with_default_want(priced=any(candidate.measured.cost for candidate in pool.candidates))
    decision = choose_config((candidate.measured for candidate in pool.candidates), query.rule)
    by_key = {candidate.measured.key: candidate for candidate in pool.candidates}
    rows = tuple(_build_row(standing, by_key[standing.measured.key], decision) for standing in decision.assessments)
    kept = Run.objects.filter(deleted_at=None, imported=False, simulated=query.demo)
    return DecidePage(query, pool, decision, rows, list_run_choices(kept, query.runs))


def _build_row(standing: Assessment, candidate: Candidate, decision: Decision) -> DecideRow:
    measured = standing.measured
    return DecideRow(
        standing=standing,
        candidate=candidate,
        delivered=build_pooled_rate(
            measured.delivered, measured.tried, measured.delivered_pool, withheld=measured.repeating
        ),
        given=build_pooled_rate(
            measured.passed, measured.answered, measured.answered_pool, withheld=measured.repeating
        ),
        figure=get_target_figure(standing, decision.rule),
        on_front=measured.key in decision.front,
        leads=standing is decision.leader,
    )
