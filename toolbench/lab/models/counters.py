"""Counted figures of cells: the column, its SQL, the sum over cells and the explanation derive from one line each.

A new figure needs a line in `CellCounts`, or in `TrialCounts` if it sums a trial's column, and a migration. A trial's
column also needs the code that computes it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models

ModelType = TypeVar("ModelType", bound=type[models.Model])
IntegerColumn = models.PositiveIntegerField


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSpec:
    """How a figure is counted over the trials of a cell.

    Attributes:
        help: what is counted, for readers.
        expression: SQL over the rows of metrics/sql/recompute_cells.sql; "" sums the trial column of the same name.
        in_range: True for numbers of trials, which fit their column whatever a trial says; False for sums.
        column: class of the cell's column.
    """

    help: str
    expression: str
    in_range: bool
    column: "type[models.Field[Any, Any]]" = IntegerColumn


def count(help_text: str, where: str) -> Any:
    """Declare a number of trials that meet an SQL condition."""
    return _declare(CounterSpec(help=help_text, expression=f"count(*) FILTER (WHERE {where})", in_range=True))


def total(help_text: str, expression: str = "", column: "type[models.Field[Any, Any]]" = IntegerColumn) -> Any:
    """Declare a sum over trials.

    Without an expression, the trials' column of the same name is summed over trials that ended.
    """
    return _declare(CounterSpec(help=help_text, expression=expression, in_range=False, column=column))


def _declare(spec: CounterSpec) -> Any:
    return field(default=0, metadata={"counter": spec})


def _add_spending(name: str) -> str:
    """Return the SQL that adds what lost executions spent to what the trials say."""
    return f"sum(tried.{name} + coalesce(spent.{name}, 0))"


def _sum_dollars(expression: str, where: str) -> str:
    """Return the SQL that sums a figure of `paid` over the trials that meet a condition."""
    return f"coalesce(sum({expression}) FILTER (WHERE {where}), 0)"


_TRIED = "outcome IN ('pass', 'fail', 'infra')"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCounts:
    """Counters that a trial has a column for; the column of a cell is their sum over trials that ended."""

    calls: int = total("Tool calls")
    valid_calls: int = total("Tool calls that match the tool's schema")
    structured_answers: int = total("Answers with structured tool calls")
    calling_answers: int = total("Answers with tool calls, structured or in text")
    parse_error_turns: int = total("Turns with a call that could not be read")
    calling_turns: int = total("Turns with a call, readable or not")
    repaired_calls: int = total("Calls that were readable only after a named repair")
    parse_error_ends: int = total("Turns that a parse error ended")
    fallback_turns: int = total("Turns asked by text JSON, which is deprecated")
    asked_again: int = total("Requests that quoted an error")
    failed_calls: int = total("Calls without a good result")
    missing_calls: int = total("Calls without a required property")
    type_calls: int = total("Calls with a value of a wrong type")
    enum_calls: int = total("Calls with a value outside its enum")
    range_calls: int = total("Calls with a value out of range")
    extra_calls: int = total("Calls with a property that the schema does not know")
    ignored_calls: int = total("Calls that were left aside")
    answered_turns: int = total("Turns with an answer")
    good_turns: int = total("Turns with an answer whose wire format has no fault")
    final_answers: int = total("Answers without a call")
    empty_finals: int = total("Blank answers after a tool's result")
    arguments_asked: int = total("Valid calls whose right arguments the task names")
    arguments_right: int = total("Valid calls with the right arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts(TrialCounts):
    """The counted figures of one cell, or their sums over several."""

    # trials by state and outcome
    queued: int = count("Trials that wait", "state = 'queued'")
    running: int = count("Trials in flight", "state = 'running'")
    passed: int = count("Passed trials", "outcome = 'pass'")
    failed: int = count("Failed trials", "outcome = 'fail'")
    infra: int = count("Trials that ended with an infrastructure error", "outcome = 'infra'")
    not_applicable: int = count("Trials that the endpoint cannot be given", "outcome = 'na'")
    cancelled: int = count("Cancelled trials", "outcome = 'cancelled'")
    deadline_failed: int = count(
        "Failed trials that the trial deadline stopped", "outcome = 'fail' AND \"end\" = 'DEADLINE_EXCEEDED'"
    )

    # verdicts
    parity_passed: int = count("Answered trials that pass the case study's rule", "answered AND parity_pass")
    parity_judged: int = count(
        "Answered trials that the case study has a rule for", "answered AND parity_pass IS NOT NULL"
    )
    behaviour_seen: int = count("Answered trials that show the scenario's behaviour", "answered AND behaviour_seen")
    behaviour_asked: int = count(
        "Answered trials of scenarios that look for a behaviour", "answered AND behaviour_seen IS NOT NULL"
    )
    distinct: int = _declare(
        CounterSpec(
            help="Distinct answers",
            expression="count(DISTINCT answer_hash) FILTER (WHERE answered AND answer_hash <> '')",
            in_range=True,
        )
    )
    first_attempt_passed: int = count(
        "Trials that passed without a retry after model output", "outcome = 'pass' AND output_retries = 0"
    )
    error_trials: int = count("Answered trials in which a call failed", "answered AND failed_calls > 0")
    recovered_trials: int = count("Trials that passed though a call failed", "outcome = 'pass' AND failed_calls > 0")
    called_rightly: int = count(
        "Answered trials in which a call was due and was made", "answered AND call_expected AND calling_answers > 0"
    )
    called_needlessly: int = count(
        "Answered trials in which no call was due and one was made",
        "answered AND NOT call_expected AND calling_answers > 0",
    )
    call_missed: int = count(
        "Answered trials in which a call was due and none was made",
        "answered AND call_expected AND calling_answers = 0",
    )
    rightly_silent: int = count(
        "Answered trials in which no call was due and none was made",
        "answered AND NOT call_expected AND calling_answers = 0",
    )
    added_by_hand: int = count("Trials that a person added", "added_by_hand")
    errors_retried: int = count("Trials that a person tried again after an error", "errors_retried > 0")
    late_passes: int = count(
        "Passed trials that a person tried again after an error", "errors_retried > 0 AND outcome = 'pass'"
    )
    saturated: int = count("Trials measured while the client lagged", "client_lag_ms > %(lag)s")

    # spending, lost executions included
    requests: int = total("HTTP requests, retries included", _add_spending("requests"))
    retries: int = total("Requests that were sent again", _add_spending("retries"))
    input_tokens: int = total("Input tokens", _add_spending("input_tokens"), models.PositiveBigIntegerField)
    output_tokens: int = total("Output tokens", _add_spending("output_tokens"), models.PositiveBigIntegerField)
    cached_tokens: int = total("Cached input tokens", "sum(cached_tokens)", models.PositiveBigIntegerField)
    reasoning_tokens: int = total("Reasoning tokens", "sum(reasoning_tokens)", models.PositiveBigIntegerField)

    # costs of trials that passed, failed or had an infrastructure error
    costs_reported: int = total(
        "Trials whose cost the provider reported", f"count(*) FILTER (WHERE {_TRIED} AND has_reported_cost)"
    )
    costs_known: int = total("Trials whose cost is known", f"count(*) FILTER (WHERE {_TRIED} AND dollars IS NOT NULL)")
    known_dollars: float = total("Dollars of the known costs", _sum_dollars("dollars", _TRIED), models.FloatField)
    squared_dollars: float = total(
        "Squares of the known costs", _sum_dollars("dollars * dollars", _TRIED), models.FloatField
    )
    delivered_dollars: float = total(
        "Dollars of trials that passed and were not tried again after an error",
        _sum_dollars("dollars", "outcome = 'pass' AND errors_retried = 0"),
        models.FloatField,
    )

    # over the stored steps of every execution: metrics/sql/retry_counts.sql
    answers_429: int = total("Answers of 429", "sum(noted.answers_429)")
    answers_5xx: int = total("Answers of 5xx", "sum(noted.answers_5xx)")
    trials_429: int = total("Trials with an answer of 429", "count(*) FILTER (WHERE noted.answers_429 > 0)")
    trials_5xx: int = total("Trials with an answer of 5xx", "count(*) FILTER (WHERE noted.answers_5xx > 0)")
    trials_retried: int = total("Trials in which a request was sent again", "count(*) FILTER (WHERE noted.retries > 0)")
    backoff_ms: float = total("Milliseconds waited before retries", "sum(noted.backoff_ms)", models.FloatField)
    trials_without_status: int = total(
        "Trials with an answer whose status is not stored", "count(*) FILTER (WHERE noted.without_status)"
    )


COUNTERS: dict[str, CounterSpec] = {field.name: field.metadata["counter"] for field in fields(CellCounts)}
TRIAL_COUNTERS = tuple(field.name for field in fields(TrialCounts))

# Bases of the models: they tell type checkers which attributes `add_count_columns` adds.
if TYPE_CHECKING:
    TrialColumns = TrialCounts
    CellColumns = CellCounts
else:
    TrialColumns = CellColumns = object


def add_count_columns(*names: str) -> Callable[[ModelType], ModelType]:
    """Return a decorator that adds the columns of these counters to a model."""

    def decorate(model: ModelType) -> ModelType:
        for name in names:
            model.add_to_class(name, COUNTERS[name].column(default=0))
        return model

    return decorate


def build_count_expressions(*, in_range: bool) -> dict[str, str]:
    """Return the SQL of each counter by its name: of numbers of trials, or of sums."""
    return {
        name: spec.expression or f"sum({name}) FILTER (WHERE counted)"
        for name, spec in COUNTERS.items()
        if spec.in_range == in_range
    }
