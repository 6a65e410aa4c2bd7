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
    """Which results: runs, models, profiles, strategies, scenarios and days.

    Attributes:
        run: ids of runs, with commas between or several times.
        after, before: days on which runs began; `upto`: the newest run.
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
    """Scope and filters of the matrix.

    Attributes:
        scope: without it, own runs if there are any, else the published figures.
        metric: a name that GET /metrics lists; its value is one of the columns in any case.
        q: part of the model's name; `group`: a group of scenarios; `prompt`: a version, or `each`.
    """

    scope: Literal["real", "runs", "demo", "imported", "published"] | None = None
    metric: Text = ""
    target: Literal["80", "90", "95"] = "90"
    q: Text = ""
    group: Text = ""
    prompt: Text = ""


class FailuresParameters(ChosenQuery):
    """Scope of the failures."""

    scope: Literal["real", "demo"] = "real"


class LatencyParameters(QuerySchema):
    """Which times of a run, and of which group of scenarios."""

    metric: Literal["trial", "working", "first_byte", "first_token", "first_call", "model", "tool"] = "trial"
    group: Text = ""


class TableDocument(Schema):
    """A table as the exports of the pages have it.

    Attributes:
        rows: one value for each column, in a few columns a list; null is unknown, never 0.
    """

    title: str
    notes: list[str]
    columns: list[str]
    rows: list[list[Any]]


def build_table(table: ExportTable) -> dict[str, Any]:
    """Return the values of a TableDocument."""
    return {name: getattr(table, name) for name in TableDocument.model_fields}


class MatrixDocument(Schema):
    """The matrix: a row for each model with its settings.

    Attributes:
        warnings: what limits the comparison of the rows.
    """

    scope: str
    target: int
    groups: list[str]
    warnings: list[str]
    table: TableDocument


class MetricDocument(Schema):
    """A metric and what it counts."""

    name: str
    label: str
    denominator: str


class ChangedInstanceDocument(Schema):
    """An instance whose outcome changed, with one trial on each side."""

    fate: Literal["regressed", "fixed"]
    scenario: str
    instance: int
    first: int
    second: int


class ComparisonDocument(Schema):
    """The comparison of two sides.

    Attributes:
        comparable: whether the sides share a stratum and no trial.
        how: paired or stratified.
        noise: fraction by which equal sides of this size differ at most in 95 of 100 comparisons.
        needed_trials: trials of each side that detect `points`.
        table: a row for the whole, then one for each scenario and metric of calls.
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


class FailureDocument(Schema):
    """Failures of one cause, scenario and place.

    Attributes:
        exemplar: the first trial; `nearest`: the nearest trial that passed.
        trials: query string of GET /trials that lists them.
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
    """A cause with the number of failed trials, and their query string for GET /trials."""

    cause: str
    count: int
    trials: str


class FailuresDocument(Schema):
    """Failures by cause and in groups, the largest first.

    Attributes:
        version: of the table of causes.
    """

    version: int
    causes: list[CauseDocument]
    groups: list[FailureDocument]


class LatencyRowDocument(Schema):
    """Times of one configuration in milliseconds.

    Attributes:
        local: whether the model shares the machine with Toolbench.
        saturated: trials measured while this machine was saturated.
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
    """Which trials to replay, and with which settings; exactly one of trial, cell and run.

    Attributes:
        presets: laid over all layers but the scenario's.
        without: transforms and repairs to leave out.
        ablate: replay also with each transform left out in turn.
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
    """The outcome of a trial before and after.

    Attributes:
        after: an outcome, or unknown.
        unknown_from: number of the first unknown step.
    """

    trial: int
    scenario: str
    index: int
    before: str
    after: str
    unknown_from: int | None
    why: str


class AblationDocument(Schema):
    """The replay without one transform or repair; `name` is all where every one is left out."""

    name: str
    sentence: str
    changed: list[int]
    unsure: int


class WhatIfDocument(Schema):
    """What other settings would change. No request was sent.

    Attributes:
        waiting: whether a worker still replays; send the same request again.
        refused: why the trials cannot be replayed; "" if they can.
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
    """A trial whose outcome changed when it was judged again."""

    trial: int
    before: str
    after: str
    judged_at: datetime


class RejudgingDocument(Schema):
    """Stored trials that were judged again by the current scenarios and rules.

    Attributes:
        waiting: whether a worker still judges them.
    """

    waiting: bool
    sentence: str
    changes: list[JudgementDocument]
