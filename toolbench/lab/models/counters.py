"""Counters of cells. A field of `CellCounts` declares the column of a counter, its SQL and its description.

A new counter needs a field in `CellCounts`, or in `TrialCounts` if it sums a column of trials, and a migration. A
column of trials also needs code that computes it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models

ModelType = TypeVar("ModelType", bound=type[models.Model])
IntegerColumn = models.PositiveIntegerField


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSpec:
    """Definition of a counter.

    Attributes:
        help: description of what is counted.
        expression: SQL aggregate over the trials of a cell, used in metrics/sql/recompute_cells.sql; "" for the sum of
            the trials' column of the same name over tried trials.
        counts_trials: True for a number of trials or answers that follows from columns of `trials` alone. It always
            fits its column, so it is computed even for a cell whose sums the database refuses. False for a sum over
            trials, which may be out of range, and for a number of trials that follows from costs or steps.
        column: class of the cell's column.
    """

    help: str
    expression: str
    counts_trials: bool
    column: "type[models.Field[Any, Any]]" = IntegerColumn


def _count_trials(help_text: str, where: str) -> Any:
    """Declare a counter of the trials that meet the SQL condition `where`."""
    return _declare_counter(
        CounterSpec(help=help_text, expression=f"count(*) FILTER (WHERE {where})", counts_trials=True)
    )


def _sum_trials(help_text: str, expression: str = "", column: "type[models.Field[Any, Any]]" = IntegerColumn) -> Any:
    """Declare a counter that is a sum over trials, or a number of trials that follows from costs or steps.

    Args:
        help_text: description of what is counted.
        expression: as in CounterSpec.
        column: class of the cell's column.
    """
    return _declare_counter(CounterSpec(help=help_text, expression=expression, counts_trials=False, column=column))


def _declare_counter(spec: CounterSpec) -> Any:
    return field(default=0, metadata={"counter": spec})


def _add_lost_spending(*names: str) -> str:
    """Return the SQL that sums columns of trials and the spending that they leave out (lost_spending.sql)."""
    return f"sum({' + '.join(f'trials.{name} + coalesce(spent.{name}, 0)' for name in names)})"


def _sum_dollars(expression: str, where: str) -> str:
    """Return the SQL that sums dollars over the trials that meet a condition; 0 without such a trial."""
    return f"coalesce(sum({expression}) FILTER (WHERE {where}), 0)"


_HASHED = "answered AND answer_hash <> ''"  # a trial that was refused before any answer has no hash
_ANSWER = "(instance, answer_hash)"  # `instance` is a column of metrics/sql/cell_trials.sql


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCounts:
    """Counters that are columns of a trial.

    A cell has their sums over the tried trials: those that passed, failed or had an infrastructure error.
    """

    calls: int = _sum_trials("Tool calls, without those refused for their size")
    valid_calls: int = _sum_trials("Tool calls that match the tool's schema without a repair")
    structured_answers: int = _sum_trials("Answers with structured tool calls")
    calling_answers: int = _sum_trials("Answers with a call, structured or in text, readable or not")
    parse_error_turns: int = _sum_trials("Turns with a call that was unreadable, or readable only after a repair")
    calling_turns: int = _sum_trials("Turns with a call, readable or not")
    repaired_calls: int = _sum_trials("Calls that were readable only after a repair")
    parse_error_ends: int = _sum_trials("Trials that ended because the provider could not read the model's output")
    fallback_turns: int = _sum_trials("Turns that requested calls as text JSON, which is deprecated")
    asked_again: int = _sum_trials("Re-prompts")
    failed_calls: int = _sum_trials("Calls whose result is an error")
    missing_calls: int = _sum_trials("Calls without a required property")
    type_calls: int = _sum_trials("Calls with a value of a wrong type")
    enum_calls: int = _sum_trials("Calls with a value that is not in the enum of the schema")
    range_calls: int = _sum_trials("Calls with a value out of range")
    extra_calls: int = _sum_trials("Calls with a property that the schema does not define")
    ignored_calls: int = _sum_trials("Calls that the loop dropped, such as those above the limit per turn")
    answered_turns: int = _sum_trials("Turns with an answer")
    good_turns: int = _sum_trials("Turns with an answer in which no cause was found, except harmless ones")
    final_answers: int = _sum_trials("Answers without a call")
    empty_finals: int = _sum_trials("Blank answers after a tool's result")
    arguments_asked: int = _sum_trials("Valid calls whose right arguments the task names")
    arguments_right: int = _sum_trials("Valid calls with the right arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts(TrialCounts):
    """The counters of one cell, or their sums over several cells."""

    # trials by state and outcome
    queued: int = _count_trials("Queued trials", "state = 'queued'")
    running: int = _count_trials("Trials in flight", "state = 'running'")
    passed: int = _count_trials("Passed trials", "outcome = 'pass'")
    failed: int = _count_trials("Failed trials", "outcome = 'fail'")
    infra: int = _count_trials("Trials that ended with an infrastructure error", "outcome = 'infra'")
    not_applicable: int = _count_trials("Trials that do not apply to the endpoint", "outcome = 'na'")
    cancelled: int = _count_trials("Cancelled trials", "outcome = 'cancelled'")
    deadline_failed: int = _count_trials(
        "Failed trials that the trial deadline stopped", "outcome = 'fail' AND \"end\" = 'DEADLINE_EXCEEDED'"
    )

    # verdicts
    parity_passed: int = _count_trials("Answered trials that pass the case study's rule", "answered AND parity_pass")
    parity_judged: int = _count_trials(
        "Answered trials that the case study has a rule for", "answered AND parity_pass IS NOT NULL"
    )
    behaviour_seen: int = _count_trials(
        "Answered trials that show the scenario's behaviour", "answered AND behaviour_seen"
    )
    behaviour_asked: int = _count_trials(
        "Answered trials of scenarios that look for a behaviour", "answered AND behaviour_seen IS NOT NULL"
    )
    distinct: int = _declare_counter(
        CounterSpec(
            help="Distinct answers",
            expression=f"count(DISTINCT answer_hash) FILTER (WHERE {_HASHED})",
            counts_trials=True,
        )
    )
    repeated_answers: int = _declare_counter(
        CounterSpec(
            help="Answers that repeat an earlier answer to the same instance",
            expression=f"count(*) FILTER (WHERE {_HASHED}) - count(DISTINCT {_ANSWER}) FILTER (WHERE {_HASHED})",
            counts_trials=True,
        )
    )
    first_attempt_passed: int = _count_trials(
        "Trials that passed without a further sample of the model", "outcome = 'pass' AND output_retries = 0"
    )
    error_trials: int = _count_trials("Answered trials in which a call failed", "answered AND failed_calls > 0")
    recovered_trials: int = _count_trials(
        "Trials that passed though a call failed", "outcome = 'pass' AND failed_calls > 0"
    )
    called_rightly: int = _count_trials(
        "Answered trials that needed a call and made one", "answered AND call_expected AND calling_answers > 0"
    )
    called_needlessly: int = _count_trials(
        "Answered trials that needed no call and made one",
        "answered AND NOT call_expected AND calling_answers > 0",
    )
    call_missed: int = _count_trials(
        "Answered trials that needed a call and made none",
        "answered AND call_expected AND calling_answers = 0",
    )
    rightly_silent: int = _count_trials(
        "Answered trials that needed no call and made none",
        "answered AND NOT call_expected AND calling_answers = 0",
    )
    added_by_hand: int = _count_trials("Trials that a user added", "added_by_hand")
    errors_retried: int = _count_trials("Trials that a user retried after an error", "errors_retried > 0")
    late_passes: int = _count_trials(
        "Passed trials that a user retried after an error", "errors_retried > 0 AND outcome = 'pass'"
    )
    saturated: int = _count_trials(
        "Trials with unreliable times, because the event loop lagged", "client_lag_ms > %(lag)s"
    )

    # spending of trials in any state, in all their executions
    requests: int = _sum_trials("HTTP requests, retries included", _add_lost_spending("requests"))
    retries: int = _sum_trials("Requests that were sent again", _add_lost_spending("retries"))
    input_tokens: int = _sum_trials("Input tokens", _add_lost_spending("input_tokens"), models.PositiveBigIntegerField)
    output_tokens: int = _sum_trials(
        "Output tokens", _add_lost_spending("output_tokens"), models.PositiveBigIntegerField
    )

    # tokens and costs of trials that passed, failed or had an infrastructure error
    tried_tokens: int = _sum_trials(
        "Input and output tokens of all executions",
        f"{_add_lost_spending('input_tokens', 'output_tokens')} FILTER (WHERE tried)",
        models.PositiveBigIntegerField,
    )
    cached_tokens: int = _sum_trials("Cached input tokens", column=models.PositiveBigIntegerField)
    reasoning_tokens: int = _sum_trials("Reasoning tokens", column=models.PositiveBigIntegerField)
    costs_reported: int = _sum_trials(
        "Trials whose cost the provider reported", "count(*) FILTER (WHERE tried AND has_reported_cost)"
    )
    costs_known: int = _sum_trials(
        "Trials whose cost is known", "count(*) FILTER (WHERE tried AND dollars IS NOT NULL)"
    )
    known_dollars: float = _sum_trials(
        "Dollars of the known costs", _sum_dollars("dollars", "tried"), models.FloatField
    )
    squared_dollars: float = _sum_trials(
        "Squares of the known costs", _sum_dollars("dollars * dollars", "tried"), models.FloatField
    )
    delivered_dollars: float = _sum_trials(
        "Dollars of trials that passed and were not retried after an error",
        _sum_dollars("dollars", "outcome = 'pass' AND errors_retried = 0"),
        models.FloatField,
    )

    # retries in every execution, from the stored steps (metrics/sql/retry_counts.sql)
    answers_429: int = _sum_trials("Answers with status 429", "sum(retry_counts.answers_429)")
    answers_5xx: int = _sum_trials("Answers with status 5xx", "sum(retry_counts.answers_5xx)")
    trials_429: int = _sum_trials(
        "Trials with an answer with status 429", "count(*) FILTER (WHERE retry_counts.answers_429 > 0)"
    )
    trials_5xx: int = _sum_trials(
        "Trials with an answer with status 5xx", "count(*) FILTER (WHERE retry_counts.answers_5xx > 0)"
    )
    trials_retried: int = _sum_trials(
        "Trials in which a request was sent again", "count(*) FILTER (WHERE retry_counts.retries > 0)"
    )
    backoff_ms: float = _sum_trials(
        "Milliseconds waited before retries", "sum(retry_counts.backoff_ms)", models.FloatField
    )
    trials_without_status: int = _sum_trials(
        "Trials with an answer whose status is not stored", "count(*) FILTER (WHERE retry_counts.without_status)"
    )


# Counters by the name of their column.
COUNTERS: dict[str, CounterSpec] = {field.name: field.metadata["counter"] for field in fields(CellCounts)}
TRIAL_COUNTERS = tuple(field.name for field in fields(TrialCounts))

# Base classes of Trial and Cell. They declare for type checkers the attributes that `add_count_columns` adds.
if TYPE_CHECKING:
    TrialColumns = TrialCounts
    CellColumns = CellCounts
else:
    TrialColumns = CellColumns = object


def add_count_columns(*names: str) -> Callable[[ModelType], ModelType]:
    """Return a class decorator that adds the columns of these counters to a model."""

    def decorate(model: ModelType) -> ModelType:
        for name in names:
            model.add_to_class(name, COUNTERS[name].column(default=0))
        return model

    return decorate


def build_count_expressions(*, counts_trials: bool) -> dict[str, str]:
    """Return the SQL of each counter by its name.

    Args:
        counts_trials: return the counters with this value of `CounterSpec.counts_trials`.
    """
    return {
        name: spec.expression or f"sum({name}) FILTER (WHERE tried)"
        for name, spec in COUNTERS.items()
        if spec.counts_trials == counts_trials
    }
