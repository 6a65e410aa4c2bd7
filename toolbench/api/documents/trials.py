"""Schemas of trials, their steps and what people add to them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from toolbench.api.documents.figures import MAX_PAGE_SIZE, BodySchema, QuerySchema
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step, Trial
from toolbench.lab.results.trial_list.index import choose_mark
from toolbench.lab.results.trial_list.keyset import MAX_CURSOR_CHARACTERS

Mark = Literal["pass", "fail", "infra", "na", "cancelled", "running", "queued"]
Text = Annotated[str, Field(max_length=1_000)]
List = Annotated[str, Field(max_length=40_000)]
Texts = Annotated[list[Text], Field(max_length=200)]
Whole = Annotated[int, Field(ge=0, le=2**63 - 1)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]

# fmt: off
SortOrder = Literal[
    "failed", "-failed", "order", "slow", "fast", "tokens", "-tokens", "retries", "-retries", "turns", "-turns",
    "model", "-model", "profile", "-profile", "scenario", "-scenario", "cause", "-cause", "newest", "oldest",
]
# fmt: on


class TrialListQuery(QuerySchema):
    """The filter of the list of trials, and the page.

    Attributes:
        runs, cells: ids with commas between; cells also as ranges, 3-7.
        config: only this configuration; `alike`: every configuration with the same settings.
        search: words, "phrases" and terms such as outcome:fail, as in the search field of the page.
        seen: a cause that was seen in the trial; `path`: a JSON path at which it was seen.
        scope: all shows own, simulated and imported runs; without it, own runs unless `demo` or `imported` is 1.
        after, before: days on which runs began; `upto`: the newest run.
        cursor: `next` of the page before.
    """

    run: Whole | None = None
    runs: List = ""
    cell: Whole | None = None
    cells: List = ""
    config: Whole | None = None
    alike: Whole | None = None
    group: Text = ""
    scenario: Texts = []
    version: Whole | None = None
    without: List = ""
    outcome: Mark | None = None
    provider: Text = ""
    provider_kind: Text = ""
    model: Texts = []
    profile: Texts = []
    strategy: Texts = []
    method: Text = ""
    examples: Text = ""
    tool_use_mode: Text = ""
    instance_kind: Text = ""
    stream: Literal["streamed", "whole"] | None = None
    prompt: Text = ""
    failure_class: Text = ""
    signature: Text = ""
    cause: Text = ""
    seen: Text = ""
    path: Text = ""
    cluster: Text = ""
    had: Text = ""
    cause_version: Whole | None = None
    label: Text = ""
    search: Text = ""
    scope: Literal["all"] | None = None
    demo: Literal["1"] | None = None
    imported: Literal["1"] | None = None
    sort: SortOrder = "failed"
    after: Day | None = None
    before: Day | None = None
    upto: Whole | None = None
    cursor: Annotated[str, Field(max_length=MAX_CURSOR_CHARACTERS)] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = 50


class TrialDocument(Schema):
    """A trial of the list.

    Attributes:
        outcome: an outcome, or running, or queued.
        sentence: what went wrong first.
        index: number of the repeat within its cell, from 1.
        cost: dollars; null where it is unknown.
    """

    id: int
    run: int
    cell: int
    config: int
    provider: str
    model: str
    profile: str
    strategy: str
    method: str
    stream: bool
    scenario: str
    scenario_version: int
    index: int
    instance_seed: int
    seed: int
    execution: int
    outcome: Mark
    end: str
    failure_class: str
    cause: str
    sentence: str
    turns: int
    requests: int
    retries: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    duration_ms: float | None
    first_token_ms: float | None
    started_at: datetime | None
    finished_at: datetime | None
    added_by_hand: bool
    label: str
    url: str


def build_trial(trial: Trial) -> dict[str, Any]:
    """Return the values of a TrialDocument."""
    names = set(TrialDocument.model_fields) & {field.attname for field in Trial._meta.concrete_fields}
    config = trial.config
    return {name: getattr(trial, name) for name in names} | {
        "run": trial.run_id,
        "cell": trial.cell_id,
        "config": trial.config_id,
        "provider": config.provider_name,
        "model": config.model_name,
        "profile": config.profile,
        "strategy": config.strategy,
        "method": config.method,
        "stream": config.stream,
        "outcome": choose_mark(trial),
        "url": f"/trials/{trial.pk}/",
    }


class TrialListDocument(Schema):
    """A page of trials; `next` is the cursor of the page after."""

    items: list[TrialDocument]
    next: str | None


class StepDocument(Schema):
    """One attempt of an exchange, or one tool execution. Times are in milliseconds since the trial began.

    Attributes:
        ok: of an exchange, whether an answer was read; of a tool execution, whether it succeeded.
        truncated: whether more was received than is stored.
        request_url, response_url: paths of the exact bytes.
    """

    id: int
    execution: int
    ordinal: int
    kind: Literal["exchange", "tool"]
    turn: int
    attempt: int
    started_ms: float
    duration_ms: float
    status: int | None
    error_code: str
    error_message: str
    finish_reason: str
    method: str
    tool_name: str
    ok: bool | None
    input_tokens: int | None
    output_tokens: int | None
    request_bytes: int
    response_bytes: int
    truncated: bool
    request_url: str
    response_url: str


def build_step(step: Step) -> dict[str, Any]:
    """Return the values of a StepDocument."""
    names = set(StepDocument.model_fields) & {field.attname for field in Step._meta.concrete_fields}
    address = f"/api/v1/steps/{step.pk}"
    return {name: getattr(step, name) for name in names} | {
        "method": step.path,
        "truncated": step.body_cut,
        "request_url": f"{address}/request",
        "response_url": f"{address}/response",
    }


class HumanVerdictDocument(Schema):
    """A verdict of a person.

    Attributes:
        current: false for one that was replaced.
    """

    verdict: str
    username: str
    reason: str
    at: datetime
    current: bool


class TrialDetailDocument(Schema):
    """A trial with its steps, verdict and answer.

    Attributes:
        verdict: the judge's rule, checks and first problem.
        causes: all causes that were seen, recovered or not.
        earlier: executions that were lost, requeued or retried, and their numbers of steps.
    """

    trial: TrialDocument
    headline: str
    final_text: str
    note: str
    verdict: JsonObject
    causes: list[Any]
    human_verdicts: list[HumanVerdictDocument]
    steps: list[StepDocument]
    steps_truncated: bool
    earlier: dict[int, int]


class StepDetailDocument(Schema):
    """A step with its details: what was found and changed, headers without secrets, the parsed answer."""

    step: StepDocument
    trial: int
    details: JsonObject


class AnnotationBody(BodySchema):
    """Label and note of a trial; they never change a verdict."""

    label: Annotated[str, Field(max_length=80)]
    note: Annotated[str, Field(max_length=20_000)]


class VerdictBody(BodySchema):
    """A person's verdict on a trial, and why."""

    verdict: Literal["pass", "fail"]
    reason: Annotated[str, Field(min_length=1, max_length=4_000)]
