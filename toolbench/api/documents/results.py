"""Schemas of the matrix, comparisons, failures, latency and replays."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from toolbench.api.documents.figures import BodySchema, Id, QuantileDocument, QuerySchema, RateDocument
from toolbench.api.documents.trials import Day, Text, Texts, WholeNumber
from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.replays.what_if_settings import MAX_LIMIT

RunIds = Annotated[list[Annotated[str, Field(pattern=r"^[0-9]{1,18}(,[0-9]{1,18})*$")]], Field(max_length=50)]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


class ChosenQuery(QuerySchema):
    """Filter of results by runs, models, profiles, strategies, scenarios and days.

    Attributes:
        run: ids of runs, separated by commas or as several parameters.
        after: day (UTC) on or after which the runs were created.
        before: day (UTC) on or before which the runs were created.
        upto: highest id of a run.
    """

    run: RunIds = []
    model: Texts = []
    profile: Texts = []
    strategy: Texts = []
    scenario: Texts = []
    after: Day | None = None
    before: Day | None = None
    upto: WholeNumber | None = None


class MatrixParameters(ChosenQuery):
    """Scope and filter of the matrix.

    Attributes:
        scope: `real` for measured runs of this installation (not simulated, not imported), `runs` for those in `run`,
            `demo` for simulated and `imported` for imported runs, `published` for the figures of the case study.
            Without it, the runs in `run`; without these, `real` if there are such runs, else `published`.
        metric: name of a metric that GET /metrics lists; the table has the columns of all metrics.
        target: target of the success rate in percent.
        q: part of the model's name.
        group: name of a group of scenarios; "" for the default.
        prompt: version of a scenario's prompt, or `each`.
        ids: whether the table has the column `runs` with the ids of the runs of a row, which may be thousands.
    """

    scope: Literal["real", "runs", "demo", "imported", "published"] | None = None
    metric: Text = ""
    target: Literal["80", "90", "95"] = "90"
    q: Text = ""
    group: Text = ""
    prompt: Text = ""
    ids: bool = False


class FailuresParameters(ChosenQuery):
    """Filter of failures in measured runs (`real`: not simulated or imported) or simulated runs (`demo`)."""

    scope: Literal["real", "demo"] = "real"


class LatencyParameters(QuerySchema):
    """Choice of the measured time and of a group of scenarios.

    Attributes:
        metric: `trial` for the whole trial; `working` for the trial without back-off; `model`, `tool` or `backoff` for
            the sum of these parts; `first_byte`, `first_token` or `first_call` for the time until then.
        group: name of a group of scenarios; "" for the default.
    """

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


def build_table(table: ExportTable, *, without: str = "") -> dict[str, Any]:
    """Return the values of a TableDocument, without the column `without` if the table has it."""
    indexes = [index for index, name in enumerate(table.columns) if name != without]
    columns = [table.columns[index] for index in indexes]
    rows = [[row[index] for index in indexes] for row in table.rows]
    return {"title": table.title, "notes": table.notes, "columns": columns, "rows": rows}


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
    """Instance whose outcome differs between the sides.

    Attributes:
        instance: seed of the instance.
        first: id of a trial of the first side.
        second: id of a trial of the second side.
    """

    fate: Literal["regressed", "fixed"]
    scenario: str
    instance: int
    first: int
    second: int


class ComparisonDocument(Schema):
    """Comparison of two sides.

    Attributes:
        comparable: whether the sides have a comparison stratum in common, but no trial.
        shared_trials: number of trials that belong to both sides.
        how: how the rates are compared: `paired` by instance, or `stratified`: stratum by stratum.
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
        signature: stored text by which failures of the scenario are grouped.
        version: version of the scenario.
        place: JSON path and turn of the failures, as in `signature`.
        count: number of trials.
        runs: number of runs.
        sentence: the first problem of the trial `exemplar`.
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
    """Cause of failures.

    Attributes:
        cause: cause code.
        count: number of failed trials in the newest version of each scenario.
        trials: query string with which GET /trials lists them.
    """

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
        config_id: id of the configuration.
        label: model, and the settings in which the rows differ.
        n: number of times.
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
    """Times of a run by configuration.

    Attributes:
        run: id of the run.
        metric: name of the measured time.
        group: group of the scenarios whose times are counted; "" if there are none.
        groups: names of all groups of the run's scenarios.
    """

    run: int
    metric: str
    group: str
    groups: list[str]
    rows: list[LatencyRowDocument]


class WhatIfBody(BodySchema):
    """Trials to replay, named by the id of exactly one trial, cell or run, and the settings of the replay.

    Attributes:
        strategy: name of a strategy or preset; "" keeps the strategy of the run.
        presets: presets applied after all layers except the scenario's.
        without: names of transforms and repairs to leave out.
        text_format: name of a text format; "" keeps the text format of the run.
        ablate: whether to replay also without each transform and repair.
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
    """Outcome of a trial with the stored settings and with those of the replay. It may be the same.

    Attributes:
        trial: id of the trial.
        index: number of the repeat within its cell, from 1.
        before: stored outcome.
        after: outcome of the replay; `unknown` if the replay needs an answer that is not stored.
        unknown_from: number of the first step without a stored answer; null if all are stored.
        why: why the outcome is unknown or the trial was never sent; else the sentence of the new verdict.
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
        sentence: its outcomes compared with the stored ones, in words.
        changed: ids of trials whose outcome is another one than with all transforms and repairs.
        unsure: number of trials whose outcome is unknown in only one of these two replays.
    """

    name: str
    sentence: str
    changed: list[int]
    unsure: int


class WhatIfDocument(Schema):
    """Result of a replay with other settings.

    Attributes:
        trials: number of trials.
        waiting: whether a worker has not finished the replay; send the same request again to get the result.
        refused: why the trials cannot be replayed; "" if they can.
        sentence: the outcomes in words; without a result, why there is none, or "".
        before: answered success with the stored outcomes; null without a result.
        after_least: answered success if every trial with an unknown outcome failed; null likewise.
        after_most: answered success if every trial with an unknown outcome passed; null likewise.
        changes: changed outcomes, then unknown ones, then those that are the same. A worker stores only the first 500
            changed and unknown ones.
        ablations: replays without transforms and repairs; [] if they were not requested.
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
    """Trial whose outcome changed when it was re-judged.

    Attributes:
        trial: id of the trial.
        before: outcome by the first verdict.
        after: outcome by the current verdict.
        judged_at: time of the current verdict.
    """

    trial: int
    before: str
    after: str
    judged_at: datetime


class RejudgingDocument(Schema):
    """Result of re-judging the trials of a run by the current scenarios and rules.

    Attributes:
        waiting: whether the last re-judging by a worker is queued, is running or has failed.
        sentence: the result of this request in words; "" for a list.
        changes: up to 200 trials whose outcome changed.
    """

    waiting: bool
    sentence: str
    changes: list[JudgementDocument]
