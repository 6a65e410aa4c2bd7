"""One turn: build the request from policy and messages, and parse the answer into text and calls."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from toolbench.engine.events import AnswerDecoder, Ask, OmittedParameter, OnDelta, Request
from toolbench.engine.loop.ids import list_call_ids, repair_ids
from toolbench.engine.loop.turn_setup import TurnSetup
from toolbench.engine.methods.argument_repair import (
    build_departure_errors,
    get_mode,
    list_unreadable_calls,
    repair_calls,
)
from toolbench.engine.methods.native import NativeMethod
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.methods.streaming_calls import CallWatchingDecoder
from toolbench.engine.policy.settings import Policy
from toolbench.engine.strict_json import encode_object, write_json
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.transforms import apply_calls, apply_message, apply_request, apply_response
from toolbench.engine.transforms.reasoning import REASONING_HISTORY
from toolbench.engine.types import (
    Finding,
    JsonObject,
    Message,
    ReadArguments,
    ToolCall,
    TransformChange,
    Turn,
    get_called_function,
)
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.findings import list_findings
from toolbench.engine.wire_formats.parse_answer import get_message_text
from toolbench.engine.wire_formats.published_standard import keep_standard_calls

USAGE_OPTIONS: JsonObject = {"include_usage": True}


def build_ask(
    setup: TurnSetup,
    turn: int,
    messages: Sequence[Message],
    *,
    with_tools: bool,
    must_call: bool = False,
    on_delta: OnDelta = lambda delta: None,
) -> Ask:
    """Return the request of one turn with the decoder of its answer.

    Args:
        setup: the setup of the run.
        turn: number of the turn, from 0.
        messages: the conversation without the system text; not changed.
        with_tools: whether the request has tools.
        must_call: whether the run fails without a call and has none yet; a constraint then allows only calls.
        on_delta: called with each part of a streamed answer.
    """

    def read(answer: ChatAnswer) -> Turn:
        return read_answer(setup, answer, with_tools=with_tools, taken_ids=frozenset(list_call_ids(messages)))

    decoder = _build_decoder(setup, read, on_delta, with_tools=with_tools)
    return Ask(build_request(setup, turn, messages, with_tools=with_tools, must_call=must_call), decoder)


def _build_decoder(
    setup: TurnSetup, read: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, with_tools: bool
) -> AnswerDecoder:
    tools = setup.tools.definitions if with_tools else ()
    watch = setup.call_method.build_watcher(tools) if setup.stream and tools else None
    if watch is None:
        return setup.wire.decoder(read, on_delta, stream=setup.stream)
    return CallWatchingDecoder(lambda payload: setup.wire.decoder(read, payload, stream=True), on_delta, watch)


def build_request(
    setup: TurnSetup, turn: int, messages: Sequence[Message], *, with_tools: bool, must_call: bool = False
) -> Request:
    """Return the request of one turn.

    If the body has no `tools`, `parallel_tool_calls` is left out: some endpoints refuse it then.
    """
    system = [{"role": "system", "content": setup.system}] if setup.system.strip() else []
    sent_messages, changes = apply_message(
        [*system, *messages],
        _list_message_transforms(setup.policy),
        setup.build_transform_context(with_tools=with_tools),
    )
    body: JsonObject = {"model": setup.model, "messages": sent_messages}
    tools, tools_json = (setup.tools.definitions, list(setup.tools_json)) if with_tools else ((), [])
    body = setup.call_method.prepare_body(body, tools, tools_json, _get_tool_choice(setup.policy, must_call))
    if with_tools:
        changes = (*setup.tool_changes, *changes)
    options = {name: value for name, value in setup.options.items() if name not in body}
    if "tools" not in body:
        options.pop("parallel_tool_calls", None)
    stream_fields = _merge_stream_options(options.pop("stream_options", USAGE_OPTIONS)) if setup.stream else {}
    body, body_changes = apply_request({**body, **options, **stream_fields}, setup.policy.request_transforms)
    wire_body, wire_changes = setup.wire.encode(body)
    left_out = tuple(omitted for name, omitted in setup.left_out.items() if name in wire_body)
    wire_changes = (*wire_changes, *(_build_omission_change(omitted, wire_body[omitted.name]) for omitted in left_out))
    wire_body = {name: value for name, value in wire_body.items() if name not in setup.left_out}
    return Request(
        turn=turn,
        path=setup.wire.path,
        body=encode_object(wire_body, setup.get_known_json(wire_body)),
        tools_sent=with_tools,
        stream=setup.stream,
        changes=(*changes, *body_changes, *wire_changes),
        cut_retries=setup.policy.cut_stream_retries if setup.stream else 0,
        left_out=left_out,
    )


def _build_omission_change(left_out: OmittedParameter, value: Any) -> TransformChange:
    return TransformChange("request", "drop_refused_parameters", f"$.{left_out.name}", write_json(value), "")


def _list_message_transforms(policy: Policy) -> tuple[str, ...]:
    """Return the names of the message transforms.

    In order: the one for the reasoning history, those of the policy, and the one that fits call ids to the endpoint's
    pattern, if it has one.
    """
    reasoning = REASONING_HISTORY.get(policy.reasoning_history)
    return (
        *([reasoning] if reasoning else []),
        *policy.message_transforms,
        *(["tool_call_ids_fit_pattern"] if policy.tool_id_pattern else []),
    )


def _merge_stream_options(options: Any) -> JsonObject:
    return {"stream": True, **({} if options is None else {"stream_options": options})}


def _get_tool_choice(policy: Policy, must_call: bool) -> RequestChoice:
    """Return the policy's tool choice; "auto" becomes "required" if a constrained answer must have a call."""
    is_call_required = must_call and policy.method == "constrained" and policy.tool_choice == "auto"
    return "required" if is_call_required else policy.tool_choice


def read_answer(setup: TurnSetup, answer: ChatAnswer, *, with_tools: bool, taken_ids: Collection[str] = ()) -> Turn:
    """Parse an answer: apply the transforms, find the calls, repair them, and keep those that may run.

    The message for the history has the kept calls only, so that each call has a result. Without tools no call is kept.
    Generated ids differ from `taken_ids`; an id from the endpoint is kept even if it is among them.
    """
    policy = setup.policy
    message, changes = apply_response(
        answer.message, policy.response_transforms, setup.build_transform_context(with_tools=with_tools)
    )
    message, departures = _keep_standard_calls(setup, message, answer.message) if with_tools else (message, ())
    parsed = setup.call_method.read(message, setup.tools.definitions if with_tools else ())
    reported = _list_reported_findings(setup, parsed, answer.finish_reason)
    calls, call_changes = apply_calls(parsed.calls, policy.tool_call_transforms if with_tools else ())
    mode = get_mode(setup.call_method.method) if with_tools else ""
    repairable_calls, values = (calls, () if call_changes else parsed.values) if with_tools else ((), ())
    repaired = repair_calls(
        repairable_calls, policy, mode=mode, is_truncated=answer.finish_reason == "length", values=values
    )
    new_taken_ids = frozenset(taken_ids).difference(list_call_ids([answer.message]))
    kept = [] if answer.cut else _repair_calls(repaired.calls, new_taken_ids)[: setup.calls_kept]
    return Turn(
        message=setup.call_method.build_assistant_message(_build_history_message(parsed.message or message), kept),
        text=parsed.text,
        calls=tuple(map(_build_tool_call, kept, repaired.reads)),
        calls_found=tuple(map(_build_tool_call, parsed.calls)),
        ignored_calls=len(calls) - len(kept),
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        path=parsed.path,
        changes=(*changes, *parsed.changes, *call_changes, *repaired.changes),
        findings=(*answer.findings, *departures, *parsed.findings, *repaired.findings, *reported),
        upstream=answer.upstream,
        model_echoed=answer.model_echoed,
        fingerprint=answer.fingerprint,
        cut=answer.cut,
        continues=answer.continues,
        parse_errors=(
            *build_departure_errors(departures, answer.message, mode),
            *list_unreadable_calls(parsed, mode),
            *repaired.parse_errors,
        ),
        not_executed=parsed.not_executed or bool(departures and not kept),
        mode=mode,
    )


def _keep_standard_calls(setup: TurnSetup, message: Message, received: Message) -> tuple[Message, tuple[Finding, ...]]:
    """Remove calls that depart from the published standard.

    Only for the method native and a policy that reads standard calls only; otherwise return the message unchanged.
    """
    is_standard_only = setup.policy.wire_standard_only and isinstance(setup.call_method, NativeMethod)
    return keep_standard_calls(message, received) if is_standard_only else (message, ())


def _list_reported_findings(setup: TurnSetup, parsed: ParsedAnswer, finish_reason: str | None) -> Iterator[Finding]:
    """Yield the findings on the format of an answer, without those that are usual for the endpoint.

    `arguments_missing` is left out if the policy reads standard calls only, since no arguments are added then.
    """
    excluded_codes = {*setup.wire.usual_findings, *setup.policy.usual_findings}
    if setup.policy.wire_standard_only:
        excluded_codes.add("arguments_missing")
    calls = parsed.calls if parsed.path == "tool_use" else ()
    findings = list_findings(calls, parsed.text, finish_reason)
    return (finding for finding in findings if finding.code not in excluded_codes)


def _repair_calls(calls: list[JsonObject], taken_ids: Collection[str]) -> list[JsonObject]:
    """Return the calls with trimmed names and unique ids.

    Missing arguments become `{}`; other fields are unchanged.
    """
    ids = repair_ids((_render_scalar(call.get("id")) for call in calls), taken_ids)
    return [_replace_id(call, new_id) for call, new_id in zip(calls, ids, strict=True)]


def _replace_id(call: JsonObject, new_id: str) -> JsonObject:
    function = get_called_function(call)
    arguments = function.get("arguments")
    normalised_function = {
        **function,
        "name": _render_scalar(function.get("name")),
        "arguments": "{}" if arguments is None else arguments,
    }
    return {**call, "id": new_id, "type": "function", "function": normalised_function}


def _build_tool_call(call: JsonObject, read: ReadArguments | None = None) -> ToolCall:
    function = get_called_function(call)
    return ToolCall(
        _render_scalar(call.get("id")), _render_scalar(function.get("name")), function.get("arguments"), read
    )


def _render_scalar(value: Any) -> str:
    return str(value).strip() if isinstance(value, (str, int)) else ""


def _build_history_message(message: Message) -> Message:
    """Return the message without its calls, for the history; unknown fields are kept unless they are null."""
    excluded_fields = ("role", "content", "tool_calls", "function_call")
    other_fields = {name: value for name, value in message.items() if name not in excluded_fields and value is not None}
    return {"role": "assistant", "content": get_message_text(message), **other_fields}
