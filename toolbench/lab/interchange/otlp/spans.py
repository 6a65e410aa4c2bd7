"""Spans of a trial with attributes of OpenTelemetry's semantic conventions for GenAI, version 0.1.0.

The span of a trial is `invoke_agent`; each exchange is a span `chat` or `text_completion`, each tool call a span
`execute_tool`. The verdict is the event `gen_ai.evaluation.result` of the trial's span.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from toolbench.engine.bounds import parse_duration_ms
from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, Message
from toolbench.lab.interchange.file_json import decode_text
from toolbench.lab.interchange.otlp.attributes import (
    SPAN_CLIENT,
    SPAN_INTERNAL,
    STATUS_ERROR,
    build_attributes,
    build_span_id,
    build_trace_id,
    dump_json,
    render_time,
)
from toolbench.lab.models import Provider, Step, Trial
from toolbench.lab.traces.chat_requests import StoredChatRequest, list_objects, parse_chat_request
from toolbench.lab.traces.reading import StepWithDetails, list_steps
from toolbench.lab.traces.removed_bodies import explain_removed_bodies

CONVENTIONS_VERSION = "0.1.0"  # of open-telemetry/semantic-conventions-genai
_NUMBER_OPTIONS = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_MAX_TOKENS_NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_SCORE_BY_OUTCOME = {Trial.Outcome.PASS: 1.0, Trial.Outcome.FAIL: 0.0}


def build_spans(trial: Trial) -> list[JsonObject]:
    """Return the spans of a trial's last execution, beginning with the span of the trial.

    Args:
        trial: a finished trial with its run, its configuration, its steps and their bodies.
    """
    started_at = trial.started_at or trial.run.created_at
    trace_key = f"{trial.run.created_at.isoformat()}/{trial.run_id}/{trial.pk}/{trial.execution}"
    builder, steps = _SpanBuilder(trial, started_at, trace_key), list_steps(trial)
    # The duration of a trial excludes waits for the provider's rate control; the start times of its steps include them.
    last_end_ms = max((step.started_ms + step.duration_ms for step in steps), default=0.0)
    duration_ms = max(last_end_ms, parse_duration_ms(trial.duration_ms) or 0.0)
    return [builder.build_trial_span(duration_ms), *(builder.build_step_span(step) for step in steps)]


class _SpanBuilder:
    """Builder of the spans of one trial.

    Args:
        trial: the trial.
        started_at: start of the trial, or creation of the run if the start is unknown.
        trace_key: text that differs between executions, also of different installations.
    """

    def __init__(self, trial: Trial, started_at: datetime, trace_key: str) -> None:
        self._trial, self._started_at, self._trace_key = trial, started_at, trace_key
        self._provider = _name_provider(trial)
        self._root_id = build_span_id(trace_key, "trial")

    def build_trial_span(self, duration_ms: float) -> JsonObject:
        trial = self._trial
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": self._provider,
            "gen_ai.agent.name": trial.scenario,
            "gen_ai.agent.version": str(trial.scenario_version),
            "gen_ai.request.model": trial.config.model_name,
            "gen_ai.usage.input_tokens": trial.input_tokens,
            "gen_ai.usage.output_tokens": trial.output_tokens,
            "toolbench.trial": trial.pk,
            "toolbench.run": trial.run_id,
            "toolbench.configuration": str(trial.config),
            "toolbench.outcome": trial.outcome,
            "toolbench.failure_class": trial.failure_class or None,
            "toolbench.cause": trial.cause or None,
            "toolbench.simulated": trial.config.provider_kind == Provider.Kind.SIMULATED,
            "toolbench.imported": trial.run.imported,
            "toolbench.parity_pass": trial.parity_pass,
            "toolbench.bodies_removed": explain_removed_bodies(trial) or None,
        }
        error_type = (trial.failure_class or "_OTHER") if trial.outcome == Trial.Outcome.INFRA else ""
        span = self._build_span(f"invoke_agent {trial.scenario}", SPAN_INTERNAL, attributes, error_type, trial.sentence)
        times = self._build_times(0.0, duration_ms)
        events = list(self._iter_evaluations(times["endTimeUnixNano"]))
        return span | times | {"spanId": self._root_id, "events": events}

    def build_step_span(self, step: StepWithDetails) -> JsonObject:
        row = step.step
        name, kind, attributes = _describe_tool(step) if step.is_tool else self._describe_exchange(step)
        error_type = "" if row.ok else row.error_code or "_OTHER"
        span = self._build_span(name, kind, attributes, error_type, row.error_message)
        span |= self._build_times(step.started_ms, step.duration_ms)
        return span | {"spanId": build_span_id(self._trace_key, str(row.ordinal)), "parentSpanId": self._root_id}

    def _build_span(
        self, name: str, kind: int, attributes: JsonObject, error_type: str, error_message: str
    ) -> JsonObject:
        """Return a span without its id and times. It has no error if `error_type` is empty."""
        error_attributes = {"error.type": error_type or None}
        status = {"status": {"code": STATUS_ERROR, "message": error_message}} if error_type else {}
        fields = {"traceId": build_trace_id(self._trace_key), "name": name, "kind": kind}
        return fields | {"attributes": build_attributes(attributes | error_attributes)} | status

    def _build_times(self, started_ms: float, duration_ms: float) -> JsonObject:
        return {
            "startTimeUnixNano": render_time(self._started_at, started_ms),
            "endTimeUnixNano": render_time(self._started_at, started_ms + duration_ms),
        }

    def _iter_evaluations(self, ended_at: str) -> Iterator[JsonObject]:
        """Yield the verdict as an event at the end of the trial, if the trial has a verdict.

        Args:
            ended_at: end of the trial in nanoseconds since 1970, as text.
        """
        trial = self._trial
        if trial.outcome not in _SCORE_BY_OUTCOME:
            return
        attributes = {
            "gen_ai.evaluation.name": "toolbench",
            "gen_ai.evaluation.score.value": _SCORE_BY_OUTCOME[Trial.Outcome(trial.outcome)],
            "gen_ai.evaluation.score.label": trial.outcome,
            "gen_ai.evaluation.explanation": trial.sentence or None,
        }
        name = "gen_ai.evaluation.result"
        yield {"timeUnixNano": ended_at, "name": name, "attributes": build_attributes(attributes)}

    def _describe_exchange(self, step: StepWithDetails) -> tuple[str, int, JsonObject]:
        """Return the name, the kind and the attributes of the span of an exchange."""
        row, facts = step.step, step.facts
        request = parse_chat_request(bytes(row.body.request))
        has_prompt = any(message["role"] == "prompt" for message in request.messages)
        operation = "text_completion" if has_prompt else "chat"
        usage = get_object(facts.get("usage"))
        host, port = _read_address(row.url)
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": self._trial.config.model_name,
            **_build_option_attributes(request),
            "gen_ai.request.stream": True if facts.get("stream") else None,
            "gen_ai.response.model": row.model_echoed or None,
            "gen_ai.response.finish_reasons": _list_finish_reasons(row),
            "gen_ai.response.time_to_first_chunk": _to_seconds(row.first_byte_ms) if facts.get("stream") else None,
            "gen_ai.usage.input_tokens": row.input_tokens,
            "gen_ai.usage.output_tokens": row.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.get("cached_tokens"),
            "gen_ai.usage.reasoning.output_tokens": usage.get("reasoning_tokens"),
            "gen_ai.system_instructions": _dump_instructions(request),
            "gen_ai.input.messages": dump_json([_build_message(message) for message in request.messages]),
            "gen_ai.output.messages": dump_json([_build_answer(step)]) if row.ok else None,
            "gen_ai.tool.definitions": _dump_tools(request),
            "server.address": host,
            "server.port": port,
            "http.response.status_code": row.status,
            "toolbench.attempt": row.attempt,
            "toolbench.retry_reason": row.retry_reason or None,
            "toolbench.method_used": row.path or None,
            "toolbench.changes": _list_changes(facts) or None,
            "toolbench.findings": [str(finding.get("code")) for finding in list_objects(facts.get("findings"))] or None,
        }
        return f"{operation} {self._trial.config.model_name}", SPAN_CLIENT, attributes


def _describe_tool(step: StepWithDetails) -> tuple[str, int, JsonObject]:
    """Return the name, the kind and the attributes of the span of a tool call."""
    row, call = step.step, get_object(step.facts.get("call"))
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": row.tool_name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.get("id") or None,
        "gen_ai.tool.call.arguments": decode_text(row.body.request),
        "gen_ai.tool.call.result": decode_text(row.body.response),
        "toolbench.executed": bool(step.facts.get("executed")),
    }
    return f"execute_tool {row.tool_name}", SPAN_INTERNAL, attributes


def _name_provider(trial: Trial) -> str:
    """Return "anthropic", the name in the conventions, for a provider of that kind, else the provider's own name."""
    is_anthropic = trial.config.provider_kind == Provider.Kind.ANTHROPIC
    return "anthropic" if is_anthropic else trial.config.provider_name


def _build_option_attributes(request: StoredChatRequest) -> JsonObject:
    options: dict[str, Any] = {
        f"gen_ai.request.{name}": _to_float(request.get_option(name)) for name in _NUMBER_OPTIONS
    }
    limits = (request.get_option(name) for name in _MAX_TOKENS_NAMES)
    options["gen_ai.request.max_tokens"] = next((limit for limit in limits if isinstance(limit, int)), None)
    seed = request.get_option("seed")
    options["gen_ai.request.seed"] = seed if isinstance(seed, int) else None
    return options


def _list_changes(facts: JsonObject) -> list[str]:
    """Return the names of the transforms that changed the request or the answer, each once."""
    changes = (*list_objects(facts.get("request_changes")), *list_objects(facts.get("response_changes")))
    return list(dict.fromkeys(str(change.get("name")) for change in changes))


def _dump_instructions(request: StoredChatRequest) -> str | None:
    return dump_json([{"type": "text", "content": request.instructions}]) if request.instructions else None


def _dump_tools(request: StoredChatRequest) -> str | None:
    return dump_json([{"type": "function", **tool} for tool in request.tools]) if request.tools else None


def _build_message(message: Message) -> JsonObject:
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    calls = [
        {"id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for call in message.get("tool_calls", ())
    ]
    role = "user" if message["role"] == "prompt" else message["role"]
    return {"role": role, "parts": _build_parts("", message["content"], calls)}


def _build_answer(step: StepWithDetails) -> JsonObject:
    """Return the answer as an output message, with its calls after all repairs."""
    calls = list_objects(step.facts.get("calls"))
    parts = _build_parts(step.reasoning, str(step.facts.get("text") or ""), calls)
    return {"role": "assistant", "parts": parts, "finish_reason": step.step.finish_reason}


def _build_parts(reasoning: str, text: str, calls: list[JsonObject]) -> list[JsonObject]:
    parts: list[JsonObject] = [{"type": "reasoning", "content": reasoning}] if reasoning else []
    parts += [{"type": "text", "content": text}] if text else []
    names = ("id", "name", "arguments")
    return [*parts, *({"type": "tool_call", **{name: call.get(name) for name in names}} for call in calls)]


def _read_address(url: str) -> tuple[str | None, int | None]:
    """Return the host and the port of a URL; the port is None if it is unknown.

    Both are None if the URL has no host or is malformed, as it can be in an imported trial.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None, None
    if host is None:
        return None, None
    return host, port or {"http": 80, "https": 443}.get(parts.scheme)


def _list_finish_reasons(step: Step) -> list[str] | None:
    """Return the finish reason of an exchange as a list.

    Returns:
        None if a successful exchange has no finish reason; ["error"] if a failed one has none.
    """
    if step.finish_reason:
        return [step.finish_reason]
    return None if step.ok else ["error"]


def _to_float(value: object) -> float | None:
    """Return a number as float; None for another value and for a number that is out of range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _to_seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
