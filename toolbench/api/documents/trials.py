"""Schemas of trials, their steps, notes and human verdicts."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import MAX_PAGE_SIZE, BodySchema, QuerySchema
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step, Trial
from toolbench.lab.results.trial.annotate import MAX_LABEL_CHARS, MAX_NOTE_CHARS
from toolbench.lab.results.trial.human_verdicts import MAX_REASON_CHARS
from toolbench.lab.results.trial_list.index import choose_mark
from toolbench.lab.results.trial_list.keyset import MAX_CURSOR_CHARACTERS

OutcomeOrState = Literal["pass", "fail", "infra", "na", "cancelled", "running", "queued"]
Text = Annotated[str, Field(max_length=1_000)]
CommaList = Annotated[str, Field(max_length=40_000)]
Texts = Annotated[list[Text], Field(max_length=200)]
WholeNumber = Annotated[int, Field(ge=0, le=2**63 - 1)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]

# fmt: off
SortOrder = Literal[
    "failed", "-failed", "order", "slow", "fast", "tokens", "-tokens", "retries", "-retries", "turns", "-turns",
    "model", "-model", "profile", "-profile", "scenario", "-scenario", "cause", "-cause", "newest", "oldest",
]
# fmt: on


class TrialListQuery(QuerySchema):
    """Filter of the list of trials, with the order and the cursor.

    Attributes:
        run: id of a run.
        runs: ids of runs, separated by commas.
        cell: id of a cell.
        cells: ids of cells or ranges such as 3-7, separated by commas.
        config: id of a configuration.
        configs: ids of configurations, separated by commas.
        alike: id of a configuration; trials of every configuration with the same settings match, except those of
            confirmation runs.
        group: name of a group of tool scenarios; `control` for the controls of all groups.
        scenario: slugs of scenarios, one in each parameter.
        version: version of the scenario.
        without: versions of scenarios to leave out, as slug@version, separated by commas.
        outcome: trial outcome: `pass`, `fail`, `infra` (infrastructure error), `na` (not applicable) or `cancelled`; or
            the state of a trial without one: `running` or `queued`.
        provider: name of a provider.
        provider_kind: kind of the provider: `openai`, `anthropic`, `local` or `simulated`.
        model: names of models, one in each parameter.
        profile: names of sampling profiles, one in each parameter.
        strategy: strategies or presets, one in each parameter.
        method: method of the configuration: `native`, `text_json`, `template` or `constrained`.
        examples: name of an example set; `none` for trials without examples.
        tool_use_mode: `enforced`, `relaxed` or `disabled`.
        instance_kind: `parity` for the published wording, `drawn` for drawn instances.
        stream: `streamed` for streamed answers, `whole` for others.
        prompt: version of the scenario's prompt.
        instance: seed of an instance.
        canonical: name of a canonical model.
        upstream: host to which a router sent the requests, as the answers name it.
        day: day (UTC) on which the trials began.
        failure_class: failure class of the verdict, as `failure_class` of a trial.
        signature: stored text by which failures with one failure class, scenario and path are grouped, such as
            "no_tool_calls · happy_path · $.ops".
        cause: cause code of the failure.
        seen: cause code that was found in the trial, also if the model recovered.
        path: JSON path, without list indexes, at which `seen` was found. Without `seen`, the path of any cause, or of
            an argument that differs from the expected one.
        place: JSON path and turn of the failure: the end of `signature` with `failure_class`, else of `cluster`.
        cluster: stored text by which failures with one cause, scenario, path and turn are grouped, such as
            "schema_missing · happy_path · $.ops[].path · turn 1".
        had: `429` or `5xx` for trials with such an answer, `retry` for trials with a retry, in any execution.
        cause_version: version of the table of causes that gave `cause`.
        label: label of the trial.
        search: words, "phrases" and terms such as outcome:fail, as in the search field of the page.
        scope: `all` for all runs. Without it, measured runs of this installation, or those that `demo` or `imported`
            selects, and no conversations of the playground. Ignored with ids of runs, cells or configurations.
        demo: `1` for simulated runs only.
        imported: `1` for imported runs only.
        after: day (UTC) on or after which the runs were created.
        before: day (UTC) on or before which the runs were created.
        upto: id of the newest run that matches.
        sort: order of the list: `failed` first, `order` (as planned, the newest run first), `slow` or `fast` first,
            most `tokens`, `retries` or `turns` first, by name of `model`, `profile`, `scenario` or `cause`, `newest` or
            `oldest` first. A minus before the name reverses the order.
        cursor: `next` of the previous page; "" for the first page.
        limit: maximum number of trials of the page.
    """

    run: WholeNumber | None = None
    runs: CommaList = ""
    cell: WholeNumber | None = None
    cells: CommaList = ""
    config: WholeNumber | None = None
    configs: CommaList = ""
    alike: WholeNumber | None = None
    group: Text = ""
    scenario: Texts = []
    version: WholeNumber | None = None
    without: CommaList = ""
    outcome: OutcomeOrState | None = None
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
    instance: WholeNumber | None = None
    canonical: Text = ""
    upstream: Text = ""
    day: Day | None = None
    failure_class: Text = ""
    signature: Text = ""
    cause: Text = ""
    seen: Text = ""
    path: Text = ""
    place: Text = ""
    cluster: Text = ""
    had: Literal["", "429", "5xx", "retry"] = ""
    cause_version: WholeNumber | None = None
    label: Text = ""
    search: Text = ""
    scope: Literal["all"] | None = None
    demo: Literal["1"] | None = None
    imported: Literal["1"] | None = None
    sort: SortOrder = "failed"
    after: Day | None = None
    before: Day | None = None
    upto: WholeNumber | None = None
    cursor: Annotated[str, Field(max_length=MAX_CURSOR_CHARACTERS)] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = 50


class TrialDocument(Schema):
    """Trial of the list.

    Attributes:
        run: id of its run.
        cell: id of its cell.
        config: id of its configuration.
        method: method of the configuration; `auto` until a probe has chosen it, `none` if no method can be used.
        index: number of the repeat within its cell, from 1.
        instance_seed: seed of its instance; GET /scenarios/{slug} shows a drawn instance.
        seed: sampling seed, which is sent to endpoints that accept one.
        execution: number of the last execution; 0 before the first one.
        outcome: trial outcome; `running` or `queued` for a trial without one.
        end: reason for which the loop ended: FINAL (an answer), LENGTH (an answer that was cut off at the token limit),
            NO_TOOL_CALLS, TOOL_ERROR, MAX_TURNS_EXCEEDED, DEADLINE_EXCEEDED, CANCELLED, BUDGET_SPENT or PROVIDER_ERROR;
            "" if no loop ended.
        failure_class: failure class of the verdict; "" for a pass and before the verdict.
        cause: cause code of the failure; "" for a pass and before the classification.
        sentence: the first problem; "" without one.
        requests: number of requests, retries included.
        cost: dollars that the provider reported; null if it reported no cost, even if the price is known.
        duration_ms: time from the first turn to the end, with back-off and without waits for rate control; null before
            the end.
        first_token_ms: time until the first token; null for an answer that is not streamed.
        started_at: start of the last execution; null before it.
        added_by_hand: whether the trial was added manually.
        url: path of its page.
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
    outcome: OutcomeOrState
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
    """Page of trials.

    Attributes:
        next: cursor of the next page; null on the last one.
        limited: whether more trials match than the newest 10,000, to which the list is limited. To list all of them,
            name runs, cells or configurations, or send `sort=order`.
    """

    items: list[TrialDocument]
    next: str | None
    limited: bool


class StepDocument(Schema):
    """Exchange or tool execution of a trial.

    Attributes:
        execution: number of the execution of the trial, from 1.
        ordinal: number of the step within the execution, from 1.
        turn: number of the turn, from 0.
        attempt: number of the attempt at the request, from 1.
        started_ms: milliseconds from the start of the execution to that of the step.
        status: HTTP status of the response; null without one, and for a tool execution.
        error_code: error code of the exchange or the tool; "" without an error.
        finish_reason: why the model stopped, as the provider says it; "" if it is unknown.
        method: the method used: `tool_use` (native calls), `json_fallback`, `constrained`, `template` or `text`; "" for
            a tool execution, and without a readable answer.
        tool_name: name of the tool; "" for an exchange.
        ok: whether an answer was read, or the tool succeeded; null if neither is known.
        input_tokens: tokens of the request; null if the provider did not report them, and for a tool execution.
        output_tokens: tokens of the answer; null as for `input_tokens`.
        truncated: whether the response was truncated when it was stored.
        request_url: path of the stored request, which is empty if it was not stored or was removed.
        response_url: path of the stored response, which is empty if it was not stored or was removed.
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
    step_path = f"/api/v1/steps/{step.pk}"
    return {name: getattr(step, name) for name in names} | {
        "method": step.path,
        "truncated": step.body_cut,
        "request_url": f"{step_path}/request",
        "response_url": f"{step_path}/response",
    }


class HumanVerdictDocument(Schema):
    """Human verdict.

    Attributes:
        username: name of the user; "" without sign-in.
        current: false for a verdict that a later one has replaced, and for one on an earlier execution.
    """

    verdict: Literal["pass", "fail"]
    username: str
    reason: str
    at: datetime
    current: bool


class TrialDetailDocument(Schema):
    """Trial with its steps, verdict and final answer.

    Attributes:
        headline: the result in one sentence.
        final_text: the final answer; "" without one.
        verdict: the judge's rule, checks and first problem; {} before the verdict.
        causes: up to 40 causes that were found, recovered or not: objects with `code`, `path`, `turn` (from 0),
            `ordinal` of the step, `mended` (a later step recovered, or `healed`), `healed` (without harm) and `count`.
        human_verdicts: human verdicts, the newest first.
        steps: the first 400 steps of the last execution, in order.
        steps_truncated: whether the last execution has more steps.
        earlier: number of steps by number of the execution, for earlier executions, which were lost, requeued or
            retried.
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
    """Step with its details.

    Attributes:
        trial: id of the trial.
        details: findings, changes, headers with masked secrets, and the parsed answer; {} if they were not stored or
            were removed.
    """

    step: StepDocument
    trial: int
    details: JsonObject


class AnnotationBody(BodySchema):
    """Label and note of a trial, which change no verdict.

    Attributes:
        label: the new label; "" removes it.
        note: the new note; "" removes it.
    """

    label: Annotated[str, Field(max_length=MAX_LABEL_CHARS)]
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)]


class VerdictBody(BodySchema):
    """Human verdict on a trial that passed or failed.

    Attributes:
        verdict: the verdict, which may be equal to that of the judge.
        reason: why you decided so.
    """

    verdict: Literal["pass", "fail"]
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON_CHARS)]
