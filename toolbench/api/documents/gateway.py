"""Schemas of the gateway: aliases, their bindings and promotion, and traces."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import MAX_PAGE_SIZE, BodySchema, Id, QuerySchema
from toolbench.api.documents.run_requests import Method
from toolbench.lab.models import GatewayTrace
from toolbench.lab.schedules.edit import MAX_EVERY_HOURS
from toolbench.lab.serving.aliases import MAX_FALLBACKS
from toolbench.lab.serving.traces import BODY_COLUMNS


class AliasDocument(Schema):
    """Alias with its settings. AliasBody describes the other members.

    Attributes:
        model: id of the model.
        model_name: name of the model.
        provider: name of the provider.
        config: id of the measured configuration whose settings it serves; null for settings without one.
        binding: id of its current binding; null without one.
    """

    id: int
    name: str
    model: int
    model_name: str
    provider: str
    profile: str
    strategy: str
    method: str
    config: int | None
    repairs: bool
    fallbacks: list[str]
    keep_percent: int
    keep_bodies: bool
    binding: int | None


class AliasBody(BodySchema):
    """Settings of an alias. Either `model` or `config` is required.

    Attributes:
        name: name that clients send as the model: letters, digits, dots, hyphens, underscores and slashes, with a
            letter or digit first.
        model: id of a model; null with `config`.
        profile: name of a sampling profile.
        strategy: strategy, as in `strategies` of PlanBody.
        method: `native`, `text_json`, `template`, `constrained` or `auto`, as in `methods` of PlanBody.
        config: id of a measured configuration, whose model, profile, strategy and method are served. If the body has
            these members too, they must have the same values.
        repairs: whether the gateway re-prompts the model once after a call that is not valid.
        fallbacks: names of other aliases, which are tried in order when the provider fails.
        keep_percent: percentage of the requests that are kept as traces.
        keep_bodies: whether traces contain the bodies.
    """

    name: Annotated[str, Field(min_length=1, max_length=100)]
    model: Id | None = None
    profile: Annotated[str, Field(min_length=1, max_length=80)] = "default"
    strategy: Annotated[str, Field(min_length=1, max_length=200)] = "production"
    method: Method = "auto"
    config: Id | None = None
    repairs: bool = True
    fallbacks: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=MAX_FALLBACKS)] = []
    keep_percent: Annotated[int, Field(ge=0, le=100)] = 100
    keep_bodies: bool = True


class ChangedAliasBody(AliasBody):
    """New settings of an alias.

    Attributes:
        binding: id of the alias's current binding, null if it has none. If the alias has got another binding since you
            read it, the change is refused.
    """

    binding: Id | None


class BindingDocument(Schema):
    """Settings that an alias had from one moment on.

    Attributes:
        cause: how the alias got the settings; `alarm` for a rollback after an alarm of the canary.
        who: name of the user; "" for the scheduler and without sign-in.
        decision_id: id of the decision record that approves the settings; null without one.
        canary_id: id of the schedule that measures them again; null without one.
        alarm: sentence of the first alarm of the canary while these settings were current; "" for none.
    """

    id: int
    cause: Literal["saved", "promoted", "rolled_back", "alarm"]
    who: str
    model_name: str
    provider_name: str
    profile: str
    strategy: str
    method: str
    decision_id: int | None
    canary_id: int | None
    alarm: str
    created_at: datetime


class CanaryBody(BodySchema):
    """Schedule that measures promoted settings again.

    Saving confirms `requests_per_run` paid requests for each run.

    Attributes:
        every_hours: hours between two runs.
        requests_per_run: request limit of each run.
        requests_per_month: request limit of all runs of a calendar month (UTC), at least `requests_per_run`.
    """

    every_hours: Annotated[int, Field(ge=1, le=MAX_EVERY_HOURS)] = 24
    requests_per_run: Annotated[int, Field(ge=1, le=2**31 - 1)]
    requests_per_month: Annotated[int, Field(ge=1, le=2**31 - 1)]


class PromotionBody(BodySchema):
    """Promotion of the choice of a decision record.

    Attributes:
        alias: name of an alias; a new name becomes an alias.
        record: id of the decision record.
        canary: schedule that compares later runs with the approved one; null for none.
        returns_on_alarm: whether an alarm of the canary gives the alias an earlier binding again: the newest one with
            other settings and without an alarm.
    """

    alias: Annotated[str, Field(min_length=1, max_length=100)]
    record: Id
    canary: CanaryBody | None = None
    returns_on_alarm: bool = True


class RollBackBody(BodySchema):
    """Rollback of an alias.

    Attributes:
        binding: id of the earlier binding whose settings the alias gets again.
    """

    binding: Id


class GatewayTraceDocument(Schema):
    """Trace of a request to the gateway.

    Attributes:
        alias: the alias that the client named.
        served_by: the alias that was tried last; it may be a fallback.
        model_name: name of the model of that alias.
        token_name: name of the API token.
        simulated: whether the model is simulated.
        dialect: wire format of the client.
        stream: whether the client requested a stream.
        at: time when the request arrived.
        status: HTTP status of the response; 499 if the client disconnected.
        code: error code; "" for an answer.
        sentence: message of the error; "" without one.
        path: the method used: `tool_use` (native calls), `json_fallback`, `constrained`, `template` or `text`; ""
            without an answer.
        calls: number of tool calls in the answer.
        changes: names of the changes to request and answer.
        requests: number of requests to the providers of all tried aliases, retries included.
        input_tokens: input tokens of the turns that gave the answer; null without an answer, or if the provider did not
            report them.
        output_tokens: output tokens of these turns; null as for `input_tokens`.
        cost: dollars that the provider reported; null without an answer, or if it reported no cost.
        duration_ms: time from the arrival of the request to the end of the response.
        upstream_ms: sum of the times of the requests to the providers.
    """

    id: int
    alias: str
    served_by: str
    model_name: str
    token_name: str
    simulated: bool
    dialect: Literal["chat", "messages", "responses"]
    stream: bool
    at: datetime
    status: int
    code: str
    sentence: str
    path: str
    calls: int
    changes: list[str]
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    duration_ms: float
    upstream_ms: float


class GatewayTraceListDocument(Schema):
    """Page of traces, newest first.

    Attributes:
        next: cursor of the next page; null on the last one, and with `q`.
        text_lag_seconds: age of the oldest trace that `q` cannot find yet; 0 if it can find all, and without `q`.
    """

    items: list[GatewayTraceDocument]
    next: int | None
    text_lag_seconds: float


class GatewayTraceDetailDocument(GatewayTraceDocument):
    """Trace with the names of its bodies.

    Attributes:
        bodies: names of the bodies that were kept; GET /gateway/traces/{trace_id}/{body} returns them.
    """

    bodies: list[str]

    @staticmethod
    def resolve_bodies(trace: GatewayTrace) -> list[str]:
        """Return the names of the bodies that were kept."""
        return [name for name in BODY_COLUMNS if getattr(trace, name) is not None]


class GatewayTraceQuery(QuerySchema):
    """Filter of the traces.

    Attributes:
        alias: name of an alias; "" for all.
        q: words and quoted phrases, as in the search of the site; the newest matches are returned. "" for no search.
        cursor: `next` of the previous page; null for the first page.
        limit: maximum number of traces of the page.
    """

    alias: Annotated[str, Field(max_length=100)] = ""
    q: Annotated[str, Field(max_length=200)] = ""
    cursor: Id | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = 50
