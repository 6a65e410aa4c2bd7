"""Schemas of schedules, alert rules and trends."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import MAX_PAGE_SIZE, BodySchema, Id, QuerySchema
from toolbench.lab.schedules.edit import MAX_EVERY_HOURS
from toolbench.lab.schedules.rules import MAX_URL_CHARACTERS

Requests = Annotated[int, Field(ge=1, le=2**31 - 1)]
RuleKind = Literal["drift", "below_target", "slow", "infrastructure", "spend", "answers_changed", "run_ended"]


class ScheduleDocument(Schema):
    """Schedule. ScheduleBody describes the other members.

    Attributes:
        active: whether it launches runs; false while it is paused.
        next_due_at: time of the next run, unless the schedule is paused.
        skip_reason: why the last due run was not launched; "" if it was launched, or if the schedule was paused or
            resumed since.
    """

    id: int
    name: str
    every_hours: int | None
    hour_utc: int | None
    requests_per_run: int
    requests_per_month: int
    active: bool
    next_due_at: datetime
    skip_reason: str


class RuleDocument(Schema):
    """Alert rule.

    Attributes:
        schedule: id of its schedule; null for a rule for all runs.
        kind: kind of the condition, as in AlertRuleBody.
        fires_when: its condition in words.
        threshold: value of the condition in percent, seconds or dollars; null for a condition without a value.
        webhook_host: host of the webhook, with the port if its URL names one; "" without a webhook.
        email: e-mail address; "" without one.
        open_alerts: number of its open alerts. An alert is open until a later run does not meet the condition.
    """

    id: int
    schedule: int | None
    kind: RuleKind
    fires_when: str
    threshold: float | None
    webhook_host: str
    email: str
    active: bool
    open_alerts: int


class AlertMessageDocument(Schema):
    """Message about an alert.

    Attributes:
        id: id of the message for POST /alert-messages/{delivery_id}/retry.
        state: `unclear` if the process ended while it was sent, so that it may have arrived.
        attempts: number of attempts to send it.
        last_error: why the last attempt failed; "" if it did not.
    """

    id: int
    channel: Literal["webhook", "email"]
    state: Literal["pending", "sending", "sent", "failed", "unclear"]
    attempts: int
    last_error: str
    sent_at: datetime | None


class AlertDocument(Schema):
    """Alert: a run met the condition of a rule.

    Attributes:
        rule: id of its rule.
        kind: kind of the condition, as in AlertRuleBody.
        schedule: id of the schedule of its rule; null for a rule for all runs.
        run: id of the run that met the condition.
        sentence: what happened, in words.
        path: path of the page about it.
        resolved_at: time since which it is closed; null while it is open.
        messages: its messages, one for each address of the rule.
    """

    id: int
    rule: int
    kind: RuleKind
    schedule: int | None
    run: int
    sentence: str
    path: str
    created_at: datetime
    resolved_at: datetime | None
    messages: list[AlertMessageDocument]


class AlertListDocument(Schema):
    """Page of alerts, newest first.

    Attributes:
        next: cursor of the next page; null on the last one.
    """

    items: list[AlertDocument]
    next: int | None


class AlertQuery(QuerySchema):
    """Filter of the list of alerts, with its cursor.

    Attributes:
        schedule: id of the schedule of their rules; null for alerts of all rules.
        state: `open` until a later run does not meet the condition, `resolved` from then on, or `all`.
        cursor: `next` of the previous page; null for the first page.
        limit: maximum number of alerts of the page.
    """

    schedule: Id | None = None
    state: Literal["all", "open", "resolved"] = "all"
    cursor: Id | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = 50


class ScheduleDetailDocument(ScheduleDocument):
    """Schedule with its plan, runs, baseline and rules.

    Attributes:
        plan: size of the next run in words, or why it cannot be launched.
        runs: ids of the newest 30 runs and of the runs of the baseline, the newest first.
        baseline: ids of the runs that later runs are compared with.
        requests_of_month: requests reserved by its runs that were launched in this calendar month (UTC).
        rules: its alert rules, without those for all runs.
    """

    plan: str
    runs: list[int]
    baseline: list[int]
    requests_of_month: int
    rules: list[RuleDocument]


class TrendQuery(QuerySchema):
    """Choice of the measure.

    Attributes:
        measure: `success`: answered success in percent; `p50`, `p95` or `p99`: duration in seconds; `cost`: dollars;
            `tokens`: thousands of tokens.
    """

    measure: Literal["success", "p50", "p95", "p99", "cost", "tokens"] = "success"


class TrendPointDocument(Schema):
    """Run of a series.

    Attributes:
        run: id of the run.
        value: value in the unit of the measure; null if it is unknown.
        low: lower bound of its interval; null if it is open or there is no interval.
        high: upper bound of its interval; null as for `low`.
        notes: remarks about the run: "baseline", "change begins" or "settings changed".
        in_baseline: whether the run belongs to the baseline.
        drifted: whether drift was found that began with this run or an earlier one.
    """

    run: int
    value: float | None
    low: float | None
    high: float | None
    notes: list[str]
    in_baseline: bool
    drifted: bool


class TrendLineDocument(Schema):
    """Series of one configuration.

    Attributes:
        config: the configuration in words.
        state: result of the drift test, which tests answered success whatever the measure: `worse`, `better`, `steady`
            (no drift found) or `untested`.
        state_text: the result in words.
        points: its newest runs, at most 60, the oldest first.
    """

    config: str
    state: Literal["worse", "better", "steady", "untested"]
    state_text: str
    points: list[TrendPointDocument]


class ScheduleBody(BodySchema):
    """Settings of a schedule, with either `every_hours` or `hour_utc`.

    Saving confirms `requests_per_run` paid requests for each run.

    Attributes:
        every_hours: hours between two runs; null for a daily run.
        hour_utc: hour (UTC) of a daily run; null with `every_hours`.
        requests_per_run: request limit of each run.
        requests_per_month: request limit of all runs of a calendar month (UTC), at least that of one run. A run that
            could exceed it is not launched.
    """

    name: Annotated[str, Field(min_length=1, max_length=120)]
    every_hours: Annotated[int, Field(ge=1, le=MAX_EVERY_HOURS)] | None = None
    hour_utc: Annotated[int, Field(ge=0, le=23)] | None = None
    requests_per_run: Requests
    requests_per_month: Requests


class NewScheduleBody(ScheduleBody):
    """New schedule for the plan of a run.

    Attributes:
        run: id of the run. If it is finished, it becomes the baseline.
    """

    run: Id


class ActiveBody(BodySchema):
    """Choice whether a schedule or rule is active.

    Attributes:
        active: false to pause the schedule or to turn the rule off.
    """

    active: bool


class BaselineBody(BodySchema):
    """New baseline of a schedule.

    Attributes:
        runs: ids of finished runs of the schedule or of its present baseline; [] for no baseline.
    """

    runs: Annotated[list[Id], Field(max_length=50)]


class AlertRuleBody(BodySchema):
    """New alert rule for a schedule, or for all runs if `schedule` is null.

    Attributes:
        schedule: id of a schedule; null for all runs, which only `infrastructure`, `spend` and `run_ended` allow.
        kind: `drift`: the drift test finds a drop; `below_target`: the whole interval of success is below the
            threshold; `slow`: the lower bound of p95 is above the threshold; `infrastructure`: the share of
            infrastructure errors is above the threshold; `spend`: the cost of a run is above the threshold;
            `answers_changed`: the share of answers that also occur in the baseline, relative to the baseline's share of
            repeated answers, is below the threshold; `run_ended`: a run finishes or is cancelled.
        threshold: value of the condition, above 0: percent (at most 100) for `below_target`, `infrastructure` and
            `answers_changed`, seconds (at most 86,400) for `slow`, dollars (at most 1,000,000) for `spend`. Null only
            for `drift` and `run_ended`, which ignore it.
        webhook: URL to send alerts to; it is stored encrypted, and no answer contains it. "" for none.
        email: e-mail address to send alerts to; "" for none. Alerts of a rule without webhook and e-mail address only
            appear on pages.
    """

    schedule: Id | None = None
    kind: RuleKind
    threshold: Annotated[float, Field(ge=0, le=1e12)] | None = None
    webhook: Annotated[str, Field(max_length=MAX_URL_CHARACTERS)] = ""
    # "" or an address such as name@example.com.
    email: Annotated[str, Field(max_length=254, pattern=r"^$|^[^@\s]+@[^@\s]+\.[^@\s]+$")] = ""
