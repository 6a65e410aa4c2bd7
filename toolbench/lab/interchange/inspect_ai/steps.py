"""The steps of one sample of an Inspect AI log: its model calls and its tool calls, in the order of its transcript."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from toolbench.engine.messages import JsonObject
from toolbench.engine.wires.usage import UsageReader
from toolbench.lab.interchange.create_run import Columns, StepSeed
from toolbench.lab.interchange.plausible_figures import FigureCheck
from toolbench.lab.interchange.row_json import BadRow
from toolbench.lab.traces.step_facts import column_text, dump

_ATTACHMENT = "attachment://"
_DEEPEST = 100
_MESSAGES = "messages"
MAX_PUT_BACK = 256 << 20  # characters and values of one sample's requests, once texts and messages are put back
MAX_PICKED = 100_000  # messages of one request


def sample_steps(sample: JsonObject, check: FigureCheck) -> list[StepSeed]:
    """Texts that the log keeps apart are put back in their places."""
    events = [event for event in sample.get("events") or [] if isinstance(event, dict)]
    whole = _Sample(sample, _began(events), check)
    steps: list[StepSeed] = []
    turn = -1
    for event in events:
        if event.get("event") == "model" and not event.get("pending"):
            turn += 1
            steps.append(_exchange(whole, event, turn=turn, ordinal=len(steps)))
        elif event.get("event") == "tool" and not event.get("pending"):
            steps.append(_tool(whole, event, turn=max(turn, 0), ordinal=len(steps)))
    return steps


def text_of(value: object) -> str:
    """Text as it is, nothing as "", anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dump(value).decode("ascii")


class _Sample:
    """What events refer to: attachments, and the pools of messages and of raw calls."""

    def __init__(self, sample: JsonObject, began: datetime | None, check: FigureCheck) -> None:
        self.check = check
        pools = sample.get("events_data")
        pools = pools if isinstance(pools, dict) else {}
        attachments = sample.get("attachments")
        self._attachments = attachments if isinstance(attachments, dict) else {}
        self._messages = pools.get("messages") or sample.get("message_pool") or []
        self._calls = pools.get("calls") or sample.get("call_pool") or []
        self._began = began
        self._left = MAX_PUT_BACK

    def started_ms(self, event: JsonObject) -> float:
        at = _time(event)
        after = (at - self._began).total_seconds() if at and self._began else 0.0
        return self.check.read("started_ms", after, per_unit=1000) or 0.0

    def inputs(self, event: JsonObject) -> Any:
        return event.get("input") or _picked(event.get("input_refs"), self._messages)

    def raw_request(self, call: JsonObject) -> Any:
        request = call.get("request")
        if call.get("call_refs") is None or not isinstance(request, dict):
            return request
        return request | {str(call.get("call_key") or _MESSAGES): _picked(call["call_refs"], self._calls)}

    def put_back(self, value: Any, depth: int = 0) -> Any:
        """`value` with every attachment in its place.

        One text may be named many times: what all of them come to is limited, for the time to stay in proportion to
        the file. Raises BadRow."""
        if isinstance(value, str) and _ATTACHMENT in value[:20]:
            value = self._attachments.get(value.removeprefix(_ATTACHMENT), value)
        self._left -= len(value) + 1 if isinstance(value, str) else 1
        if self._left < 0:
            raise BadRow(f"the requests of one sample come to more than {MAX_PUT_BACK:,} characters")
        if isinstance(value, str):
            return value
        if depth > _DEEPEST:
            return value
        if isinstance(value, list):
            return [self.put_back(one, depth + 1) for one in value]
        if isinstance(value, dict):
            return {key: self.put_back(one, depth + 1) for key, one in value.items()}
        return value


def _exchange(sample: _Sample, event: JsonObject, *, turn: int, ordinal: int) -> StepSeed:
    """The raw call where the log has it; else its own account of input and output."""
    call, output = _object(event.get("call")), _object(event.get("output"))
    raw = bool(call.get("request"))
    told = {key: event.get(key) for key in ("model", "tools", "tool_choice", "config")}
    request = sample.raw_request(call) if raw else told | {_MESSAGES: sample.inputs(event)}
    response = call.get("response") if raw else output
    message = sample.put_back(_object(_first(output.get("choices")).get("message")))
    usage, calls = UsageReader(output.get("usage")), _calls(message)
    tokens = {name: usage.tokens(name) for name in ("input_tokens", "output_tokens")}
    for finding in usage.findings:
        sample.check.note(finding.path.rpartition(".")[2])
    error = text_of(event.get("error") or output.get("error"))
    body = _bodies(sample.put_back(request), sample.put_back(response))
    facts = {
        "text": text_of(message.get("content")),
        "calls_found": calls,
        "calls": calls,
        "message": message or None,
        "findings": [asdict(finding) for finding in usage.findings],
        "usage": tokens if usage.present else None,
        "request_changes": [],
        "response_changes": [],
    }
    columns = _step("exchange", turn, ordinal, sample, event) | {
        **tokens,
        "path": "tool_use" if calls else "",
        "finish_reason": column_text(_first(output.get("choices")).get("stop_reason"), 40),
        "model_echoed": column_text(output.get("model"), 200),
        "error_code": "logged_error" if error else "",
        "error_message": column_text(error, 20_000),
        "ok": not error,
        "request_bytes": len(body["request"]),
        "response_bytes": len(body["response"]),
    }
    return StepSeed(columns, body | {"facts": dump(facts)})


def _tool(sample: _Sample, event: JsonObject, *, turn: int, ordinal: int) -> StepSeed:
    error = _object(event.get("error"))
    arguments = sample.put_back(event.get("arguments"))
    body = _bodies(arguments, sample.put_back(event.get("result")))
    call = {"id": text_of(event.get("id")), "name": text_of(event.get("function")), "arguments": arguments}
    ok = not error and not event.get("failed")
    facts = {"call": call, "arguments": arguments, "executed": True, "envelope": {"ok": ok}, "schema_errors": []}
    columns = _step("tool", turn, ordinal, sample, event) | {
        "tool_name": column_text(event.get("function"), 200),
        "error_code": column_text(error.get("type"), 60),
        "error_message": column_text(error.get("message"), 20_000),
        "ok": ok,
        "response_bytes": len(body["response"]),
    }
    return StepSeed(columns, body | {"facts": dump(facts)})


def _step(kind: str, turn: int, ordinal: int, sample: _Sample, event: JsonObject) -> Columns:
    took = sample.check.read("duration_ms", event.get("working_time"), per_unit=1000)
    place = {"kind": kind, "execution": 1, "turn": turn, "ordinal": ordinal, "attempt": 1}
    return place | {"started_ms": sample.started_ms(event), "duration_ms": took or 0.0}


def _calls(message: JsonObject) -> list[JsonObject]:
    given = message.get("tool_calls")
    own = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    return [{"id": one.get("id"), "name": one.get("function"), "arguments": one.get("arguments")} for one in own]


def _bodies(request: Any, response: Any) -> dict[str, bytes]:
    return {"request": _bytes(request), "response": _bytes(response)}


def _bytes(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return dump(value)


def _picked(refs: Any, pool: Any) -> list[Any]:
    """Ranges of a pool, first and behind the last. Raises BadRow."""
    if not isinstance(refs, list) or not isinstance(pool, list):
        return []
    pairs = [
        pair for pair in refs if isinstance(pair, list) and len(pair) == 2 and all(isinstance(n, int) for n in pair)
    ]
    if sum(len(range(*slice(start, end).indices(len(pool)))) for start, end in pairs) > MAX_PICKED:
        raise BadRow(f"a request of a sample refers to more than {MAX_PICKED:,} messages")
    return [one for start, end in pairs for one in pool[start:end]]


def _began(events: list[JsonObject]) -> datetime | None:
    times = [at for at in map(_time, events) if at]
    return min(times, default=None)


def _time(event: JsonObject) -> datetime | None:
    try:
        at = parse_datetime(str(event.get("timestamp")))
    except ValueError:
        return None
    return at if at and at.tzinfo else None


def _first(value: Any) -> JsonObject:
    return _object(value[0]) if isinstance(value, list) and value else {}


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
