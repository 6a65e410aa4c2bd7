"""Schemas of runs: lists, one run with its configurations and cells, and frozen settings."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import (
    MAX_PAGE_SIZE,
    CountsDocument,
    Id,
    QuantileDocument,
    QuerySchema,
    RateDocument,
)
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Run
from toolbench.lab.results.run.config_rows import ConfigRow
from toolbench.lab.runs.control import MAX_LABEL_CHARACTERS

State = Literal["running", "paused", "cancelling", "cancelled", "finished"]


class RunQuery(QuerySchema):
    """Filter of the list of runs, with its cursor.

    Attributes:
        kind: `own` for runs that are neither simulated nor imported, `simulated`, `imported` (simulated ones too), or
            `all`. Only `all` and `imported` include conversations of the playground.
        label: label of the runs; "" for all.
        cursor: `next` of the previous page; null for the first page.
        limit: maximum number of runs of the page.
    """

    kind: Literal["own", "simulated", "imported", "all"] = "all"
    label: Annotated[str, Field(max_length=MAX_LABEL_CHARACTERS)] = ""
    cursor: Id | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = 50


class RunDocument(Schema):
    """Run.

    Attributes:
        state: `cancelling` until the trials in flight have ended, then `cancelled`.
        stopped_reason: why it is paused or was cancelled; "" otherwise.
        simulated: whether it has a simulated model.
        purpose: where it was launched or for what: `api`, `cli`, `playground`, `resend` (repeats one trial), `aa`
            (repeats a run with new sampling seeds), `confirm` (confirms a decision), `decide` (missing trials of a
            decision), `first_page` or `first_page_intent` (local demo); "" for others.
        owner: name of the user who launched it; "" without one.
        instance_kind: `parity` for the published wording of the scenarios, `drawn` for instances drawn from the seed.
        seed: seed from which the seeds of its instances and of sampling are derived.
        trials_per_cell: number of trials of each cell; with sequential stopping, the maximum.
        trial_count: number of its trials.
        until: rule of sequential stopping, as in PlanBody; {} for a fixed number of trials.
        request_cap: request limit; null for none.
        token_cap: token limit; null for none.
        requests_reserved: requests that count towards `request_cap`; each is counted before it is sent.
        tokens_used: tokens that count towards `token_cap`.
        deadline_seconds: trial deadline.
        repeat_of: id of the run that this one repeats or, with `decide`, adds trials to; null for none.
        skipped: requested configurations and cells that were left out: objects with `what` and `why`.
        finished_at: time of its end; null before it.
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
        models: names of its models.
        answered: answered success; null for a run of several configurations or scenario groups.
        delivered: end-to-end success; null as for `answered`.
    """

    run: RunDocument
    models: list[str]
    counts: CountsDocument
    answered: RateDocument | None
    delivered: RateDocument | None


class RunListDocument(Schema):
    """Page of runs, newest first.

    Attributes:
        next: cursor of the next page; null on the last one.
    """

    items: list[RunSummaryDocument]
    next: int | None


class CellDocument(Schema):
    """Cell: one configuration in one scenario.

    Attributes:
        scenario: slug of the scenario.
        control: whether the task of the scenario needs no tool.
        answered: answered success.
        p50_ms: median duration; null without times.
        p95_ms: 95th percentile of the duration; null without times.
        decided: result of sequential stopping in words, "open" before it; "" for a fixed number of trials.
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
    """Configuration of a run with its figures in one group of scenarios.

    A configuration with scenarios of several groups is listed once for each group.

    Attributes:
        examples: name of the example set; "" for none.
        group: name of the group; "" if the run has only one group.
        counts: counts of the scenarios that are not controls; of the controls if there are no others.
        answered: answered success of the trials in `counts`.
        delivered: end-to-end success of the trials in `counts`.
        cells: its cells in the group, controls included.
    """

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
    """Choice of a page of a run's configurations.

    Attributes:
        page: number of the page, from 1; a number beyond the last page stands for the last one.
    """

    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1


class FailureGroupDocument(Schema):
    """Failure group of a run.

    Attributes:
        sentence: the first problem of the trial `exemplar`.
        scenario: scenario of its trials; "" for several.
        outcome: `fail` or `infra`.
        count: number of its trials.
        exemplar: id of its first trial.
    """

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
        live: whether the run is running or being cancelled, or a trial is running, or a cell has to be recomputed.
        counts: counts of all its trials.
        failures: the largest failure groups, at most 20.
        retryable: number of trials that `retry` would queue again.
        resumable: number of cancelled trials that `resume-cancelled` would queue again.
        seconds_left: expected seconds to the end, at the pace of the last minutes; null if it is unknown, or if
            no trial is queued or running.
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


class FrozenQuery(QuerySchema):
    """Choice of a configuration and of a scenario, whose policy layer is applied last.

    Attributes:
        config: id of the configuration; null for the first one of the run.
        scenario: slug of the scenario; "" for none.
    """

    config: Id | None = None
    scenario: Annotated[str, Field(max_length=80)] = ""


class FrozenSettingDocument(Schema):
    """Setting with its value.

    Attributes:
        origin: name of the policy layer that set it.
    """

    key: str
    value: Any
    origin: str


class FrozenSettingsDocument(Schema):
    """Settings that a run froze for a configuration.

    Attributes:
        config: id of the configuration.
        scenario: slug of the scenario whose layer is applied; "" for none. An unknown scenario has no layer.
        chosen: settings that a layer sets; if the installed engine cannot resolve the layers, all stored settings.
        defaults: settings with the engine's default; [] if the layers cannot be resolved.
    """

    config: int
    scenario: str
    chosen: list[FrozenSettingDocument]
    defaults: list[FrozenSettingDocument]
