"""Schemas of runs: the list, one run, its plan and what may be sent to change it."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from toolbench.api.documents.figures import (
    MAX_PAGE_SIZE,
    AgreedBody,
    BodySchema,
    CountsDocument,
    Id,
    QuantileDocument,
    QuerySchema,
    RangeDocument,
    RateDocument,
)
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Run
from toolbench.lab.planning.run_request import MAX_CAP
from toolbench.lab.results.run.page import ConfigRow

Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=2_000)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Cap = Annotated[int, Field(ge=1, le=MAX_CAP)]
Method = Literal["auto", "native", "text_json", "template", "constrained"]
State = Literal["running", "paused", "cancelling", "cancelled", "finished"]


class RunQuery(QuerySchema):
    """Which runs to list.

    Attributes:
        kind: own, simulated, imported or all runs.
        label: only runs with this label.
        cursor: `next` of the page before.
    """

    kind: Literal["own", "simulated", "imported", "all"] = "all"
    label: Annotated[str, Field(max_length=80)] = ""
    cursor: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = 50


class RunDocument(Schema):
    """A run.

    Attributes:
        stopped_reason: why it is paused or was cancelled; "" otherwise.
        purpose: what started it: "", api, cli, aa, confirm and others.
        until: the rule of sequential stopping; {} for a fixed number of trials.
        repeat_of: the run that this one repeats.
        skipped: what was asked for and left out, with the reason.
    """

    id: int
    title: str
    label: str
    state: State
    stopped_reason: str
    simulated: bool
    imported: bool
    purpose: str
    owner: str
    instance_kind: str
    seed: int
    trials_per_cell: int
    trial_count: int
    until: JsonObject
    request_cap: int | None
    token_cap: int | None
    requests_reserved: int
    tokens_used: int
    deadline_seconds: float
    repeat_of: int | None
    skipped: list[JsonObject]
    engine_version: str
    created_at: datetime
    finished_at: datetime | None
    url: str

    @staticmethod
    def resolve_owner(run: Run) -> str:
        """Return the name of the account that launched it."""
        return run.owner.username if run.owner else ""

    @staticmethod
    def resolve_repeat_of(run: Run) -> int | None:
        """Return the primary key of the repeated run."""
        return run.repeat_of_id

    @staticmethod
    def resolve_url(run: Run) -> str:
        """Return the path of its page."""
        return f"/runs/{run.pk}/"


class RunSummaryDocument(Schema):
    """A run of the list with its sums over all scenarios, and rates over those that are no controls."""

    run: RunDocument
    models: list[str]
    counts: CountsDocument
    answered: RateDocument | None
    delivered: RateDocument | None


class RunListDocument(Schema):
    """A page of runs, newest first; `next` is the cursor of the page after."""

    items: list[RunSummaryDocument]
    next: int | None


class CellDocument(Schema):
    """One configuration in one scenario."""

    cell_id: int
    scenario: str
    control: bool
    counts: CountsDocument = Field(validation_alias="tally")
    answered: RateDocument
    p50_ms: QuantileDocument | None
    p95_ms: QuantileDocument | None
    decided: str

    @staticmethod
    def resolve_p50_ms(row: Any) -> Any:
        """Return the median duration."""
        return row.times.p50

    @staticmethod
    def resolve_p95_ms(row: Any) -> Any:
        """Return the 95th percentile of the duration."""
        return row.times.p95


class ConfigDocument(Schema):
    """A configuration of a run with its figures on one group of scenarios."""

    id: int
    provider: str
    model: str
    profile: str
    strategy: str
    method: str
    examples: str
    stream: bool
    group: str
    counts: CountsDocument
    answered: RateDocument
    delivered: RateDocument
    cells: list[CellDocument]


def build_config(row: ConfigRow) -> dict[str, Any]:
    """Return the values of a ConfigDocument."""
    config = row.config
    names = ("profile", "strategy", "method", "examples", "stream")
    return {name: getattr(config, name) for name in names} | {
        "id": config.pk,
        "provider": config.provider_name,
        "model": config.model_name,
        "group": row.group,
        "counts": row.tally,
        "answered": row.answered,
        "delivered": row.delivered,
        "cells": row.scenarios,
    }


class FailureGroupDocument(Schema):
    """Failures of a run with one signature.

    Attributes:
        exemplar: a trial of the group.
    """

    sentence: str
    failure_class: str
    scenario: str
    outcome: str = Field(validation_alias="mark")
    count: int
    exemplar: int


class RunDetailDocument(Schema):
    """A run with its configurations, cells and failures.

    Attributes:
        live: whether it goes on, so that its figures change.
        retryable: trials that `retry` would queue again.
        resumable: cancelled trials that `resume-cancelled` would queue again.
        seconds_left: the time left at the pace of the last minutes.
    """

    run: RunDocument
    live: bool
    counts: CountsDocument
    configs: list[ConfigDocument]
    failures: list[FailureGroupDocument]
    retryable: int
    resumable: int
    seconds_left: float | None


class ConfigBody(BodySchema):
    """One configuration of a request."""

    model: Id
    profile: Name = "default"
    strategy: Name = "production"
    method: Method = "native"
    examples: Annotated[str, Field(max_length=80)] = ""
    stream: bool = False


class PlanBody(BodySchema):
    """What a run is to try: the cross product of the lists, or exactly `configs` where they are given.

    Attributes:
        models: ids of models, as GET /models lists them.
        scenarios: slugs, or `set:` and the name of a set of test cases.
        until: rule of sequential stopping: rule, rate, target, width, error.
        overrides: a patch above every preset: {"max_turns": 6}.
        seed: equal requests with an equal seed plan equal trials.
        jobs: simultaneous trials at one provider, within its own limit.
        enforce_applicability: leave out profiles that do not apply to a model.
    """

    title: Annotated[str, Field(max_length=200)] = ""
    models: Annotated[list[Id], Field(max_length=500)] = []
    profiles: Names = ["default"]
    strategies: Names = ["production"]
    methods: Annotated[list[Method], Field(max_length=10)] = ["native"]
    examples: Annotated[list[Annotated[str, Field(max_length=80)]], Field(max_length=20)] = [""]
    streams: Annotated[list[bool], Field(max_length=2)] = [False]
    scenarios: Names = []
    trials: Annotated[int, Field(ge=1, le=2_000)] = 10
    until: JsonObject = {}
    instance_kind: Literal["parity", "drawn"] = "parity"
    tool_use_mode: Literal["enforced", "relaxed", "disabled"] = "enforced"
    tool_failure_policy: Literal["fatal", "tolerated"] = "fatal"
    tool_allowlist: Names = []
    tool_denylist: Names = []
    overrides: JsonObject = {}
    request_cap: Cap | None = None
    token_cap: Cap | None = None
    deadline_seconds: Seconds | None = None
    connect_seconds: Seconds | None = None
    read_seconds: Seconds | None = None
    jobs: Annotated[int, Field(ge=1, le=1_000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    enforce_applicability: bool = True
    probe_unknown: bool = True
    configs: Annotated[list[ConfigBody], Field(max_length=500)] = []


class LaunchBody(PlanBody, AgreedBody):
    """What a run is to try, and how many paid requests are confirmed for it."""

    model_config = ConfigDict(extra="forbid", strict=True, title="LaunchBody")


class SkippedDocument(Schema):
    """A requested item that is left out, and why."""

    what: str
    why: str


class PlannedConfigDocument(Schema):
    """A configuration as it would be frozen."""

    model: str = Field(validation_alias="model_name")
    provider: str = Field(validation_alias="provider_name")
    profile: str
    strategy: str
    method: str
    examples: str
    stream: bool


class EstimateDocument(Schema):
    """Expected requests, tokens, cost in dollars and time in seconds; null is unknown.

    Attributes:
        unseen: cells without similar earlier trials, of all `cells`.
        unpriced: models without a price, which `cost` leaves out.
        sources: what the ranges are based on.
    """

    requests: RangeDocument | None
    tokens: RangeDocument | None
    cost: RangeDocument | None
    seconds: RangeDocument | None
    unpriced: list[str]
    sources: list[str]
    cells: int
    unseen: int


class PlanDocument(Schema):
    """What a launch would write. Nothing was written or sent.

    Attributes:
        paid_requests: the most paid requests by the provider's name.
        agreed: the number to send as `agreed`; 0 where no confirmation is needed.
        detectable_points: the smallest difference of two configurations that the trials detect, in percentage points.
    """

    configs: list[PlannedConfigDocument]
    cells: int
    skipped: list[SkippedDocument]
    trials: int
    least_trials: int
    least_requests: int
    most_requests: int
    paid_requests: dict[str, int]
    agreed: int
    estimate: EstimateDocument | None
    detectable_points: int | None


class LimitsBody(BodySchema):
    """Limits of a paused run; null for none."""

    request_cap: Cap | None
    token_cap: Cap | None


class AddTrialsBody(AgreedBody):
    """How many repeats to add to a cell."""

    count: Annotated[int, Field(ge=1, le=1_000)]


class RepeatBody(AgreedBody):
    """How to repeat a run: with the same seeds, or with new sampling seeds (A/A)."""

    kind: Literal["same", "aa"] = "same"


class LabelBody(BodySchema):
    """The label of a run; "" removes it."""

    label: Annotated[str, Field(max_length=80)]


class FrozenQuery(QuerySchema):
    """Which configuration of the run, and the scenario whose own layer is applied last."""

    config: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    scenario: Annotated[str, Field(max_length=80)] = ""


class FrozenSettingDocument(Schema):
    """A setting with its value and the policy layer that set it."""

    key: str
    value: Any
    origin: str


class FrozenSettingsDocument(Schema):
    """Settings of a configuration as frozen when its run started.

    Attributes:
        chosen: those that some layer sets; `defaults`: those of the engine.
    """

    config: int
    scenario: str
    chosen: list[FrozenSettingDocument]
    defaults: list[FrozenSettingDocument]
