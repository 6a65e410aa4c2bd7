"""Schemas of the matrix, comparisons, failures, latency and replays."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from toolbench.api.documents.figures import BodySchema, Id, QuantileDocument, QuerySchema, RateDocument
from toolbench.api.documents.trials import Day, Text, Texts, Whole
from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.replays.what_if_settings import MAX_LIMIT

RunIds = Annotated[list[Annotated[str, Field(pattern=r"^[0-9]{1,18}(,[0-9]{1,18})*$")]], Field(max_length=50)]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


class ChosenQuery(QuerySchema):
    """Filter of results by runs, models, profiles, strategies, scenarios and days.

    Attributes:
        run: ids of runs, separated by commas or as several parameters.
        after: first day on which a run was created.
        before: last day on which a run was created.
        upto: id of the newest run.
    """

    run: RunIds = []
    model: Texts = []
    profile: Texts = []
    strategy: Texts = []
    scenario: Texts = []
    after: Day | None = None
    before: Day | None = None
    upto: Whole | None = None


class MatrixParameters(ChosenQuery):
    """Scope and filter of the matrix.

    Attributes:
        scope: without it, own runs if there are any, else the published figures.
        metric: name of a metric that GET /metrics lists; the table has the columns of all metrics.
        q: part of the model's name.
        group: name of a group of scenarios.
        prompt: version of a scenario's prompt, or `each`.
    """

    scope: Literal["real", "runs", "demo", "imported", "published"] | None = None
    metric: Text = ""
    target: Literal["80", "90", "95"] = "90"
    q: Text = ""
    group: Text = ""
    prompt: Text = ""


class FailuresParameters(ChosenQuery):
    """Scope and filter of the failures."""

    scope: Literal["real", "demo"] = "real"


class LatencyParameters(QuerySchema):
    """Choice of the measured time and of a group of scenarios."""

    metric: Literal["trial", "working", "first_byte", "first_token", "first_call", "model", "tool", "backoff"] = "trial"
    group: Text = ""


class TableDocument(Schema):
    """Table, equal to the export of a page.

    Attributes:
        rows: rows with one value for each column. A few columns have lists. An unknown value is null.
    """

    title: str
    notes: list[str]
    columns: list[str]
    rows: list[list[Any]]


def build_table(table: ExportTable) -> dict[str, Any]:
    """Return the values of a TableDocument."""
    return {name: getattr(table, name) for name in TableDocument.model_fields}


class MatrixDocument(Schema):
    """Matrix, with one row for each configuration.

    Attributes:
        target: target of the success rate in percent.
        groups: names of the groups of scenarios.
        warnings: sentences about limits of a comparison of the rows.
    """

    scope: str
    target: int
    groups: list[str]
    warnings: list[str]
    table: TableDocument


class MetricDocument(Schema):
    """Metric with its denominator in words."""

    name: str
    label: str
    denominator: str


class ChangedInstanceDocument(Schema):
    """Instance with a changed outcome, and the id of a trial of each side."""

    fate: Literal["regressed", "fixed"]
    scenario: str
    instance: int
    first: int
    second: int


class ComparisonDocument(Schema):
    """Comparison of two sides.

    Attributes:
        comparable: whether the sides have a stratum in common and no trial.
        shared_trials: number of trials that belong to both sides.
        how: paired or stratified.
        noise: A/A noise: difference, as a fraction, that 95 % of comparisons of equal sides of this size stay below.
        points: difference in percentage points that `needed_trials` can detect.
        needed_trials: number of trials of each side that detects `points`.
        more_trials: number of trials that each side lacks for it.
        table: a row for all scenarios, then rows for each scenario and each metric of calls.
    """

    names: list[str]
    comparable: bool
    shared_trials: int
    metric: str
    how: str
    noise: float
    points: int
    needed_trials: int
    more_trials: int
    warnings: list[str]
    changed: list[ChangedInstanceDocument]
    table: TableDocument


class SidesDocument(Schema):
    """The comparison of three sides or more with the first one.

    Attributes:
        comparisons: differences that are shown together; each interval is simultaneous over so many.
        needed_trials: trials of each side that detect `points`.
        more_trials: trials that the smallest side still lacks.
        table: a row for each side, the baseline first.
    """

    baseline: str
    names: list[str]
    metric: str
    comparisons: int
    points: int
    needed_trials: int
    more_trials: int
    warnings: list[str]
    table: TableDocument


class FailureDocument(Schema):
    """Failure group.

    Attributes:
        exemplar: id of its first trial.
        nearest: id of a passed trial to compare with, if possible of the same cell and instance; null without one.
        trials: query string with which GET /trials lists the group.
    """

    signature: str
    cause: str
    scenario: str
    version: int
    place: str
    count: int
    runs: int
    sentence: str
    exemplar: int
    nearest: int | None
    trials: str


class CauseDocument(Schema):
    """Cause with the number of its failed trials; `trials` is the query string with which GET /trials lists them."""

    cause: str
    count: int
    trials: str


class FailuresDocument(Schema):
    """Failures by cause and in groups, the largest first.

    Attributes:
        version: version of the table of causes.
    """

    version: int
    causes: list[CauseDocument]
    groups: list[FailureDocument]


class LatencyRowDocument(Schema):
    """Times of one configuration in milliseconds.

    Attributes:
        local: whether the model runs on the machine of Toolbench.
        saturated: number of trials with event-loop lag, whose times include delays of Toolbench.
    """

    config_id: int
    label: str
    provider: str
    local: bool
    n: int
    p50: QuantileDocument
    p95: QuantileDocument
    p99: QuantileDocument
    saturated: int


class LatencyDocument(Schema):
    """Times of a run by configuration."""

    run: int
    metric: str
    group: str
    groups: list[str]
    rows: list[LatencyRowDocument]


class WhatIfBody(BodySchema):
    """Trials to replay, named by exactly one of trial, cell and run, and the settings of the replay.

    Attributes:
        presets: presets applied after all layers except the scenario's.
        without: names of transforms and repairs to leave out.
        ablate: whether to replay also without each transform.
    """

    trial: Id | None = None
    cell: Id | None = None
    run: Id | None = None
    strategy: Text = ""
    presets: Texts = []
    without: Texts = []
    text_format: Text = ""
    max_turns: Limit | None = None
    max_tool_calls_per_turn: Limit | None = None
    max_tool_args_bytes: Limit | None = None
    max_tool_output_bytes: Limit | None = None
    ablate: bool = False


class ChangeDocument(Schema):
    """Changed outcome of a trial.

    Attributes:
        after: trial outcome, or `unknown` if the replay needs an answer that is not stored.
        unknown_from: number of the first step without a stored answer; null if all are stored.
    """

    trial: int
    scenario: str
    index: int
    before: str
    after: str
    unknown_from: int | None
    why: str


class AblationDocument(Schema):
    """Replay without one transform or repair; `name` is `all` for the replay without any of them.

    Attributes:
        changed: ids of trials with a changed outcome.
        unsure: number of trials with an unknown outcome.
    """

    name: str
    sentence: str
    changed: list[int]
    unsure: int


class WhatIfDocument(Schema):
    """Result of a replay with other settings.

    Attributes:
        waiting: whether a worker still replays trials; send the same request again.
        refused: why the trials cannot be replayed; "" if they can.
        before: success rate with the stored outcomes.
        after_least: success rate if every trial with an unknown outcome fails.
        after_most: success rate if every trial with an unknown outcome passes.
    """

    trials: int
    waiting: bool
    refused: str
    sentence: str
    before: RateDocument | None
    after_least: RateDocument | None
    after_most: RateDocument | None
    changes: list[ChangeDocument]
    ablations: list[AblationDocument]


class JudgementDocument(Schema):
    """Trial whose outcome changed when it was re-judged."""

    trial: int
    before: str
    after: str
    judged_at: datetime


class RejudgingDocument(Schema):
    """Result of re-judging the trials of a run by the current scenarios and rules.

    Attributes:
        waiting: whether a worker is still re-judging trials.
    """

    waiting: bool
    sentence: str
    changes: list[JudgementDocument]
