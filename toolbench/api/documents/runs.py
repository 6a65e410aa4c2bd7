"""Schemas of runs: lists, one run, and the bodies of requests that plan, launch or change a run."""

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
    RateDocument,
)
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Run
from toolbench.lab.planning.run_request import MAX_RUN_LIMIT
from toolbench.lab.results.run.page import ConfigRow

Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=2_000)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
RunLimit = Annotated[int, Field(ge=1, le=MAX_RUN_LIMIT)]
Method = Literal["auto", "native", "text_json", "template", "constrained"]
State = Literal["running", "paused", "cancelling", "cancelled", "finished"]


class RunQuery(QuerySchema):
    """Filter of the list of runs, with its cursor.

    Attributes:
        label: label of the runs; "" for all.
        cursor: `next` of the previous page.
    """

    kind: Literal["own", "simulated", "imported", "all"] = "all"
    label: Annotated[str, Field(max_length=80)] = ""
    cursor: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = 50


class RunDocument(Schema):
    """Run.

    Attributes:
        stopped_reason: why it is paused or was cancelled; "" otherwise.
        purpose: where it was launched or for what: "", api, cli, aa, confirm and others.
        owner: name of the user who launched it; "" without one.
        instance_kind: `parity` for the published wording of the scenarios, `drawn` for instances drawn from the seed.
        seed: start of the random generator that draws its instances.
        until: rule of sequential stopping; {} for a fixed number of trials.
        request_cap: request limit; null for none.
        token_cap: token limit; null for none.
        requests_reserved: requests that count towards `request_cap`; each is counted before it is sent.
        deadline_seconds: trial deadline.
        repeat_of: id of the run that this one repeats; null if it repeats none.
        skipped: requested configurations and cells that were left out, with the reason.
        url: path of its page.
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
        """Return the name of the user who launched the run; "" without one."""
        return run.owner.username if run.owner else ""

    @staticmethod
    def resolve_repeat_of(run: Run) -> int | None:
        """Return the id of the repeated run; None if the run repeats none."""
        return run.repeat_of_id

    @staticmethod
    def resolve_url(run: Run) -> str:
        """Return the path of the run's page."""
        return f"/runs/{run.pk}/"


class RunSummaryDocument(Schema):
    """Run of the list, with counts of all scenarios and rates of the scenarios that are not controls.

    Attributes:
        answered: answered success; null for a run of several configurations or scenario groups.
        delivered: end-to-end success; null likewise.
    """

    run: RunDocument
    models: list[str]
    counts: CountsDocument
    answered: RateDocument | None
    delivered: RateDocument | None


class RunListDocument(Schema):
    """Page of runs, newest first; `next` is the cursor of the next page, null on the last one."""

    items: list[RunSummaryDocument]
    next: int | None


class CellDocument(Schema):
    """Cell: one configuration in one scenario.

    Attributes:
        p50_ms: median duration; null without times.
        p95_ms: 95th percentile of the duration; null without times.
        decided: result of sequential stopping in words; "" without it.
    """

    cell_id: int
    scenario: str
    control: bool
    counts: CountsDocument = Field(validation_alias="tally")
    answered: RateDocument
    p50_ms: QuantileDocument | None
    p95_ms: QuantileDocument | None
    decided: str = Field(validation_alias="decision_text")

    @staticmethod
    def resolve_p50_ms(row: Any) -> Any:
        """Return the median of the durations."""
        return row.times.p50

    @staticmethod
    def resolve_p95_ms(row: Any) -> Any:
        """Return the 95th percentile of the durations."""
        return row.times.p95


class ConfigDocument(Schema):
    """Configuration of a run with its figures in one group of scenarios."""

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


class RunPageQuery(QuerySchema):
    """Number of the page of a run's configurations, from 1; a number beyond the last page stands for the last one."""

    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1


class FailureGroupDocument(Schema):
    """Failure group of a run; `exemplar` is the id of one of its trials."""

    sentence: str
    failure_class: str
    scenario: str
    outcome: str = Field(validation_alias="mark")
    count: int
    exemplar: int


class RunDetailDocument(Schema):
    """Run with its counts and failures, and with a page of its configurations and their cells.

    Attributes:
        page: number of the page of `configs`, from 1.
        pages: number of these pages.
        live: whether figures can still change.
        failures: the largest failure groups.
        retryable: number of trials that `retry` would queue again.
        resumable: number of cancelled trials that `resume-cancelled` would queue again.
        seconds_left: expected seconds to the end, at the pace of the last minutes; null if it is unknown.
    """

    run: RunDocument
    live: bool
    counts: CountsDocument
    configs: list[ConfigDocument]
    page: int
    pages: int
    failures: list[FailureGroupDocument]
    retryable: int
    resumable: int
    seconds_left: float | None


class ConfigBody(BodySchema):
    """Configuration of a requested run; `model` is the id of a model."""

    model: Id
    profile: Name = "default"
    strategy: Name = "production"
    method: Method = "native"
    examples: Annotated[str, Field(max_length=80)] = ""
    stream: bool = False


class PlanBody(BodySchema):
    """Request for a run: every combination of the lists, or exactly `configs` if they are given.

    Attributes:
        models: ids of models; GET /models lists them.
        examples: names of example sets; "" for none.
        scenarios: slugs of scenarios, or `set:` and the name of a set of test cases.
        trials: trials of each cell; with sequential stopping, the maximum.
        until: rule of sequential stopping, with the members rule, rate, target, width and error; {} for a fixed number
            of trials.
        instance_kind: `parity` for the published wording of the scenarios, `drawn` for instances drawn from the seed.
        tool_use_mode: `enforced` if every answer needs a tool call before it, `relaxed` to only offer tools, `disabled`
            to send none.
        tool_failure_policy: with `enforced`, whether the latest result of every tool must be good (`fatal`), or any one
            result (`tolerated`).
        request_cap: request limit of the run; null for none.
        token_cap: token limit of the run; null for none.
        deadline_seconds: trial deadline; null for the default.
        connect_seconds: timeout for connecting; null for that of the provider.
        read_seconds: timeout for reading; null for that of the provider.
        overrides: settings above every preset, such as {"max_turns": 6}.
        seed: start of the random generator; equal requests with an equal seed plan equal trials. Null draws one.
        jobs: concurrency limit of the run at one provider; the provider's own limit also applies. Null for none.
        enforce_applicability: whether to leave out profiles that do not apply to a model.
        probe_unknown: whether to probe models with unknown tool support first, unless the run has a limit.
        configs: configurations; [] for every combination of the lists.
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
    request_cap: RunLimit | None = None
    token_cap: RunLimit | None = None
    deadline_seconds: Seconds | None = None
    connect_seconds: Seconds | None = None
    read_seconds: Seconds | None = None
    jobs: Annotated[int, Field(ge=1, le=1_000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    enforce_applicability: bool = True
    probe_unknown: bool = True
    configs: Annotated[list[ConfigBody], Field(max_length=500)] = []


class LaunchBody(PlanBody, AgreedBody):
    """Request for a run, with the confirmed number of paid requests."""

    model_config = ConfigDict(extra="forbid", strict=True, title="LaunchBody")


class LimitsBody(AgreedBody):
    """New limits of a paused run; null for no limit."""

    request_cap: RunLimit | None
    token_cap: RunLimit | None


class AddTrialsBody(AgreedBody):
    """Number of trials to add to a cell."""

    count: Annotated[int, Field(ge=1, le=1_000)]


class RepeatBody(AgreedBody):
    """Kind of a repeat: with the same seeds, or with new sampling seeds (`aa`)."""

    kind: Literal["same", "aa"] = "same"


class LabelBody(BodySchema):
    """Label of a run; "" removes it."""

    label: Annotated[str, Field(max_length=80)]


class FrozenQuery(QuerySchema):
    """Choice of a configuration and of a scenario, whose policy layer is applied last.

    Attributes:
        config: id of the configuration; null for the first one of the run.
        scenario: slug of the scenario; "" for none.
    """

    config: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    scenario: Annotated[str, Field(max_length=80)] = ""


class FrozenSettingDocument(Schema):
    """Setting with its value and its origin: the policy layer that set it."""

    key: str
    value: Any
    origin: str


class FrozenSettingsDocument(Schema):
    """Settings that a run froze for a configuration.

    Attributes:
        config: id of the configuration.
        scenario: slug of the scenario whose layer is applied; "" for none.
        chosen: settings that a layer sets.
        defaults: settings with the engine's default.
    """

    config: int
    scenario: str
    chosen: list[FrozenSettingDocument]
    defaults: list[FrozenSettingDocument]
