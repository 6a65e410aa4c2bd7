"""Decision rules, the measurements of configurations, and their assessments by a rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from toolbench.evals.statistics import Quantile
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.pooling import PooledRate, pool_samples

REFUSED, OPEN, TO_CONFIRM = "refused", "open", "confirm"
CHEAPEST, FASTEST, RELIABLE = "cheapest", "fastest", "reliable"
DECISION_GOALS = (CHEAPEST, FASTEST, RELIABLE)


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """The goal and the limits of a decision.

    Attributes:
        want: The goal, one of DECISION_GOALS.
        success: The end-to-end success required, in percent.
        within_ms: The largest p95 permitted, in milliseconds; None for no limit.
    """

    want: str = CHEAPEST
    success: float = 90.0
    within_ms: float | None = 20_000.0

    @property
    def target(self) -> float:
        """Return the end-to-end success required, as a fraction."""
        return self.success / 100

    @property
    def goal(self) -> str:
        """Return the goal as an adjective for sentences."""
        return "most reliable" if self.want == RELIABLE else self.want

    @property
    def uses_p95(self) -> bool:
        """Return whether the decision depends on p95."""
        return self.within_ms is not None or self.want == FASTEST


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A figure with the bounds of its 95 % interval, in the same unit.

    If several figures are compared, the intervals are wider, so that all of them hold at once at 95 %.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MeasuredConfig:
    """The measurements of a configuration.

    Attributes:
        key: A text that identifies the configuration.
        label: The name of the configuration on pages.
        passed: The number of trials that passed.
        tried: The number of trials that passed, failed or had an infrastructure error.
        answered: The number of trials that passed or failed, except failures by the trial deadline.
        times: The times of answered trials, in milliseconds.
        cost: US dollars per end-to-end success; None if the cost is not known.
        infra_errors: The failure classes of the infrastructure errors with their counts, the most frequent first.
        missing_scenarios: The names of scenarios that the decision counts and in which this configuration has no
            finished trial.
        is_local: Whether the model runs on this machine.
        has_repeated_answers: Whether a deterministic endpoint gave the same answer several times.
        added_manually: The number of trials added after results were seen.
        retried_passes: The number of trials that passed after a user had retried them because of an infrastructure
            error; they are no end-to-end successes.
        end_to_end_by_scenario: The end-to-end successes and trials of each scenario; empty if the scenarios are not
            known.
        answered_by_scenario: The passes and answered trials of each scenario; empty if the scenarios are not known.
        cost_from: The source of the cost, or the reason why it is not known.
        has_planned_trials: Whether some trials are from a run that was launched on the decision page, hence after
            results were seen.
        scenarios: The names of the scenarios, in the order of `end_to_end_by_scenario`.
    """

    key: str
    label: str
    passed: int
    tried: int
    answered: int
    times: Sequence[float] = ()
    cost: IntervalEstimate | None = None
    infra_errors: tuple[tuple[str, int], ...] = ()
    missing_scenarios: tuple[str, ...] = ()
    is_local: bool = False
    has_repeated_answers: bool = False
    added_manually: int = 0
    retried_passes: int = 0
    end_to_end_by_scenario: tuple[ScenarioSample, ...] = ()
    answered_by_scenario: tuple[ScenarioSample, ...] = ()
    cost_from: str = ""
    has_planned_trials: bool = False
    scenarios: tuple[str, ...] = ()

    @property
    def end_to_end_successes(self) -> int:
        """Return the number of end-to-end successes."""
        return self.passed - self.retried_passes

    @property
    def end_to_end_samples(self) -> tuple[ScenarioSample, ...]:
        """Return the end-to-end successes by scenario, or as one sample if the scenarios are not known."""
        return self.end_to_end_by_scenario or (ScenarioSample(self.end_to_end_successes, self.tried),)

    @cached_property
    def end_to_end_pool(self) -> PooledRate:
        """Return end-to-end success, pooled over scenarios."""
        return pool_samples(self.end_to_end_samples)

    @cached_property
    def answered_pool(self) -> PooledRate:
        """Return answered success, pooled over scenarios."""
        return pool_samples(self.answered_by_scenario or (ScenarioSample(self.passed, self.answered),))


@dataclass(frozen=True, slots=True)
class Reason:
    """A requirement that a configuration fails.

    Attributes:
        name: The name of the requirement.
        kind: OPEN, if more trials may decide; TO_CONFIRM, if the configuration has to be confirmed on new trials;
            REFUSED, for all other requirements.
        sentence: The reason in words.
    """

    name: str
    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class TrialShortfall:
    """The trials that a configuration lacks for a decision.

    Attributes:
        scenario_indices: The indices of the scenarios in `MeasuredConfig.end_to_end_samples`.
        per_scenario: The number of trials that each of these scenarios lacks.
    """

    scenario_indices: tuple[int, ...]
    per_scenario: int

    @property
    def total(self) -> int:
        """Return the number of trials that all these scenarios lack."""
        return self.per_scenario * len(self.scenario_indices)


@dataclass(frozen=True, slots=True)
class Assessment:
    """The result of applying a rule to a configuration.

    Attributes:
        low: The lower bound of end-to-end success, as a fraction.
        high: The upper bound of end-to-end success, as a fraction.
        answered_low: The lower bound of answered success, as a fraction.
        p95: The p95 in milliseconds, whose bounds may be open; None without times, and for models on this machine.
        reasons: The requirements that the configuration fails, in the order of REQUIREMENT_CHECKS.
        shortfall: The fewest trials that would decide all open reasons, if all of them are answered, with the observed
            success rates and times. None if no reason is open, or if no number of trials would decide.
    """

    measured: MeasuredConfig
    low: float
    high: float
    answered_low: float
    p95: Quantile | None
    reasons: tuple[Reason, ...] = ()
    shortfall: TrialShortfall | None = None

    @property
    def state(self) -> str:
        """Return `qualified` without reasons, else the first of REFUSED, OPEN and TO_CONFIRM that a reason has."""
        kinds = {reason.kind for reason in self.reasons}
        return next((kind for kind in (REFUSED, OPEN, TO_CONFIRM) if kind in kinds), "qualified")

    @property
    def missing_trial_count(self) -> int | None:
        """Return how many trials the configuration lacks in total; None without a shortfall."""
        return self.shortfall.total if self.shortfall else None
